//! How a job stands, from the counts of its pods: the rules of success and failure, without times and words of
//! conditions.

use crate::family::Family;
use crate::fate::Fate;
use crate::kind::{Quorum, ReplicaType, Wording};
use crate::rules;
use crate::tally::Tally;

/// How a job stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its deciding replicas do not run.
    Waiting,
    Running,
    /// Failed pods of this type are replaced.
    Restarting(&'static str),
    Succeeded,
    Failed(Failure),
}

/// Why a job has failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// It is reported by a Warning, as an exit code is.
    pub(crate) warning: bool,
}

/// Returns how the job stands. A success comes before a failure in the same pass.
pub(crate) fn standing(family: &Family<'_>, tallies: &[Tally]) -> Standing {
    let decides = deciding(family).and_then(|of| tallies.iter().find(|tally| tally.of == of));
    if decides.is_some_and(|tally| is_enough(family, tally)) {
        return Standing::Succeeded;
    }
    if let Some(failure) = tallies.iter().find_map(|tally| failure(family, tally)) {
        return Standing::Failed(failure);
    }
    // Better: where the original leaves it to chance which of two conditions survives, Restarting wins over Running.
    match tallies.iter().find(|tally| tally.fates.contains(&Fate::Restart)) {
        Some(tally) => Standing::Restarting(tally.of.name),
        None if decides.is_some_and(|tally| tally.active > 0) => Standing::Running,
        None => Standing::Waiting,
    }
}

