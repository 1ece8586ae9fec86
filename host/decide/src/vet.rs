//! Which plans are refused, and why. An accepted plan refers only to the job's own children, and to what its user or a
//! grant allows.

mod description;
mod features;
mod kinds;
mod marks;
mod provenance;
mod references;
mod shape;
mod size;
mod uses;

pub use description::description;
pub use kinds::{is_kubernetes, is_label};

use crate::{
    grants::Grants,
    names,
    plan::{Backing, Body, Descriptor, Gate, Moment, Object, Piece, Plan, Reached, Role, SecretRecipe, Text, Upkeep},
    rejection::{FieldError, Objection, Rejection},
    snapshot::Job,
};
use provenance::{Provenance, touches};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of a refusal in bytes: it becomes a condition and an event.
const LONGEST: usize = 1000;

/// Maximum length of a DNS label in characters.
const LONGEST_LABEL: usize = 63;

/// Checks a job before its plugin is asked.
///
/// # Errors
/// What the user has to change.
pub fn job(job: &Job, grants: &Grants) -> Result<(), Rejection> {
    if !grants.serves(&job.namespace) {
        let namespace = &job.namespace;
        let message = format!("jobs in namespace {namespace} are not served; `spec.grants.namespaces` lacks it");
        return Err(Rejection::NotServed(message));
    }
    size::job(job)
}

/// Checks a plan.
///
/// # Errors
/// The first problem, with its role, object or secret, its field and the grant that would allow it; and whose error it
/// is, the user's or the plugin's.
pub fn vet(descriptor: &Descriptor, job: &Job, grants: &Grants, plan: &Plan) -> Result<(), Objection> {
    plan_of(descriptor, job, grants, plan).map_err(readable)
}

/// Checks the bodies that `bind` returned for objects of a plan.
///
/// # Errors
/// As for [`vet`].
pub fn bodies(job: &Job, grants: &Grants, plan: &Plan, bodies: &BTreeMap<String, Value>) -> Result<(), Objection> {
    if bodies.is_empty() {
        return Ok(());
    }
    let provenance = Provenance::new(job, grants, plan);
    for object in &plan.objects {
        if let Some(body) = bodies.get(&object.key) {
            provenance.body(object, body, &[]).map_err(readable)?;
        }
    }
    Ok(())
}

fn plan_of(descriptor: &Descriptor, job: &Job, grants: &Grants, plan: &Plan) -> Result<(), Objection> {
    size::vet(grants, plan)?;
    unique("role", plan.roles.iter().map(|role| role.name.as_str()))?;
    let keys = plan.objects.iter().map(|object| object.key.as_str());
    unique("key", keys.chain(plan.secrets.iter().map(|secret| secret.key.as_str())))?;
    let provenance = Provenance::new(job, grants, plan);
    for role in &plan.roles {
        vet_role(descriptor, job, plan, role)?;
        provenance.role(role)?;
    }
    for object in &plan.objects {
        vet_object(descriptor, job, plan, object)?;
        provenance.object(object)?;
    }
    for secret in &plan.secrets {
        vet_secret(job, secret)?;
        provenance.secret(secret)?;
    }
    provenance.whole(descriptor)?;
    Ok(cleaned_kinds_agree(plan)?)
}

fn vet_role(descriptor: &Descriptor, job: &Job, plan: &Plan, role: &Role) -> Result<(), Objection> {
    let what = format!("role {}", role.name);
    named(descriptor, &role.name)?;
    let kind = if role.backing == Backing::Pods { "Pod" } else { "Job" };
    declared(descriptor, &what, kind)?;
    for index in [0, role.replicas.saturating_sub(1)] {
        own_name(job, &what, |job| names::of_replica(role, job, index))?;
    }
    shape::vet(&job.spec, role).map_err(|objection| objection.about(&what))?;
    if let Backing::Job(body) = &role.backing
        && body.get("spec").is_some_and(|spec| !spec.is_object())
    {
        return Err(format!("{what}: the spec of its Job is no object").into());
    }
    gates(descriptor, plan, &what, &role.after)?;
    fillable(&what, &role.template, &role.fill)?;
    unaddressed(&what, std::iter::once(&role.pod_name).chain(&role.hostname).chain(&role.subdomain))?;
    let texts = role.env.iter().map(|entry| &entry.value);
    let texts = texts.chain(role.labels.iter().chain(&role.fill).map(|(_, text)| text));
    addressed(plan, &what, &role.after, texts)?;
    match &role.backing {
        Backing::Pods if role.replicas > 1 && names::of_replica(role, "", 0) == names::of_replica(role, "", 1) => {
            Err(format!("{what}: its pod name has no index").into())
        }
        Backing::Job(_) if role.replicas != 1 => {
            Err(format!("{what}: a role backed by a Job has 1 replica, not {}", role.replicas).into())
        }
        Backing::Job(_) => Ok(kept(descriptor, &what, "Job", "/spec/suspend")?),
        Backing::Pods => Ok(()),
    }
}

