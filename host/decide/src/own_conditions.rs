//! The host's own conditions in a job's status: what they say, where they stand, how they are read.
//!
//! They stand below `status.troupe`, since readers of a framework's status take the newest condition, or the newest that is
//! True, for the job's state. `status.conditions` is the framework's alone.

use crate::{
    Snapshot,
    condition::{Condition, Reason},
    decision::HostCondition,
    time::rfc3339,
    waiting::Waiting,
};
use serde_json::{Value, json};
use std::iter;

/// Returns the condition of this type that the host has last written, true or not.
#[must_use]
pub fn current(status: &Value, kind: Condition) -> Option<&Value> {
    of_host(status).find(|condition| condition["type"] == kind.as_str())
}

/// Returns the host's condition of this type if it is True.
#[must_use]
pub fn current_true(status: &Value, kind: Condition) -> Option<&Value> {
    current(status, kind).filter(|condition| condition["status"] == "True")
}

/// Returns all conditions of a job, those of the host first, then those of its framework.
pub fn all(status: &Value) -> impl Iterator<Item = &Value> {
    of_host(status).chain(of_framework(status))
}

/// Returns the conditions of a job's framework.
pub fn of_framework(status: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    listed(&status["conditions"]).filter(|condition| !is_of_earlier_host(condition))
}

/// Returns the last condition of a job's framework that is True: its state, where it has no phase.
#[must_use]
pub fn last_true_of_framework(status: &Value) -> Option<&Value> {
    of_framework(status).rfind(|condition| condition["status"] == "True")
}

/// Returns the host's conditions. Those of an earlier build stand among the framework's until the job is written again.
fn of_host(status: &Value) -> impl Iterator<Item = &Value> {
    let earlier = listed(&status["conditions"]).filter(|condition| is_of_earlier_host(condition));
    listed(&status["troupe"]["conditions"]).chain(earlier)
}

fn listed(conditions: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    conditions.as_array().into_iter().flatten()
}

/// Returns whether a condition in `status.conditions` was left there by an earlier build of the host, which wrote its own
/// conditions there. A framework may have a type of the same name for itself, with its own reasons.
#[must_use]
pub fn is_of_earlier_host(condition: &Value) -> bool {
    let word = |field: &str| condition[field].as_str().unwrap_or_default();
    Condition::ALL.iter().any(|own| own.as_str() == word("type"))
        && Reason::ALL.iter().any(|own| own.as_str() == word("reason"))
}

/// What the host's own conditions say.
pub(crate) struct Own<'a> {
    pub(crate) waiting: Option<&'a Waiting>,
    /// What Waiting says if the job waits for nothing.
    pub(crate) idle: Reason,
    /// What stands in place of the framework's verdict.
    pub(crate) verdict: Option<&'a HostCondition>,
    pub(crate) contested: Option<&'a HostCondition>,
    pub(crate) warned: Option<&'a (Reason, String)>,
    pub(crate) outdated: Option<&'a str>,
}

impl Own<'_> {
    /// Returns the conditions in their order.
    pub(crate) fn conditions(&self, snapshot: &Snapshot) -> Vec<Value> {
        let host = |it: &HostCondition| condition(snapshot, it.kind, "True", it.reason, &it.message);
        let waiting = self.waiting.map_or_else(|| waits_for_nothing(snapshot, self.idle), |it| waits(snapshot, it));
        let warned = self.warned.map(|(why, it)| condition(snapshot, Condition::Warned, "True", *why, it));
        let outdated = (Condition::PodsOutdated, Reason::TemplateChanged);
        let outdated = self.outdated.map(|it| condition(snapshot, outdated.0, "True", outdated.1, it));
        let others = self.verdict.into_iter().chain(self.contested).map(host);
        iter::once(waiting).chain(others).chain(warned).chain(outdated).collect()
    }
}

/// Returns Waiting of a job that waits for nothing; Unknown where no plugin says so. The message is empty, since columns
/// of the job show it.
pub(crate) fn waits_for_nothing(snapshot: &Snapshot, why: Reason) -> Value {
    let status = if why == Reason::NoVerdict { "Unknown" } else { "False" };
    condition(snapshot, Condition::Waiting, status, why, "")
}

fn waits(snapshot: &Snapshot, waiting: &Waiting) -> Value {
    let new = condition(snapshot, Condition::Waiting, "True", waiting.reason(), &waiting.to_string());
    match current(&snapshot.job.status, Condition::Waiting) {
        Some(old) if old["reason"] == new["reason"] && !message_matters(waiting) => old.clone(),
        _ => new,
    }
}

/// Returns a condition. Its time is that of the reason's first report.
fn condition(snapshot: &Snapshot, kind: Condition, status: &str, reason: Reason, message: &str) -> Value {
    let old = current(&snapshot.job.status, kind).filter(|old| old["reason"] == reason.as_str());
    let since = old.map_or_else(|| json!(rfc3339(snapshot.now)), |old| old["lastTransitionTime"].clone());
    json!({ "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since })
}

/// Returns whether a change of the message alone is written: it names an object in the way, or a number that a person
/// follows, as a queue does with the quota that is missing. Other messages are the API server's, which may differ from
/// attempt to attempt.
fn message_matters(waiting: &Waiting) -> bool {
    let has_numbers = matches!(
        waiting,
        Waiting::Pods { .. }
            | Waiting::Blocked { .. }
            | Waiting::BackOff { .. }
            | Waiting::Field { .. }
            | Waiting::Queue { .. }
    );
    has_numbers || names_an_object(waiting)
}

/// Returns whether the message names the object that is in the way, and nothing that changes from pass to pass.
pub(crate) fn names_an_object(waiting: &Waiting) -> bool {
    matches!(waiting, Waiting::NameTaken { .. } | Waiting::Lost { .. } | Waiting::Deleted { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(kind: &str, status: &str, reason: &str) -> Value {
        json!({ "type": kind, "status": status, "reason": reason })
    }

    #[test]
    fn conditions_are_the_hosts_first_wherever_the_version_that_wrote_them_put_them() {
        let (running, waiting) = (one("Running", "True", "JobRunning"), one("Waiting", "True", "Pods"));
        let now = json!({ "conditions": [running], "troupe": { "conditions": [waiting] } });
        let earlier = json!({ "conditions": [running, waiting] });
        for status in [now, earlier] {
            assert_eq!(all(&status).collect::<Vec<_>>(), [&waiting, &running]);
            assert_eq!(current_true(&status, Condition::Waiting), Some(&waiting));
            assert_eq!(current(&status, Condition::Rejected), None);
        }
    }

    #[test]
    fn a_framework_has_a_condition_named_like_one_of_the_hosts_for_itself() {
        let theirs = one("Waiting", "True", "ForTheTide");
        let status = json!({ "conditions": [theirs] });
        assert_eq!(current(&status, Condition::Waiting), None);
        assert_eq!(all(&status).collect::<Vec<_>>(), [&theirs]);
    }

    #[test]
    fn a_condition_that_is_not_true_is_there_all_the_same() {
        let status = json!({ "troupe": { "conditions": [one("Waiting", "False", "Proceeding")] } });
        assert!(current(&status, Condition::Waiting).is_some() && current_true(&status, Condition::Waiting).is_none());
    }
}
