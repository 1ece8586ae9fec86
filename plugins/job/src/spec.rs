//! The spec of an IndexedJob, as it stands in JSON, and the plugin's settings.

use serde::Deserialize;
use troupe_plugin::UserTemplate;

/// The cluster operator's settings for this plugin: there are none.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {}

/// The JSON schema of [`Config`].
pub(crate) const CONFIG_SCHEMA: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;

/// The value of `managedBy` that means this operator; so does none.
pub(crate) const OWN_MANAGER: &str = "batch.troupe.dev/job-controller";

/// What an IndexedJob is: the fields of a `batch/v1` JobSpec without `selector` and `manualSelector`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// How many pods run at once, at most.
    pub parallelism: Option<i64>,
    /// How many pods have to succeed; none for a work queue.
    pub completions: Option<i64>,
    /// `Indexed`, the default here, or `NonIndexed`.
    pub completion_mode: Option<String>,
    /// How many pods may fail.
    pub backoff_limit: Option<i64>,
    /// How many pods of an index may fail.
    pub backoff_limit_per_index: Option<i64>,
    /// How many indexes may fail.
    pub max_failed_indexes: Option<i64>,
    /// What failed pods mean.
    pub pod_failure_policy: Option<PodFailurePolicy>,
    /// Which successes are enough.
    pub success_policy: Option<SuccessPolicy>,
    /// `TerminatingOrFailed` or `Failed`.
    pub pod_replacement_policy: Option<String>,
    /// Seconds from the start to the latest end.
    pub active_deadline_seconds: Option<i64>,
    /// Seconds from the end to the job's deletion.
    pub ttl_seconds_after_finished: Option<i64>,
    /// Who manages the job.
    pub managed_by: Option<String>,
    /// The template of the pods.
    pub template: Option<UserTemplate>,
}

/// What failed pods mean: the first rule that is about a pod counts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodFailurePolicy {
    /// The rules.
    pub rules: Vec<FailureRule>,
}

/// A rule about failed pods.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureRule {
    /// `FailJob`, `FailIndex`, `Ignore` or `Count`.
    pub action: String,
    /// Pods with these exit codes.
    pub on_exit_codes: Option<ExitCodes>,
    /// Pods with one of these conditions.
    pub on_pod_conditions: Option<Vec<PodCondition>>,
}

/// Exit codes of containers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExitCodes {
    /// The container; none for any.
    pub container_name: Option<String>,
    /// `In` or `NotIn`.
    pub operator: String,
    /// The codes.
    pub values: Vec<i32>,
}

/// A condition of a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PodCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its status; `True` if it is not given.
    pub status: Option<String>,
}

/// Which successes are enough: one rule has to be met.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuccessPolicy {
    /// The rules.
    pub rules: Vec<SuccessRule>,
}

/// A rule about successes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuccessRule {
    /// The indexes that count, as `1,3-5`; none for all.
    pub succeeded_indexes: Option<String>,
    /// How many of them are enough; none for all.
    pub succeeded_count: Option<i64>,
}
