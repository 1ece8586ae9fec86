//! The conditions of a Job, and their reasons and messages.

use serde_json::{Value, json};

/// The condition types of a job, apart from those of the host.
const TYPES: [&str; 5] = ["Suspended", "FailureTarget", "SuccessCriteriaMet", "Failed", "Complete"];

/// Why a job ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Reason {
    pub(crate) fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into() }
    }
}

/// The conditions of one job.
#[derive(Debug, Clone)]
pub(crate) struct Conditions(Vec<Value>);

impl Conditions {
    /// Returns the job's own conditions of a published status.
    pub(crate) fn of(status: &Value) -> Self {
        let listed = status["conditions"].as_array().into_iter().flatten();
        let own = |condition: &&Value| condition["type"].as_str().is_some_and(|kind| TYPES.contains(&kind));
        Self(listed.filter(own).cloned().collect())
    }

    /// Returns the reason of the condition of this type if it is True.
    pub(crate) fn is_true(&self, kind: &str) -> Option<Reason> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let found = self.0.iter().find(|condition| condition["type"] == kind && condition["status"] == "True")?;
        Some(Reason { reason: text(&found["reason"]), message: text(&found["message"]) })
    }

    /// Sets a condition. Returns whether its status changed; one that is False is not added.
    pub(crate) fn set(&mut self, kind: &str, is: bool, reason: &Reason, now: &str) -> bool {
        let status = if is { "True" } else { "False" };
        let known = self.0.iter_mut().find(|condition| condition["type"] == kind);
        if known.as_ref().map_or(!is, |condition| condition["status"] == status) {
            return false;
        }
        let condition = json!({
            "type": kind, "status": status, "reason": reason.reason, "message": reason.message,
            "lastProbeTime": now, "lastTransitionTime": now,
        });
        match known {
            Some(known) => *known = condition,
            None => self.0.push(condition),
        }
        true
    }

    /// Returns the newest condition that is True, for people.
    pub(crate) fn newest(&self) -> Option<&str> {
        self.0.iter().rev().find(|condition| condition["status"] == "True")?["type"].as_str()
    }

    /// Returns the list for the status, which has none while there is no condition, as that of a Job.
    pub(crate) fn into_json(self) -> Option<Value> {
        if self.0.is_empty() { None } else { Some(self.0.into()) }
    }
}
