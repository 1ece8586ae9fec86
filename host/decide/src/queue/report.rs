//! What the host reports to the queue in the status of a Workload: that the pods are ready, that they are gone, that the job
//! is over.

use super::is_active;
use crate::{
    Snapshot,
    decision::Action,
    ledger::Finished,
    plan::{Outcome, Reached},
    snapshot::{Child, Queue},
    standing::Standing,
    time::rfc3339,
};
use serde_json::{Value, json};

/// What the host says in one condition.
struct Said<'a> {
    kind: &'a str,
    is: bool,
    reason: &'a str,
    message: &'a str,
}

/// Gives the quota of an evicted Workload back, once no pod of the job is left that has not ended. Needs no plan.
pub(crate) fn release(snapshot: &Snapshot) -> Option<Action> {
    let queue = snapshot.queue.as_ref()?;
    let (workload, evicted) = (queue.workload()?, queue.has("Evicted")?);
    queue.has("QuotaReserved").filter(|_| !is_active(snapshot))?;
    let word = |field: &str| evicted[field].as_str().unwrap_or_default();
    // The queue itself says when a Workload that was evicted for another reason may return.
    let returns = matches!(word("reason"), "Preempted" | "NodeFailures");
    let mut said = vec![
        Said { kind: "Requeued", is: returns, reason: word("reason"), message: word("message") },
        Said { kind: "QuotaReserved", is: false, reason: "Pending", message: word("message") },
        Said { kind: "Admitted", is: false, reason: "NoReservation", message: "The workload has no reservation" },
    ];
    if queue.has("PodsReady").is_some() {
        said.push(Said { kind: "PodsReady", is: false, reason: "WaitForStart", message: "The pods have ended" });
    }
    let conditions = with(snapshot, queue, &said);
    let status = json!({ "admission": null, "conditions": conditions });
    Some(Action::patch_status(workload, json!({ "status": status })))
}

/// Says whether all pods are ready, once they were for the first time.
pub(super) fn pods_ready(standing: &Standing<'_>, queue: &Queue, workload: &Child) -> Option<Action> {
    let snapshot = standing.snapshot;
    if snapshot.suspended() {
        return None;
    }
    let roles = standing.plan.roles.iter();
    let ready = roles.filter(|role| role.replicas > 0).all(|role| standing.have_reached(role, Reached::Ready));
    let before = queue.condition("PodsReady").and_then(|condition| condition["reason"].as_str());
    let (is, reason, message) = match (ready, before) {
        (true, Some("WaitForRecovery" | "Recovered")) => (true, "Recovered", "All pods are ready again"),
        (true, _) => (true, "Started", "All pods are ready"),
        (false, None | Some("WaitForStart")) => return None,
        (false, Some(_)) => (false, "WaitForRecovery", "A pod is not ready any more"),
    };
    (before != Some(reason))
        .then(|| set_condition(snapshot, queue, workload, &Said { kind: "PodsReady", is, reason, message }))
}

/// Says that the job is over.
pub(crate) fn finish(snapshot: &Snapshot, finished: &Finished) -> Option<Action> {
    let queue = snapshot.queue.as_ref()?;
    let workload = queue.workload().filter(|_| queue.has("Finished").is_none())?;
    let (reason, message) = match finished.outcome {
        Outcome::Failed => ("Failed", "The job has failed"),
        Outcome::Succeeded | Outcome::Open | Outcome::Succeeding | Outcome::Failing => {
            ("Succeeded", "The job has succeeded")
        }
    };
    Some(set_condition(snapshot, queue, workload, &Said { kind: "Finished", is: true, reason, message }))
}

fn set_condition(snapshot: &Snapshot, queue: &Queue, workload: &Child, said: &Said<'_>) -> Action {
    let conditions = with(snapshot, queue, std::slice::from_ref(said));
    Action::patch_status(workload, json!({ "status": { "conditions": conditions } }))
}

/// Returns the conditions of the Workload with these in them.
fn with(snapshot: &Snapshot, queue: &Queue, said: &[Said<'_>]) -> Vec<Value> {
    let mut all = queue.conditions().to_vec();
    for Said { kind, is, reason, message } in said {
        let status = if *is { "True" } else { "False" };
        let mut condition = json!({ "type": kind, "status": status, "reason": reason, "message": message });
        condition["lastTransitionTime"] = json!(rfc3339(snapshot.now));
        match all.iter_mut().find(|old| old["type"] == *kind) {
            Some(old) => {
                if old["status"] == status {
                    condition["lastTransitionTime"] = old["lastTransitionTime"].take();
                }
                *old = condition;
            }
            None => all.push(condition),
        }
    }
    all
}
