//! Which plans are refused, and why. An accepted plan refers only to the job's own children, and to what its user or a
//! grant allows.

mod description;
mod features;
mod kinds;
mod marks;
mod provenance;
mod references;
mod selector;
mod series;
mod shape;
mod size;
mod uses;

pub use description::{DescriptionError, description};
pub use kinds::{KindError, is_kubernetes, is_label, is_subdomain};

use crate::{
    flaw::{Flaw, Subject, line},
    grants::Grants,
    jobs::LIMITS,
    names,
    plan::{
        Backing, Bindings, Body, Criterion, Deletion, Descriptor, Failure, FailureRule, Gate, Moment, Object,
        OnNewAddress, Piece, Plan, Reached, Remedy, Role, SecretRecipe, Success, Text, Upkeep,
    },
    pointer,
    rejection::{FieldError, Objection, PlanError, Rejection},
    snapshot::Job,
};
use provenance::{Provenance, touches};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of success criteria of a plan: each is held against all replicas of its role in each pass.
const MOST_CRITERIA: usize = 100;

/// Maximum number of ranges in them.
const MOST_CRITERIA_RANGES: usize = 10_000;

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

/// Checks that a plan is no larger than any plugin's may be. For plans that no host has checked, as those of recordings.
///
/// # Errors
/// What is too much, and the limit.
pub fn size(plan: &Plan) -> Result<(), Rejection> {
    size::vet(&Grants::default(), plan)
}

/// Checks what `bind` returned for a plan.
///
/// # Errors
/// As for [`vet`].
pub fn bindings(job: &Job, grants: &Grants, plan: &Plan, bindings: &Bindings) -> Result<(), Objection> {
    bodies(job, grants, plan, &bindings.bodies)?;
    series::runs(job, plan, &bindings.runs)
}

fn bodies(job: &Job, grants: &Grants, plan: &Plan, bodies: &BTreeMap<String, Value>) -> Result<(), Objection> {
    if bodies.is_empty() {
        return Ok(());
    }
    let provenance = Provenance::new(job, grants, plan);
    for object in &plan.objects {
        if let Some(body) = bodies.get(&object.key) {
            let vetted = provenance.body(object, body, &[]);
            vetted.map_err(|objection| readable(objection.about(Subject::Object(object.key.clone()))))?;
        }
    }
    Ok(())
}

fn plan_of(descriptor: &Descriptor, job: &Job, grants: &Grants, plan: &Plan) -> Result<(), Objection> {
    size::vet(grants, plan)?;
    unique("role", plan.roles.iter().map(|role| role.name.as_str()))?;
    let keys = plan.objects.iter().map(|object| object.key.as_str());
    let keys = keys.chain(plan.secrets.iter().map(|secret| secret.key.as_str()));
    unique("key", keys.chain(plan.series.iter().map(|series| series.key.as_str())))?;
    let provenance = Provenance::new(job, grants, plan);
    for role in &plan.roles {
        let subject = Subject::Role(role.name.clone());
        let vetted = vet_role(descriptor, job, plan, role, &subject).and_then(|()| provenance.role(role));
        vetted.map_err(|objection| objection.about(subject))?;
    }
    for object in &plan.objects {
        let subject = Subject::Object(object.key.clone());
        let vetted = vet_object(descriptor, job, plan, object, &subject).and_then(|()| provenance.object(object));
        vetted.map_err(|objection| objection.about(subject))?;
    }
    for secret in &plan.secrets {
        let subject = Subject::Secret(secret.key.clone());
        let vetted = vet_secret(job, secret, &subject).and_then(|()| Ok(provenance.secret(secret)?));
        vetted.map_err(|objection| objection.about(subject))?;
    }
    for series in &plan.series {
        let subject = Subject::Series(series.key.clone());
        let vetted = series::vet(descriptor, job, plan, series).and_then(|()| Ok(provenance.series(series)?));
        vetted.map_err(|objection| objection.about(subject))?;
    }
    criteria(plan).map_err(|flaw| PlanError::from(flaw).about(Subject::Plan))?;
    provenance.whole(descriptor).map_err(|flaw| PlanError::from(flaw).about(Subject::Plan))?;
    Ok(cleaned_kinds_agree(plan)?)
}

