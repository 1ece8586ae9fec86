//! Definitions without rules about values, as earlier versions had them, and the change from them to those of today.

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, ResourceExt, api::PostParams};
use serde_json::Value;

/// What a schema says about values beside their type.
const RULES: [&str; 9] = [
    "minimum",
    "maximum",
    "pattern",
    "enum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxLength",
    "x-kubernetes-validations",
];

/// Returns the definition without them.
pub(crate) fn lenient(crd: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut json = serde_json::to_value(crd).unwrap();
    for version in json["spec"]["versions"].as_array_mut().unwrap() {
        let schema = version.pointer_mut("/schema/openAPIV3Schema").unwrap();
        schema.as_object_mut().unwrap().remove("x-kubernetes-validations");
        strip(&mut schema["properties"]["spec"]);
    }
    serde_json::from_value(json).unwrap()
}

fn strip(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_schema = fields.contains_key("type") || fields.contains_key("x-kubernetes-int-or-string");
            fields.retain(|name, _| !(is_schema && RULES.contains(&name.as_str())));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Replaces the definitions in the cluster by these.
pub(crate) async fn apply(client: &Client, crds: &[CustomResourceDefinition]) -> Result<()> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in crds {
        let stored = api.get(&crd.name_any()).await?;
        let mut new = crd.clone();
        new.metadata.resource_version = stored.metadata.resource_version;
        api.replace(&crd.name_any(), &PostParams::default(), &new).await?;
    }
    Ok(())
}
