//! CronJobs and runs that the tests share. The CronJob `tick` was made at 2026-01-01T00:00:00Z; times are of that day.

use crate::plan::RUNS;
use crate::runs::{SCHEDULED_AT, name};
use crate::{CronJob, times};
use serde_json::{Value, json};
use troupe_plugin::testkit;
use troupe_plugin::types::{ChildView, Observation};

/// The spec of a CronJob that runs a Job at each full hour.
pub(crate) fn hourly() -> Value {
    json!({ "schedule": "0 * * * *", "jobTemplate": { "spec": { "template": {} } } })
}

/// The spec with another field.
pub(crate) fn hourly_with(field: &str, value: Value) -> Value {
    let mut spec = hourly();
    spec[field] = value;
    spec
}

/// The spec of a CronJob that runs a PaddleJob.
pub(crate) fn paddle(api_version: &str) -> Value {
    json!({ "schedule": "0 * * * *", "template": { "apiVersion": api_version, "kind": "PaddleJob", "spec": {} } })
}

pub(crate) fn job_named(name: &str, spec: &Value) -> CronJob {
    CronJob::parse(testkit::job("CronJob", name, spec)).unwrap()
}

pub(crate) fn cron_job(spec: &Value) -> CronJob {
    job_named("tick", spec)
}

/// A time of the day: `11:00`, or `11:00:30`.
pub(crate) fn at(time: &str) -> i64 {
    let seconds = if time.len() == 5 { ":00" } else { "" };
    times::parse(&format!("2026-01-01T{time}{seconds}Z")).unwrap()
}

/// An active Job for the slot of this time.
pub(crate) fn job(slot: &str) -> ChildView {
    let fields = [
        ("/metadata/annotations", json!({ SCHEDULED_AT: times::rfc3339(at(slot)) })),
        ("/metadata/creationTimestamp", json!(times::rfc3339(at(slot) + 1))),
        ("/status", json!({ "startTime": times::rfc3339(at(slot) + 2) })),
    ];
    testkit::child(RUNS, "Job", &name("tick", at(slot)), &fields)
}

/// The Job with this text for its slot.
pub(crate) fn annotated(slot: &str, text: &str) -> ChildView {
    let mut job = job(slot);
    job.fields[0].1 = json!({ SCHEDULED_AT: text }).to_string();
    job
}

/// The Job with this condition.
pub(crate) fn ended(slot: &str, condition: &str) -> ChildView {
    let mut job = job(slot);
    let conditions = json!([{ "type": condition, "status": "True" }]);
    job.fields[2].1 = json!({ "startTime": times::rfc3339(at(slot) + 2), "conditions": conditions }).to_string();
    job
}

pub(crate) fn complete(slot: &str) -> ChildView {
    ended(slot, "Complete")
}

pub(crate) fn failed(slot: &str) -> ChildView {
    ended(slot, "Failed")
}

/// A run that the host rejects, with the Job's name.
pub(crate) fn refused(slot: &str) -> ChildView {
    let mut job = job(slot);
    let rejected = json!([{ "type": "Rejected", "status": "True", "message": "spec.worker: must be at least 1" }]);
    job.fields[2].1 = json!({ "troupe": { "uid": job.uid, "conditions": rejected } }).to_string();
    job
}

/// The run while somebody deletes it.
pub(crate) fn going(mut run: ChildView) -> ChildView {
    run.terminating = true;
    run
}

/// A run of a kind with this status.
pub(crate) fn other(kind: &str, name: &str, status: &Value) -> ChildView {
    testkit::child(RUNS, kind, name, &[("/status", status.clone())])
}

/// These runs at this time, without a published status.
pub(crate) fn seen(now: &str, runs: &[ChildView]) -> Observation {
    Observation { now: times::milliseconds(at(now)), children: runs.to_vec(), ..testkit::seen(vec![]) }
}

/// These runs at this time, with a published status that knows the slot of the last.
pub(crate) fn seen_after(last: &str, now: &str, runs: &[ChildView]) -> Observation {
    let status = json!({ "lastScheduleTime": times::rfc3339(at(last)) });
    Observation { previous_status: status.to_string(), ..seen(now, runs) }
}