/// Refuses criteria about nothing, and more than can be looked at in each pass.
fn criteria(plan: &Plan) -> Result<(), Flaw> {
    let all = || plan.success_criteria.iter().flatten();
    let (criteria, ranges) = (all().count(), all().map(|criterion| criterion.indices.parts()).sum());
    if criteria > MOST_CRITERIA || ranges > MOST_CRITERIA_RANGES {
        let (most, most_ranges) = (MOST_CRITERIA, MOST_CRITERIA_RANGES);
        return Err(Flaw::ManyCriteria { criteria, ranges, most, most_ranges });
    }
    let is_of_nothing = |criterion: &&Criterion| plan.roles.iter().all(|role| role.name != criterion.role);
    match all().find(is_of_nothing) {
        Some(Criterion { role, .. }) => Err(Flaw::CriterionOfNothing { role: role.clone() }),
        None => Ok(()),
    }
}

fn vet_role(descriptor: &Descriptor, job: &Job, plan: &Plan, role: &Role, subject: &Subject) -> Result<(), Objection> {
    named(descriptor, &role.name)?;
    let kind = if role.backing == Backing::Pods { "Pod" } else { "Job" };
    declared(descriptor, kind)?;
    for index in [0, role.indices().last().unwrap_or_default()] {
        own_name(job, subject, |job| names::of_replica(role, job, index))?;
    }
    shape::vet(&job.spec, role)?;
    if let Backing::Job(body) = &role.backing
        && body.get("spec").is_some_and(|spec| !spec.is_object())
    {
        return Err(Flaw::JobWithoutSpec.into());
    }
    gates(descriptor, plan, &role.after)?;
    ranges(&role.failures)?;
    fillable(&role.template, &role.fill)?;
    unaddressed(std::iter::once(&role.pod_name).chain(&role.hostname).chain(&role.subdomain))?;
    let texts = role.env.iter().map(|entry| &entry.value);
    let texts = texts.chain(role.labels.iter().chain(&role.fill).map(|(_, text)| text));
    addressed(plan, &role.after, texts)?;
    match &role.backing {
        Backing::Pods if role.replicas > 1 && names::of_replica(role, "", 0) == names::of_replica(role, "", 1) => {
            Err(Flaw::NameWithoutIndex.into())
        }
        Backing::Job(_) if restarts_job(plan) => Err(Flaw::RestartOfJob { role: role.name.clone() }.into()),
        Backing::Job(_) if has_fate(role) => Err(Flaw::FailuresBehindJob.into()),
        Backing::Job(_) if role.replicas != 1 => Err(Flaw::JobReplicas { replicas: role.replicas }.into()),
        Backing::Job(_) => {
            kept(descriptor, "Job", "/spec/suspend")?;
            let of_limits = LIMITS.map(|field| kept(descriptor, "Job", &format!("/spec/{field}")));
            // What is kept in part would be patched for ever.
            if of_limits.iter().any(Result::is_ok) {
                of_limits.into_iter().collect::<Result<(), _>>()?;
            }
            Ok(())
        }
        Backing::Pods => Ok(()),
    }
}

fn vet_secret(job: &Job, secret: &SecretRecipe, subject: &Subject) -> Result<(), Objection> {
    unaddressed(std::iter::once(&secret.name))?;
    own_name(job, subject, |job| names::expand(&secret.name, job, None, 0))
}

/// Removes control characters from messages to the user, and limits their length.
fn readable(objection: Objection) -> Objection {
    match objection {
        Objection::Job(Rejection::Invalid(errors)) => Rejection::Invalid(
            errors.into_iter().map(|it| FieldError { path: line(&it.path), message: line(&it.message) }).collect(),
        )
        .into(),
        Objection::Job(Rejection::TooMuch(message)) => Rejection::TooMuch(line(&message)).into(),
        other => other,
    }
}

