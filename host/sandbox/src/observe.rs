//! What a plugin gets of a snapshot, in the order that the contract promises.

use decide::{
    Snapshot, attempts, counted::was_stopped, failures::Due, jobs, names, plan::Plan, ranges::Ranges, snapshot::Pod,
    status::of_framework,
};
use serde_json::Value;

/// A pod, with its role and replica index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    /// The position of the role in the plan.
    pub(super) role: usize,
    /// None for the pod of a role that a Job backs.
    pub(super) index: Option<u32>,
    pub(super) pod: &'a Pod,
}

/// Returns the pods of the plan's roles: by role, then index, then creation. What has ended of an earlier attempt of its role
/// is left out.
pub(super) fn rows<'a>(snapshot: &'a Snapshot, plan: &Plan) -> Vec<Row<'a>> {
    let jobs = backing_jobs(snapshot, plan);
    let mut rows: Vec<Row<'a>> = snapshot
        .pods
        .iter()
        .filter_map(|pod| {
            let (role, index) = if pod.owner_uid == snapshot.job.uid {
                let (role, index) = names::role_of_pod(plan, &snapshot.job.name, &pod.name)?;
                let is_old = attempts::is_old(snapshot, &plan.roles[role], pod);
                if is_old && pod.phase.is_terminal() {
                    return None;
                }
                (role, Some(index))
            } else {
                (jobs.iter().find(|(_, uid)| *uid == pod.owner_uid)?.0, None)
            };
            Some(Row { role, index, pod })
        })
        .collect();
    rows.sort_by(|a, b| {
        (a.role, a.index, a.pod.created, &a.pod.name).cmp(&(b.role, b.index, b.pod.created, &b.pod.name))
    });
    rows
}

/// Returns the batch/v1 Jobs that back roles of the plan: the role's position and the Job's uid.
fn backing_jobs<'a>(snapshot: &'a Snapshot, plan: &Plan) -> Vec<(usize, &'a str)> {
    let roles = plan.roles.iter().enumerate();
    roles.filter_map(|(place, role)| Some((place, snapshot.job_behind(role)?.uid.as_str()))).collect()
}

/// What the host has recorded about a role.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) role: &'a str,
    /// Wanted replicas that have succeeded and whose pod is gone.
    pub(super) succeeded: Ranges,
    /// Whether the Job behind the role is gone and its result was not observed.
    pub(super) lost: bool,
    /// How many failed pods of the role are counted, with those that are due.
    pub(super) failures: u32,
    /// Wanted replicas that are given up, with those that are due.
    pub(super) given_up: Ranges,
    /// How often the role was started again as a whole.
    pub(super) attempt: u32,
}

/// Returns what the host has recorded about roles. Skips roles without records.
pub(super) fn facts<'a>(
    snapshot: &'a Snapshot,
    plan: &'a Plan,
    rows: &'a [Row<'_>],
    due: &'a Due<'_>,
) -> impl Iterator<Item = Facts<'a>> {
    let facts = plan.roles.iter().enumerate().map(|(place, role)| {
        // The ledger also holds replicas that were scaled down.
        let recorded = snapshot.ledger.succeeded.get(&role.name).map(|indices| indices.within(&role.indices()));
        let counts = |row: &&Row<'_>| row.role == place && !was_stopped(role, row.pod);
        let present = rows.iter().filter(counts).filter_map(|row| row.index);
        let succeeded = recorded.unwrap_or_default().without(present);
        let (lost, failures) = (jobs::is_lost(snapshot, role), due.count(&role.name));
        let attempt = snapshot.ledger.attempt(&role.name);
        Facts { role: &role.name, succeeded, lost, failures, given_up: due.given_up(role), attempt }
    });
    facts.filter(|facts| facts.lost || facts.failures > 0 || facts.attempt > 0 || !facts.succeeded.is_empty())
}

/// Returns the status as the plugin last wrote it: without the ledger and the host's own conditions.
pub(super) fn previous_status(status: &Value) -> Value {
    if status.is_object() { of_framework(status) } else { Value::Object(serde_json::Map::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_previous_status_contains_only_the_plugins_own_fields() {
        let status = json!({
            "phase": "Running", "troupe": { "uid": "u", "conditions": [{ "type": "Waiting" }] },
            "conditions": [{ "type": "Running" }],
        });
        assert_eq!(previous_status(&status), json!({ "phase": "Running", "conditions": [{ "type": "Running" }] }));
        assert_eq!(previous_status(&Value::Null), json!({}));
    }
}
