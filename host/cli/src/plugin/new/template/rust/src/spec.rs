//! The fields of AcmeJob. The host passes them as JSON; `crd.yaml` is made from these types.

use serde::{Deserialize, Serialize};
use troupe_plugin::UserTemplate;

/// What the user writes.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(not(target_family = "wasm"), derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// True deletes the pods, and creates none until it is false again.
    #[serde(default)]
    pub suspend: Option<bool>,
    /// The pods that do the work.
    pub worker: Worker,
}

/// The pods that do the work.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(not(target_family = "wasm"), derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Worker {
    /// The number of pods.
    pub replicas: u32,
    /// What each pod runs.
    // Remove the line below for a CRD that knows all fields of a pod: `kubectl explain` says what each is, and
    // `kubectl apply --server-side` merges lists by key. It has 200 kB.
    #[cfg_attr(
        not(target_family = "wasm"),
        schemars(schema_with = "troupe_plugin::crd::short_pod_template")
    )]
    pub template: UserTemplate,
}

/// What the plugin says of a job. The host adds `troupe`: its own conditions, and what it remembers of the job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(not(target_family = "wasm"), derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// Pending, Running, Suspended, Succeeded or Failed.
    pub phase: String,
    /// The number of workers that run.
    pub running: u32,
    /// The number of workers that have succeeded.
    pub succeeded: u32,
    /// The number of workers that have failed.
    pub failed: u32,
    /// When the job ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<String>,
}

/// What the cluster's operator can set of this plugin: nothing yet. Its schema is `config_schema` of the description.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {}
