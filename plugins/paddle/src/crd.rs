//! The CustomResourceDefinition. Native builds only.

use crate::spec::PaddleJob;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    troupe_plugin::crd::without_required_spec(&PaddleJob::crd())
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
