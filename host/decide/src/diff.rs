//! Objects beside the pods: created, updated in place, and deleted with their replica.

use crate::{
    build,
    decision::{Action, Part},
    gang, names,
    plan::{Body, Moment, Object, Upkeep},
    pointer::place,
    replicas::MOST_AT_ONCE,
    snapshot::Child,
    standing::Standing,
    status::merge_patch,
    waiting::Waiting,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The objects to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// Objects of the whole job; pods may mount them.
    Job,
    /// Objects of single replicas.
    Replicas,
}

/// Creates missing objects whose gates are open, keeps followed objects equal to their bodies, and deletes objects
/// whose replica is no longer wanted.
pub(crate) fn objects(
    standing: &Standing<'_>,
    bodies: &BTreeMap<String, Value>,
    of: Of,
) -> (Vec<Action>, Vec<Waiting>) {
    let Standing { snapshot, plan, .. } = standing;
    let mut actions = Vec::new();
    let mut waiting = Vec::new();
    let all = plan.objects.iter().enumerate();
    for (place, object) in all.filter(|(_, object)| object.per_pod_of.is_some() == (of == Of::Replicas)) {
        if snapshot.suspended() && object.remove_when.contains(&Moment::Suspended) {
            continue;
        }
        let closed = standing.closed(&object.after);
        let mut held = false;
        for index in standing.indices(object).iter() {
            if actions.len() >= MOST_AT_ONCE {
                break;
            }
            let name = standing.name_of(object, index);
            match standing.child(&object.kind, &name) {
                Some(child) => {
                    actions.extend(follow(object, child, || build::content(snapshot, plan, object, index, bodies)));
                }
                None if closed.is_some() => held = true,
                None if snapshot.taken.contains(&(object.kind.clone(), name.clone())) => {
                    waiting.push(Waiting::Terminating { kind: object.kind.clone(), name });
                }
                None if object.body == Body::Bound && !bodies.contains_key(&object.key) => {}
                None => {
                    let part = Part::Object { object: place, index };
                    actions.push(Action::create(snapshot.served(&object.api_version), &object.kind, &name, part));
                }
            }
        }
        waiting.extend(closed.filter(|_| held));
    }
    if of == Of::Replicas {
        actions.extend(orphans(standing));
    }
    (actions, waiting)
}

/// Creates the Secrets that were never created.
pub(crate) fn secrets(standing: &Standing<'_>) -> Vec<Action> {
    let Standing { snapshot, plan, .. } = standing;
    let missing = plan.secrets.iter().filter(|recipe| !snapshot.ledger.made.contains(&recipe.key));
    missing
        .map(|recipe| {
            let name = names::expand(&recipe.name, &snapshot.job.name, None, 0);
            let metadata = crate::ownership::metadata(snapshot, &name, &json!({ "labels": recipe.labels }));
            Action::create_secret(&name, recipe.clone(), metadata).with_ledger_key(Some(recipe.key.clone()))
        })
        .collect()
}

/// Requires the Secrets that exist, if this pass creates pods or Jobs that may mount them.
pub(crate) fn required_secrets(standing: &Standing<'_>, actions: &[Action]) -> Vec<Action> {
    let Standing { snapshot, plan, .. } = standing;
    let to_come = actions.iter().any(|action| action.creates() && matches!(action.kind.as_str(), "Pod" | "Job"));
    let made = plan.secrets.iter().filter(|recipe| to_come && snapshot.ledger.made.contains(&recipe.key));
    made.map(|recipe| Action::require_secret(&names::expand(&recipe.name, &snapshot.job.name, None, 0))).collect()
}

/// Returns the patch that makes a followed object equal to its body.
fn follow(object: &Object, child: &Child, body: impl FnOnce() -> Option<Value>) -> Option<Action> {
    let Upkeep::Follow(pointers) = &object.upkeep else { return None };
    if child.terminating || gang::is_fixed(child) {
        return None;
    }
    let body = body()?;
    let mut patch = json!({});
    for pointer in pointers {
        let (have, want) = (child.fields.get(pointer).unwrap_or(&Value::Null), body.pointer(pointer));
        let want = want.unwrap_or(&Value::Null);
        if !is_same(have, want) {
            let at = place(&mut patch, pointer).expect("no kept field is within another: `vet`");
            *at = merge_patch(have, want);
        }
    }
    (patch != json!({})).then(|| Action::patch(child, patch))
}

/// Returns whether a merge patch would change nothing. A member that is null is as good as none: the library by which the API
/// server applies merge patches drops it from objects in lists, too, where RFC 7386 would keep it
/// (gopkg.in/evanphx/json-patch.v4 v4.13.0, of Kubernetes 1.37.2). What is wanted with a null there is never stored so.
fn is_same(have: &Value, want: &Value) -> bool {
    match (have, want) {
        (Value::Object(a), Value::Object(b)) => {
            let same = |name: &String| is_same(&have[name], &want[name]);
            a.keys().all(same) && b.keys().all(same)
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        _ => have == want,
    }
}

fn orphans(standing: &Standing<'_>) -> Vec<Action> {
    let Standing { snapshot, plan, .. } = standing;
    let per_replica = plan.objects.iter().filter(|object| object.remove_when.contains(&Moment::ReplicaGone));
    let gone = per_replica.flat_map(|object| {
        let role = names::role_of_object(plan, object);
        let of_kind = snapshot.children.iter().filter(move |child| child.kind == object.kind && !child.terminating);
        of_kind.filter(move |child| {
            let index = names::index_of_object(plan, object, &snapshot.job.name, &child.name);
            index.is_some_and(|index| role.is_none_or(|role| !role.wants(index)))
        })
    });
    gone.map(|child| Action::delete(child)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_in_a_list_is_not_patched_for_ever() {
        let wanted = json!({ "ports": [{ "port": 1, "name": null }, null, [2]] });
        assert!(is_same(&json!({ "ports": [{ "port": 1 }, null, [2]], "x": null }), &wanted));
        for stored in [
            json!({ "ports": [{ "port": 1 }, null, [3]] }),
            json!({ "ports": [{ "port": 1 }, [2]] }),
            json!({ "ports": [{ "port": 1, "name": "a" }, null, [2]] }),
            json!({ "ports": [{}, null, [2]] }),
            json!({}),
        ] {
            assert!(!is_same(&stored, &wanted), "{stored}");
        }
    }
}
