//! What the host deletes of a suspended job: pods by its clean-pod policy, and objects that exist only while it runs.

use crate::{
    Snapshot, attempts,
    cleanup::removes,
    decision::Action,
    jobs, names,
    plan::{Clean, Moment, Plan, Success},
    snapshot::{Pod, PodPhase},
    standing::Standing,
};

/// Returns the deletions of a suspended job; none for a job that is not suspended. A succeeded pod stays until the
/// ledger holds its success.
pub(crate) fn suspend(standing: &Standing<'_>) -> Vec<Action> {
    let Standing { snapshot, plan, .. } = standing;
    if !snapshot.suspended() {
        return vec![];
    }
    let job_name = &snapshot.job.name;
    let begins_anew = begins_anew(snapshot, plan);
    let recorded = |pod: &Pod| {
        let place = names::role_of_pod(plan, job_name, &pod.name);
        place.and_then(|(role, index)| Some((plan.roles.get(role)?, index))).is_none_or(|(role, index)| {
            let is_kept = role.wants(index) && role.success != Success::Momentary && !begins_anew;
            !is_kept || snapshot.ledger.has_succeeded(&role.name, index) || attempts::is_old(snapshot, role, pod)
        })
    };
    // First the ledger forgets the successes: after a resumption in between, the others would wait for what is not made again.
    let is_remembered = begins_anew && !snapshot.ledger.succeeded.is_empty();
    // A pod that ended for the queue's sake says nothing of its replica, which is made again.
    let clean = if snapshot.suspended_by_user() { plan.policy.clean_on_suspend } else { Clean::All };
    let pods = snapshot
        .own_pods()
        .filter(|pod| removes(clean, pod) && !is_remembered)
        .filter(|pod| pod.phase != PodPhase::Succeeded || recorded(pod))
        .map(|pod| Action::delete_pod(pod));
    let objects = snapshot.children.iter().filter(|child| !child.terminating).filter(|child| {
        let going = plan.objects.iter().filter(|object| object.remove_when.contains(&Moment::Suspended));
        going
            .filter(|object| object.kind == child.kind)
            .any(|object| names::index_of_object(plan, object, job_name, &child.name).is_some())
    });
    pods.chain(objects.map(|child| Action::delete(child))).collect()
}

/// Returns whether the job is suspended, and runs with all its replicas once it is resumed: its framework removes all pods of a
/// suspended job, those that have succeeded among them.
pub(crate) fn begins_anew(snapshot: &Snapshot, plan: &Plan) -> bool {
    snapshot.suspended() && plan.policy.clean_on_suspend == Clean::All
}

/// Returns the writes that stop a suspended job without a plan. Ended pods stay, since the ledger may lack their
/// outcome; objects stay too, since they cost nothing.
pub(crate) fn suspend_unplanned(snapshot: &Snapshot) -> Vec<Action> {
    if !snapshot.suspended() {
        return vec![];
    }
    let pods = snapshot.own_pods().filter(|pod| removes(Clean::Active, pod)).map(|pod| Action::delete_pod(pod));
    pods.chain(jobs::suspend_all(snapshot)).collect()
}
