//! Pods that are missing, and pods that are too many.

use crate::{
    Snapshot, build,
    cleanup::delete_pod,
    decision::{Action, Write},
    plan::Plan,
    standing::{Replica, Standing},
    waiting::Waiting,
};
use serde_json::Value;

/// At most this many pods are created in one pass, so that one wide job does not hold up the others.
const MOST_AT_ONCE: usize = 500;

/// Creates missing replicas whose gates are open, and deletes pods beyond the wanted replicas.
pub(crate) fn replicas(snapshot: &Snapshot, plan: &Plan, standing: &Standing<'_>) -> (Vec<Action>, Vec<Waiting>) {
    let mut actions: Vec<Action> = Vec::new();
    let mut waiting = Vec::new();
    for replica in standing.replicas.iter().filter(|replica| !standing.has_succeeded(replica)) {
        match missing(snapshot, plan, standing, replica) {
            Missing::No => {}
            Missing::Yes(_) if actions.len() >= MOST_AT_ONCE => {}
            Missing::Yes(pod) => actions.push(Action::new("v1", "Pod", &replica.name, Write::Create(pod))),
            Missing::Waits(why) => waiting.push(why),
        }
    }
    let surplus = standing.surplus.iter().filter_map(|replica| replica.pod).filter(|pod| !pod.terminating);
    actions.extend(surplus.map(|pod| delete_pod(pod)));
    (actions, waiting)
}

enum Missing {
    No,
    Yes(Value),
    Waits(Waiting),
}

fn missing(snapshot: &Snapshot, plan: &Plan, standing: &Standing<'_>, replica: &Replica<'_>) -> Missing {
    let named = |kind: &str| (kind.to_owned(), replica.name.clone());
    match replica.pod {
        Some(pod) if !pod.terminating => Missing::No,
        there if there.is_some() || snapshot.taken.contains(&named("Pod")) => {
            let (kind, name) = named("Pod");
            Missing::Waits(Waiting::Terminating { kind, name })
        }
        _ => match standing.closed(&replica.role.after) {
            Some(why) => Missing::Waits(why),
            None => Missing::Yes(build::pod(snapshot, plan, replica.role, replica.index, &replica.name)),
        },
    }
}
