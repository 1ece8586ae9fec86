//! The CustomResourceDefinition. Native builds only.

use crate::spec::{self, PaddleJob};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// `status` of a PaddleJob.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaddleJobStatus {
    /// Pending, Starting, Running, Completed or Failed.
    pub phase: Option<String>,
    /// PS with parameter servers, Collective with several workers, Single with one.
    pub mode: Option<String>,
    /// The parameter servers, by state.
    pub ps: Option<ResourceStatus>,
    /// The trainers, by state.
    pub worker: Option<ResourceStatus>,
    /// The heterogeneous workers, by state.
    pub heter: Option<ResourceStatus>,
    /// Never written; the original's.
    pub elastic: Option<String>,
    /// When the job was first seen running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub start_time: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub completion_time: Option<String>,
    /// Never written; the original's.
    pub observed_generation: Option<i64>,
    /// The state that Troupe keeps of the job: its own conditions, and internal fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "troupe_plugin::crd::ledger")]
    pub troupe: Option<Value>,
}

/// Pods of a role by state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceStatus {
    /// Pods that have not started.
    pub pending: Option<i64>,
    /// Pods that wait for their peers.
    pub starting: Option<i64>,
    /// Pods that are running and ready.
    pub running: Option<i64>,
    /// Pods that failed.
    pub failed: Option<i64>,
    /// Pods that succeeded.
    pub succeeded: Option<i64>,
    /// Never written; the original's.
    pub unknown: Option<i64>,
    /// The pods, by index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "references")]
    pub refs: Option<Vec<Value>>,
}

/// Returns the CRD, with the original's columns and short name.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    let name = troupe_plugin::crd::name_rule(63 - "-ps-0".len(), false);
    troupe_plugin::crd::without_required_spec(&PaddleJob::crd(), &name)
}

pub(crate) fn replicas(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let (least, most) = (spec::REPLICAS.least, spec::REPLICAS.most);
    schemars::json_schema!({ "type": "integer", "format": "int64", "minimum": least, "maximum": most })
}

pub(crate) fn min_available(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    troupe_plugin::crd::number(&spec::MIN_AVAILABLE)
}

pub(crate) fn queue(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    troupe_plugin::crd::name(&spec::QUEUE)
}

pub(crate) fn priority_class(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    troupe_plugin::crd::name(&spec::PRIORITY_CLASS)
}

fn time(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "format": "date-time" })
}

fn references(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let fields = [
        ("apiVersion", "Always v1."),
        ("kind", "Always Pod."),
        ("namespace", "The pod's namespace."),
        ("name", "The pod's name."),
        ("uid", "The pod's uid."),
        ("resourceVersion", "Never written; the original's."),
        ("fieldPath", "Never written; the original's."),
    ];
    let field =
        |(name, words): (&str, &str)| (name.to_owned(), serde_json::json!({ "description": words, "type": "string" }));
    let fields = serde_json::Map::from_iter(fields.map(field));
    schemars::json_schema!({ "type": "array", "items": { "type": "object", "properties": fields } })
}

/// Returns what fields of a job have to do with each other, for the test that breaks each.
#[must_use]
pub fn relations() -> Vec<troupe_plugin::crd::Relation> {
    let spec = |spec: Value| json!({ "spec": spec });
    troupe_plugin::crd::relations(
        "paddlejobs.batch.paddlepaddle.org",
        [
            (
                "requests <= limits",
                spec(json!({ "worker": { "requests": 3, "limits": 1, "replicas": 2 } })),
                "spec.worker",
            ),
            ("replicas <= limits", spec(json!({ "worker": { "limits": 1, "replicas": 2 } })), "spec.worker"),
            ("elastic is about workers", spec(json!({ "elastic": 1, "worker": null })), "elastic"),
            ("servers have workers", spec(json!({ "worker": null, "heter": null })), "spec.ps"),
            ("there is a role", spec(json!({ "ps": null, "worker": null, "heter": null })), "ps"),
            ("there is a pod", spec(json!({ "ps": null, "heter": null, "worker": { "replicas": 0 } })), "role"),
            (
                "minAvailable is no more than the pods",
                spec(json!({ "schedulingPolicy": { "minAvailable": 9 } })),
                crate::spec::MIN_AVAILABLE.path,
            ),
            ("the names of pods are labels", json!({ "metadata": { "name": "a".repeat(60) } }), "metadata.name"),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects the paths of all required fields of a schema.
    fn required(schema: &Value, place: &str, found: &mut Vec<String>) {
        for name in schema["required"].as_array().into_iter().flatten() {
            found.push(format!("{place}.{}", name.as_str().unwrap()));
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            required(field, &format!("{place}.{name}"), found);
            required(&field["items"], &format!("{place}.{name}[]"), found);
        }
    }

    // A field with a hand-written schema must not become required.
    #[test]
    fn only_replicas_and_fields_of_pods_and_conditions_are_required() {
        let crd = serde_json::to_value(crd()).unwrap();
        let mut found = vec![];
        required(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "", &mut found);
        found.retain(|path| !path.contains(".template.spec"));
        let expected = [
            ".spec.heter.replicas",
            ".spec.ps.replicas",
            ".spec.worker.replicas",
            ".status.troupe.conditions[].status",
            ".status.troupe.conditions[].type",
        ];
        assert_eq!(found, expected);
    }
}
