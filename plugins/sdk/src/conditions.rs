//! The conditions of Kubeflow's jobs and their rules: which condition a new one replaces, which times stay, and when a
//! change emits an event.

use serde_json::{Map, Value};

/// The condition types of these jobs. A plugin does not return conditions of other types; the host keeps its own.
const TYPES: [&str; 6] = ["Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"];

/// A condition of the status. Times, reason and message are optional.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The type: `Running`.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When status or reason last changed.
    pub last_update_time: Option<String>,
    /// When the status last changed.
    pub last_transition_time: Option<String>,
    /// The reason of the last change.
    pub reason: Option<String>,
    /// The message of the last change.
    pub message: Option<String>,
}

impl Condition {
    fn read(json: &Value) -> Option<Self> {
        let text = |field: &str| json.get(field).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            kind: text("type")?,
            status: text("status")?,
            last_update_time: text("lastUpdateTime"),
            last_transition_time: text("lastTransitionTime"),
            reason: text("reason"),
            message: text("message"),
        })
    }

    fn to_json(&self) -> Value {
        let fields = [
            ("type", Some(&self.kind)),
            ("status", Some(&self.status)),
            ("lastUpdateTime", self.last_update_time.as_ref()),
            ("lastTransitionTime", self.last_transition_time.as_ref()),
            ("reason", self.reason.as_ref()),
            ("message", self.message.as_ref()),
        ];
        let mut json = Map::new();
        for (field, value) in fields {
            if let Some(value) = value {
                json.insert(field.to_owned(), value.as_str().into());
            }
        }
        json.into()
    }
}

/// The result of setting a condition: `New` if the list changed, so that an event is due, else `Known`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The list changed.
    New,
    /// The list is as before.
    Known,
}

/// The conditions of one job, from the oldest to the newest.
#[derive(Debug, Clone, PartialEq)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// Returns the conditions of a published status that such a job may have. Drops those of another type and malformed ones.
    #[must_use]
    pub fn of(status: &Value) -> Self {
        let listed = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
        let read = listed.filter_map(Condition::read);
        Self(read.filter(|condition| TYPES.contains(&condition.kind.as_str())).collect())
    }

    /// Returns whether the job has no condition yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the condition of this type, if the job has it.
    #[must_use]
    pub fn get(&self, kind: &str) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.kind == kind)
    }

    /// Returns whether the job has the condition of this type and it is True.
    #[must_use]
    pub fn is_true(&self, kind: &str) -> bool {
        self.get(kind).is_some_and(|condition| condition.status == "True")
    }

    /// Returns whether Succeeded or Failed is True.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.is_true("Succeeded") || self.is_true("Failed")
    }

    /// Sets a condition. If status and reason are the same as before, nothing changes, whatever the message. Otherwise
    /// the condition moves to the end of the list, and keeps its transition time if its status is the same.
    pub fn set(&mut self, kind: &str, status: bool, reason: &str, message: &str, now: &str) -> Step {
        let status = if status { "True" } else { "False" };
        let old = self.get(kind);
        if old.is_some_and(|old| old.status == status && old.reason.as_deref() == Some(reason)) {
            return Step::Known;
        }
        let kept = old.filter(|old| old.status == status).and_then(|old| old.last_transition_time.clone());
        self.0.retain(|condition| condition.kind != kind);
        self.0.push(Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            last_update_time: Some(now.to_owned()),
            last_transition_time: Some(kept.unwrap_or_else(|| now.to_owned())),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
        });
        Step::New
    }

    /// Sets Succeeded or Failed to True. Running, and Failed if the job succeeded, become False in place and keep their
    /// reason, message and times.
    pub fn finish(&mut self, kind: &str, reason: &str, message: &str, now: &str) -> Step {
        let step = self.set(kind, true, reason, message, now);
        if step == Step::New {
            let over = self.0.iter_mut().filter(|c| c.kind != kind && (c.kind == "Running" || c.kind == "Failed"));
            over.for_each(|condition| condition.status = "False".to_owned());
        }
        step
    }

    /// Removes the condition of this type, if the job has it.
    pub fn remove(&mut self, kind: &str) {
        self.0.retain(|condition| condition.kind != kind);
    }

    /// Returns the headline: type, status and reason of each condition.
    #[must_use]
    pub fn headline(&self) -> String {
        let step = |c: &Condition| format!("{}={}/{}", c.kind, c.status, c.reason.as_deref().unwrap_or_default());
        self.0.iter().map(step).collect::<Vec<_>>().join(" ")
    }

    /// Returns the list as it stands in a status.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.0.iter().map(Condition::to_json).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(conditions: &mut Conditions, kind: &str, status: bool, reason: &str, now: &str) -> Step {
        conditions.set(kind, status, reason, "words", now)
    }

    #[test]
    fn the_same_status_for_the_same_reason_changes_nothing() {
        let mut conditions = Conditions(vec![]);
        assert_eq!(set(&mut conditions, "Failed", true, "A", "1"), Step::New);
        let before = conditions.clone();
        assert_eq!(conditions.set("Failed", true, "A", "other words", "2"), Step::Known);
        assert_eq!(conditions, before);
    }

    #[test]
    fn another_reason_moves_a_condition_to_the_end_and_keeps_its_transition_time() {
        let mut conditions = Conditions(vec![]);
        set(&mut conditions, "Failed", true, "A", "1");
        set(&mut conditions, "Running", false, "R", "1");
        assert_eq!(set(&mut conditions, "Failed", true, "B", "2"), Step::New);
        let last = conditions.0.last().unwrap();
        assert_eq!((&*last.kind, last.last_transition_time.as_deref()), ("Failed", Some("1")));
        assert_eq!(last.last_update_time.as_deref(), Some("2"));
        set(&mut conditions, "Failed", false, "B", "3");
        assert_eq!(conditions.get("Failed").unwrap().last_transition_time.as_deref(), Some("3"));
    }

    #[test]
    fn a_success_sets_an_earlier_failure_to_false() {
        let mut conditions = Conditions(vec![]);
        set(&mut conditions, "Failed", true, "MPIJobEvicted", "1");
        conditions.finish("Succeeded", "MPIJobSucceeded", "done", "2");
        assert_eq!(conditions.headline(), "Failed=False/MPIJobEvicted Succeeded=True/MPIJobSucceeded");
        assert_eq!(conditions.get("Failed").unwrap().last_update_time.as_deref(), Some("1"));
    }

    #[test]
    fn conditions_of_other_types_and_malformed_conditions_are_dropped() {
        let status = json!({ "conditions": [
            { "type": "Waiting", "status": "True", "reason": "PodAddresses" },
            { "status": "True" },
            7,
            { "type": "Created", "status": "True", "reason": "MPIJobCreated", "lastUpdateTime": null },
        ] });
        assert_eq!(Conditions::of(&status).headline(), "Created=True/MPIJobCreated");
        assert!(Conditions::of(&json!({ "conditions": null })).is_empty());
        assert!(Conditions::of(&json!(null)).is_empty());
    }
}
