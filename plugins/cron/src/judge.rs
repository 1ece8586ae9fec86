//! The status of a CronJob: its active runs, the slot of the last one, and its conditions.

use crate::CronJob;
use crate::conditions::{Health, conditions, of_type};
use crate::moment::Moment;
use crate::runs::Run;
use crate::slots::MANY;
use crate::times;
use serde_json::{Value, json};
use troupe_plugin::ObservationExt;
use troupe_plugin::types::{Event, Observation, Outcome, Refusal, Verdict};

/// How many active runs the CRD lets a status name.
const MOST_NAMED: usize = 10;

/// Returns the whole status for this instant. A CronJob is never finished.
pub(crate) fn judge(job: &CronJob, seen: &Observation) -> Result<Verdict, Refusal> {
    let moment = Moment::of(job, seen)?;
    let before: Value = seen.previous();
    let now = times::seconds(seen.now);
    let mut status = json!({
        "conditions": conditions(&moment, job.view.generation, now, &before),
        "observedSchedule": moment.schedule,
    });
    let active = active(job, &moment);
    if !active.is_empty() {
        status["active"] = active.into();
    }
    if let Some(last) = moment.last {
        status["lastScheduleTime"] = times::rfc3339(last).into();
    }
    Ok(Verdict {
        wake_at: wake_at(&moment, now).map(times::milliseconds),
        events: made(&moment).into_iter().chain(missed(&moment)).chain(problem(&moment, &before)).collect(),
        ..Verdict::new(status.to_string(), headline(&moment), Outcome::Open)
    })
}

/// Returns the next slot, or an instant after this status is published if a run is removed then.
fn wake_at(moment: &Moment<'_>, now: i64) -> Option<i64> {
    if moment.waits_for_record() {
        return Some(now + 1);
    }
    moment.slots.next.filter(|_| !moment.valid.suspended)
}

