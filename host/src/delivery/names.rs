//! Whether the API server calls the kinds of a plugin what the plugin calls them. Those of Kubernetes are known without it.

use crate::error::chain;
use decide::{plan::Descriptor, vet::is_kubernetes};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;
use std::collections::BTreeSet;

/// Kind, version and plural of everything that the plugin has the host watch, but for kinds of Kubernetes.
fn foreign(descriptor: &Descriptor) -> BTreeSet<(String, &str, &str)> {
    let kinds = descriptor.kinds.iter().map(|kind| (kind.api_version(), kind.kind.as_str(), kind.plural.as_str()));
    let children = descriptor.children.iter().filter(|child| !is_kubernetes(child.group()));
    kinds.chain(children.map(|child| (child.api_version.clone(), child.kind.as_str(), child.plural.as_str()))).collect()
}

/// What is called otherwise, or why that cannot be found out.
#[derive(Debug, thiserror::Error)]
pub(super) enum NamesError {
    #[error("{api_version}: {other}")]
    Mismatch { api_version: String, other: Mismatch },
    #[error("failed to look up the kinds of {api_version}: {}", chain(source))]
    LookUp { api_version: String, source: kube::Error },
}

/// A kind and a plural of the API server, of which the plugin has only one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API server calls {} {}, and not {} {}", there.0, there.1, here.0, here.1)]
pub(super) struct Mismatch {
    there: (String, String),
    here: (String, String),
}

/// Kinds and plurals agree, as far as the API server knows them; those that it does not serve cannot be wrong yet.
///
/// # Errors
/// What is called otherwise, or why that cannot be found out.
pub(super) async fn check(client: &Client, descriptor: &Descriptor) -> Result<(), NamesError> {
    for (api_version, kind, plural) in foreign(descriptor) {
        let resources = match client.list_api_group_resources(&api_version).await {
            Ok(list) => list.resources,
            // By its code: the answer for a group that nobody serves is plain text and has no reason.
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(source) => return Err(NamesError::LookUp { api_version, source }),
        };
        agree(&resources, kind, plural).map_err(|other| NamesError::Mismatch { api_version, other })?;
    }
    Ok(())
}

fn agree(resources: &[APIResource], kind: &str, plural: &str) -> Result<(), Mismatch> {
    // `widgets/status` has the kind Widget, too.
    let mut whole = resources.iter().filter(|it| !it.name.contains('/'));
    match whole.find(|it| (it.kind == kind) != (it.name == plural)) {
        Some(other) => Err(Mismatch {
            there: (other.kind.clone(), other.name.clone()),
            here: (kind.to_owned(), plural.to_owned()),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(kind: &str, name: &str) -> APIResource {
        APIResource { kind: kind.into(), name: name.into(), ..APIResource::default() }
    }

    #[test]
    fn kind_and_plural_are_those_of_one_resource() {
        let served = [resource("Widget", "widgets"), resource("Widget", "widgets/status"), resource("Vault", "vaults")];
        assert_eq!(agree(&served, "Widget", "widgets"), Ok(()));
        assert_eq!(agree(&served, "Gadget", "gadgets"), Ok(()), "not served yet");
        for (kind, plural) in [("Widget", "vaults"), ("Gadget", "vaults"), ("Widget", "gadgets")] {
            assert!(agree(&served, kind, plural).is_err(), "{kind} {plural}");
        }
    }
}
