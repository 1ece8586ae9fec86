//! A worker that was lost while the launcher ran, where the launcher's exit code does not tell.
//!
//! `mpirun` of Open MPI 5 ends with exit code 0 after it has lost the daemon of a worker (22 of 29 runs with 5.0.8 to
//! 5.0.11); Open MPI 4, Intel MPI and MPICH never do. Better: the original takes such a job for Succeeded.

use crate::MpiJob;
use crate::spec::LostWorker;
use crate::validate::{Implementation, Valid};
use crate::{hostfile, launcher, plan};
use troupe_plugin::ObservationExt;
use troupe_plugin::types::{ContainerState, Observation, PodPhase, PodRow};

/// The reason of the condition and of the event.
pub(crate) const REASON: &str = "MPIJobWorkerLost";
/// The annotation of a job that says what a lost worker means for it, in the place of the setting.
pub(crate) const ANNOTATION: &str = "mpi.troupe.dev/lost-worker";

/// What the loss of a worker means for a job whose launcher has ended with exit code 0.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Loss {
    /// The job has failed, and why.
    Fails(String),
    /// The job has succeeded, and what its user should look at.
    IsTold(String),
}

impl Loss {
    /// Returns what was lost before the launcher ended: a worker whose failed pod is there, or that was made again since, which
    /// `known` tells. The launcher's Job noticed its end at `noticed`, milliseconds since 1970. None if nothing was lost, if
    /// nobody knows when the launcher ended, or if the launcher would have failed.
    pub(crate) fn of(
        job: &MpiJob,
        valid: &Valid<'_>,
        seen: &Observation,
        (noticed, known): (Option<u64>, Option<&str>),
    ) -> Option<Self> {
        if valid.implementation != Implementation::OpenMpi {
            return None;
        }
        let lost = known.map(|known| format!("{known}, whose exit code was 0"));
        let lost = lost.or_else(|| failed_worker(job, seen, noticed))?;
        // An elastic launcher, which reads the script, knows how to go on without a worker.
        if valid.lost_worker == LostWorker::Warn || is_elastic(job) {
            return Some(Self::IsTold(format!("{lost}; look whether the job has done its work")));
        }
        let accept =
            format!("the annotation {ANNOTATION}: warn, or the setting lost-worker, takes such a job for done");
        Some(Self::Fails(format!("{lost}; mpirun of Open MPI 5 ends so when it has lost a worker; {accept}")))
    }
}

/// Returns whether the launcher reads the script that discovers hosts: it knows how to go on without a worker.
pub(crate) fn is_elastic(job: &MpiJob) -> bool {
    let template = job.spec.replica_spec("Launcher").and_then(|launcher| launcher.template.as_ref());
    template.is_some_and(|template| template.mentions(hostfile::DISCOVER_HOSTS))
}

/// Returns that a worker failed before the launcher ended, by its pod.
fn failed_worker(job: &MpiJob, seen: &Observation, noticed: Option<u64>) -> Option<String> {
    let done = seen.pods_of(launcher::ROLE).filter_map(ended).max().or(noticed)?;
    let is_wanted = |pod: &&PodRow| pod.index.is_some_and(|index| index < job.spec.workers());
    let mut workers = seen.pods_of(plan::WORKER).filter(is_wanted);
    // One that has succeeded was asked to end, by its own command or by the launcher.
    let pod = workers.find(|pod| pod.phase == PodPhase::Failed && ended(pod).is_some_and(|at| at <= done))?;
    let why = if pod.reason.is_empty() { String::new() } else { format!(" ({})", pod.reason) };
    Some(format!("worker {}{why} failed before the launcher ended, whose exit code was 0", pod.name))
}

/// Returns when the first container that is no init container ended; None while it runs.
pub(crate) fn ended(pod: &PodRow) -> Option<u64> {
    let first = pod.containers.iter().find(|container| !container.init)?;
    match &first.state {
        ContainerState::Terminated(ended) => Some(ended.at),
        ContainerState::Unknown | ContainerState::Waiting(_) | ContainerState::Running(_) => None,
    }
}
