//! The runs of a CronJob, as observed: objects that it owns, whoever made them.

use crate::plan::RUNS;
use crate::times;
use serde_json::Value;
use troupe_plugin::ChildExt;
use troupe_plugin::types::{ChildView, Observation};

/// The annotation with the slot that a run is for, as the original writes it.
pub(crate) const SCHEDULED_AT: &str = "batch.tutorial.kubebuilder.io/scheduled-at";

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Active,
    Succeeded,
    Failed,
    /// It is a job of Troupe that was never accepted, and has no pods.
    Refused,
}

/// A run.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) object: &'a ChildView,
    pub(crate) state: State,
    /// The slot that it is for. None: the annotation is missing, or no time that has come.
    pub(crate) slot: Option<i64>,
    /// When it started, or was made.
    pub(crate) started: Option<i64>,
}

/// Returns the runs from the oldest to the newest, by their start. One without a time comes first.
pub(crate) fn observed(seen: &Observation) -> Vec<Run<'_>> {
    let now = times::seconds(seen.now);
    let mut runs: Vec<_> = seen.children.iter().map(|object| Run::of(object, now)).collect();
    runs.sort_by(|a, b| (a.started, a.slot, &a.object.name).cmp(&(b.started, b.slot, &b.object.name)));
    runs
}

