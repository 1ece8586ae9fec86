//! Jobs that have several batch/v1 Jobs, of which a launcher's says how the work ended.

use super::history::controller;
use serde_json::Value;
use sim::Write;
use std::collections::BTreeSet;

/// What the name of a launcher's Job ends with.
pub(super) const LAUNCHER: &str = "-launcher";

/// What became of the Jobs of each job, by its uid.
#[derive(Default)]
pub(super) struct Together {
    /// It has another than the launcher's.
    several: BTreeSet<String>,
    /// The launcher's has been complete.
    succeeded: BTreeSet<String>,
    /// A pod of one has failed, or somebody has deleted one.
    failed: BTreeSet<String>,
}

impl Together {
    /// S3: a launcher that succeeded means that its job does not fail, but by another pod that has failed or by a Job that
    /// was deleted. The Jobs stay, so that hosts see their ends whatever becomes of the hosts.
    pub(super) fn fails_in_vain(&mut self, write: &Write) -> Option<String> {
        let object = write.after.as_deref().or(write.before.as_deref())?;
        if write.kind == "Job" {
            self.note(write, object);
            return None;
        }
        let uid = object["metadata"]["uid"].as_str().filter(|uid| self.several.contains(*uid))?;
        let failed = |job: &Value| job["status"]["troupe"]["finished"]["outcome"] == "failed";
        let fails = failed(object) && !write.before.as_deref().is_some_and(failed);
        (fails && self.succeeded.contains(uid) && !self.failed.contains(uid))
            .then(|| format!("S3: the launcher of {} succeeded, and it failed: {}", write.name, object["status"]))
    }

    fn note(&mut self, write: &Write, job: &Value) {
        let Some(uid) = controller(job).map(str::to_owned) else { return };
        let is_launcher = write.name.ends_with(LAUNCHER);
        if !is_launcher {
            self.several.insert(uid.clone());
        }
        if write.removed() || has_failed_pods(job) {
            self.failed.insert(uid);
        } else if is_launcher && is_complete(job) {
            self.succeeded.insert(uid);
        }
    }
}

/// Whether a batch/v1 Job is complete.
pub(super) fn is_complete(job: &Value) -> bool {
    has_condition(job, "Complete")
}

/// A pod of the Job has failed, or it has given up.
fn has_failed_pods(job: &Value) -> bool {
    job["status"]["failed"].as_u64().is_some_and(|failed| failed > 0) || has_condition(job, "Failed")
}

fn has_condition(job: &Value, kind: &str) -> bool {
    let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|of| of["type"] == kind && of["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use serde_json::json;
    use std::sync::Arc;

    fn write(kind: &str, name: &str, after: Value) -> Write {
        Write {
            actor: "test".into(),
            group: String::new(),
            kind: kind.into(),
            namespace: "busy".into(),
            name: name.into(),
            before: None,
            after: Some(Arc::new(after)),
            sent: None,
            version: 1,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    /// The launcher's Job, or that of the workers, with this status.
    fn batch_job(role: &str, status: &Value) -> Write {
        let owner = json!({ "kind": "RhinoJob", "uid": "u", "controller": true });
        write("Job", &format!("c-2-{role}"), json!({ "metadata": { "ownerReferences": [owner] }, "status": status }))
    }

    /// What is found when the job fails after these writes.
    fn found_after(writes: &[Write]) -> Option<String> {
        let mut together = Together::default();
        assert!(writes.iter().all(|write| together.fails_in_vain(write).is_none()));
        let status = json!({ "troupe": { "finished": { "outcome": "failed" } } });
        together.fails_in_vain(&write("RhinoJob", "c-2", json!({ "metadata": { "uid": "u" }, "status": status })))
    }

    #[test]
    fn a_job_whose_launcher_succeeded_does_not_fail_unless_another_pod_has_or_a_job_was_deleted() {
        let complete = json!({ "succeeded": 1, "conditions": [{ "type": "Complete", "status": "True" }] });
        let given_up = json!({ "conditions": [{ "type": "Failed", "status": "True" }] });
        let launcher = || batch_job("launcher", &complete);
        let workers = |status: Value| batch_job("workers", &status);
        assert!(found_after(&[launcher(), workers(json!({ "active": 1 }))]).is_some());
        assert!(found_after(&[workers(complete.clone()), launcher()]).is_some());
        assert_eq!(found_after(&[workers(complete.clone())]), None, "the launcher's is not complete");
        assert_eq!(found_after(&[launcher(), workers(json!({ "failed": 1 }))]), None);
        assert_eq!(found_after(&[launcher(), workers(given_up)]), None);
        let gone = workers(json!({}));
        let gone = Write { before: gone.after.clone(), after: None, ..gone };
        assert_eq!(found_after(&[launcher(), gone]), None);
        assert_eq!(found_after(&[launcher()]), None, "what it means is said elsewhere where there is no other Job");
    }
}
