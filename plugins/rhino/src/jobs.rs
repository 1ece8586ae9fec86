//! What is seen of the two Jobs: counts, and whether they have given up.

use crate::{launcher, workers};
use serde_json::Value;
use troupe_plugin::types::Observation;
use troupe_plugin::{ChildExt, ObservationExt, parse_rfc3339};

const STATUS: &str = "/status";
const COMPLETIONS: &str = "/spec/completions";
const CREATED: &str = "/metadata/creationTimestamp";
/// What is kept of a Job; the host needs to know whether it is suspended.
pub(crate) const KEEP: [&str; 4] = [STATUS, COMPLETIONS, CREATED, "/spec/suspend"];

/// What is seen of a Job. One that is being deleted is not seen any more.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BatchJob {
    pub(crate) name: String,
    /// When it was made.
    pub(crate) created: Option<u64>,
    /// How many pods must succeed.
    pub(crate) completions: Option<u64>,
    /// Pods that have failed.
    pub(crate) failed: u64,
    /// Pods that have succeeded.
    pub(crate) succeeded: u64,
    /// Why it has given up, if it has.
    pub(crate) given_up: Option<String>,
}

impl BatchJob {
    fn of(seen: &Observation, role: &str) -> Option<Self> {
        let child = seen.child(role).filter(|child| !child.terminating)?;
        let status = child.field(STATUS).unwrap_or_default();
        let count = |field: &str| status.get(field).and_then(Value::as_u64).unwrap_or(0);
        Some(Self {
            name: child.name.clone(),
            created: child.field(CREATED).and_then(|time| parse_rfc3339(time.as_str()?)),
            completions: child.field(COMPLETIONS).and_then(|count| count.as_u64()),
            failed: count("failed"),
            succeeded: count("succeeded"),
            given_up: given_up(&status),
        })
    }
}

/// The Jobs of a RhinoJob.
#[derive(Debug, PartialEq)]
pub(crate) enum Jobs {
    /// No workers: they wait for the launcher, if that is there.
    Launching(Option<BatchJob>),
    /// The workers have the address of a launcher whose Job is gone, and cannot be given another.
    Orphaned(BatchJob),
    /// Both, and the workers have the address of this launcher.
    Both { launcher: BatchJob, workers: BatchJob },
}

impl Jobs {
    pub(crate) fn of(seen: &Observation) -> Self {
        let launcher = BatchJob::of(seen, launcher::ROLE);
        match (launcher, BatchJob::of(seen, workers::ROLE)) {
            (launcher, None) => Self::Launching(launcher),
            (Some(launcher), Some(workers)) if workers.created >= launcher.created => Self::Both { launcher, workers },
            (_, Some(workers)) => Self::Orphaned(workers),
        }
    }
}

/// Why the Job has the condition Failed, if it has.
fn given_up(status: &Value) -> Option<String> {
    let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let mut conditions = status.get("conditions").and_then(Value::as_array)?.iter();
    let failed = conditions.find(|condition| condition["type"] == "Failed" && condition["status"] == "True")?;
    Some(format!("{}: {}", text(failed, "reason"), text(failed, "message")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{launcher_job, workers_job};
    use serde_json::json;
    use troupe_plugin::testkit::seen;
    use troupe_plugin::types::ChildView;

    fn of(children: &[ChildView]) -> Jobs {
        let mut seen = seen(vec![]);
        seen.children = children.to_vec();
        Jobs::of(&seen)
    }

    fn made_at(mut job: ChildView, at: &str) -> ChildView {
        job.fields.retain(|(pointer, _)| pointer != CREATED);
        job.fields.push((CREATED.into(), json!(at).to_string()));
        job
    }

    // R05: what a user leaves of a job by deleting Jobs, in either order
    #[test]
    fn workers_belong_to_the_launcher_that_was_there_when_they_were_made() {
        let (launcher, workers) = (launcher_job(&json!({})), workers_job(&json!({})));
        assert_eq!(of(&[]), Jobs::Launching(None));
        assert!(matches!(of(std::slice::from_ref(&launcher)), Jobs::Launching(Some(_))));
        assert!(matches!(of(&[launcher.clone(), workers.clone()]), Jobs::Both { .. }));
        assert!(matches!(of(std::slice::from_ref(&workers)), Jobs::Orphaned(_)));
        let again = made_at(launcher, "2026-01-01T00:00:11Z");
        assert!(matches!(of(&[again, workers]), Jobs::Orphaned(_)));
    }

    #[test]
    fn a_job_that_is_being_deleted_counts_as_gone() {
        let going = |job: ChildView| ChildView { terminating: true, ..job };
        let (launcher, workers) = (launcher_job(&json!({})), workers_job(&json!({})));
        assert_eq!(of(&[going(launcher.clone()), going(workers.clone())]), Jobs::Launching(None));
        assert!(matches!(of(&[going(launcher), workers]), Jobs::Orphaned(_)));
    }

    #[test]
    fn only_the_condition_failed_is_giving_up_and_nonsense_counts_as_nothing() {
        let conditions = json!([
            { "type": "FailureTarget", "status": "True" },
            { "type": "Failed", "status": "False" },
            7,
        ]);
        let Jobs::Launching(Some(job)) = of(&[launcher_job(&json!({ "failed": "x", "conditions": conditions }))])
        else {
            panic!("no launcher");
        };
        assert_eq!((job.failed, job.given_up), (0, None));
    }
}
