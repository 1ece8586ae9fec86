//! Roles that start again as a whole: where one process that is lost is the end of all, one pod in place of another is no
//! remedy.
//!
//! The ledger counts for each role how often it was started again, and a pod names the attempt that it was created for. The
//! count is written first; every pod of an earlier attempt is then deleted, whatever became of the host in between. No pod of
//! the new attempt is created before the last one of the old is gone, so that the two never meet.

use crate::{
    decision::Action,
    ledger::Ledger,
    plan::{Remedy, Role},
    snapshot::{Pod, Snapshot},
    standing::{Replica, Standing},
    waiting::Waiting,
};
use jiff::Timestamp;
use std::sync::Arc;

/// The annotation of a pod that names the attempt it was created for, if that is not the first.
pub const ATTEMPT_ANNOTATION: &str = "troupe.dev/attempt";

/// Returns how often the role was started again.
#[must_use]
pub fn attempt(ledger: &Ledger, role: &str) -> u32 {
    ledger.attempts.get(role).copied().unwrap_or_default()
}

/// Returns whether the pod is of an earlier attempt of its role. It decides nothing any more.
#[must_use]
pub fn is_old(snapshot: &Snapshot, role: &Role, pod: &Pod) -> bool {
    pod.attempt < attempt(&snapshot.ledger, &role.name)
}

/// Returns the deletions of pods of earlier attempts.
pub(crate) fn removals<'a>(standing: &'a Standing<'_>) -> impl Iterator<Item = Action> + 'a {
    old(standing).filter(|(_, pod)| !pod.terminating).map(|(_, pod)| Action::delete_pod(pod))
}

/// Returns what the new attempts of roles wait for: the pod of an earlier one.
pub(crate) fn held(standing: &Standing<'_>) -> Option<Waiting> {
    let (replica, _) = old(standing).next()?;
    Some(Waiting::Terminating { kind: "Pod".to_owned(), name: replica.name.clone() })
}

fn old<'a>(standing: &'a Standing<'_>) -> impl Iterator<Item = (&'a Replica<'a>, &'a Arc<Pod>)> {
    let pods = standing.replicas.iter().filter_map(|replica| Some((replica, replica.pod?)));
    pods.filter(|(replica, pod)| is_old(standing.snapshot, replica.role, pod))
}

/// Starts the roles of a restart again: that of the failed pod, or all, after a back-off from when it ended. What became of
/// their replicas counts no more.
pub(crate) fn record(standing: &Standing<'_>, (failed, remedy): (&Role, Remedy), at: Timestamp, ledger: &mut Ledger) {
    let is_meant = |role: &&Role| remedy == Remedy::RestartJob || role.name == failed.name;
    for role in standing.plan.roles.iter().filter(is_meant) {
        let of_role = standing.replicas.iter().filter(|replica| replica.role.name == role.name);
        // A ledger that somebody has emptied is behind the pods.
        let made = of_role.filter_map(|replica| replica.pod).map(|pod| pod.attempt).max().unwrap_or_default();
        let next = made.max(attempt(ledger, &role.name)).saturating_add(1);
        ledger.attempts.insert(role.name.clone(), next);
        ledger.succeeded.remove(&role.name);
        ledger.given_up.remove(&role.name);
        let failures = ledger.failures.entry(role.name.clone()).or_default();
        failures.pods.clear();
        failures.row.add(at, standing.snapshot.now);
    }
}
