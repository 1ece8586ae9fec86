//! What happens to the pods and objects of a finished job.

use crate::{
    Snapshot,
    decision::Action,
    jobs,
    ledger::Finished,
    plan::{Clean, Moment, Object, Outcome, Plan},
    snapshot::{Pod, PodPhase},
    ttl,
};
use jiff::Timestamp;
use serde_json::Value;

/// Returns the remaining actions. Callers pass only a `finished` that the observed ledger holds, so that no evidence is
/// destroyed before it is written.
#[must_use]
pub fn cleanup(snapshot: &Snapshot, finished: &Finished) -> Vec<Action> {
    let pods = snapshot.own_pods().filter(|pod| removes(finished.clean, pod)).map(|pod| Action::delete_pod(pod));
    let objects = snapshot
        .children
        .iter()
        .filter(|child| !child.terminating && finished.clean_kinds.contains(&child.kind))
        .map(|child| Action::delete(child));
    pods.chain(objects).chain(jobs::stop(snapshot, finished)).collect()
}

/// Returns the deletions of pods that have not ended, of a job whose observed ledger says how it is going to end.
pub(crate) fn ending(snapshot: &Snapshot) -> Vec<Action> {
    if snapshot.ledger.ending.is_none() {
        return vec![];
    }
    let open = snapshot.own_pods().filter(|pod| !pod.phase.is_terminal() && !pod.terminating);
    open.map(|pod| Action::delete_pod(pod)).chain(jobs::suspend_all(snapshot)).collect()
}

/// Returns the end of a job at this time, with the plan's rules for finished jobs. `clean` is the verdict's own rule.
#[must_use]
pub fn finished(
    snapshot: &Snapshot,
    plan: &Plan,
    (outcome, clean): (Outcome, Option<Clean>),
    at: Timestamp,
) -> Finished {
    let clean_is_final = clean.is_some();
    let clean = clean.unwrap_or(match outcome {
        Outcome::Failed => plan.policy.clean_on_failure,
        Outcome::Succeeded | Outcome::Open | Outcome::Succeeding | Outcome::Failing => plan.policy.clean_on_success,
    });
    let goes = |object: &&Object| {
        let with_pods = clean != Clean::Keep && object.remove_when.contains(&Moment::Cleaned);
        with_pods || object.remove_when.contains(&Moment::Finished)
    };
    let clean_kinds = plan.objects.iter().filter(goes).map(|object| object.kind.clone()).collect();
    let delete_at = plan.policy.ttl.map(|ttl| ttl::due(snapshot, ttl, at));
    let counting = outcome == Outcome::Failed && clean == Clean::Keep && !all_pods_ended(snapshot);
    let generation = Some(snapshot.job.generation);
    Finished { at, generation, outcome, clean, clean_is_final, counting, clean_kinds, delete_at }
}

/// Returns whether every pod of the job has ended.
fn all_pods_ended(snapshot: &Snapshot) -> bool {
    snapshot.own_pods().all(|pod| pod.phase.is_terminal())
}

/// Returns when the job ended: `completionTime` of its status unless that is in the future, else now.
pub(crate) fn ended_at(snapshot: &Snapshot, status: &Value) -> Timestamp {
    let reported = status["completionTime"].as_str().and_then(|time| time.parse().ok());
    reported.filter(|at| *at <= snapshot.now).unwrap_or(snapshot.now)
}

/// Returns whether a clean-pod rule deletes this pod.
pub(crate) fn removes(clean: Clean, pod: &Pod) -> bool {
    let covered = match clean {
        Clean::Keep => false,
        Clean::Active => matches!(pod.phase, PodPhase::Pending | PodPhase::Running),
        Clean::All => true,
    };
    covered && !pod.terminating
}
