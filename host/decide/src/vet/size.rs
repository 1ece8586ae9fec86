//! Limits of one job: levels of its spec, pods, objects, host ports. Exceeding one is the user's error: a plan is made
//! from the user's numbers, and other jobs must not suffer for them.

use crate::{
    grants::Grants,
    names,
    plan::{Backing, Body, Object, Plan, Role},
    rejection::Rejection,
    snapshot::Job,
};
use serde_json::Value;

/// Maximum number of replicas of one job: names and memory are finite.
const MAX_REPLICAS: u64 = 10_000;

/// Maximum number of objects beside the pods of one job.
const MOST_OBJECTS: u64 = 30_000;

/// Maximum number of host ports of one job: there are about thirty thousand for all.
const MOST_PORTS: u32 = 1000;

/// Maximum number of ranges of indices that a role leaves out: each index is compared with them.
const MOST_LEFT_OUT: usize = 1000;

/// Maximum number of levels of a spec: a pod's is not half as deep, and parsers in plugins may stop at 128.
const MOST_LEVELS: usize = 64;

/// Checks the limits of the job itself.
///
/// # Errors
/// What is too much, and the limit.
pub(super) fn job(job: &Job) -> Result<(), Rejection> {
    match is_deeper(&job.spec, MOST_LEVELS) {
        true => Err(Rejection::TooMuch(format!("spec: it has more than {MOST_LEVELS} levels of objects and lists"))),
        false => Ok(()),
    }
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, levels - 1)),
        _ => false,
    }
}

/// Checks the limits of a plan.
///
/// # Errors
/// What is too much, the number, its largest part, and the limit.
pub(super) fn vet(grants: &Grants, plan: &Plan) -> Result<(), Rejection> {
    let roles = plan.roles.iter().map(|role| (role.name.as_str(), pods(role)));
    let bodies = plan.objects.iter().filter_map(|object| match &object.body {
        Body::Fixed(body, _) => Some((object.key.as_str(), count(body, "replicas"))),
        Body::Bound => None,
    });
    at_most("replicas", roles.chain(bodies), grants.max_replicas, "maxReplicas", MAX_REPLICAS)?;
    for Role { name, left_out, .. } in &plan.roles {
        let (indices, ranges) = (left_out.count(), left_out.parts());
        if indices > MAX_REPLICAS || ranges > MOST_LEFT_OUT {
            let message = format!(
                "{indices} indices in {ranges} ranges that role {name} leaves out are more than {MAX_REPLICAS} or {MOST_LEFT_OUT}"
            );
            return Err(Rejection::TooMuch(message));
        }
    }
    let objects = plan.objects.iter().map(|object| (object.key.as_str(), objects(plan, object)));
    let objects = objects.chain(plan.secrets.iter().map(|secret| (secret.key.as_str(), 1)));
    at_most("objects", objects, grants.max_objects, "maxObjects", MOST_OBJECTS)?;
    if plan.host_ports > MOST_PORTS {
        let message = format!("{} ports of the nodes are more than {MOST_PORTS}", plan.host_ports);
        return Err(Rejection::TooMuch(message));
    }
    Ok(())
}

fn at_most<'a>(
    what: &str,
    parts: impl Iterator<Item = (&'a str, u64)> + Clone,
    granted: Option<u32>,
    grant: &str,
    most: u64,
) -> Result<(), Rejection> {
    let there = parts.clone().map(|(_, count)| count).fold(0, u64::saturating_add);
    let granted = granted.map(u64::from).filter(|granted| *granted < most);
    if there <= granted.unwrap_or(most) {
        return Ok(());
    }
    let largest = parts.max_by_key(|(_, count)| *count);
    let most_of_them = largest.map(|(name, count)| format!(" ({count} of {name})")).unwrap_or_default();
    Err(Rejection::TooMuch(match granted {
        Some(granted) => format!(
            "{there} {what}{most_of_them} are more than {granted}; `spec.grants.{grant}: {there}` would allow them"
        ),
        None => format!("{there} {what}{most_of_them} are more than {most}, the most for one job"),
    }))
}

/// Returns the number of pods of a role; for a Job-backed role, as many as its Job may have at once or in all.
fn pods(role: &Role) -> u64 {
    match &role.backing {
        Backing::Pods => u64::from(role.replicas),
        Backing::Job(body) => u64::from(role.replicas).max(count(body, "parallelism")).max(count(body, "completions")),
    }
}

/// Returns a number of the body's spec; the maximum where it is not a number.
fn count(body: &Value, field: &str) -> u64 {
    match body.get("spec").and_then(|spec| spec.get(field)) {
        None | Some(Value::Null) => 0,
        Some(count) => count.as_u64().unwrap_or(u64::MAX),
    }
}

fn objects(plan: &Plan, object: &Object) -> u64 {
    match names::role_of_object(plan, object) {
        Some(role) => u64::from(role.replicas),
        None => 1,
    }
}