fn vet_secret(job: &Job, secret: &SecretRecipe) -> Result<(), Objection> {
    let what = format!("secret {}", secret.key);
    unaddressed(&what, std::iter::once(&secret.name))?;
    own_name(job, &what, |job| names::expand(&secret.name, job, None, 0))
}

/// Removes control characters from messages, and limits their length.
fn readable(objection: Objection) -> Objection {
    match objection {
        Objection::Plugin(message) => Objection::Plugin(line(&message)),
        Objection::Job(Rejection::Invalid(errors)) => Rejection::Invalid(
            errors.into_iter().map(|it| FieldError { path: line(&it.path), message: line(&it.message) }).collect(),
        )
        .into(),
        Objection::Job(Rejection::TooMuch(message)) => Rejection::TooMuch(line(&message)).into(),
        Objection::Job(other) => other.into(),
    }
}

fn line(message: &str) -> String {
    let mut line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.truncate(line.floor_char_boundary(LONGEST));
    line
}

fn vet_object(descriptor: &Descriptor, job: &Job, plan: &Plan, object: &Object) -> Result<(), Objection> {
    let what = format!("object {}", object.key);
    if matches!(object.kind.as_str(), "Pod" | "Job" | "Secret") {
        return Err(format!("{what}: a {} is asked for as a role or a secret", object.kind).into());
    }
    let of_kind = |kind: &crate::plan::ChildKind| kind.kind == object.kind && kind.api_version == object.api_version;
    if !descriptor.children.iter().any(of_kind) {
        return Err(format!("{what}: describe does not name {} {} as a child", object.api_version, object.kind).into());
    }
    if let Some(role) = &object.per_pod_of
        && !plan.roles.iter().any(|candidate| candidate.name == *role)
    {
        return Err(format!("{what}: there is no role {role}").into());
    }
    let last = names::role_of_object(plan, object).map_or(0, |role| role.replicas.saturating_sub(1));
    for index in [0, last] {
        own_name(job, &what, |job| names::of_object(plan, object, job, index))?;
    }
    gates(descriptor, plan, &what, &object.after)?;
    unaddressed(&what, std::iter::once(&object.name))?;
    if let Upkeep::Follow(pointers) = &object.upkeep {
        for pointer in pointers {
            kept(descriptor, &what, &object.kind, pointer)?;
        }
        disjoint(&what, pointers)?;
    }
    match &object.body {
        Body::Fixed(body, fill) => {
            fillable(&what, body, fill)?;
            Ok(addressed(plan, &what, &object.after, fill.iter().map(|(_, text)| text))?)
        }
        Body::Bound if object.per_pod_of.is_some() => {
            Err(format!("{what}: one that is per pod cannot be bound").into())
        }
        Body::Bound => Ok(()),
    }
}

