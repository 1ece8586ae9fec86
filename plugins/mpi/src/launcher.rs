//! The launcher's Job: its body, and what its status means for the MPIJob.

use crate::MpiJob;
use crate::spec::RunPolicy;
use serde_json::{Value, json};
use troupe_plugin::types::{ContainerState, Observation, Outlook, PodPhase, PodRow};
use troupe_plugin::{ChildExt, ObservationExt, json_text};

/// The message of the failure `LauncherLost`. Better: the original runs the whole job again.
const LOST: &str = "the launcher's Job went by its ttlSecondsAfterFinished before anybody saw how it ended; \
    it is not run again, since it may have done its work";
/// The launcher's role.
pub(crate) const ROLE: &str = "launcher";
/// The maximum length of an event's message, in bytes.
const MAX_MESSAGE: usize = 1024;

/// Returns the body of the launcher's Job, without the pod template. Fields that the user omits get Kubernetes'
/// defaults.
pub(crate) fn job_body(job: &MpiJob) -> String {
    let no_policy = RunPolicy::default();
    let policy = job.spec.run_policy.as_ref().unwrap_or(&no_policy);
    let limits = [
        ("ttlSecondsAfterFinished", policy.ttl_seconds_after_finished.map(i64::from)),
        ("activeDeadlineSeconds", policy.active_deadline_seconds),
        ("backoffLimit", policy.backoff_limit.map(i64::from)),
    ];
    // A terminating launcher must be gone before the next launcher starts: two launchers would use the same workers.
    let mut spec = json!({ "podReplacementPolicy": "Failed" });
    for (field, limit) in limits {
        if let Some(limit) = limit {
            spec[field] = json!(limit);
        }
    }
    json_text(&json!({ "metadata": { "labels": { "app": job.name() } }, "spec": spec }))
}

/// The observed state of the launcher's Job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Launcher {
    Absent,
    /// The Job has not ended. It replaces its failed pods.
    Going {
        failed: u64,
    },
    Complete {
        failed: u64,
        at: Option<String>,
    },
    Failed {
        failed: u64,
        reason: String,
        message: String,
    },
}

impl Launcher {
    pub(crate) fn of(job: &MpiJob, seen: &Observation, outlook: &Outlook) -> Self {
        let child = seen.child(ROLE);
        if seen.is_lost(ROLE) {
            return Self::Failed { failed: 0, reason: "LauncherLost".into(), message: LOST.into() };
        }
        if child.is_none() && seen.pods_of(ROLE).next().is_none() {
            return Self::Absent;
        }
        let status = child.and_then(|child| child.field("/status")).unwrap_or_default();
        let failed = status.get("failed").and_then(Value::as_u64).unwrap_or(0);
        if outlook.criteria_met.is_some() {
            let at = text(&status, "completionTime");
            return Self::Complete { failed, at: (!at.is_empty()).then_some(at) };
        }
        match condition(&status, "Failed") {
            Some(condition) => {
                let (reason, message) = failure(job, condition, seen);
                Self::Failed { failed, reason, message }
            }
            None => Self::Going { failed },
        }
    }

    /// Returns whether the Job is complete or has failed.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Complete { .. } | Self::Failed { .. })
    }
}

/// Returns the newest pod of the launcher.
pub(crate) fn newest(seen: &Observation) -> Option<&PodRow> {
    seen.pods_of(ROLE).max_by_key(|pod| pod.created)
}

/// Returns when the program of a launcher's pod began, as far as the pod says: a kubelet may have started it again in place.
pub(crate) fn begun(pod: &PodRow) -> u64 {
    match pod.containers.iter().find(|row| !row.init).map(|row| &row.state) {
        Some(ContainerState::Running(since)) => *since,
        _ => pod.created,
    }
}

/// Returns the number of the launcher's pods in phase Running, including pods that are being deleted.
pub(crate) fn running_pods(seen: &Observation) -> u64 {
    seen.pods_of(ROLE).filter(|pod| pod.phase == PodPhase::Running).map(|_| 1).sum()
}

/// Returns the reason and the message of the Job's failure. If the Job reached its back-off limit, adds reason and
/// message of the last failed pod, which Kubernetes does not report.
fn failure(job: &MpiJob, condition: &Value, seen: &Observation) -> (String, String) {
    let or = |text: String, default: String| if text.is_empty() { default } else { text };
    let reason = or(text(condition, "reason"), "MPIJobFailed".to_owned());
    let message = or(text(condition, "message"), format!("MPIJob {}/{} has failed", job.namespace(), job.name()));
    match last_failed(seen) {
        Some(pod) if reason == "BackoffLimitExceeded" => {
            (format!("{reason}/{}", pod.reason), truncate(format!("{message}: {}", pod.message)))
        }
        _ => (reason, truncate(message)),
    }
}

fn last_failed(seen: &Observation) -> Option<&PodRow> {
    seen.pods_of(ROLE).filter(|pod| pod.phase == PodPhase::Failed).max_by_key(|pod| pod.created)
}

/// Truncates a message to [`MAX_MESSAGE`] bytes.
fn truncate(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE - "...".len()));
        message += "...";
    }
    message
}