fn headline(moment: &Moment<'_>) -> &'static str {
    if moment.valid.suspended {
        "Suspended"
    } else if moment.active().next().is_some() {
        "Active"
    } else {
        "Idle"
    }
}

/// Returns references to the newest active runs, from the oldest to the newest.
fn active(job: &CronJob, moment: &Moment<'_>) -> Vec<Value> {
    let mut newest: Vec<_> = moment.active().rev().take(MOST_NAMED).map(|run| reference(job, run)).collect();
    newest.reverse();
    newest
}

fn reference(job: &CronJob, run: &Run<'_>) -> Value {
    json!({
        "apiVersion": run.object.api_version,
        "kind": run.object.kind,
        "name": run.object.name,
        "namespace": job.namespace(),
        "uid": run.object.uid,
    })
}

/// Returns the event of a run that the published status does not know yet.
fn made(moment: &Moment<'_>) -> Option<Event> {
    let last = moment.unrecorded()?;
    let run = moment.runs.iter().find(|run| run.slot == Some(last))?;
    let message = format!("Created {} {}", run.object.kind, run.object.name);
    Some(Event { warning: false, reason: "SuccessfulCreate".into(), message })
}

/// Returns the event of many slots that passed without a run, once the newest has one.
fn missed(moment: &Moment<'_>) -> Option<Event> {
    let message = format!(
        "More than {MANY} times passed without a run, and the newest has one; spec.startingDeadlineSeconds leaves out times \
         that are too old."
    );
    moment.missed_many().then(|| Event { warning: true, reason: "MissedSchedule".into(), message })
}

/// Returns the event of a problem that the published status does not have.
fn problem(moment: &Moment<'_>, before: &Value) -> Option<Event> {
    let (reason, message) = Health::of(moment).problem()?;
    let known = of_type(before, "Degraded");
    let is_known = known.is_some_and(|known| known["status"] == "True" && known["reason"] == reason);
    (!is_known).then(|| Event { warning: true, reason: reason.into(), message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at, complete, cron_job, failed, hourly, hourly_with, job, other, paddle, seen, seen_after};
    use troupe_plugin::types::ChildView;

    fn judged(spec: &Value, seen: &Observation) -> (Verdict, Value) {
        let verdict = judge(&cron_job(spec), seen).unwrap();
        let status = serde_json::from_str(&verdict.status).unwrap();
        (verdict, status)
    }

    fn events(verdict: &Verdict) -> Vec<(bool, &str, &str)> {
        verdict.events.iter().map(|event| (event.warning, &*event.reason, &*event.message)).collect()
    }

    // C13, C14: rebuilt from the runs, whatever somebody else wrote
    #[test]
    fn the_status_is_made_of_the_runs() {
        let nonsense =
            json!({ "active": [{ "name": "nobody" }], "lastScheduleTime": "soon", "phase": "x", "conditions": 7 });
        let runs = [complete("09:00"), job("10:00"), job("11:00")];
        let seen = Observation { previous_status: nonsense.to_string(), ..seen("11:20", &runs) };
        let (verdict, status) = judged(&hourly(), &seen);
        let reference = |slot: &str| {
            let run = job(slot);
            json!({ "apiVersion": "batch/v1", "kind": "Job", "name": run.name, "namespace": "ns", "uid": run.uid })
        };
        assert_eq!(status["active"], json!([reference("10:00"), reference("11:00")]));
        assert_eq!(status["lastScheduleTime"], "2026-01-01T11:00:00Z");
        assert_eq!(status["observedSchedule"], json!({ "schedule": "0 * * * *", "since": "2026-01-01T00:00:00Z" }));
        assert_eq!(status.as_object().unwrap().len(), 4);
        assert_eq!((verdict.outcome, &*verdict.headline), (Outcome::Open, "Active"));
    }

    // C14
    #[test]
    fn at_most_ten_active_runs_are_named_the_newest() {
        let runs: Vec<_> = (0..12).map(|hour| job(&format!("{hour:02}:00"))).collect();
        let (_, status) = judged(&hourly(), &seen("11:20", &runs));
        let active = status["active"].as_array().unwrap();
        assert_eq!(
            (active.len(), &active[0]["name"], &active[9]["name"]),
            (10, &json!(runs[2].name), &json!(runs[11].name))
        );
        assert!(status["conditions"][1]["message"].as_str().unwrap().contains("12"));
    }

    // C14: two kinds are called PaddleJob
    #[test]
    fn a_run_is_named_with_its_api_version() {
        for api_version in ["batch.paddlepaddle.org/v1", "kubeflow.org/v1"] {
            let run = other("PaddleJob", "tick-1", &json!({ "phase": "Running" }));
            let run = ChildView { api_version: api_version.into(), ..run };
            let (_, status) = judged(&paddle(api_version), &seen("00:20", &[run]));
            assert_eq!(status["active"][0]["apiVersion"], api_version);
        }
    }

    // C15
    #[test]
    fn the_headline_is_the_state() {
        let headline = |spec: &Value, seen: &Observation| judged(spec, seen).0.headline;
        assert_eq!(headline(&hourly(), &seen_after("11:00", "11:20", &[])), "Idle");
        assert_eq!(headline(&hourly(), &seen("11:20", &[job("11:00")])), "Active");
        assert_eq!(headline(&hourly_with("suspend", json!(true)), &seen("11:20", &[job("11:00")])), "Suspended");
    }

    // C16
    #[test]
    fn the_job_is_looked_at_again_at_the_next_slot() {
        let wake = |spec: &Value, seen: &Observation| judged(spec, seen).0.wake_at;
        let at = |time: &str| Some(times::milliseconds(at(time)));
        assert_eq!(wake(&hourly(), &seen_after("11:00", "11:20", &[])), at("12:00"));
        assert_eq!(wake(&hourly(), &seen_after("10:00", "11:20", &[])), at("12:00"));
        assert_eq!(wake(&hourly_with("suspend", json!(true)), &seen_after("11:00", "11:20", &[])), None);
        assert_eq!(wake(&hourly_with("schedule", json!("0 0 30 2 *")), &seen("11:20", &[])), None);
        assert_eq!(wake(&hourly_with("schedule", json!("* * * * *")), &seen("11:20", &[])), at("11:21"));
        // A run goes once its slot is published.
        let none = hourly_with("successfulJobsHistoryLimit", json!(0));
        assert_eq!(wake(&none, &seen_after("10:00", "11:20", &[complete("11:00")])), at("11:20:01"));
    }

    // C15
    #[test]
    fn events_are_reported_once() {
        let runs = [failed("11:00")];
        let (verdict, status) = judged(&hourly(), &seen_after("10:00", "11:20", &runs));
        let name = job("11:00").name;
        let expected = [
            (false, "SuccessfulCreate", format!("Created Job {name}")),
            (true, "JobsFailed", format!("{name} has failed.")),
        ];
        assert_eq!(events(&verdict), expected.each_ref().map(|(warning, reason, words)| (*warning, *reason, &**words)));
        let again = Observation { previous_status: status.to_string(), ..seen("11:21", &runs) };
        assert_eq!(events(&judged(&hourly(), &again).0), []);
    }
}
