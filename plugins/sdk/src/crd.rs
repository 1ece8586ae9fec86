//! The CRD of a kind, made from the types of its spec and status, and schemas that CRDs share.

mod definition;
mod document;
mod fields;
mod templates;

pub use definition::{definition, yaml};
pub use document::{document, name_rule, of, rule};
pub use fields::{Relation, described, name, number, relations, word};
pub use templates::{job_template, pod_template, pod_template_merged_as_1_23, short_pod_template, template_metadata};

#[cfg(feature = "crd")]
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use std::borrow::Cow;

const LEDGER: &str = "The state that Troupe keeps of the object. Its own `conditions` are part of the API; the other fields are \
                      internal, and change between versions.";

impl JsonSchema for crate::UserTemplate {
    fn schema_name() -> Cow<'static, str> {
        "PodTemplate".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        pod_template(generator)
    }
}

/// Returns the schema of a map from resource name to a quantity that is not negative. A quantity is an integer or a string.
pub fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "Amounts by resource, such as cpu: 500m or memory: 2Gi.",
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "minimum": 0,
            "pattern": r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$",
        },
    })
}

/// Returns the schema of an object of which nothing is known.
pub fn opaque(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Returns the schema of `status.troupe`: the host's own conditions, and what only the host reads.
pub fn ledger(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = opaque(generator);
    schema.insert("description".to_owned(), LEDGER.into());
    schema.insert("properties".to_owned(), json!({ "conditions": conditions(generator) }));
    schema
}

/// Returns the schema of a list of metav1 conditions, keyed by type. Each condition may also have the `lastUpdateTime`
/// of the Kubeflow operators.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    let text = |description: &str| json!({ "description": description, "type": "string" });
    let time = |description: &str| json!({ "description": description, "type": "string", "format": "date-time" });
    let states = ["True", "False", "Unknown"];
    json_schema!({
        "description": "What is true of the object now, by type.",
        "type": "array",
        "items": {
            "type": "object",
            "required": ["type", "status"],
            "properties": {
                "type": text("What this is about, such as Running."),
                "status": { "description": "Whether it is so.", "type": "string", "enum": states },
                "reason": text("Why, in one word for programs."),
                "message": text("Why, in words for people."),
                "lastUpdateTime": time("When anything of the condition changed last."),
                "lastTransitionTime": time("When status changed last."),
            },
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

/// Returns the CRD with an optional `spec`, as in the original, and with this rule of the whole object. The API server then
/// accepts an object without a spec, and the plugin reports what is missing.
///
/// # Panics
/// If the CRD cannot be serialised. A CRD that kube's derive generates always can.
#[cfg(feature = "crd")]
#[must_use]
pub fn without_required_spec(crd: &CustomResourceDefinition, rule: &serde_json::Value) -> CustomResourceDefinition {
    let mut json = serde_json::to_value(crd).expect("a CRD serialises");
    for version in json["spec"]["versions"].as_array_mut().into_iter().flatten() {
        if let Some(serde_json::Value::Object(schema)) = version.pointer_mut("/schema/openAPIV3Schema") {
            schema.remove("required");
            schema.insert("x-kubernetes-validations".to_owned(), json!([rule]));
        }
    }
    serde_json::from_value(json).expect("a CRD without a required field is a CRD")
}
