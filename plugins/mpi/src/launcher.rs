//! The launcher's Job: what it is made with, and what its status says about the job.

use crate::MpiJob;
use crate::spec::RunPolicy;
use serde_json::{Value, json};
use troupe_plugin::types::{Observation, PodPhase, PodRow};
use troupe_plugin::{ChildExt, ObservationExt, json_text};

/// Better: the original runs the whole job again.
const LOST: &str = "the launcher's Job went by its ttlSecondsAfterFinished before anybody saw how it ended; \
    it is not run again, since it may have done its work";
/// The launcher's role.
pub(crate) const ROLE: &str = "launcher";
/// The longest message that an event takes.
const MAX_MESSAGE: usize = 1024;

/// The Job around the launcher's template; what the user leaves out is left to Kubernetes.
pub(crate) fn job_body(job: &MpiJob) -> String {
    let no_policy = RunPolicy::default();
    let policy = job.spec.run_policy.as_ref().unwrap_or(&no_policy);
    let limits = [
        ("ttlSecondsAfterFinished", policy.ttl_seconds_after_finished.map(i64::from)),
        ("activeDeadlineSeconds", policy.active_deadline_seconds),
        ("backoffLimit", policy.backoff_limit.map(i64::from)),
    ];
    // A terminating launcher must be gone before the next one starts: two would use the same workers.
    let mut spec = json!({ "podReplacementPolicy": "Failed" });
    for (field, limit) in limits {
        if let Some(limit) = limit {
            spec[field] = json!(limit);
        }
    }
    json_text(&json!({ "metadata": { "labels": { "app": job.name() } }, "spec": spec }))
}

/// What is seen of the launcher's Job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Launcher {
    Absent,
    /// Its pods that have failed so far were or will be replaced.
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
    pub(crate) fn of(job: &MpiJob, seen: &Observation) -> Self {
        let child = seen.child(ROLE);
        if seen.is_lost(ROLE) {
            return Self::Failed { failed: 0, reason: "LauncherLost".into(), message: LOST.into() };
        }
        if child.is_none() && seen.pods_of(ROLE).next().is_none() {
            return Self::Absent;
        }
        let status = child.and_then(|child| child.field("/status")).unwrap_or_default();
        let failed = status.get("failed").and_then(Value::as_u64).unwrap_or(0);
        if condition(&status, "Complete").is_some() {
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

    /// The Job has ended, one way or the other.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Complete { .. } | Self::Failed { .. })
    }
}

/// The launcher's pods in phase Running, those that are being deleted too.
pub(crate) fn running_pods(seen: &Observation) -> u64 {
    seen.pods_of(ROLE).filter(|pod| pod.phase == PodPhase::Running).map(|_| 1).sum()
}

/// Why the Job failed. Kubernetes does not say why the last pod did, so that is added where the pods were the cause.
fn failure(job: &MpiJob, condition: &Value, seen: &Observation) -> (String, String) {
    let or = |text: String, default: String| if text.is_empty() { default } else { text };
    let reason = or(text(condition, "reason"), "MPIJobFailed".to_owned());
    let message = or(text(condition, "message"), format!("MPIJob {}/{} has failed", job.namespace(), job.name()));
    match last_failed(seen) {
        Some(pod) if reason == "BackoffLimitExceeded" => {
            (format!("{reason}/{}", pod.reason), cut(format!("{message}: {}", pod.message)))
        }
        _ => (reason, cut(message)),
    }
}

fn last_failed(seen: &Observation) -> Option<&PodRow> {
    seen.pods_of(ROLE).filter(|pod| pod.phase == PodPhase::Failed).max_by_key(|pod| pod.created)
}

/// A message that an event can carry whole.
fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE - "...".len()));
        message += "...";
    }
    message
}

/// The condition of this type, if it is True.
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
    use troupe_plugin::testkit::{PodIs, seen};

    fn failed(reason: &str, message: &str, pods: Vec<PodRow>) -> (String, String) {
        let mut seen = seen(pods);
        let conditions = json!([{ "type": "Failed", "status": "True", "reason": reason, "message": message }]);
        seen.children = vec![launcher_job(&json!({ "failed": 2, "conditions": conditions }))];
        match Launcher::of(&job("pi", &pi()), &seen) {
            Launcher::Failed { failed: 2, reason, message } => (reason, message),
            other => panic!("not failed: {other:?}"),
        }
    }

    /// A failed launcher pod made `age` seconds later than the first.
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
    fn the_newest_failed_pod_says_why_the_limit_was_reached() {
        let pods = vec![pod(9, "FailedReason2", "second message"), pod(1, "FailedReason1", "first message")];
        let (reason, message) = failed("BackoffLimitExceeded", "Job has reached the specified backoff limit", pods);
        assert_eq!(reason, "BackoffLimitExceeded/FailedReason2");
        assert_eq!(message, "Job has reached the specified backoff limit: second message");
    }

    // M06
    #[test]
    fn a_failed_pod_without_a_reason_leaves_the_marks_that_clients_know() {
        let (reason, message) =
            failed("BackoffLimitExceeded", "Job has reached the specified backoff limit", vec![pod(0, "", "")]);
        assert_eq!(reason, "BackoffLimitExceeded/");
        assert_eq!(message, "Job has reached the specified backoff limit: ");
    }

    // M06
    #[test]
    fn other_failures_pass_as_they_are_and_an_empty_one_gets_our_words() {
        let pods = || vec![pod(0, "R", "m")];
        assert_eq!(failed("", "", pods()), ("MPIJobFailed".into(), "MPIJob default/pi has failed".into()));
        assert_eq!(failed("DeadlineExceeded", "late", pods()), ("DeadlineExceeded".into(), "late".into()));
        assert_eq!(failed("BackoffLimitExceeded", "limit", vec![]), ("BackoffLimitExceeded".into(), "limit".into()));
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let (_, message) = failed("BackoffLimitExceeded", "x", vec![pod(0, "", &"é".repeat(600))]);
        assert!(message.ends_with("é...") && message.len() <= 1024, "{}", message.len());
    }

    // M04: what is on its way to completion is not complete
    #[test]
    fn only_complete_and_failed_end_the_job() {
        let mut seen = seen(vec![]);
        assert_eq!(Launcher::of(&job("pi", &pi()), &seen), Launcher::Absent);
        let conditions = json!([
            { "type": "SuccessCriteriaMet", "status": "True" },
            { "type": "FailureTarget", "status": "True" },
            { "type": "Complete", "status": "False" },
            3,
        ]);
        seen.children = vec![launcher_job(&json!({ "conditions": conditions, "failed": "many" }))];
        assert_eq!(Launcher::of(&job("pi", &pi()), &seen), Launcher::Going { failed: 0 });
    }
}
