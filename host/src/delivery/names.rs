//! Whether the API server calls the kinds of a plugin what the plugin calls them.

use crate::api::{
    names::{self, NamesError},
    resource::Resource,
};
use decide::{plan::Descriptor, vet::is_kubernetes};
use kube::Client;
use std::collections::BTreeSet;

/// Everything that the plugin has the host watch, but for kinds of Kubernetes.
fn foreign(descriptor: &Descriptor) -> BTreeSet<Resource> {
    let children = descriptor.children.iter().filter(|child| !is_kubernetes(child.group()));
    descriptor.kinds.iter().map(Resource::from).chain(children.map(Resource::from)).collect()
}

/// Kinds and plurals agree, as far as the API server knows them. Those that it does not serve yet are looked up again
/// before they are listed.
///
/// # Errors
/// What is called otherwise, or why that cannot be found out.
pub(super) async fn check(client: &Client, descriptor: &Descriptor) -> Result<(), NamesError> {
    for resource in foreign(descriptor) {
        names::check(client, &resource).await?;
    }
    Ok(())
}