impl<'a> Run<'a> {
    fn of(object: &'a ChildView, now: i64) -> Self {
        let time = |value: &Value| times::parse(value.as_str()?);
        let status = object.field("/status").unwrap_or_default();
        let created = object.field("/metadata/creationTimestamp").unwrap_or_default();
        let annotations = object.field("/metadata/annotations").unwrap_or_default();
        let slot = annotations.get(SCHEDULED_AT).and_then(Value::as_str).and_then(times::parse);
        Self {
            object,
            state: state(object, &status),
            slot: slot.filter(|slot| *slot <= now),
            started: time(&status["startTime"]).or_else(|| time(&created)),
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.state == State::Active
    }

    /// Returns why the run was never accepted.
    pub(crate) fn refusal(&self) -> Option<String> {
        let status = self.object.field("/status").unwrap_or_default();
        let why = rejected(&status["troupe"])?["message"].as_str().unwrap_or_default().to_owned();
        (self.state == State::Refused).then_some(why)
    }

    /// Returns whether the plugin may remove the run: it is of the kind of the template, and nobody deletes it already.
    pub(crate) fn is_removable(&self) -> bool {
        self.object.key.as_deref() == Some(RUNS) && !self.object.terminating
    }
}

/// Returns how far a run is: by what the host noted of a job that Troupe serves, else by its status.
fn state(object: &ChildView, status: &Value) -> State {
    let ledger = &status["troupe"];
    if ledger["uid"] == *object.uid {
        // A rejected job that a plugin planned before an edit may have pods.
        let was_planned = ledger["digest"].as_str().is_some_and(|digest| !digest.is_empty());
        return match ledger.pointer("/finished/outcome").and_then(Value::as_str) {
            Some("succeeded") => State::Succeeded,
            Some("failed") => State::Failed,
            _ if rejected(ledger).is_some() && !was_planned => State::Refused,
            _ => State::Active,
        };
    }
    let types = true_conditions(&status["conditions"]).filter_map(|it| it["type"].as_str());
    let words = [&status["phase"], &status["jobStatus"]];
    types.chain(words.into_iter().filter_map(Value::as_str)).find_map(ended).unwrap_or(State::Active)
}

fn true_conditions(conditions: &Value) -> impl Iterator<Item = &Value> {
    conditions.as_array().into_iter().flatten().filter(|condition| condition["status"] == "True")
}

/// Returns the condition in which the host says that the job is wrong.
fn rejected(ledger: &Value) -> Option<&Value> {
    true_conditions(&ledger["conditions"]).find(|condition| condition["type"] == "Rejected")
}

/// Returns how a job has ended that says this of itself: a condition or a phase.
fn ended(word: &str) -> Option<State> {
    match word {
        "Complete" | "Succeeded" | "Completed" => Some(State::Succeeded),
        "Failed" => Some(State::Failed),
        _ => None,
    }
}

/// Returns the name of the run for a slot. It is the same each time, so that a slot never has two.
pub(crate) fn name(cron_job: &str, slot: i64) -> String {
    format!("{cron_job}-{slot}")
}

/// Returns the run that the host is to make for a slot.
pub(crate) fn of_slot(cron_job: &str, slot: i64) -> troupe_plugin::types::Run {
    troupe_plugin::types::Run {
        series: RUNS.into(),
        name: name(cron_job, slot),
        annotations: vec![(SCHEDULED_AT.into(), times::rfc3339(slot))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{annotated, at, job, other, seen};
    use serde_json::json;

    fn state_of(kind: &str, status: &Value) -> State {
        Run::of(&other(kind, "tick-1", status), 0).state
    }

    fn condition(kind: &str, status: &str) -> Value {
        json!({ "conditions": [{ "type": "Created", "status": "True" }, { "type": kind, "status": status }] })
    }

    // C12
    #[test]
    fn a_job_has_ended_when_a_condition_says_so() {
        assert_eq!(state_of("Job", &json!({})), State::Active);
        assert_eq!(state_of("Job", &condition("Complete", "True")), State::Succeeded);
        assert_eq!(state_of("Job", &condition("Failed", "True")), State::Failed);
        for (kind, status) in
            [("Complete", "False"), ("Failed", "Unknown"), ("SuccessCriteriaMet", "True"), ("Suspended", "True")]
        {
            assert_eq!(state_of("Job", &condition(kind, status)), State::Active, "{kind}");
        }
    }

    // C12
    #[test]
    fn what_the_host_noted_comes_before_the_status() {
        let noted = |uid: &str, finished: Value| {
            let mut status = condition("Failed", "True");
            status["troupe"] = json!({ "uid": uid, "finished": finished });
            state_of("MPIJob", &status)
        };
        assert_eq!(noted("uid-of-tick-1", json!({ "outcome": "succeeded" })), State::Succeeded);
        assert_eq!(noted("uid-of-tick-1", json!({ "outcome": "failed" })), State::Failed);
        assert_eq!(noted("uid-of-tick-1", json!(null)), State::Active);
        // A note about an earlier job of the name.
        assert_eq!(noted("other", json!({ "outcome": "succeeded" })), State::Failed);
    }

    // C12: a run that was accepted and is rejected after an edit has pods
    #[test]
    fn a_run_that_was_never_accepted_is_refused_and_not_active() {
        let noted = |is: &str, digest: &str, uid: &str| {
            let conditions = json!([{ "type": "Waiting", "status": "False" }, { "type": "Rejected", "status": is }]);
            let ledger = json!({ "uid": uid, "digest": digest, "headline": "", "conditions": conditions });
            state_of("PaddleJob", &json!({ "troupe": ledger }))
        };
        assert_eq!(noted("True", "", "uid-of-tick-1"), State::Refused, "as the host notes it");
        assert_eq!(noted("False", "", "uid-of-tick-1"), State::Active);
        assert_eq!(noted("True", "sha256:0", "uid-of-tick-1"), State::Active, "it was planned before an edit");
        assert_eq!(noted("True", "", "other"), State::Active, "the note is about an earlier job of the name");
        assert_eq!(state_of("PaddleJob", &condition("Rejected", "True")), State::Active, "a word of the framework's");
    }

    // C12
    #[test]
    fn a_job_that_another_operator_serves_is_judged_by_its_own_words() {
        assert_eq!(state_of("PyTorchJob", &condition("Succeeded", "True")), State::Succeeded);
        assert_eq!(state_of("MPIJob", &condition("Failed", "True")), State::Failed);
        assert_eq!(state_of("PaddleJob", &json!({ "phase": "Completed" })), State::Succeeded);
        assert_eq!(state_of("PaddleJob", &json!({ "phase": "Running" })), State::Active);
        assert_eq!(state_of("RhinoJob", &json!({ "jobStatus": "Failed" })), State::Failed);
    }

    // C13
    #[test]
    fn nonsense_in_a_status_or_in_annotations_is_skipped() {
        for status in
            [json!(7), json!({ "conditions": 7 }), json!({ "conditions": [7, { "type": 7, "status": "True" }] })]
        {
            assert_eq!(state_of("Job", &status), State::Active, "{status}");
        }
        let now = at("12:00");
        for text in ["yesterday", "2026-01-01T11:00:00", "2999-01-01T00:00:00Z"] {
            let run = annotated("11:00", text);
            assert_eq!(Run::of(&run, now).slot, None, "{text}");
        }
        assert_eq!(Run::of(&job("11:00"), now).slot, Some(at("11:00")));
    }

    // C11
    #[test]
    fn runs_are_in_order_of_their_start() {
        let seen = seen("12:00", &[job("11:00"), job("09:00"), job("10:00")]);
        let slots: Vec<_> = observed(&seen).iter().map(|run| run.slot).collect();
        assert_eq!(slots, ["09:00", "10:00", "11:00"].map(|time| Some(at(time))));
    }
}