fn vet_object(
    descriptor: &Descriptor,
    job: &Job,
    plan: &Plan,
    object: &Object,
    subject: &Subject,
) -> Result<(), Objection> {
    if matches!(object.kind.as_str(), "Pod" | "Job" | "Secret") {
        return Err(Flaw::NotAnObject { kind: object.kind.clone() }.into());
    }
    let of_kind = |kind: &crate::plan::ChildKind| kind.kind == object.kind && kind.api_version == object.api_version;
    if !descriptor.own_children().any(of_kind) {
        return Err(Flaw::UndescribedKind { kind: format!("{} {}", object.api_version, object.kind) }.into());
    }
    if let Some(role) = &object.per_pod_of
        && !plan.roles.iter().any(|candidate| candidate.name == *role)
    {
        return Err(Flaw::NoRole { role: role.clone() }.into());
    }
    let last = names::role_of_object(plan, object).and_then(|role| role.indices().last()).unwrap_or_default();
    for index in [0, last] {
        own_name(job, subject, |job| names::of_object(plan, object, job, index))?;
    }
    gates(descriptor, plan, &object.after)?;
    unaddressed(std::iter::once(&object.name))?;
    if let Upkeep::Follow(pointers) = &object.upkeep {
        for pointer in pointers {
            kept(descriptor, &object.kind, pointer)?;
        }
        disjoint(pointers)?;
    }
    match &object.body {
        Body::Fixed(body, fill) => {
            fillable(body, fill)?;
            Ok(addressed(plan, &object.after, fill.iter().map(|(_, text)| text))?)
        }
        Body::Bound if object.per_pod_of.is_some() => Err(Flaw::BoundPerPod.into()),
        Body::Bound => Ok(()),
    }
}

/// Returns whether the role says what becomes of its pods, which a Job knows for itself.
fn has_fate(role: &Role) -> bool {
    let limited = role.at_once.is_some() || role.failures_per_replica.is_some();
    let placed = !role.left_out.is_empty() || role.on_new_address != OnNewAddress::Keep;
    limited
        || placed
        || !role.failures.is_empty()
        || role.deletion != Deletion::Uncounted
        || role.success == Success::Shared
}

/// Refuses a rule that no exit code fits.
fn ranges(rules: &[FailureRule]) -> Result<(), Flaw> {
    for rule in rules {
        let Failure::ExitCodes { ranges, .. } = &rule.about else { continue };
        if let Some(&(first, last)) = ranges.iter().find(|(first, last)| first > last) {
            return Err(Flaw::EmptyRange { first, last });
        }
    }
    Ok(())
}

/// Refuses a place that is followed twice, by itself or as a part of another.
fn disjoint(pointers: &[String]) -> Result<(), Flaw> {
    for (at, pointer) in pointers.iter().enumerate() {
        if let Some(other) = pointers[..at].iter().find(|other| touches(pointer, other)) {
            return Err(Flaw::FollowedTwice { pointer: pointer.clone(), other: other.clone() });
        }
    }
    Ok(())
}

fn unique<'a>(what: &'static str, names: impl Iterator<Item = &'a str>) -> Result<(), Flaw> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Flaw::Twice { what, name: name.to_owned() });
        }
    }
    Ok(())
}

/// Checks that a name made of the job's name begins with it and is a DNS label. It is the user's error when a shorter
/// or plainer name of the job would be valid.
fn own_name(job: &Job, subject: &Subject, name: impl Fn(&str) -> String) -> Result<(), Objection> {
    const PLAIN: &str = "j";
    let full = name(&job.name);
    if !full.starts_with(&job.name) {
        return Err(Flaw::ForeignName { name: full }.into());
    }
    if is_label(&full) {
        return Ok(());
    }
    let plain = name(PLAIN);
    if !is_label(&plain) {
        return Err(Flaw::InvalidName { name: full, most: LONGEST_LABEL }.into());
    }
    let most = LONGEST_LABEL - (plain.len() - PLAIN.len());
    let message = format!(
        "must be at most {most} characters of a-z, 0-9 and '-', and begin and end with none of '-': {subject} would be called {full}"
    );
    Err(Rejection::field("metadata.name", message).into())
}

/// Checks that a kind of the plugin has the role, or leaves its roles to the job's user.
fn named(descriptor: &Descriptor, role: &str) -> Result<(), Flaw> {
    let kinds = &descriptor.kinds;
    if kinds.iter().any(|kind| kind.roles.is_empty() || kind.roles.iter().any(|named| named == role)) {
        return Ok(());
    }
    Err(Flaw::UndescribedRole { roles: kinds.iter().flat_map(|kind| &kind.roles).cloned().collect() })
}

fn declared(descriptor: &Descriptor, kind: &str) -> Result<(), Flaw> {
    let named = descriptor.own_children().any(|child| child.kind == kind);
    if named { Ok(()) } else { Err(Flaw::UndescribedKind { kind: kind.to_owned() }) }
}

