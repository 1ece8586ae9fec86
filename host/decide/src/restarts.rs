//! Roles that start again as a whole: where one process that is lost is the end of all, one pod in place of another is no
//! remedy.
//!
//! The ledger counts for each role how often it was started again, and a pod names the attempt that it was created for. The
//! count is written first; every pod of an earlier attempt is then deleted, whatever became of the host in between. No pod of
//! the new attempt is created before the last one of the old is gone, so that the two never meet.

use crate::{
    attempts::is_old,
    back_off::{Attempt, MOST_BACK_OFF},
    blocker,
    decision::Action,
    ledger::Ledger,
    plan::{Remedy, Role},
    snapshot::{Pod, Snapshot},
    standing::{Replica, Standing},
    waiting::Waiting,
};
use jiff::Timestamp;
use std::sync::Arc;

/// Returns when the pods of the role's attempt may be created, if that is still to come. A time that is further away than any
/// back-off is none: the clock was set back.
pub(crate) fn backs_off_until(snapshot: &Snapshot, role: &str) -> Option<Timestamp> {
    let at = snapshot.ledger.attempts.get(role)?.not_before;
    (snapshot.now < at && at.duration_since(snapshot.now) <= MOST_BACK_OFF).then_some(at)
}

/// Returns the deletions of pods of earlier attempts. Those beyond the wanted replicas are deleted as such.
pub(crate) fn removals<'a>(standing: &'a Standing<'_>) -> impl Iterator<Item = Action> + 'a {
    old(standing, &standing.replicas).filter(|(_, pod)| !pod.terminating).map(|(_, pod)| Action::delete_pod(pod))
}

/// Returns what the new attempts of roles wait for: a pod of an earlier one, first one that does not go by itself.
pub(crate) fn held(standing: &Standing<'_>) -> Option<Waiting> {
    let all = || old(standing, &standing.replicas).chain(old(standing, &standing.surplus));
    let stuck = all().find_map(|(replica, pod)| {
        let by = blocker::lost(pod).filter(|_| pod.terminating)?;
        Some(Waiting::Blocked { pod: replica.name.clone(), by, others: 0 })
    });
    let first = || all().next().map(|(it, _)| Waiting::Terminating { kind: "Pod".to_owned(), name: it.name.clone() });
    stuck.or_else(first)
}

/// Returns the replicas with a pod of an earlier attempt.
fn old<'a>(
    standing: &'a Standing<'_>,
    replicas: &'a [Replica<'a>],
) -> impl Iterator<Item = (&'a Replica<'a>, &'a Arc<Pod>)> {
    let pods = replicas.iter().filter_map(|replica| Some((replica, replica.pod?)));
    pods.filter(|(replica, pod)| is_old(standing.snapshot, replica.role, pod))
}

/// Returns whether a role starts again with the failed pod of another.
pub(crate) fn is_meant(role: &Role, failed: &Role, remedy: Remedy) -> bool {
    remedy == Remedy::RestartJob || remedy == Remedy::RestartRole && role.name == failed.name
}

/// Starts the roles of a restart again: that of the failed pod, or all. What became of their replicas counts no more.
pub(crate) fn record(
    standing: &Standing<'_>,
    (failed, remedy): (&Role, Remedy),
    not_before: Timestamp,
    ledger: &mut Ledger,
) {
    for role in standing.plan.roles.iter().filter(|role| is_meant(role, failed, remedy)) {
        let of_role = standing.replicas.iter().filter(|replica| replica.role.name == role.name);
        // A ledger that somebody has emptied is behind the pods.
        let made = of_role.filter_map(|replica| replica.pod).map(|pod| pod.attempt).max().unwrap_or_default();
        let count = made.max(ledger.attempt(&role.name)).saturating_add(1);
        ledger.attempts.insert(role.name.clone(), Attempt { count, not_before });
        ledger.succeeded.remove(&role.name);
        ledger.given_up.remove(&role.name);
        if let Some(failures) = ledger.failures.get_mut(&role.name) {
            failures.pods.clear();
        }
    }
}
