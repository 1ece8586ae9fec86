//! A job in a queue: its Workload is created, kept equal to the job, given the progress of the job, and deleted.

mod label;
mod report;

pub(crate) use label::misplaced;
pub(crate) use report::{finish, release};

use crate::{
    Snapshot,
    decision::{Action, Part},
    snapshot::Child,
    standing::Standing,
    waiting::Waiting,
    workload::{self, WORKLOADS},
};
use serde_json::json;

/// What is done with a job's Workload before the job's end.
pub(crate) enum Step {
    /// These writes, beside all others of the pass, and why the queue holds the job back.
    Keep(Vec<Action>, Option<Waiting>),
    /// It is of other pods than the plan's, so it is deleted, and no pod is made before there is another.
    Renew(Action),
}

/// Creates the Workload of a job that is not over, keeps it as the job has it, reports to it, and deletes one that is
/// of other pods or that the job needs no more.
pub(crate) fn queue(standing: &Standing<'_>) -> Step {
    let Standing { snapshot, plan, .. } = standing;
    let Some(queue) = &snapshot.queue else { return Step::Keep(vec![], None) };
    let held = || workload::held(snapshot);
    let is_queued = snapshot.queue_name().is_some() && !snapshot.suspended_by_user() && workload::has_pods(plan);
    let (action, waiting) = match (&queue.workload, workload::priority(snapshot, queue, plan)) {
        (Some(child), _) if child.terminating => (None, held()),
        // Pods of a suspended job have their quota until they have ended.
        (Some(_), _) if !is_queued && snapshot.suspended_by_user() && is_active(snapshot) => (None, None),
        (Some(child), _) if !is_queued => (Some(Action::delete(child)), None),
        (None, _) if !is_queued => (None, None),
        (Some(child), _) if queue.has("Finished").is_some() || !workload::is_of(queue, child, plan) => {
            return Step::Renew(Action::delete(child));
        }
        (Some(child), _) if queue.has("QuotaReserved").is_some() => {
            (report::release(snapshot).or_else(|| report::pods_ready(standing, queue, child)), held())
        }
        (_, Err(hold)) => (None, Some(Waiting::Queue { workload: workload::name(snapshot), hold })),
        (Some(child), Ok(priority)) => (adjusted(snapshot.queue_name(), child, &priority), held()),
        (None, Ok(_)) => {
            let name = workload::name(snapshot);
            (Some(Action::create(WORKLOADS.api_version, WORKLOADS.kind, &name, Part::Workload)), held())
        }
    };
    Step::Keep(action.into_iter().collect(), waiting)
}

/// Returns the patch that gives a Workload without quota the queue and the priority of its job.
fn adjusted(queue: Option<&str>, workload: &Child, priority: &workload::Priority) -> Option<Action> {
    let mut patch = priority.differs(workload);
    if let Some(name) = queue.filter(|name| workload.fields.get("/spec/queueName") != Some(&json!(name))) {
        patch["queueName"] = json!(name);
    }
    (patch != json!({})).then(|| Action::patch(workload, json!({ "spec": patch })))
}

/// Returns whether the job has pods that have not ended, or a Job that may still make some.
fn is_active(snapshot: &Snapshot) -> bool {
    snapshot.pods.iter().any(|pod| !pod.phase.is_terminal()) || snapshot.has_active_job()
}

#[cfg(test)]
mod tests;
