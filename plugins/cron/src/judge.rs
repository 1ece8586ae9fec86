//! The status of a CronJob: its active runs, the slot of the last one, and its conditions.

use crate::CronJob;
use crate::conditions::{Health, conditions, of_type};
use crate::moment::Moment;
use crate::runs::Run;
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
    let mut status = json!({ "conditions": conditions(&moment, job.view.generation, now, &before) });
    let active = active(job, &moment);
    if !active.is_empty() {
        status["active"] = active.into();
    }
    if let Some(last) = moment.last {
        status["lastScheduleTime"] = times::rfc3339(last).into();
    }
    let next = moment.slots.next.filter(|_| !moment.valid.suspended);
    Ok(Verdict {
        wake_at: next.map(times::milliseconds),
        events: made(&moment).into_iter().chain(problem(&moment, &before)).collect(),
        ..Verdict::new(status.to_string(), headline(&moment), Outcome::Open)
    })
}

fn headline(moment: &Moment<'_>) -> &'static str {
    if moment.valid.suspended {
        "Suspended"
    } else if Health::of(moment) == Health::MissedSchedule {
        "MissedSchedule"
    } else if moment.active().next().is_some() {
        "Active"
    } else {
        "Idle"
    }
}

/// Returns references to the newest active runs, from the oldest to the newest.
fn active(job: &CronJob, moment: &Moment<'_>) -> Vec<Value> {
    let mut newest: Vec<_> = moment.active().rev().take(MOST_NAMED).map(|run| reference(job, moment, run)).collect();
    newest.reverse();
    newest
}

fn reference(job: &CronJob, moment: &Moment<'_>, run: &Run<'_>) -> Value {
    let mut reference = json!({
        "kind": run.object.kind,
        "name": run.object.name,
        "namespace": job.namespace(),
        "uid": run.object.uid,
    });
    if let Some(api_version) = run.api_version(moment.valid.template.kind) {
        reference["apiVersion"] = api_version.into();
    }
    reference
}

/// Returns the event of a run that the published status does not know yet.
fn made(moment: &Moment<'_>) -> Option<Event> {
    let last = moment.last.filter(|last| moment.recorded.is_none_or(|recorded| recorded < *last))?;
    let run = moment.runs.iter().find(|run| run.slot == Some(last))?;
    let message = format!("Created {} {}", run.object.kind, run.object.name);
    Some(Event { warning: false, reason: "SuccessfulCreate".into(), message })
}

/// Returns the event of a problem that the published status does not have.
fn problem(moment: &Moment<'_>, before: &Value) -> Option<Event> {
    let (reason, message) = Health::of(moment).problem()?;
    let known = of_type(before, "Degraded");
    let is_known = known.is_some_and(|known| known["status"] == "True" && known["reason"] == reason);
    (!is_known).then(|| Event { warning: true, reason: reason.into(), message })
}
