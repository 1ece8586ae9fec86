//! The conditions of a CronJob: Available, Progressing and Degraded, as `metav1.Condition`.

use crate::moment::Moment;
use crate::runs::State;
use crate::times;
use serde_json::{Value, json};

/// What a CronJob is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health<'a> {
    /// The last run that ended has failed; this is its name.
    JobsFailed(&'a str),
    /// The last run was never accepted: its name, and why.
    JobsRefused(&'a str, String),
    Good,
}

impl<'a> Health<'a> {
    /// Better: a failed run that is kept counts until one succeeds. The original has it count while it is kept.
    pub(crate) fn of(moment: &Moment<'a>) -> Self {
        let Some(last) = moment.runs.iter().rev().find(|run| !run.is_active()) else { return Self::Good };
        match last.state {
            State::Failed => Self::JobsFailed(&last.object.name),
            State::Refused => Self::JobsRefused(&last.object.name, last.refusal().unwrap_or_default()),
            State::Active | State::Succeeded => Self::Good,
        }
    }

    /// Returns reason and message of what is wrong.
    pub(crate) fn problem(self) -> Option<(&'static str, String)> {
        match self {
            Self::JobsFailed(run) => Some(("JobsFailed", format!("{run} has failed."))),
            Self::JobsRefused(run, why) => Some(("JobsRefused", format!("{run} was refused: {why}"))),
            Self::Good => None,
        }
    }
}

/// A condition: type, status, reason and message.
type Condition = (&'static str, bool, &'static str, String);

/// Returns the conditions as they stand in a status. One whose status is as before keeps its time.
pub(crate) fn conditions(moment: &Moment<'_>, generation: u64, now: i64, before: &Value) -> Value {
    let all = [available(moment), progressing(moment), degraded(moment)];
    let shown = all.map(|(kind, is_true, reason, message)| {
        let status = if is_true { "True" } else { "False" };
        let known = of_type(before, kind).filter(|known| known["status"] == status);
        let since = known.and_then(|known| times::parse(known["lastTransitionTime"].as_str()?)).filter(|at| *at <= now);
        json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": times::rfc3339(since.unwrap_or(now)),
        })
    });
    shown.into_iter().collect()
}

/// Returns the condition of this type in a status.
pub(crate) fn of_type<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn available(moment: &Moment<'_>) -> Condition {
    let health = Health::of(moment);
    let (is_true, reason, message) = match (health.problem(), moment.active().count()) {
        _ if moment.valid.suspended => (false, "Suspended", "No runs start while spec.suspend is true.".into()),
        (Some((reason, message)), _) => (false, reason, message),
        (None, 0) => (true, "AllJobsCompleted", "No run is active.".into()),
        (None, active) => (true, "JobsActive", format!("Active runs: {active}.")),
    };
    ("Available", is_true, reason, message)
}

/// Better: reported in every state. The original leaves it as it was while the CronJob is suspended or a failed run is kept.
fn progressing(moment: &Moment<'_>) -> Condition {
    match moment.active().count() {
        0 => ("Progressing", false, "NoJobsActive", "No run is active.".into()),
        active => ("Progressing", true, "JobsActive", format!("Active runs: {active}.")),
    }
}

/// Better: False once nothing is wrong. The original never takes it back.
fn degraded(moment: &Moment<'_>) -> Condition {
    match Health::of(moment).problem() {
        Some((reason, message)) => ("Degraded", true, reason, message),
        None => ("Degraded", false, "AllJobsCompleted", "The last run that ended has not failed.".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at, complete, cron_job, failed, hourly, hourly_with, job, refused, seen, seen_after};
    use troupe_plugin::types::{ChildView, Observation};

    /// Returns status and reason of Available, Progressing and Degraded.
    fn told(spec: &Value, seen: &Observation) -> Vec<String> {
        let moment = Moment::of(&cron_job(spec), seen).unwrap();
        let all = conditions(&moment, 7, at("12:30"), &json!({}));
        let word = |condition: &Value, field: &str| condition[field].as_str().unwrap().to_owned();
        all.as_array().unwrap().iter().map(|it| format!("{} {}", word(it, "status"), word(it, "reason"))).collect()
    }

    fn after_noon(runs: &[ChildView]) -> Observation {
        seen_after("12:00", "12:30", runs)
    }

    // C15
    #[test]
    fn the_reasons_are_the_originals() {
        let suspended = hourly_with("suspend", json!(true));
        let (good, bad) = ("False AllJobsCompleted", "True JobsFailed");
        for (spec, runs, expected) in [
            (hourly(), vec![], ["True AllJobsCompleted", "False NoJobsActive", good]),
            (hourly(), vec![complete("12:00")], ["True AllJobsCompleted", "False NoJobsActive", good]),
            (hourly(), vec![job("12:00")], ["True JobsActive", "True JobsActive", good]),
            (hourly(), vec![failed("12:00")], ["False JobsFailed", "False NoJobsActive", bad]),
            (hourly(), vec![failed("11:00"), job("12:00")], ["False JobsFailed", "True JobsActive", bad]),
            // Better: the original says JobsFailed.
            (hourly(), vec![failed("11:00"), complete("12:00")], ["True AllJobsCompleted", "False NoJobsActive", good]),
            (suspended.clone(), vec![job("12:00")], ["False Suspended", "True JobsActive", good]),
            (suspended, vec![failed("12:00")], ["False Suspended", "False NoJobsActive", bad]),
        ] {
            assert_eq!(told(&spec, &after_noon(&runs)), expected, "{spec} {runs:?}");
        }
    }

    // C12: the template makes runs that the host rejects
    #[test]
    fn a_refused_run_is_named_with_the_reason() {
        let seen = after_noon(&[complete("11:00"), refused("12:00")]);
        assert_eq!(told(&hourly(), &seen), ["False JobsRefused", "False NoJobsActive", "True JobsRefused"]);
        let moment = Moment::of(&cron_job(&hourly()), &seen).unwrap();
        let (_, message) = Health::of(&moment).problem().unwrap();
        assert!(message.ends_with(" was refused: spec.worker: must be at least 1"), "{message}");
        let mended = after_noon(&[refused("11:00"), complete("12:00")]);
        assert_eq!(told(&hourly(), &mended)[2], "False AllJobsCompleted");
    }

    // C15
    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let times = |before: &Value| {
            let seen = seen("12:30", &[complete("12:00")]);
            let moment = Moment::of(&cron_job(&hourly()), &seen).unwrap();
            let all = conditions(&moment, 7, at("12:30"), before);
            assert_eq!(all[0]["observedGeneration"], 7);
            all[0]["lastTransitionTime"].as_str().unwrap().to_owned()
        };
        let before = |status: &str, since: Value| json!({ "conditions": [{ "type": "Available", "status": status, "reason": "R", "lastTransitionTime": since }] });
        let now = "2026-01-01T12:30:00Z";
        assert_eq!(times(&before("True", json!("2026-01-01T11:00:00Z"))), "2026-01-01T11:00:00Z");
        assert_eq!(times(&before("False", json!("2026-01-01T11:00:00Z"))), now);
        // What somebody else wrote: no time, one that has not come, and no conditions.
        for nonsense in
            [before("True", json!("soon")), before("True", json!("2999-01-01T00:00:00Z")), json!({ "conditions": 7 })]
        {
            assert_eq!(times(&nonsense), now, "{nonsense}");
        }
    }
}
