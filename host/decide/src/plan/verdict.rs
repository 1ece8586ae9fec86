//! What `bind` and `judge` return about one instant, and the whole answer of a plugin.

use super::{Clean, Fault, Plan, Rejection, Runs};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The plugin's judgement of the observed job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The framework's whole status.
    pub status: Value,
    /// The job's step as users see it.
    pub headline: String,
    /// Whether the job is finished, and how.
    pub outcome: Outcome,
    /// Which pods the host deletes after this end; `None` for the plan's policy.
    pub clean: Option<Clean>,
    /// When to look at the job again if nothing changes before.
    pub wake_at: Option<jiff::Timestamp>,
    /// Events to emit after the status is written.
    pub events: Vec<Event>,
}

impl Verdict {
    /// Returns a verdict without events, by the plan's own rules.
    #[must_use]
    pub fn new(status: Value, headline: &str, outcome: Outcome) -> Self {
        Self { status, headline: headline.to_owned(), outcome, clean: None, wake_at: None, events: vec![] }
    }
}

/// Whether a job is finished, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It is not finished.
    Open,
    /// It has succeeded but for its pods, some of which have not ended.
    Succeeding,
    /// It has failed but for its pods, some of which have not ended.
    Failing,
    /// It is finished and has succeeded.
    Succeeded,
    /// It is finished and has failed.
    Failed,
}

impl Outcome {
    /// Returns whether the job is finished.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// Returns how the job is going to end, if that is known and it has not ended.
    #[must_use]
    pub fn ending(self) -> Option<Ending> {
        match self {
            Self::Succeeding => Some(Ending::Succeeding),
            Self::Failing => Some(Ending::Failing),
            Self::Open | Self::Succeeded | Self::Failed => None,
        }
    }
}

/// How a job is going to end once its pods have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// It succeeds.
    Succeeding,
    /// It fails.
    Failing,
}

/// An event on the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Whether the type is Warning instead of Normal.
    pub warning: bool,
    /// CamelCase reason.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
}

/// What `bind` returned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bindings {
    /// Bodies of bound objects, by key.
    pub bodies: BTreeMap<String, Value>,
    /// Objects of series to create and to delete.
    #[serde(default, skip_serializing_if = "Runs::is_empty")]
    pub runs: Runs,
}

/// A plan with bodies and a verdict, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The plugin answered.
    Judged {
        /// The plan.
        plan: std::sync::Arc<Plan>,
        /// What `bind` returned.
        #[serde(flatten)]
        bindings: Bindings,
        /// The verdict.
        verdict: Verdict,
    },
    /// The user's mistake.
    Rejected(Rejection),
    /// The plugin's fault.
    Faulted(Fault),
}
