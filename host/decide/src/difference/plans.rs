//! Compares two plans: roles, objects, secrets, ports, policy.

use super::{Danger, danger_if, found::Found, found::words, live::Live};
use crate::{
    Snapshot,
    plan::{Backing, Body, Clean, Gate, Object, Plan, Policy, Role, Text, Upkeep},
};
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Debug};

/// Records every difference of two plans.
pub(super) fn compare(found: &mut Found, snapshot: &Snapshot, old: &Plan, new: &Plan) {
    let live = Live::of(snapshot);
    roles(found, snapshot, (old, new));
    objects(found, &live, old, new);
    secrets(found, old, new);
    series(found, old, new);
    // What has succeeded already may be enough, or not enough any more.
    debug(found, danger_if(live.any()), "plan", "/success_criteria", &old.success_criteria, &new.success_criteria);
    if old.host_ports != new.host_ports {
        let (old, new) = (old.host_ports.to_string(), new.host_ports.to_string());
        found.record(danger_if(live.any()), "plan", "/host_ports", old, new);
    }
    policies(found, live.any(), old.policy, new.policy);
    if old.warnings != new.warnings {
        found.record(Danger::Harmless, "plan", "/warnings", super::listed(&old.warnings), super::listed(&new.warnings));
    }
}

/// What exists of a series stays as it is.
fn series(found: &mut Found, old: &Plan, new: &Plan) {
    let keys = |plan: &Plan| plan.series.iter().map(|series| series.key.as_str()).collect::<Vec<_>>().join(", ");
    if old.series != new.series {
        found.record(Danger::Harmless, "plan", "/series", keys(old), keys(new));
    }
}

fn roles(found: &mut Found, snapshot: &Snapshot, (old, new): (&Plan, &Plan)) {
    let live = Live::of(snapshot);
    for (place, was) in old.roles.iter().enumerate() {
        let what = format!("role {}", was.name);
        let lives = live.role(old, place);
        let Some(is) = new.roles.iter().find(|is| is.name == was.name) else {
            found.record(danger_if(lives), &what, "", replicas(was), "none");
            continue;
        };
        if was == is {
            continue;
        }
        let gone = || danger_if(live.pods(old, place).any(|(index, _)| was.wants(index) && !is.wants(index)));
        if was.replicas != is.replicas {
            found.record(gone(), &what, "/replicas", was.replicas.to_string(), is.replicas.to_string());
        }
        if was.left_out != is.left_out {
            debug(found, gone(), &what, "/leftOut", &Vec::from(was.left_out.clone()), &Vec::from(is.left_out.clone()));
        }
        if was.success != is.success {
            let counts = live.pods(old, place).next().is_some() || snapshot.ledger.succeeded.contains_key(&was.name);
            debug(found, danger_if(counts), &what, "/success", &was.success, &is.success);
        }
        fate(found, danger_if(lives), &what, was, is);
        contents(found, danger_if(lives), &what, was, is);
        gates(found, &what, &was.after, &is.after);
    }
    for is in new.roles.iter().filter(|is| old.roles.iter().all(|was| was.name != is.name)) {
        found.record(Danger::Harmless, &format!("role {}", is.name), "", "none", replicas(is));
    }
}

fn replicas(role: &Role) -> String {
    format!("{} replicas", role.replicas)
}

/// Compares how many of a role's pods run, and what becomes of those that fail.
fn fate(found: &mut Found, danger: Danger, what: &str, old: &Role, new: &Role) {
    debug(found, Danger::Harmless, what, "/failures", &old.failures, &new.failures);
    debug(found, danger, what, "/deletion", &old.deletion, &new.deletion);
    debug(found, danger, what, "/on_new_address", &old.on_new_address, &new.on_new_address);
    debug(found, danger, what, "/at_once", &old.at_once, &new.at_once);
    debug(found, danger, what, "/failures_per_replica", &old.failures_per_replica, &new.failures_per_replica);
}

