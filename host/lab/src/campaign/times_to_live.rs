//! When jobs that have ended may be removed, and have to be: an edited time to live counts, from the end of the job.

use super::{
    hosts::is_host,
    jobs::{Config, Job},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sim::{Sim, Write};

/// A job that is due is removed within this.
const PROMPT: SignedDuration = SignedDuration::from_secs(30);

/// S10: a host removes a job that has ended only when its time to live, as it is written at that moment, has passed.
pub(super) fn has_passed(write: &Write) -> Option<String> {
    let before = write.before.as_ref().filter(|_| is_host(&write.actor))?;
    let goes = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
    if goes(before) || write.after.as_deref().is_some_and(|after| !goes(after)) {
        return None;
    }
    let ended = ended(before)?;
    match due(before, ended) {
        None => Some(format!("S10: {} has no time to live, and was removed", write.name)),
        Some(due) => (write.at < due).then(|| format!("S10: {} was removed before {due}", write.name)),
    }
}

/// L3: what is due is removed.
pub(super) fn overdue<'a>(sim: &Sim, jobs: impl Iterator<Item = &'a Job>, config: &Config) -> Vec<String> {
    let due_at = |job: &Job| {
        let object = sim.get(job.manifest["apiVersion"].as_str()?, job.kind(), job.namespace(), job.name())?;
        due(&object, ended(&object)?)
    };
    let is_due = |job: &&Job| due_at(job).is_some_and(|due| due + PROMPT < sim.now());
    let removed = jobs.filter(|job| config.removes(job));
    removed.filter(is_due).map(|job| format!("L3: {} has outlived its time to live", job.name())).collect()
}

/// When the job ended, as its ledger says.
fn ended(job: &Value) -> Option<Timestamp> {
    job["status"]["troupe"]["finished"]["at"].as_str()?.parse().ok()
}

/// When the time to live of a job that ended at this time passes. In `ttl`, 0 is never.
fn due(job: &Value, ended: Timestamp) -> Option<Timestamp> {
    let spec = &job["spec"];
    let of_others = || [&spec["runPolicy"], spec].iter().find_map(|of| of["ttlSecondsAfterFinished"].as_i64());
    let seconds = match spec["ttl"].as_i64() {
        Some(seconds) => Some(seconds).filter(|seconds| *seconds > 0),
        None => of_others(),
    };
    ended.checked_add(SignedDuration::from_secs(seconds?)).ok()
}
