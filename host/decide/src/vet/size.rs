//! How much a plan may ask for: pods, objects, ports of the nodes.

use crate::{
    grants::Grants,
    names,
    plan::{Backing, Body, Object, Plan, Role},
};
use serde_json::Value;

/// More replicas than this in one job are refused: names and memory are finite.
const MOST_REPLICAS: u64 = 10_000;

/// More objects than this beside the pods are refused.
const MOST_OBJECTS: u64 = 30_000;

/// More ports of the nodes than this for one job are refused: there are some thirty thousand for all.
const MOST_PORTS: u32 = 1000;

/// # Errors
/// What is too much, how much it is, and how much would be allowed.
pub(super) fn vet(grants: &Grants, plan: &Plan) -> Result<(), String> {
    let bodies = plan.objects.iter().filter_map(|object| match &object.body {
        Body::Fixed(body, _) => Some(count(body, "replicas")),
        Body::Bound => None,
    });
    let pods = plan.roles.iter().map(pods).chain(bodies).fold(0, u64::saturating_add);
    let objects = plan.objects.iter().map(|object| objects(plan, object));
    let objects = objects.chain(plan.secrets.iter().map(|_| 1)).fold(0, u64::saturating_add);
    at_most("replicas", pods, grants.max_replicas, "maxReplicas", MOST_REPLICAS)?;
    at_most("objects", objects, grants.max_objects, "maxObjects", MOST_OBJECTS)?;
    if plan.host_ports > MOST_PORTS {
        return Err(format!("{} ports of the nodes are more than {MOST_PORTS}", plan.host_ports));
    }
    Ok(())
}

fn at_most(what: &str, there: u64, granted: Option<u32>, grant: &str, most: u64) -> Result<(), String> {
    match granted.map(u64::from).filter(|granted| *granted < most) {
        Some(granted) if there > granted => {
            Err(format!("{there} {what} are more than {granted}; `spec.grants.{grant}: {there}` would allow them"))
        }
        _ if there > most => Err(format!("{there} {what} are more than {most}")),
        _ => Ok(()),
    }
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