/// Refuses a place that is followed twice, by itself or as a part of another.
fn disjoint(what: &str, pointers: &[String]) -> Result<(), String> {
    for (at, pointer) in pointers.iter().enumerate() {
        if let Some(other) = pointers[..at].iter().find(|other| touches(pointer, other)) {
            return Err(format!("{what}: upkeep: {pointer} and {other} are the same place, or one is in the other"));
        }
    }
    Ok(())
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

/// Checks that a name made of the job's name begins with it and is a DNS label. It is the user's error when a shorter
/// or plainer name of the job would be valid.
fn own_name(job: &Job, what: &str, name: impl Fn(&str) -> String) -> Result<(), Objection> {
    const PLAIN: &str = "j";
    let (full, plain) = (name(&job.name), name(PLAIN));
    if !full.starts_with(&job.name) {
        return Err(format!("{what}: the name {full} does not begin with the job's name").into());
    }
    if is_label(&full) {
        return Ok(());
    }
    if !is_label(&plain) {
        return Err(format!("{what}: the name {full} is no DNS label of at most {LONGEST_LABEL} characters").into());
    }
    let most = LONGEST_LABEL - (plain.len() - PLAIN.len());
    let message = format!(
        "must be at most {most} characters of a-z, 0-9 and '-', and begin and end with none of '-': {what} would be called {full}"
    );
    Err(Rejection::field("metadata.name", message).into())
}

/// Checks that a kind of the plugin has the role, or leaves its roles to the job's user.
fn named(descriptor: &Descriptor, role: &str) -> Result<(), String> {
    let kinds = &descriptor.kinds;
    if kinds.iter().any(|kind| kind.roles.is_empty() || kind.roles.iter().any(|named| named == role)) {
        return Ok(());
    }
    let roles: Vec<_> = kinds.iter().flat_map(|kind| &kind.roles).map(String::as_str).collect();
    Err(format!("role {role}: describe does not name it; its roles are {}", roles.join(", ")))
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

fn gates(descriptor: &Descriptor, plan: &Plan, what: &str, gates: &[Gate]) -> Result<(), String> {
    gates.iter().try_for_each(|gate| match gate {
        Gate::Pods { role, .. } if plan.roles.iter().any(|candidate| candidate.name == *role) => Ok(()),
        Gate::Pods { role, .. } => Err(format!("{what}: it waits for role {role}, which the plan does not have")),
        Gate::Field { key, at, .. } => match plan.objects.iter().find(|object| object.key == *key) {
            Some(object) if object.per_pod_of.is_none() => kept(descriptor, what, &object.kind, at),
            Some(_) => Err(format!("{what}: it waits for object {key}, of which there is one for each pod")),
            None => Err(format!("{what}: it waits for object {key}, which the plan does not have")),
        },
    })
}

fn fillable(what: &str, json: &Value, fill: &[(String, Text)]) -> Result<(), String> {
    match fill.iter().find(|(pointer, _)| json.pointer(pointer).is_none()) {
        Some((pointer, _)) => Err(format!("{what}: there is nothing at {pointer} to fill in")),
        None => Ok(()),
    }
}

/// Returns the roles whose addresses the texts contain.
fn peers<'a>(texts: impl Iterator<Item = &'a Text>) -> impl Iterator<Item = &'a String> {
    texts.flat_map(|text| &text.0).filter_map(|piece| match piece {
        Piece::PeerIp(role, _) => Some(role),
        Piece::Fixed(_) | Piece::Index(_) | Piece::JobName | Piece::PodName => None,
    })
}

/// Refuses an address in a name.
fn unaddressed<'a>(what: &str, names: impl Iterator<Item = &'a Text>) -> Result<(), String> {
    match peers(names).next() {
        Some(role) => Err(format!("{what}: an address of role {role} cannot be part of a name")),
        None => Ok(()),
    }
}

/// Checks that a text with an address waits until the address is known.
fn addressed<'a>(plan: &Plan, what: &str, after: &[Gate], texts: impl Iterator<Item = &'a Text>) -> Result<(), String> {
    let waits_for = |role: &String| {
        after.iter().any(|gate| match gate {
            Gate::Pods { role: other, reached } => other == role && *reached != Reached::Exists,
            Gate::Field { .. } => false,
        })
    };
    for role in peers(texts) {
        if !plan.roles.iter().any(|candidate| candidate.name == *role) {
            return Err(format!("{what}: it tells an address of role {role}, which the plan does not have"));
        }
        if !waits_for(role) {
            return Err(format!("{what}: it tells an address of role {role} but does not wait for it"));
        }
    }
    Ok(())
}

/// Checks that all objects of a kind are deleted at the job's end, or none: the ledger of a finished job names kinds.
fn cleaned_kinds_agree(plan: &Plan) -> Result<(), String> {
    let mut by_kind: BTreeMap<&str, [bool; 2]> = BTreeMap::new();
    for object in &plan.objects {
        let at_the_end = [Moment::Cleaned, Moment::Finished].map(|moment| object.remove_when.contains(&moment));
        if *by_kind.entry(&object.kind).or_insert(at_the_end) != at_the_end {
            let (key, kind) = (&object.key, &object.kind);
            return Err(format!("object {key}: all objects of kind {kind} go when the job ends, or none"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod whose;
