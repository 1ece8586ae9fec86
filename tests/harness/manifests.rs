//! Manifests of other projects, read from their modules and created as they are.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use http::Request;
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Where CRDs are.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The objects of a file of YAML, in their order.
pub(crate) fn documents(file: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    let all = serde_norway::Deserializer::from_str(&text).map(Value::deserialize);
    all.filter(|document| !matches!(document, Ok(Value::Null)))
        .map(|document| document.with_context(|| format!("{} is no YAML", file.display())))
        .collect()
}

/// The objects of all files of a folder.
pub(crate) fn documents_in(folder: &Path) -> Result<Vec<Value>> {
    let files = fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    let all = files.map(|file| documents(&file?.path())).collect::<Result<Vec<_>>>()?;
    Ok(all.concat())
}

/// Creates CRDs; they may not be served yet when this returns.
pub(crate) async fn define(client: &Client, definitions: &[Value]) -> Result<()> {
    for definition in definitions {
        let _: Value = client.request(post(DEFINITIONS, definition)?).await?;
    }
    Ok(())
}

/// Creates an object that is not there yet.
pub(crate) async fn create<K>(api: Api<K>, object: Value) -> Result<()>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + DeserializeOwned,
{
    match api.create(&PostParams::default(), &serde_json::from_value(object)?).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// The request that reads a path.
pub(crate) fn get(path: &str) -> Result<Request<Vec<u8>>> {
    Ok(Request::get(path).body(vec![])?)
}

/// The request that creates an object below a path.
pub(crate) fn post(path: &str, object: &Value) -> Result<Request<Vec<u8>>> {
    Ok(Request::post(path).header("content-type", "application/json").body(serde_json::to_vec(object)?)?)
}
