//! How much a job may have: levels of its spec, pods, objects, ports of the nodes. What is too much is its user's error,
//! since it is his numbers that a plan is made of, and other jobs are not to suffer for it.

use crate::{
    grants::Grants,
    names,
    plan::{Backing, Body, Object, Plan, Role},
    rejection::Rejection,
    snapshot::Job,
};
use serde_json::Value;

/// More replicas than this in one job are refused: names and memory are finite.
const MOST_REPLICAS: u64 = 10_000;

/// More objects than this beside the pods are refused.
const MOST_OBJECTS: u64 = 30_000;

/// More ports of the nodes than this for one job are refused: there are some thirty thousand for all.
const MOST_PORTS: u32 = 1000;

/// A spec of more levels than this is refused: a pod's is not half as deep, and readers in plugins may end at 128.
const MOST_LEVELS: usize = 64;

/// What of the job itself is too much.
///
/// # Errors
/// What, and how much would be allowed.
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

/// # Errors
/// What is too much, how much it is and where it comes from, and how much would be allowed.
pub(super) fn vet(grants: &Grants, plan: &Plan) -> Result<(), Rejection> {
    let roles = plan.roles.iter().map(|role| (role.name.as_str(), pods(role)));
    let bodies = plan.objects.iter().filter_map(|object| match &object.body {
        Body::Fixed(body, _) => Some((object.key.as_str(), count(body, "replicas"))),
        Body::Bound => None,
    });
    at_most("replicas", roles.chain(bodies), grants.max_replicas, "maxReplicas", MOST_REPLICAS)?;
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

/// The pods of a role; those of a Job behind it, as many as it may have at once or in all.
fn pods(role: &Role) -> u64 {
    match &role.backing {
        Backing::Pods => u64::from(role.replicas),
        Backing::Job(body) => u64::from(role.replicas).max(count(body, "parallelism")).max(count(body, "completions")),
    }
}

/// A number that cannot be one counts as the most.
fn count(body: &Value, field: &str) -> u64 {
    match body.pointer(&format!("/spec/{field}")) {
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
