//! What a plugin gets of a snapshot, in the order that the contract promises.

use decide::{Snapshot, condition::Condition, failures::Due, jobs, names, plan::Plan, snapshot::Pod};
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

/// Returns the pods of the plan's roles: by role, then index, then creation.
pub(super) fn rows<'a>(snapshot: &'a Snapshot, plan: &Plan) -> Vec<Row<'a>> {
    let jobs = backing_jobs(snapshot, plan);
    let mut rows: Vec<Row<'a>> = snapshot
        .pods
        .iter()
        .filter_map(|pod| {
            let (role, index) = if pod.owner_uid == snapshot.job.uid {
                let (role, index) = names::role_of_pod(plan, &snapshot.job.name, &pod.name)?;
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
    /// Wanted replicas that have succeeded and whose pod is gone: the first and last index of each range.
    pub(super) succeeded: Vec<(u32, u32)>,
    /// Whether the Job behind the role is gone and its result was not observed.
    pub(super) lost: bool,
    /// How many failed pods of the role are counted, with those that are due.
    pub(super) failures: u32,
}

/// Returns what the host has recorded about roles. Skips roles without records.
pub(super) fn facts<'a>(
    snapshot: &'a Snapshot,
    plan: &'a Plan,
    rows: &'a [Row<'_>],
    due: &'a Due<'_>,
) -> impl Iterator<Item = Facts<'a>> {
    let facts = plan.roles.iter().enumerate().map(|(place, role)| {
        let ranges = snapshot.ledger.succeeded.get(&role.name).map_or(&[][..], Vec::as_slice);
        let present = rows.iter().filter(|row| row.role == place).filter_map(|row| row.index);
        let succeeded = without(&below(role.replicas, ranges), present);
        let (lost, failures) = (jobs::is_lost(snapshot, role), due.count(&role.name));
        Facts { role: &role.name, succeeded, lost, failures }
    });
    facts.filter(|facts| facts.lost || facts.failures > 0 || !facts.succeeded.is_empty())
}

/// Returns the part of the ranges below this index. The ledger also holds replicas that were scaled down.
fn below(end: u32, ranges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let begun = ranges.iter().filter(|(first, _)| *first < end);
    begun.map(|(first, last)| (*first, (*last).min(end - 1))).collect()
}

/// Returns the ranges without these indices, which are in ascending order.
fn without(ranges: &[(u32, u32)], present: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut left = ranges.to_vec();
    for index in present {
        let Some(place) = left.iter().position(|(first, last)| (*first..=*last).contains(&index)) else { continue };
        let (first, last) = left[place];
        let before = index.checked_sub(1).filter(|before| *before >= first).map(|before| (first, before));
        let after = index.checked_add(1).filter(|after| *after <= last).map(|after| (after, last));
        left.splice(place..=place, before.into_iter().chain(after));
    }
    left
}

/// Returns the status as the plugin last wrote it: without the ledger and the host's own conditions.
pub(super) fn previous_status(status: &Value) -> Value {
    let Some(fields) = status.as_object() else { return Value::Object(serde_json::Map::new()) };
    let own = |condition: &Value| condition.get("type").and_then(Value::as_str).is_some_and(Condition::is_own);
    let kept = fields.iter().filter(|(name, _)| *name != "troupe").map(|(name, value)| {
        let value = match value.as_array() {
            Some(all) if name == "conditions" => all.iter().filter(|one| !own(one)).cloned().collect(),
            _ => value.clone(),
        };
        (name.clone(), value)
    });
    Value::Object(kept.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_that_still_exists_is_removed_from_the_ranges() {
        assert_eq!(without(&[(0, 4), (7, 7)], [0, 2, 7].into_iter()), vec![(1, 1), (3, 4)]);
        assert_eq!(without(&[(0, 0)], [0, 0].into_iter()), vec![]);
        assert_eq!(without(&[(0, u32::MAX)], [u32::MAX].into_iter()), vec![(0, u32::MAX - 1)]);
    }

    #[test]
    fn replicas_that_were_scaled_down_are_removed_from_the_ranges() {
        assert_eq!(below(4, &[(0, 1), (3, 7), (9, 9)]), vec![(0, 1), (3, 3)]);
        assert_eq!(below(0, &[(0, 1)]), vec![]);
        assert_eq!(below(u32::MAX, &[(2, u32::MAX)]), vec![(2, u32::MAX - 1)]);
    }

    #[test]
    fn the_previous_status_contains_only_the_plugins_own_fields() {
        let status = json!({
            "phase": "Running", "troupe": { "uid": "u" },
            "conditions": [{ "type": "Waiting" }, { "type": "Running" }, { "type": "PluginFaulted" }],
        });
        assert_eq!(previous_status(&status), json!({ "phase": "Running", "conditions": [{ "type": "Running" }] }));
        assert_eq!(previous_status(&Value::Null), json!({}));
    }
}
