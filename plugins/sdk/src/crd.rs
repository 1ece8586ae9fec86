//! The CRD of a kind, made from the types of its spec and status, and schemas that CRDs share.

mod definition;
mod document;

pub use definition::{definition, yaml};
pub use document::{document, of, rule};

#[cfg(feature = "crd")]
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

impl JsonSchema for crate::UserTemplate {
    fn schema_name() -> Cow<'static, str> {
        "PodTemplate".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        pod_template(generator)
    }
}

/// Returns the schema of a pod template. It checks containers and their names, and preserves all other fields, so that
/// it accepts integer quantities, nulls and the fields of later Kubernetes versions.
pub fn pod_template(_: &mut SchemaGenerator) -> Schema {
    let container = serde_json::json!({
        "type": "object",
        "required": ["name"],
        "properties": { "name": { "type": "string" } },
        "x-kubernetes-preserve-unknown-fields": true,
    });
    json_schema!({
        "type": "object",
        "nullable": true,
        "properties": {
            "metadata": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "spec": {
                "type": "object",
                "required": ["containers"],
                "properties": {
                    "containers": { "type": "array", "nullable": true, "items": container.clone() },
                    "initContainers": { "type": "array", "items": container },
                },
                "x-kubernetes-preserve-unknown-fields": true,
            },
        },
    })
}

/// Returns the schema of a map from resource name to quantity. A quantity is an integer or a string.
pub fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "x-kubernetes-int-or-string": true },
    })
}

/// Returns the schema of an object that only the host reads: `status.troupe`.
pub fn opaque(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Returns the schema of a list of metav1 conditions, keyed by type. Each condition may also have the `lastUpdateTime`
/// of the Kubeflow operators.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    let time = serde_json::json!({ "type": "string", "format": "date-time" });
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["type", "status"],
            "properties": {
                "type": { "type": "string" },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "reason": { "type": "string" },
                "message": { "type": "string" },
                "lastUpdateTime": time.clone(),
                "lastTransitionTime": time,
            },
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// Returns the CRD with an optional `spec`, as in the original. The API server then accepts an object without a spec,
/// and the plugin reports what is missing.
///
/// # Panics
/// If the CRD cannot be serialised. A CRD that kube's derive generates always can.
#[cfg(feature = "crd")]
#[must_use]
pub fn without_required_spec(crd: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut json = serde_json::to_value(crd).expect("a CRD serialises");
    for version in json["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if let Some(serde_json::Value::Object(schema)) = version.pointer_mut("/schema/openAPIV3Schema") {
            schema.remove("required");
        }
    }
    serde_json::from_value(json).expect("a CRD without a required field is a CRD")
}