fn kept(descriptor: &Descriptor, kind: &str, pointer: &str) -> Result<(), Flaw> {
    let mut of_kind = descriptor.own_children().filter(|child| child.kind == kind);
    if of_kind.any(|child| child.keep.iter().any(|kept| kept == pointer)) {
        return Ok(());
    }
    Err(Flaw::FieldNotKept { kind: kind.to_owned(), pointer: pointer.to_owned() })
}

fn gates(descriptor: &Descriptor, plan: &Plan, gates: &[Gate]) -> Result<(), Flaw> {
    let object = |key: &String| Subject::Object(key.clone());
    gates.iter().try_for_each(|gate| match gate {
        Gate::Pods { role, .. } if plan.roles.iter().any(|candidate| candidate.name == *role) => Ok(()),
        Gate::Pods { role, .. } => Err(Flaw::AwaitsNothing { other: Subject::Role(role.clone()) }),
        Gate::Field { key, at, .. } => match plan.objects.iter().find(|object| object.key == *key) {
            Some(object) if object.per_pod_of.is_none() => kept(descriptor, &object.kind, at),
            Some(_) => Err(Flaw::AwaitsMany { other: object(key) }),
            None => Err(Flaw::AwaitsNothing { other: object(key) }),
        },
    })
}

fn fillable(json: &Value, fill: &[(String, Text)]) -> Result<(), Flaw> {
    match fill.iter().find(|(at, _)| pointer::find(json, at).is_none()) {
        Some((pointer, _)) => Err(Flaw::NothingToFill { pointer: pointer.clone() }),
        None => Ok(()),
    }
}

/// Returns the roles whose addresses the texts contain.
fn peers<'a>(texts: impl Iterator<Item = &'a Text>) -> impl Iterator<Item = &'a String> {
    texts.flat_map(|text| &text.0).filter_map(|piece| match piece {
        Piece::PeerIp(role, _) | Piece::PeerHost(role, _) => Some(role),
        Piece::Fixed(_) | Piece::Index(_) | Piece::Attempt | Piece::JobName | Piece::PodName => None,
    })
}

/// Returns whether a failed pod of any role starts the whole job again.
fn restarts_job(plan: &Plan) -> bool {
    plan.roles.iter().flat_map(|role| &role.failures).any(|rule| rule.then == Remedy::RestartJob)
}

/// Refuses an address or an attempt in a name.
fn unaddressed<'a>(names: impl Iterator<Item = &'a Text> + Clone) -> Result<(), Flaw> {
    if names.clone().any(|name| name.0.contains(&Piece::Attempt)) {
        return Err(Flaw::AttemptInName);
    }
    match peers(names).next() {
        Some(role) => Err(Flaw::AddressInName { role: role.clone() }),
        None => Ok(()),
    }
}

/// Checks that a text with an address waits until the address is known.
fn addressed<'a>(plan: &Plan, after: &[Gate], texts: impl Iterator<Item = &'a Text>) -> Result<(), Flaw> {
    let waits_for = |role: &String| {
        after.iter().any(|gate| match gate {
            Gate::Pods { role: other, reached } => {
                other == role && !matches!(reached, Reached::Exists | Reached::Succeeded)
            }
            Gate::Field { .. } => false,
        })
    };
    for role in peers(texts) {
        if !plan.roles.iter().any(|candidate| candidate.name == *role) {
            return Err(Flaw::AddressOfNothing { role: role.clone() });
        }
        if !waits_for(role) {
            return Err(Flaw::AddressNotAwaited { role: role.clone() });
        }
    }
    Ok(())
}

/// Checks that all objects of a kind are deleted at the job's end, or none: the ledger of a finished job names kinds.
fn cleaned_kinds_agree(plan: &Plan) -> Result<(), PlanError> {
    let mut by_kind: BTreeMap<&str, [bool; 2]> = BTreeMap::new();
    for object in &plan.objects {
        let at_the_end = [Moment::Cleaned, Moment::Finished].map(|moment| object.remove_when.contains(&moment));
        if *by_kind.entry(&object.kind).or_insert(at_the_end) != at_the_end {
            let mixed = PlanError::from(Flaw::MixedCleaning { kind: object.kind.clone() });
            return Err(mixed.about(Subject::Object(object.key.clone())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod whose;
