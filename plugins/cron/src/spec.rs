//! The spec of a CronJob, as it stands in JSON, and the plugin's settings.

use crate::kinds::{self, Kind};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

/// The cluster operator's settings for this plugin.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Kinds of job that a template may have, beside those that come with Troupe.
    pub kinds: Vec<Kind>,
}

/// Returns the JSON schema of [`Config`].
pub(crate) fn config_schema() -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": { "kinds": kinds::schema() } })
}

/// When a CronJob runs, and what.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobSpec {
    /// Five fields, or a name such as `@hourly`.
    pub schedule: Option<String>,
    /// The IANA name of the zone whose local time the schedule names, as in batch/v1. The original has no such field.
    pub time_zone: Option<String>,
    /// How many seconds late a run may start.
    pub starting_deadline_seconds: Option<i64>,
    /// `Allow`, `Forbid` or `Replace`.
    pub concurrency_policy: Option<String>,
    /// Whether no more runs start.
    pub suspend: Option<bool>,
    /// The template of a `batch/v1` Job.
    pub job_template: Option<JobTemplate>,
    /// The template of a job of any kind that the plugin knows. The original has no such field.
    pub template: Option<AnyTemplate>,
    /// How many runs that succeeded are kept.
    pub successful_jobs_history_limit: Option<i64>,
    /// How many runs that failed are kept.
    pub failed_jobs_history_limit: Option<i64>,
}

/// The template of a `batch/v1` Job. It stays with the host.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct JobTemplate {
    /// The Job's spec.
    pub spec: Option<IgnoredAny>,
}

/// The template of a job of any kind. Its metadata and spec stay with the host.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AnyTemplate {
    /// The API version of the kind.
    pub api_version: Option<String>,
    /// The kind.
    pub kind: Option<String>,
    /// The job's spec.
    pub spec: Option<IgnoredAny>,
}
