//! Reads the cluster for `troupe check`. It changes nothing: an access review is a query in the form of a create.

use super::{Facts, Place, policies};
use crate::{
    crds,
    preflight::{
        Options,
        look::{definitions, get, list, originals, reviewed},
    },
};
use decide::plan::JobKind;
use futures::future::BoxFuture;
use kube::Client;
use sandbox::Plugins;
use serde_json::Value;
use troupe::{api::resource::Resource, clock::Clock};

/// Collects the facts about the host that is installed at this place.
pub fn look<'a>(client: &'a Client, plugins: &'a Plugins, place: Place) -> BoxFuture<'a, Facts> {
    Box::pin(facts(client, plugins, place))
}

async fn facts(client: &Client, plugins: &Plugins, place: Place) -> Facts {
    let kinds = plugins.kinds();
    let options =
        Options { namespace: None, service_account: Some((place.namespace.clone(), place.service_account.clone())) };
    let (own, account) = (place.namespace.as_str(), format!("spec.serviceAccountName={}", place.service_account));
    let pods = list(client, &Resource::new("v1", "Pod", "pods"), Some(account)).await;
    let is_here = |pod: &Value| pod["metadata"]["namespace"] == own;
    let [policies, bindings] = policies::resources();
    Facts {
        now: Clock::system().now(),
        namespace: get(client, &Resource::new("v1", "Namespace", "namespaces"), None, own).await,
        hosts: pods.map(|pods| pods.into_iter().filter(is_here).collect()),
        lease: get(client, &Resource::new("coordination.k8s.io/v1", "Lease", "leases"), Some(own), "troupe").await,
        originals: originals(client).await,
        definitions: definitions(client, &versions(&kinds)).await,
        rights: reviewed(client, &options, plugins).await,
        policies: list(client, &policies, None).await,
        bindings: list(client, &bindings, None).await,
        parameters: get(client, &Resource::new("v1", "ConfigMap", "configmaps"), Some(own), "troupe-fence").await,
        plugins: list(client, &Resource::new("troupe.dev/v1alpha1", "Plugin", "plugins"), None).await,
        kinds,
        place,
    }
}

/// Returns the names of the definitions that the host needs, those of the kinds of job and that of Plugin, each with the
/// version that Troupe uses.
fn versions(kinds: &[JobKind]) -> Vec<(String, String)> {
    let of_jobs = kinds.iter().map(|kind| (kind.crd(), kind.version.clone()));
    let plugins = crds::all().into_iter().filter_map(|crd| {
        let version = crd.spec.versions.first()?.name.clone();
        crd.metadata.name.filter(|name| name == "plugins.troupe.dev").map(|name| (name, version))
    });
    of_jobs.chain(plugins).collect()
}