/// Compares what a role's pods, or its Job, are made of.
fn contents(found: &mut Found, danger: Danger, what: &str, old: &Role, new: &Role) {
    match (&old.backing, &new.backing) {
        (Backing::Pods, Backing::Pods) => {}
        (Backing::Job(old), Backing::Job(new)) => found.json(what, "/backing", (old, new), |_| danger),
        (Backing::Job(_), Backing::Pods) => found.record(danger, what, "/backing", "a Job", "pods"),
        (Backing::Pods, Backing::Job(_)) => found.record(danger, what, "/backing", "pods", "a Job"),
    }
    text(found, danger, what, "/pod_name", Some(&old.pod_name), Some(&new.pod_name));
    text(found, danger, what, "/hostname", old.hostname.as_ref(), new.hostname.as_ref());
    text(found, danger, what, "/subdomain", old.subdomain.as_ref(), new.subdomain.as_ref());
    found.json(what, "/template", (&old.template, &new.template), |_| danger);
    found.texts((danger, what, "/env"), &env(old), &env(new));
    found.texts((danger, what, "/labels/"), &named(&old.labels), &named(&new.labels));
    found.texts((danger, what, "/fill"), &named(&old.fill), &named(&new.fill));
}

fn env(role: &Role) -> Vec<(String, &Text)> {
    let entry = |container: &str, name: &str| {
        if container.is_empty() { format!("/{name}") } else { format!("/{container}/{name}") }
    };
    role.env.iter().map(|one| (entry(&one.container, &one.name), &one.value)).collect()
}

fn named(texts: &[(String, Text)]) -> Vec<(String, &Text)> {
    texts.iter().map(|(name, text)| (name.clone(), text)).collect()
}

fn text(found: &mut Found, danger: Danger, what: &str, field: &str, old: Option<&Text>, new: Option<&Text>) {
    if old != new {
        let shown = |text: Option<&Text>| text.map_or("none".to_owned(), words);
        found.record(danger, what, field, shown(old), shown(new));
    }
}

/// Compares values in `Debug` notation.
fn debug<T: Debug + PartialEq>(found: &mut Found, danger: Danger, what: &str, field: &str, old: &T, new: &T) {
    if old != new {
        found.record(danger, what, field, format!("{old:?}"), format!("{new:?}"));
    }
}

/// Compares gates: a gate delays creation and never affects what exists.
fn gates(found: &mut Found, what: &str, old: &Vec<Gate>, new: &Vec<Gate>) {
    debug(found, Danger::Harmless, what, "/after", old, new);
}

fn objects(found: &mut Found, live: &Live<'_>, old: &Plan, new: &Plan) {
    for was in &old.objects {
        let what = format!("object {}", was.key);
        match new.objects.iter().find(|is| is.key == was.key) {
            // The object stays: the host deletes no object because a plan omits it.
            None => found.record(Danger::Harmless, &what, "", &was.kind, "none"),
            Some(is) if was == is => {}
            Some(is) => object(found, live, &what, was, is),
        }
    }
    for is in new.objects.iter().filter(|is| old.objects.iter().all(|was| was.key != is.key)) {
        found.record(Danger::Harmless, &format!("object {}", is.key), "", "none", &is.kind);
    }
}

