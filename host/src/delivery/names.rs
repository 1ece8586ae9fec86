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

/// Kinds and plurals agree, as far as the API server knows them; those that it does not serve cannot be wrong yet.
///
/// # Errors
/// What is called otherwise, or why that cannot be told.
pub(super) async fn check(client: &Client, descriptor: &Descriptor) -> Result<(), String> {
    for (api_version, kind, plural) in foreign(descriptor) {
        let resources = match client.list_api_group_resources(&api_version).await {
            Ok(list) => list.resources,
            // By its code: the answer for a group that nobody serves is plain text and has no reason.
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            Err(error) => return Err(format!("failed to look up the kinds of {api_version}: {}", chain(&error))),
        };
        agree(&resources, kind, plural).map_err(|message| format!("{api_version}: {message}"))?;
    }
    Ok(())
}

fn agree(resources: &[APIResource], kind: &str, plural: &str) -> Result<(), String> {
    // `widgets/status` has the kind Widget, too.
    let mut whole = resources.iter().filter(|it| !it.name.contains('/'));
    match whole.find(|it| (it.kind == kind) != (it.name == plural)) {
        Some(other) => Err(format!(
            "the API server calls {} {}, the plugin calls {kind} {plural}; the plugin has to be mended",
            other.kind, other.name
        )),
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
