//! What a Plugin's status says: conditions whose reasons a person can act on.

use crate::plugin_resource::PluginStatus;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use std::time::Duration;

/// A condition of a Plugin, in the order in which a digest comes by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The source's bytes are here.
    Fetched,
    /// They are a component, and it has described itself.
    Compiled,
    /// It may do what it asks for, fits this Plugin, and answers for the jobs that are there.
    Accepted,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Self::Fetched => "Fetched",
            Self::Compiled => "Compiled",
            Self::Accepted => "Accepted",
        }
    }
}

/// Why a digest got no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StageFailure {
    pub(super) at: Stage,
    /// CamelCase.
    pub(super) reason: &'static str,
    /// For people: what to do.
    pub(super) message: String,
    /// How long the API server asks to wait before the next attempt.
    pub(super) retry_after: Duration,
}

impl StageFailure {
    /// One after which nobody asks to wait.
    pub(super) fn new(at: Stage, reason: &'static str, message: String) -> Self {
        Self { at, reason, message, retry_after: Duration::ZERO }
    }

    /// The same, after which the API server asks to wait for so long.
    pub(super) fn asking(self, retry_after: Duration) -> Self {
        Self { retry_after, ..self }
    }
}

/// How far the source's digest came.
pub(super) fn progress(status: &mut PluginStatus, failure: Option<&StageFailure>, generation: i64, now: Timestamp) {
    let stages = [Stage::Fetched, Stage::Compiled, Stage::Accepted];
    let reached = failure.map_or(stages.len(), |failure| stages.iter().position(|at| *at == failure.at).unwrap_or(0));
    for (place, stage) in stages.iter().enumerate() {
        let (is, reason, message) = match failure {
            Some(failure) if place == reached => ("False", failure.reason, failure.message.as_str()),
            Some(failure) if place > reached => ("Unknown", failure.reason, "an earlier condition is not met"),
            _ => ("True", stage.name(), ""),
        };
        set(status, stage.name(), is, reason, message, generation, now);
    }
    status.last_error = failure.map(|failure| failure.message.clone());
}

/// Whether anybody serves new jobs.
pub(super) fn serving(status: &mut PluginStatus, generation: i64, now: Timestamp) {
    match (&status.short_digest, &status.version) {
        (Some(digest), Some(version)) => {
            let message = format!("new jobs are planned by {digest}, version {version}");
            set(status, "Serving", "True", "Serving", &message, generation, now);
        }
        _ => set(status, "Serving", "False", "NoDigest", "no digest serves new jobs", generation, now),
    }
}

/// What a person should look at although jobs are served. Only the first reason is reported.
pub(super) fn degraded(status: &mut PluginStatus, why: &[(&'static str, String)], generation: i64, now: Timestamp) {
    match why.first() {
        Some((reason, message)) => set(status, "Degraded", "True", reason, message, generation, now),
        None => set(status, "Degraded", "False", "AsExpected", "", generation, now),
    }
}

/// Its time changes only with its status, as API conventions ask for.
fn set(status: &mut PluginStatus, kind: &str, is: &str, reason: &str, message: &str, generation: i64, now: Timestamp) {
    let old = status.conditions.iter().find(|condition| condition.type_ == kind && condition.status == is);
    let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let new = Condition {
        type_: kind.to_owned(),
        status: is.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: old.map_or(Time(second), |old| old.last_transition_time.clone()),
        observed_generation: Some(generation),
    };
    match status.conditions.iter_mut().find(|condition| condition.type_ == kind) {
        Some(condition) => *condition = new,
        None => status.conditions.push(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: &PluginStatus, kind: &str) -> (String, String, Time) {
        let found = status.conditions.iter().find(|condition| condition.type_ == kind).unwrap();
        (found.status.clone(), found.reason.clone(), found.last_transition_time.clone())
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let mut status = PluginStatus::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        let failure = StageFailure::new(Stage::Compiled, "NotAPlugin", "rubbish".into());
        progress(&mut status, Some(&failure), 1, at(1));
        assert_eq!(said(&status, "Fetched"), ("True".into(), "Fetched".into(), Time(at(1))));
        assert_eq!(said(&status, "Compiled"), ("False".into(), "NotAPlugin".into(), Time(at(1))));
        assert_eq!(said(&status, "Accepted").0, "Unknown");
        assert_eq!(status.last_error.as_deref(), Some("rubbish"));
        progress(&mut status, None, 2, at(2));
        assert_eq!(said(&status, "Fetched").2, Time(at(1)));
        assert_eq!(said(&status, "Compiled"), ("True".into(), "Compiled".into(), Time(at(2))));
        assert_eq!(status.last_error, None);
    }

    #[test]
    fn a_plugin_that_nobody_serves_says_so() {
        let mut status = PluginStatus::default();
        serving(&mut status, 1, Timestamp::UNIX_EPOCH);
        assert_eq!(said(&status, "Serving").0, "False");
        degraded(&mut status, &[("CanaryStopped", "it trapped".into())], 1, Timestamp::UNIX_EPOCH);
        assert_eq!(said(&status, "Degraded").1, "CanaryStopped");
    }
}
