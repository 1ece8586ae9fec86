//! The CustomResourceDefinition: native only.

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
    /// Pending, Starting, Running, Completed, Failed.
    pub phase: Option<String>,
    /// PS, Collective, Single.
    pub mode: Option<String>,
    /// Parameter servers.
    pub ps: Option<ResourceStatus>,
    /// Trainers.
    pub worker: Option<ResourceStatus>,
    /// Heterogeneous workers.
    pub heter: Option<ResourceStatus>,
    /// Never written; the original's.
    pub elastic: Option<String>,
    /// When the job was first seen running.
    #[schemars(schema_with = "time")]
    pub start_time: Option<String>,
    /// When it ended.
    #[schemars(schema_with = "time")]
    pub completion_time: Option<String>,
    /// Never written; the original's.
    pub observed_generation: Option<i64>,
    /// What the host has to say.
    #[schemars(schema_with = "troupe_plugin::crd::conditions")]
    pub conditions: Option<Vec<Value>>,
    /// The host's ledger.
    #[schemars(schema_with = "troupe_plugin::crd::opaque")]
    pub troupe: Option<Value>,
}

/// Pods of a role by state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceStatus {
    /// Not started.
    pub pending: Option<i64>,
    /// Waiting for peers.
    pub starting: Option<i64>,
    /// Running and ready.
    pub running: Option<i64>,
    /// Failed.
    pub failed: Option<i64>,
    /// Succeeded.
    pub succeeded: Option<i64>,
    /// Never written; the original's.
    pub unknown: Option<i64>,
    /// The pods, by index.
    #[schemars(schema_with = "references")]
    pub refs: Option<Vec<Value>>,
}

/// The CRD, with the original's columns and short name.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    troupe_plugin::crd::without_required_spec(&PaddleJob::crd())
}

fn time(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "format": "date-time" })
}

fn references(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let field = serde_json::json!({ "type": "string" });
    let names = ["apiVersion", "kind", "namespace", "name", "uid", "resourceVersion", "fieldPath"];
    let fields: serde_json::Map<_, _> = names.into_iter().map(|name| (name.to_owned(), field.clone())).collect();
    schemars::json_schema!({ "type": "array", "items": { "type": "object", "properties": fields } })
}
