//! Reads one object.

use crate::{
    api::resource::Resource,
    install::preflight::{Read, ReadError},
    write::apply::send,
};
use kube::{Client, api::GetParams};
use serde_json::Value;

/// Returns an object, or `None` if there is no such object.
pub(super) async fn get(
    client: &Client,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
) -> Read<Option<Value>> {
    let request = resource.requests(namespace).get(name, &GetParams::default());
    match send(client, request.map_err(|error| ReadError::new(&error))?).await {
        Err(error) if error.code() == Some(404) => Ok(None),
        found => found.map(Some).map_err(|error| ReadError::new(&error)),
    }
}