/// Returns the type whose replicas decide how the job stands.
fn deciding(family: &Family<'_>) -> Option<&'static ReplicaType> {
    family.leader().or_else(|| family.replicas("Worker")).map(|replicas| replicas.of)
}

/// Returns whether enough replicas of the type that decides have succeeded, those among them whose pod a sidecar keeps up.
fn is_enough(family: &Family<'_>, tally: &Tally) -> bool {
    let wanted = family.replicas(tally.of.name).map_or(0, |replicas| replicas.count);
    match if tally.of.leads { Quorum::All } else { rules::quorum(family) } {
        Quorum::All => wanted > 0 && tally.succeeded >= wanted,
        Quorum::Any => tally.succeeded > 0,
        Quorum::First => tally.first_succeeded,
    }
}

/// Returns the failure of a type of replica, if one of its pods has failed and is not replaced. One with the fate Restart
/// fails nothing: it stays as it is, since the contract has no way yet to have the host replace it.
fn failure(family: &Family<'_>, tally: &Tally) -> Option<Failure> {
    let (job, kind, of) = (family.job, family.kind, tally.of.name);
    if tally.fates.contains(&Fate::FailForGood) {
        let message = format!("job {:?} is failing because {of:?} replica(s) failed.", job.name());
        return Some(Failure { message, warning: true });
    }
    let name = match kind.wording {
        Wording::Namespaced => format!("{}/{} has", job.namespace(), job.name()),
        Wording::Plain => format!("{} is", job.name()),
    };
    let message = format!("{} {name} failed because {} {of} replica(s) failed.", kind.name, tally.failed);
    tally.fates.contains(&Fate::Fail).then_some(Failure { message, warning: false })
}

/// Returns the kind and the name of the job as the messages of Running and Succeeded have them.
pub(crate) fn named(family: &Family<'_>) -> (String, &'static str) {
    let (job, kind) = (family.job, family.kind.name);
    match (family.kind.wording, family.leader()) {
        (Wording::Plain, Some(_)) => (format!("{kind} {}", job.name()), " is"),
        _ => (format!("{kind} {}/{}", job.namespace(), job.name()), ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{job, pod, spec};
    use crate::tally;
    use serde_json::{Value, json};
    use troupe_plugin::testkit::{PodFixture, seen};
    use troupe_plugin::types::{PodRow, Replacement};

    /// Returns how a job with these pods stands.
    fn stands(kind: &str, spec: &Value, pods: Vec<PodRow>) -> Standing {
        let job = job(kind, spec);
        let (family, seen) = (Family::of(&job).unwrap(), seen(pods));
        standing(&family, &tally::of(&family, &seen, false))
    }

    fn failed(message: &str) -> Standing {
        Standing::Failed(Failure { message: message.to_owned(), warning: false })
    }

    fn running(pod: PodRow) -> PodRow {
        pod
    }

    // Section 1.9: the truth table of the original's own tests.
    #[test]
    fn a_chief_decides_and_any_failure_fails_the_job() {
        let spec = spec("TFJob", &[("Chief", 1), ("PS", 1), ("Worker", 2)], &json!({}));
        let chief = |is: fn(PodRow) -> PodRow| pod("TFJob", "chief", 0, is);
        let server = |is: fn(PodRow) -> PodRow| pod("TFJob", "ps", 0, is);
        assert_eq!(stands("TFJob", &spec, vec![chief(PodFixture::succeeded), server(running)]), Standing::Succeeded);
        assert_eq!(stands("TFJob", &spec, vec![chief(running)]), Standing::Running);
        assert_eq!(stands("TFJob", &spec, vec![server(running)]), Standing::Waiting);
        let lost = stands("TFJob", &spec, vec![chief(running), server(|pod| pod.failed(1))]);
        assert_eq!(lost, failed("TFJob ns/j has failed because 1 PS replica(s) failed."));
        // A success and a failure at once: the work is done.
        let both = vec![chief(PodFixture::succeeded), server(|pod| pod.failed(1))];
        assert_eq!(stands("TFJob", &spec, both), Standing::Succeeded);
    }

    // AC-04: worker 0 alone, unless all workers are wanted; and it has to end well.
    #[test]
    fn worker_0_is_enough_for_a_tfjob_without_a_chief() {
        let of = |policy: &str| spec("TFJob", &[("Worker", 2)], &json!({ "successPolicy": policy }));
        let first = || vec![pod("TFJob", "worker-0", 0, PodFixture::succeeded), pod("TFJob", "worker", 0, running)];
        assert_eq!(stands("TFJob", &of(""), first()), Standing::Succeeded);
        assert_eq!(stands("TFJob", &of("AllWorkers"), first()), Standing::Running);
        let second = vec![pod("TFJob", "worker-0", 0, running), pod("TFJob", "worker", 0, PodFixture::succeeded)];
        assert_eq!(stands("TFJob", &of(""), second), Standing::Running);
    }

    // AC-06, AC-08: any elastic worker of PyTorch, all workers of the others.
    #[test]
    fn all_workers_have_to_succeed_unless_they_are_elastic() {
        for (kind, others, expected) in [
            ("PyTorchJob", json!({}), Standing::Running),
            ("PyTorchJob", json!({ "elasticPolicy": {} }), Standing::Succeeded),
            ("JAXJob", json!({}), Standing::Running),
            ("PaddleJob", json!({ "elasticPolicy": {} }), Standing::Running),
        ] {
            let spec = spec(kind, &[("Worker", 2)], &others);
            let pods = vec![pod(kind, "worker-0", 0, running), pod(kind, "worker", 0, PodFixture::succeeded)];
            assert_eq!(stands(kind, &spec, pods), expected, "{kind}");
        }
    }

    // AC-11: the exit code says that another pod would fail too.
    #[test]
    fn a_permanent_exit_code_fails_the_job_and_a_retryable_one_does_not() {
        let mut spec = spec("PyTorchJob", &[("Master", 1), ("Worker", 1)], &json!({}));
        spec["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = json!("ExitCode");
        let stands = |code| {
            let worker = pod("PyTorchJob", "worker-0", 0, |pod| pod.failed(code));
            stands("PyTorchJob", &spec, vec![pod("PyTorchJob", "master", 0, running), worker])
        };
        let message = "job \"j\" is failing because \"Worker\" replica(s) failed.".to_owned();
        assert_eq!(stands(2), Standing::Failed(Failure { message, warning: true }));
        assert_eq!(stands(130), Standing::Restarting("Worker"));
    }

    // AC-12: with a policy that makes failed pods again the job goes on; Never fails it.
    #[test]
    fn a_failed_pod_fails_the_job_unless_it_is_made_again() {
        let mut spec = spec("JAXJob", &[("Worker", 2)], &json!({}));
        let pods = || vec![pod("JAXJob", "worker-0", 0, running), pod("JAXJob", "worker", 0, |pod| pod.failed(1))];
        let message = "JAXJob j is failed because 1 Worker replica(s) failed.";
        assert_eq!(stands("JAXJob", &spec, pods()), failed(message));
        spec["jaxReplicaSpecs"]["Worker"]["restartPolicy"] = json!("OnFailure");
        assert_eq!(stands("JAXJob", &spec, pods()), Standing::Restarting("Worker"));
    }

    // Better: a pod that is being deleted says nothing of its work.
    #[test]
    fn how_a_pod_ends_that_is_being_deleted_decides_nothing() {
        let spec = spec("JAXJob", &[("Worker", 1)], &json!({}));
        let stopped = |pod: PodRow| PodRow { replacement: Replacement::UnderWay, ..pod.succeeded().going() };
        for is in [stopped, |pod: PodRow| pod.failed(1).going()] {
            assert_eq!(stands("JAXJob", &spec, vec![pod("JAXJob", "worker-0", 0, is)]), Standing::Waiting);
        }
    }

    // A job that was scaled to nothing has not succeeded.
    #[test]
    fn no_replicas_are_no_success() {
        assert_eq!(stands("JAXJob", &spec("JAXJob", &[("Worker", 0)], &json!({})), vec![]), Standing::Waiting);
    }
}
