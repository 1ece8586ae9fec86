//! Which plans are refused, and why. A plan that passes cannot name anything but the job's own children.

use crate::{
    names,
    plan::{Backing, Body, Descriptor, Moment, Object, Plan, Upkeep},
    snapshot::Job,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// More replicas than this in one job are refused: names and memory are finite.
const MOST_REPLICAS: u64 = 10_000;

/// Why a plan is refused, in words for the plugin's author.
///
/// # Errors
/// The first thing that is wrong, with the role, object or secret it is about.
pub fn vet(descriptor: &Descriptor, job: &Job, plan: &Plan) -> Result<(), String> {
    let replicas: u64 = plan.roles.iter().map(|role| u64::from(role.replicas)).sum();
    if replicas > MOST_REPLICAS {
        return Err(format!("{replicas} replicas are more than {MOST_REPLICAS}"));
    }
    unique("role", plan.roles.iter().map(|role| role.name.as_str()))?;
    let keys = plan.objects.iter().map(|object| object.key.as_str());
    unique("key", keys.chain(plan.secrets.iter().map(|secret| secret.key.as_str())))?;
    for role in &plan.roles {
        let what = format!("role {}", role.name);
        let kind = if role.backing == Backing::Pods { "Pod" } else { "Job" };
        declared(descriptor, &what, kind)?;
        for index in [0, role.replicas.saturating_sub(1)] {
            own_name(job, &what, &names::of_replica(role, &job.name, index))?;
        }
        if role.template.pointer("/spec/containers").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return Err(format!("{what}: its template has no containers"));
        }
        gates(plan, &what, &role.after)?;
        match &role.backing {
            Backing::Pods => {
                if role.replicas > 1 && names::of_replica(role, "", 0) == names::of_replica(role, "", 1) {
                    return Err(format!("{what}: its pod name has no index"));
                }
            }
            Backing::Job(_) => {
                kept(descriptor, &what, "Job", "/spec/suspend")?;
                if role.replicas != 1 {
                    return Err(format!("{what}: a role backed by a Job has 1 replica, not {}", role.replicas));
                }
            }
        }
    }
    for object in &plan.objects {
        vet_object(descriptor, job, plan, object)?;
    }
    for secret in &plan.secrets {
        own_name(job, &format!("secret {}", secret.key), &names::expand(&secret.name, &job.name, None, 0))?;
    }
    cleaned_kinds_agree(plan)
}

fn vet_object(descriptor: &Descriptor, job: &Job, plan: &Plan, object: &Object) -> Result<(), String> {
    let what = format!("object {}", object.key);
    if matches!(object.kind.as_str(), "Pod" | "Job" | "Secret") {
        return Err(format!("{what}: a {} is asked for as a role or a secret", object.kind));
    }
    let of_kind = |kind: &crate::plan::ChildKind| kind.kind == object.kind && kind.api_version == object.api_version;
    if !descriptor.children.iter().any(of_kind) {
        return Err(format!("{what}: describe does not name {} {} as a child", object.api_version, object.kind));
    }
    if let Some(role) = &object.per_pod_of
        && !plan.roles.iter().any(|candidate| candidate.name == *role)
    {
        return Err(format!("{what}: there is no role {role}"));
    }
    own_name(job, &what, &names::of_object(plan, object, &job.name, 0))?;
    gates(plan, &what, &object.after)?;
    if let Upkeep::Follow(pointers) = &object.upkeep {
        for pointer in pointers {
            kept(descriptor, &what, &object.kind, pointer)?;
        }
    }
    match &object.body {
        Body::Fixed(body, fill) => match fill.iter().find(|(pointer, _)| body.pointer(pointer).is_none()) {
            Some((pointer, _)) => Err(format!("{what}: its body has nothing at {pointer} to fill in")),
            None => Ok(()),
        },
        Body::Bound if object.per_pod_of.is_some() => Err(format!("{what}: one that is per pod cannot be bound")),
        Body::Bound => Ok(()),
    }
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("{what} {name} stands twice"));
        }
    }
    Ok(())
}

/// The name begins with the job's and is an RFC 1123 label of at most 63 characters.
fn own_name(job: &Job, what: &str, name: &str) -> Result<(), String> {
    let label = !name.is_empty()
        && name.len() <= 63
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    if !name.starts_with(&job.name) {
        return Err(format!("{what}: the name {name} does not begin with the job's name"));
    }
    if !label {
        return Err(format!("{what}: the name {name} is no DNS label of at most 63 characters"));
    }
    Ok(())
}

fn declared(descriptor: &Descriptor, what: &str, kind: &str) -> Result<(), String> {
    let named = descriptor.children.iter().any(|child| child.kind == kind);
    if named { Ok(()) } else { Err(format!("{what}: describe does not name {kind} as a child")) }
}

fn kept(descriptor: &Descriptor, what: &str, kind: &str, pointer: &str) -> Result<(), String> {
    let mut of_kind = descriptor.children.iter().filter(|child| child.kind == kind);
    if of_kind.any(|child| child.keep.iter().any(|kept| kept == pointer)) {
        return Ok(());
    }
    Err(format!("{what}: describe does not keep {pointer} of {kind}"))
}

fn gates(plan: &Plan, what: &str, gates: &[crate::plan::Gate]) -> Result<(), String> {
    match gates.iter().find(|gate| !plan.roles.iter().any(|role| role.name == gate.role)) {
        Some(gate) => Err(format!("{what}: it waits for role {}, which the plan does not have", gate.role)),
        None => Ok(()),
    }
}

/// The ledger of a finished job names kinds, so all objects of a kind go together or stay together.
fn cleaned_kinds_agree(plan: &Plan) -> Result<(), String> {
    let mut by_kind: BTreeMap<&str, bool> = BTreeMap::new();
    for object in &plan.objects {
        let cleaned = object.remove_when.contains(&Moment::Cleaned);
        if *by_kind.entry(&object.kind).or_insert(cleaned) != cleaned {
            return Err(format!("object {}: all objects of kind {} are cleaned, or none", object.key, object.kind));
        }
    }
    Ok(())
}