/// Returns the condition of this type if it is True.
fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    let is = |condition: &&Value, field: &str, value: &str| condition.get(field).and_then(Value::as_str) == Some(value);
    let conditions = status.get("conditions").and_then(Value::as_array)?;
    conditions.iter().find(|condition| is(condition, "type", kind) && is(condition, "status", "True"))
}

fn text(object: &Value, field: &str) -> String {
    object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{foo, job, launcher_job, launcher_pod, parsed, pi};
    use crate::plan::plan;
    use troupe_plugin::testkit::{PodFixture, calm, outlook, seen};

    fn failed(reason: &str, message: &str, pods: Vec<PodRow>) -> (String, String) {
        let mut seen = seen(pods);
        let conditions = json!([{ "type": "Failed", "status": "True", "reason": reason, "message": message }]);
        seen.children = vec![launcher_job(&json!({ "failed": 2, "conditions": conditions }))];
        match Launcher::of(&job("pi", &pi()), &seen, &calm()) {
            Launcher::Failed { failed: 2, reason, message } => (reason, message),
            other => panic!("not failed: {other:?}"),
        }
    }

    /// Returns a failed launcher pod that was created `age` seconds after the first.
    fn pod(age: u64, reason: &str, message: &str) -> PodRow {
        let mut pod = launcher_pod().failed(1);
        pod.created += age * 1000;
        (pod.reason, pod.message) = (reason.into(), message.into());
        pod
    }

    // M01
    #[test]
    fn the_job_has_the_limits_of_the_run_policy_and_no_others() {
        let expected = json!({
            "metadata": { "labels": { "app": "pi" } },
            "spec": { "ttlSecondsAfterFinished": 60, "podReplacementPolicy": "Failed" },
        });
        assert_eq!(parsed(&job_body(&job("pi", &pi()))), expected);
        let policy = json!({ "runPolicy": { "backoffLimit": 0, "activeDeadlineSeconds": 5_000_000_000_i64 } });
        let expected =
            json!({ "podReplacementPolicy": "Failed", "backoffLimit": 0, "activeDeadlineSeconds": 5_000_000_000_i64 });
        assert_eq!(parsed(&job_body(&foo(&policy)))["spec"], expected);
    }

    // M06
    #[test]
    fn the_newest_failed_pod_gives_the_reason_of_the_backoff_limit() {
        let pods = vec![pod(9, "FailedReason2", "second message"), pod(1, "FailedReason1", "first message")];
        let (reason, message) = failed("BackoffLimitExceeded", "Job has reached the specified backoff limit", pods);
        assert_eq!(reason, "BackoffLimitExceeded/FailedReason2");
        assert_eq!(message, "Job has reached the specified backoff limit: second message");
    }

    // M06
    #[test]
    fn a_failed_pod_without_a_reason_keeps_the_separators() {
        let (reason, message) =
            failed("BackoffLimitExceeded", "Job has reached the specified backoff limit", vec![pod(0, "", "")]);
        assert_eq!(reason, "BackoffLimitExceeded/");
        assert_eq!(message, "Job has reached the specified backoff limit: ");
    }

    // M06
    #[test]
    fn other_failures_are_kept_and_an_empty_failure_gets_a_default() {
        let pods = || vec![pod(0, "R", "m")];
        assert_eq!(failed("", "", pods()), ("MPIJobFailed".into(), "MPIJob default/pi has failed".into()));
        assert_eq!(failed("DeadlineExceeded", "late", pods()), ("DeadlineExceeded".into(), "late".into()));
        assert_eq!(failed("BackoffLimitExceeded", "limit", vec![]), ("BackoffLimitExceeded".into(), "limit".into()));
    }

    #[test]
    fn a_long_message_is_truncated_between_characters() {
        let (_, message) = failed("BackoffLimitExceeded", "x", vec![pod(0, "", &"é".repeat(600))]);
        assert!(message.ends_with("é...") && message.len() <= 1024, "{}", message.len());
    }

    // M04: SuccessCriteriaMet and FailureTarget do not end the job
    #[test]
    fn only_complete_and_failed_end_the_job() {
        let mut seen = seen(vec![]);
        let job = job("pi", &pi());
        let launcher = |seen: &Observation| Launcher::of(&job, seen, &outlook(&plan(&job).unwrap(), seen));
        assert_eq!(launcher(&seen), Launcher::Absent);
        let conditions = json!([
            { "type": "SuccessCriteriaMet", "status": "True" },
            { "type": "FailureTarget", "status": "True" },
            { "type": "Complete", "status": "False" },
            3,
        ]);
        seen.children = vec![launcher_job(&json!({ "conditions": conditions, "failed": "many" }))];
        assert_eq!(launcher(&seen), Launcher::Going { failed: 0 });
        let complete = json!([{ "type": "Complete", "status": "True" }]);
        seen.children = vec![launcher_job(&json!({ "conditions": complete, "failed": 1 }))];
        assert_eq!(launcher(&seen), Launcher::Complete { failed: 1, at: None });
    }
}
