//! Whether the API server calls a kind what a plugin calls it. Those of Kubernetes are known without it.

use crate::{api::resource::Resource, error::chain};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;

/// What is called otherwise, or why that cannot be found out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NamesError {
    #[error("{api_version}: {other}")]
    Mismatch { api_version: String, other: Mismatch },
    #[error("failed to look up the kinds of {api_version}: {}", chain(source))]
    LookUp { api_version: String, source: kube::Error },
}

/// A kind and a plural of the API server, of which the plugin has only one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API server calls {} {}, and not {} {}", there.0, there.1, here.0, here.1)]
pub(crate) struct Mismatch {
    there: (String, String),
    here: (String, String),
}

/// Looks up whether the kind and the plural of this resource agree. One that the API server does not serve cannot be wrong
/// yet. Returns whether it is served.
///
/// # Errors
/// What is called otherwise, or why that cannot be found out.
pub(crate) async fn check(client: &Client, resource: &Resource) -> Result<bool, NamesError> {
    match resources(client, resource).await {
        Ok(resources) => agree(&resources, resource),
        Err(source) => Err(NamesError::LookUp { api_version: resource.api_version(), source }),
    }
}

/// Returns the resources of the API version of this one, none if the API server does not serve that.
///
/// # Errors
/// If the API server refuses, or does not answer.
pub(super) async fn resources(client: &Client, resource: &Resource) -> Result<Vec<APIResource>, kube::Error> {
    let listed = if resource.group.is_empty() {
        client.list_core_api_resources(&resource.version).await
    } else {
        client.list_api_group_resources(&resource.api_version()).await
    };
    match listed {
        Ok(list) => Ok(list.resources),
        // By its code: the answer for a group that nobody serves is plain text and has no reason.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(vec![]),
        Err(error) => Err(error),
    }
}

/// Returns whether the resource is among those of its API version.
///
/// # Errors
/// What is called otherwise.
pub(super) fn agree(resources: &[APIResource], resource: &Resource) -> Result<bool, NamesError> {
    named(resources, &resource.kind, &resource.plural)
        .map_err(|other| NamesError::Mismatch { api_version: resource.api_version(), other })
}

fn named(resources: &[APIResource], kind: &str, plural: &str) -> Result<bool, Mismatch> {
    // `widgets/status` has the kind Widget, too.
    let whole = || resources.iter().filter(|it| !it.name.contains('/'));
    match whole().find(|it| (it.kind == kind) != (it.name == plural)) {
        Some(other) => Err(Mismatch {
            there: (other.kind.clone(), other.name.clone()),
            here: (kind.to_owned(), plural.to_owned()),
        }),
        None => Ok(whole().any(|it| it.kind == kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(kind: &str, name: &str) -> APIResource {
        APIResource { kind: kind.into(), name: name.into(), ..APIResource::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_served_is_found_in_the_core_group_and_in_others() {
        let client = sim::Sim::new(sim::Options::default()).client("host");
        let core = [("v1", "ConfigMap", "configmaps"), ("batch/v1", "Job", "jobs")];
        let unknown = [("v1", "Gadget", "gadgets"), ("example.com/v1", "Gadget", "gadgets")];
        for (wanted, of) in [(true, core), (false, unknown)] {
            for (api_version, kind, plural) in of {
                let is_served = check(&client, &Resource::new(api_version, kind, plural)).await.unwrap();
                assert_eq!(is_served, wanted, "{api_version} {kind}");
            }
        }
    }

    #[test]
    fn kind_and_plural_are_those_of_one_resource() {
        let served = [resource("Widget", "widgets"), resource("Widget", "widgets/status"), resource("Vault", "vaults")];
        assert_eq!(named(&served, "Widget", "widgets"), Ok(true));
        assert_eq!(named(&served, "Gadget", "gadgets"), Ok(false), "not served yet");
        for (kind, plural) in [("Widget", "vaults"), ("Gadget", "vaults"), ("Widget", "gadgets")] {
            assert!(named(&served, kind, plural).is_err(), "{kind} {plural}");
        }
    }
}