fn object(found: &mut Found, live: &Live<'_>, what: &str, old: &Object, new: &Object) {
    let identity = |object: &Object| format!("{} {}", object.api_version, object.kind);
    if identity(old) != identity(new) {
        found.record(Danger::Harmless, what, "/kind", identity(old), identity(new));
    }
    text(found, Danger::Harmless, what, "/name", Some(&old.name), Some(&new.name));
    debug(found, Danger::Harmless, what, "/per_pod_of", &old.per_pod_of, &new.per_pod_of);
    debug(found, Danger::Harmless, what, "/upkeep", &old.upkeep, &new.upkeep);
    debug(found, Danger::Harmless, what, "/remove_when", &old.remove_when, &new.remove_when);
    gates(found, what, &old.after, &new.after);
    match (&old.body, &new.body) {
        (Body::Bound, Body::Bound) => {}
        (Body::Fixed(was, was_filled), Body::Fixed(is, is_filled)) => {
            let danger = |pointer: &str| danger_if(live.any() && follows(new, pointer));
            found.json(what, "/body", (was, is), danger);
            let filled = was_filled.iter().chain(is_filled).any(|(pointer, _)| follows(new, pointer));
            let danger = danger_if(live.any() && filled);
            found.texts((danger, what, "/body"), &named(was_filled), &named(is_filled));
        }
        (Body::Bound, Body::Fixed(..)) => found.record(Danger::Harmless, what, "/body", "bound", "fixed"),
        (Body::Fixed(..), Body::Bound) => found.record(Danger::Harmless, what, "/body", "fixed", "bound"),
    }
}

/// Returns whether the object follows its body at this pointer, below it or above it.
fn follows(object: &Object, pointer: &str) -> bool {
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match &object.upkeep {
        Upkeep::CreateOnly => false,
        Upkeep::Follow(kept) => kept.iter().any(|kept| within(pointer, kept) || within(kept, pointer)),
    }
}

/// Compares the bodies that the plugin's `bind` returned for objects of the new plan.
pub(super) fn compare_bodies(
    found: &mut Found,
    live: &Live<'_>,
    plan: &Plan,
    (old, new): (&BTreeMap<String, Value>, &BTreeMap<String, Value>),
) {
    let added = new.keys().filter(|key| !old.contains_key(*key));
    for key in old.keys().chain(added) {
        let what = format!("object {key}");
        match (old.get(key), new.get(key)) {
            (Some(was), Some(is)) => {
                let object = plan.objects.iter().find(|object| object.key == *key);
                let follows = |pointer: &str| object.is_some_and(|object| follows(object, pointer));
                found.json(&what, "/body", (was, is), |pointer| danger_if(live.any() && follows(pointer)));
            }
            (Some(was), None) => found.record(Danger::Harmless, &what, "/body", was.to_string(), "none"),
            (None, Some(is)) => found.record(Danger::Harmless, &what, "/body", "none", is.to_string()),
            (None, None) => {}
        }
    }
}

/// Compares Secrets: an existing one is never created again, whatever its recipe.
fn secrets(found: &mut Found, old: &Plan, new: &Plan) {
    let by_key = |plan: &Plan| -> BTreeMap<String, String> {
        plan.secrets.iter().map(|secret| (secret.key.clone(), format!("{secret:?}"))).collect()
    };
    let (old, new) = (by_key(old), by_key(new));
    let none = "none".to_owned();
    for key in old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))) {
        let (was, is) = (old.get(key), new.get(key));
        if was != is {
            let (was, is) = (was.unwrap_or(&none), is.unwrap_or(&none));
            found.record(Danger::Harmless, &format!("secret {key}"), "", was, is);
        }
    }
}

/// Compares which pods the host deletes. Deleting more than before is dangerous while some are live.
fn policies(found: &mut Found, lives: bool, old: Policy, new: Policy) {
    let reach = |clean: Clean| match clean {
        Clean::Keep => 0,
        Clean::Active => 1,
        Clean::All => 2,
    };
    let rules = [
        ("/clean_on_success", old.clean_on_success, new.clean_on_success),
        ("/clean_on_failure", old.clean_on_failure, new.clean_on_failure),
        ("/clean_on_suspend", old.clean_on_suspend, new.clean_on_suspend),
    ];
    for (field, was, is) in rules {
        let more = reach(is) > reach(was);
        debug(found, danger_if(lives && more), "policy", field, &was, &is);
    }
    debug(found, Danger::Harmless, "policy", "/ttl", &old.ttl, &new.ttl);
}
