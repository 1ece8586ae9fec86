//! Which ends of pods count: each pod once, none that the host has caused, and none after the end of the job is known.

use crate::{
    Snapshot, attempts,
    back_off::Failures,
    ledger::Ledger,
    plan::{Deletion, Ending, Role},
    snapshot::{Pod, PodPhase},
};

/// Returns whether the pod counts no more: it is counted, or being deleted by the host. One that was only going to be deleted
/// counts.
pub(crate) fn is_known(known: &Failures, ledger: &Ledger, index: u32, pod: &Pod) -> bool {
    let ended = ledger.ending.is_some() && known.ended.contains(index);
    known.replaces(index, &pod.uid) || ended || known.has_settled(index, &pod.uid) && pod.terminating
}

/// Returns whether the pod's success is its replica's: not if the pod counts as failed, if the host or somebody else has ended
/// it, if its role was started again since, or if the end of the job was known before.
#[must_use]
pub(crate) fn succeeds(snapshot: &Snapshot, role: &Role, index: u32, pod: &Pod) -> bool {
    let known = snapshot.ledger.failures.get(&role.name);
    let counts_no_more = known.is_some_and(|known| is_known(known, &snapshot.ledger, index, pod));
    let counts_no_more = counts_no_more || attempts::is_old(snapshot, role, pod);
    let is_given_up = snapshot.ledger.is_given_up(&role.name, index);
    let is_out = is_given_up || was_stopped(role, pod);
    pod.phase == PodPhase::Succeeded && !counts_no_more && !is_out && !ends_too_late(snapshot, role, index, pod)
}

/// Returns whether the exit code 0 of the pod says nothing of its work: it was deleted while it ran, and many programs end so
/// then.
#[must_use]
pub fn was_stopped(role: &Role, pod: &Pod) -> bool {
    pod.phase == PodPhase::Succeeded && pod.stopped && role.deletion == Deletion::Uncounted
}

/// Returns whether the pod ended after it was known how the job is going to end.
pub(crate) fn ends_too_late(snapshot: &Snapshot, role: &Role, index: u32, pod: &Pod) -> bool {
    match (snapshot.ledger.ending, pod.phase) {
        (Some(_), PodPhase::Succeeded) => !snapshot.ledger.has_succeeded(&role.name, index),
        (Some(Ending::Succeeding), PodPhase::Failed) => true,
        _ => false,
    }
}
