//! Schemas that every CRD of ours shares, and the last touches on a generated CRD.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

/// The schema of a pod template: containers and their names are checked, everything else is kept as it is, so that
/// quantities as integers, nulls and the fields of a later Kubernetes pass.
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

/// The schema of a map from resource name to quantity, each an integer or text.
pub fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "x-kubernetes-int-or-string": true },
    })
}

/// The schema of an object that only the host reads: `status.troupe`.
pub fn opaque(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// A list of conditions as metav1 has them, keyed by type; `lastUpdateTime` as the Kubeflow family writes it.
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

/// The CRD as the original has it: `spec` itself may be missing, so that an object without one is accepted and told
/// what is wrong with it instead of being refused by another rule.
///
/// # Panics
/// Never for a CRD that kube's derive made: it serialises.
#[must_use]
pub fn without_required_spec(crd: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut json = serde_json::to_value(crd).expect("a CRD serialises");
    for version in json["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if let Some(Value::Object(schema)) = version.pointer_mut("/schema/openAPIV3Schema") {
            schema.remove("required");
        }
    }
    serde_json::from_value(json).expect("a CRD without a required field is a CRD")
}
