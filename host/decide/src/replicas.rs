//! Missing pods and surplus pods.

use crate::{
    Snapshot, addresses, blocker,
    decision::{Action, Part},
    failures, restarts,
    standing::{Replica, Standing},
    turns,
    waiting::Waiting,
};

/// A pass creates at most this many pods, and as many objects beside them, so that one wide job does not delay the
/// others.
pub(crate) const MOST_AT_ONCE: usize = 500;

/// Creates missing replicas whose gates are open and that may run now; deletes pods beyond those, and failed pods that
/// are replaced.
pub(crate) fn replicas(standing: &Standing<'_>) -> (Vec<Action>, Vec<Waiting>) {
    let ledger = &standing.snapshot.ledger;
    let is_over = |it: &&Replica<'_>| standing.has_succeeded(it) || ledger.is_given_up(&it.role.name, it.index);
    let wanted = standing.replicas.iter().filter(|replica| !is_over(replica));
    let needs: Vec<bool> =
        standing.plan.roles.iter().map(|role| role.at_once != Some(0) && !standing.is_done(role)).collect();
    let absent = wanted.filter(|it| it.pod.is_none_or(|pod| pod.terminating)).filter(|it| needs[it.place]);
    // Attempts do not overlap.
    let restarting = restarts::held(standing);
    let absent = absent.filter(|it| restarting.is_none() || ledger.attempt(&it.role.name) == 0);
    let (held, missing): (Vec<_>, Vec<_>) = absent.partition(|replica| is_held(standing.snapshot, replica));
    let mut waiting: Vec<Waiting> = held.into_iter().map(held_by).collect();
    waiting.extend(restarting);
    let (backing_off, missing): (Vec<_>, Vec<_>) =
        missing.into_iter().partition(|replica| failures::backs_off(standing.snapshot, replica));
    waiting.extend(backing_off.into_iter().map(|replica| back_off(standing.snapshot, replica)));
    let mut actions = Vec::new();
    // A gate counts the pods of a role, so it is evaluated once for all replicas of a role.
    for of_role in missing.chunk_by(|one, other| one.place == other.place) {
        match standing.closed(&of_role[0].role.after) {
            Some(why) => waiting.push(why),
            None => {
                let most = turns::room(standing, of_role[0].role).min(MOST_AT_ONCE - actions.len());
                actions.extend(of_role.iter().take(most).map(|replica| create(replica)));
            }
        }
    }
    let surplus = standing.surplus.iter().filter_map(|replica| replica.pod).filter(|pod| !pod.terminating);
    actions.extend(surplus.map(|pod| Action::delete_pod(pod)));
    actions.extend(turns::too_many(standing));
    actions.extend(standing.replicas.iter().filter_map(|replica| failures::removal(standing, replica)));
    actions.extend(restarts::removals(standing));
    actions.extend(addresses::removals(standing));
    (actions, waiting)
}

/// Returns whether the name is still taken: the pod that has it is not gone.
fn is_held(snapshot: &Snapshot, replica: &Replica<'_>) -> bool {
    replica.pod.is_some() || snapshot.taken.contains(&("Pod".to_owned(), replica.name.clone()))
}

/// Returns what keeps the name of a replica.
fn held_by(replica: &Replica<'_>) -> Waiting {
    match replica.pod.and_then(|pod| blocker::lost(pod)) {
        Some(by) => Waiting::Blocked { pod: replica.name.clone(), by, others: 0 },
        None => Waiting::Terminating { kind: "Pod".to_owned(), name: replica.name.clone() },
    }
}

fn back_off(snapshot: &Snapshot, replica: &Replica<'_>) -> Waiting {
    let (ledger, own) = (&snapshot.ledger, &replica.role.name);
    let count = |role: &String| ledger.failures.get(role).map_or(0, |failures| failures.count);
    // A role that starts again with others may have had no failure itself.
    let others = ledger.attempts.keys().filter(|_| count(own) == 0 && ledger.attempts.contains_key(own));
    let role = others.max_by_key(|role| count(role)).unwrap_or(own);
    Waiting::BackOff { role: role.clone(), failures: count(role) }
}

fn create(replica: &Replica<'_>) -> Action {
    let part = Part::Pod { role: replica.place, index: replica.index };
    Action::create("v1", "Pod", &replica.name, part)
}

#[cfg(test)]
mod tests {
    use crate::{
        Snapshot, decide,
        decision::Write,
        plan::{Answer, Bindings, Body, Gate, Moment, Object, Outcome, Plan, Reached, Upkeep, Verdict},
        testkit::{child, job, pod, snapshot, text},
        waiting::Waiting,
    };
    use serde_json::json;
    use std::sync::Arc;

    fn judged(plan: &Arc<Plan>) -> Answer {
        let verdict = Verdict::new(json!({}), "x", Outcome::Open);
        Answer::Judged { plan: Arc::clone(plan), bindings: Bindings::default(), verdict }
    }

    // Section 4: a gate counts all replicas of a role, which once for each missing one is their square.
    #[test]
    fn a_closed_gate_is_waited_for_once_however_many_replicas_are_missing_behind_it() {
        let role = |name: &str, after: Vec<Gate>| {
            let pod_name = text(&["JOB", &format!("-{name}-"), "INDEX"]);
            crate::plan::Role { after, ..crate::testkit::role(name, 1200, pod_name, json!({})) }
        };
        let gate = Gate::Pods { role: "s".into(), reached: Reached::Running };
        let plan = crate::testkit::plan(vec![role("s", vec![]), role("w", vec![gate])]);
        let waiting = decide(&snapshot(job("hamlet", "u")), &judged(&Arc::new(plan))).waiting;
        assert_eq!(waiting, [Waiting::Pods { reached: Reached::Running, have: 0, want: 1200 }]);
    }

    // Finding 5: the objects of pods have the same batch rule.
    #[test]
    fn a_wide_job_is_made_in_batches_of_pods_and_of_their_objects() {
        let name = || text(&["JOB", "-w-", "INDEX"]);
        let template = json!({ "spec": { "containers": [{ "name": "main" }] } });
        let mut plan = crate::testkit::plan(vec![crate::testkit::role("w", 1200, name(), template)]);
        plan.objects = vec![Object {
            key: "service".into(),
            api_version: "v1".into(),
            kind: "Service".into(),
            name: name(),
            per_pod_of: Some("w".into()),
            body: Body::Fixed(Arc::new(json!({})), vec![]),
            after: vec![],
            upkeep: Upkeep::CreateOnly,
            remove_when: vec![Moment::ReplicaGone],
        }];
        let plan = Arc::new(plan);
        let mut snapshot: Snapshot = snapshot(job("hamlet", "u"));
        for expected in [500, 500, 200, 0] {
            let actions = decide(&snapshot, &judged(&plan)).actions;
            let created = |kind: &str| -> Vec<String> {
                let of_kind = actions.iter().filter(|action| action.kind == kind);
                of_kind.filter(|it| matches!(it.write(), Write::Create(_))).map(|it| it.name.clone()).collect()
            };
            let (pods, services) = (created("Pod"), created("Service"));
            assert_eq!((pods.len(), services.len()), (expected, expected));
            snapshot.pods.extend(pods.iter().map(|name| Arc::new(pod(name, "u", crate::snapshot::PodPhase::Pending))));
            snapshot.children.extend(services.iter().map(|name| child("Service", name, &[])));
        }
    }
}
