//! The limits of a job's run policy: how often its pods are restarted, and how long it is active.

use crate::family::{Family, Replicas};
use crate::fate::RestartPolicy;
use troupe_plugin::types::{ContainerRow, Observation, PodPhase, PodRow};

/// The first time that is too late for a verdict, in Unix milliseconds: 9999-01-01T00:00:00Z. The host refuses times
/// after that year, and blames the plugin.
const TOO_LATE: u64 = 253_370_764_800_000;

/// Returns why the job has reached a limit, as its message has it.
pub(crate) fn reached(family: &Family<'_>, seen: &Observation, started: u64) -> Option<&'static str> {
    if deadline(family, started).is_some_and(|end| seen.now >= end) {
        return Some("it was active longer than specified deadline");
    }
    is_past_backoff(family, seen).then_some("it has reached the specified backoff limit")
}

/// Returns when the job has been active for too long, in Unix milliseconds. The time before it was resumed does not count:
/// its start is that of the resumption. A deadline from [`TOO_LATE`] on is none.
pub(crate) fn deadline(family: &Family<'_>, started: u64) -> Option<u64> {
    let seconds = family.job.spec.run_policy.as_ref()?.active_deadline_seconds?;
    let end = started.saturating_add(u64::try_from(seconds).unwrap_or(0).saturating_mul(1000));
    (end < TOO_LATE).then_some(end)
}

/// Returns whether the job was restarted as often as it may be. Better than the original: pods that were replaced count,
/// not only the containers that were started again in place. Those count from the limit on, as in the original, and
/// replaced pods above it, as in a Job.
fn is_past_backoff(family: &Family<'_>, seen: &Observation) -> bool {
    let Some(limit) = family.job.spec.run_policy.as_ref().and_then(|policy| policy.backoff_limit) else { return false };
    let replaced: u64 = seen.roles.iter().map(|facts| u64::from(facts.failures)).sum();
    let in_place: u64 = seen.pods.iter().filter(|pod| counts(family, pod)).map(|pod| restarts(family, pod)).sum();
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    number(in_place) >= limit.max(1) || number(replaced.saturating_add(in_place)) > limit
}

/// Returns whether the restarts of a pod's containers count: it has not ended, and its type restarts what fails.
fn counts(family: &Family<'_>, pod: &PodRow) -> bool {
    let of = |replicas: &&Replicas<'_>| pod.role == replicas.of.lower || replicas.of.first == Some(pod.role.as_str());
    let policy = family.replicas.iter().find(of).and_then(|replicas| replicas.restart_policy);
    let lives = matches!(pod.phase, PodPhase::Pending | PodPhase::Running);
    lives && policy.is_some_and(|policy| policy != RestartPolicy::Never)
}

/// Returns how often a pod's containers were started again in place: the framework's, and before it starts those that prepare
/// it. Better: a sidecar's restarts are not the job's.
fn restarts(family: &Family<'_>, pod: &PodRow) -> u64 {
    let is_meant = |row: &&ContainerRow| match row.init {
        true => pod.phase == PodPhase::Pending,
        false => row.name == family.kind.container,
    };
    pod.containers.iter().filter(is_meant).map(|row| u64::from(row.restarts)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{job, spec};
    use serde_json::json;

    // AC-14: the CRD accepts any number of seconds.
    #[test]
    fn a_deadline_that_never_comes_is_none() {
        let ends = |seconds: i64, started: u64| {
            let policy = json!({ "runPolicy": { "activeDeadlineSeconds": seconds } });
            let job = job("JAXJob", &spec("JAXJob", &[("Worker", 1)], &policy));
            deadline(&Family::of(&job).unwrap(), started)
        };
        assert_eq!(ends(60, 1_000), Some(61_000));
        assert_eq!(ends(i64::MAX, 1_000), None);
        assert_eq!(ends(300_000_000_000, 1_000), None);
        // The start in the status is no time.
        assert_eq!(ends(60, u64::MAX), None);
    }
}
