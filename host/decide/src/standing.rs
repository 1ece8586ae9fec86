//! Compares a job with its plan: which replicas exist, which gates are open, what the job waits for.

use crate::{
    Snapshot, attempts, counted,
    first_failure::shortened,
    names,
    plan::{Backing, Body, Gate, Object, Plan, Reached, Role, Success},
    ranges::Ranges,
    snapshot::{Child, Pod, PodPhase},
    waiting::Waiting,
    workload,
};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};

/// A replica that the plan wants, or a pod beyond the wanted replicas.
#[derive(Debug, Clone)]
pub struct Replica<'a> {
    /// Place of its role in the plan.
    pub place: usize,
    /// Its role.
    pub role: &'a Role,
    /// Its index.
    pub index: u32,
    /// The name of its pod.
    pub name: String,
    /// Its pod, if it exists.
    pub pod: Option<&'a Arc<Pod>>,
}

/// A job compared with its plan.
#[derive(Debug)]
pub struct Standing<'a> {
    /// The job and its children.
    pub snapshot: &'a Snapshot,
    /// The plan.
    pub plan: &'a Arc<Plan>,
    /// By kind, then by name.
    children: BTreeMap<&'a str, BTreeMap<&'a str, &'a Child>>,
    /// Wanted replicas of pod-backed roles, in the plan's order.
    pub replicas: Vec<Replica<'a>>,
    /// Pods of the plan's roles beyond the wanted replicas.
    pub surplus: Vec<Replica<'a>>,
}

impl<'a> Standing<'a> {
    /// Compares the snapshot with the plan. Does not consider whether the job is suspended.
    #[must_use]
    pub fn of(snapshot: &'a Snapshot, plan: &'a Arc<Plan>) -> Self {
        let job_name = &snapshot.job.name;
        let mut pods: BTreeMap<(usize, u32), &Arc<Pod>> = BTreeMap::new();
        for pod in snapshot.own_pods() {
            if let Some(place) = names::role_of_pod(plan, job_name, &pod.name) {
                pods.insert(place, pod);
            }
        }
        let mut replicas = Vec::new();
        for (place, role) in plan.roles.iter().enumerate().filter(|(_, role)| role.backing == Backing::Pods) {
            replicas.extend(role.indices().iter().map(|index| Replica {
                place,
                role,
                index,
                name: names::of_replica(role, job_name, index),
                pod: pods.remove(&(place, index)),
            }));
        }
        let surplus = pods
            .into_iter()
            .filter_map(|((place, index), pod)| {
                Some(Replica { place, role: plan.roles.get(place)?, index, name: pod.name.clone(), pod: Some(pod) })
            })
            .collect();
        let mut children: BTreeMap<&str, BTreeMap<&str, &Child>> = BTreeMap::new();
        for child in &snapshot.children {
            children.entry(&child.kind).or_default().insert(&child.name, child);
        }
        Self { snapshot, plan, children, replicas, surplus }
    }

    /// Returns the child of this kind and name, if it exists.
    #[must_use]
    pub fn child(&self, kind: &str, name: &str) -> Option<&'a Child> {
        self.children.get(kind)?.get(name).copied()
    }

    /// Returns the name of an object of the plan, for one replica where the object is per pod.
    #[must_use]
    pub fn name_of(&self, object: &Object, index: u32) -> String {
        names::of_object(self.plan, object, &self.snapshot.job.name, index)
    }

    /// Returns whether all gates of the list are open.
    #[must_use]
    pub fn open(&self, gates: &[Gate]) -> bool {
        self.closed(gates).is_none()
    }

    /// Returns what the first closed gate waits for. Gates for pods that must reach the same state count as one.
    #[must_use]
    pub fn closed(&self, gates: &[Gate]) -> Option<Waiting> {
        gates.iter().find_map(|gate| match gate {
            Gate::Pods { role, reached } => (self.count(role, *reached) < self.want(role)).then(|| {
                let alike = gates.iter().filter_map(|other| match other {
                    Gate::Pods { role, reached: far } if far == reached => Some(role),
                    Gate::Pods { .. } | Gate::Field { .. } => None,
                });
                let (have, want) = alike
                    .fold((0, 0), |(have, want), role| (have + self.count(role, *reached), want + self.want(role)));
                Waiting::Pods { reached: *reached, have, want }
            }),
            Gate::Field { key, at, one_of } => self.closed_by(key, at, one_of),
        })
    }

    fn closed_by(&self, key: &str, at: &str, one_of: &[String]) -> Option<Waiting> {
        let object = self.plan.objects.iter().find(|object| object.key == key)?;
        let name = self.name_of(object, 0);
        let child = self.child(&object.kind, &name);
        let has = child.and_then(|child| child.fields.get(at)).and_then(|value| value.as_str()).unwrap_or_default();
        (!one_of.iter().any(|right| right == has)).then(|| Waiting::Field {
            kind: object.kind.clone(),
            name,
            at: at.to_owned(),
            has: has.to_owned(),
            one_of: one_of.to_vec(),
            says: child.map(|child| self.said_of(child)).unwrap_or_default(),
        })
    }

    /// Returns what a controller says of a child, at a limited length: in an event, else in its last true condition.
    fn said_of(&self, child: &Child) -> String {
        let conditions = child.fields.get("/status/conditions").and_then(Value::as_array);
        let last = conditions.and_then(|it| it.iter().rfind(|condition| condition["status"] == "True"));
        let message = last.and_then(|it| it["message"].as_str());
        shortened(self.snapshot.reports.get(&child.uid).map(String::as_str).or(message).unwrap_or_default())
    }

    /// Returns the keys of the `bound` objects whose bodies `bind` should return: those with open gates.
    #[must_use]
    pub fn bodies_wanted(&self) -> Vec<String> {
        let bound = self.plan.objects.iter().filter(|object| object.body == Body::Bound);
        bound.filter(|object| self.open(&object.after)).map(|object| object.key.clone()).collect()
    }

    /// Returns the indices of an object: those of its role's replicas, or only 0.
    #[must_use]
    pub fn indices(&self, object: &Object) -> Ranges {
        names::role_of_object(self.plan, object).map_or_else(|| Ranges::from(vec![(0, 0)]), Role::indices)
    }

    /// Returns whether all replicas of a role have reached a state.
    pub(crate) fn have_reached(&self, role: &Role, reached: Reached) -> bool {
        self.count(&role.name, reached) >= role.replicas
    }

    /// Returns the first thing that the plan waits for; `None` while the job's user has suspended it.
    #[must_use]
    pub fn waiting(&self) -> Option<Waiting> {
        if self.snapshot.suspended() {
            return workload::held(self.snapshot).filter(|_| !self.snapshot.suspended_by_user());
        }
        let roles = self.plan.roles.iter().filter(|role| !self.is_made(role)).map(|role| &role.after);
        let objects = self.plan.objects.iter().filter(|object| !self.exists(object)).map(|object| &object.after);
        roles.chain(objects).find_map(|gates| self.closed(gates))
    }

    /// Returns whether the replica has succeeded for good, by its pod or by the ledger.
    #[must_use]
    pub fn has_succeeded(&self, replica: &Replica<'_>) -> bool {
        if replica.role.success == Success::Momentary {
            return false;
        }
        replica.pod.is_some_and(|pod| counted::succeeds(self.snapshot, replica.role, replica.index, pod))
            || self.snapshot.ledger.has_succeeded(&replica.role.name, replica.index)
    }

    /// Returns whether no pod of the role is created any more: one of them has done the work of all.
    pub(crate) fn is_done(&self, role: &Role) -> bool {
        let of_role = |replica: &&Replica<'_>| replica.role.name == role.name;
        role.success == Success::Shared && self.replicas.iter().filter(of_role).any(|it| self.has_succeeded(it))
    }

    fn is_made(&self, role: &Role) -> bool {
        match role.backing {
            Backing::Job(_) => self.snapshot.job_behind(role).is_some(),
            Backing::Pods => {
                role.at_once.is_some()
                    || self.replicas.iter().all(|replica| replica.role.name != role.name || replica.pod.is_some())
            }
        }
    }

    fn exists(&self, object: &Object) -> bool {
        self.indices(object).iter().all(|index| self.child(&object.kind, &self.name_of(object, index)).is_some())
    }

    fn want(&self, role: &str) -> u32 {
        let role = self.plan.roles.iter().find(|candidate| candidate.name == role);
        role.map_or(0, |role| role.replicas)
    }

    fn count(&self, role: &str, reached: Reached) -> u32 {
        if let Some(job) = job_behind(self.snapshot, self.plan, role) {
            // The pod of a Job that is Complete may be gone.
            let has_succeeded = reached == Reached::Succeeded && job.job_has("Complete");
            let mut pods = pods_of_job(self.snapshot, &job.uid);
            return u32::from(has_succeeded || pods.any(|pod| has_reached(pod, reached)));
        }
        let of_role = self.replicas.iter().filter(|replica| replica.role.name == role);
        let reached = of_role.filter(|replica| match replica.pod {
            Some(pod) if !pod.terminating && !attempts::is_old(self.snapshot, replica.role, pod) => {
                has_reached(pod, reached)
            }
            _ => self.has_succeeded(replica),
        });
        u32::try_from(reached.count()).unwrap_or(u32::MAX)
    }
}

/// Returns the first address of the pod of a role and index; for a Job-backed role, of its newest ready pod, else of
/// its newest.
#[must_use]
pub fn address<'a>(snapshot: &'a Snapshot, plan: &Plan, role: &str, index: u32) -> Option<&'a str> {
    let pod = match job_behind(snapshot, plan, role) {
        Some(job) => {
            pods_of_job(snapshot, &job.uid).filter(|pod| !pod.ips.is_empty()).max_by_key(|pod| (pod.ready, pod.created))
        }
        None => {
            let role = plan.roles.iter().find(|candidate| candidate.name == role)?;
            let name = names::of_replica(role, &snapshot.job.name, index);
            let is_current = |pod: &Pod| !pod.terminating && !attempts::is_old(snapshot, role, pod);
            snapshot.own_pods().find(|pod| pod.name == name && is_current(pod))
        }
    };
    pod?.ips.first().map(String::as_str)
}

/// Returns the Job behind a role, if it exists.
fn job_behind<'a>(snapshot: &'a Snapshot, plan: &Plan, role: &str) -> Option<&'a Child> {
    snapshot.job_behind(plan.roles.iter().find(|candidate| candidate.name == role)?).map(|job| &**job)
}

fn pods_of_job<'a>(snapshot: &'a Snapshot, uid: &str) -> impl Iterator<Item = &'a Arc<Pod>> {
    snapshot.pods.iter().filter(move |pod| pod.owner_uid == uid && !pod.terminating)
}

fn has_reached(pod: &Pod, reached: Reached) -> bool {
    match reached {
        Reached::Exists => true,
        Reached::Ip => !pod.ips.is_empty(),
        Reached::Running => pod.phase == PodPhase::Running || pod.phase.is_terminal(),
        Reached::Ready => pod.ready,
        Reached::Succeeded => pod.phase == PodPhase::Succeeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        plan::Upkeep,
        testkit::{self, child, job, pod, role, snapshot, text},
    };
    use serde_json::json;

    fn gate() -> [Gate; 1] {
        [Gate::Pods { role: "data".into(), reached: Reached::Succeeded }]
    }

    #[test]
    fn a_gate_says_what_the_objects_controller_says_in_an_event_or_else_in_a_condition() {
        let says = |status: serde_json::Value, report: Option<&str>| {
            let mut snapshot = snapshot(job("j", "u"));
            snapshot.children = vec![child("Gate", "j", &[("/status/conditions", status)])];
            snapshot.reports = report.map(|report| ("uid-of-j".to_owned(), report.to_owned())).into_iter().collect();
            let mut plan = testkit::plan(vec![role("w", 1, text(&["JOB"]), json!({}))]);
            plan.objects = vec![Object {
                key: "gate".into(),
                api_version: "v1".into(),
                kind: "Gate".into(),
                name: text(&["JOB"]),
                per_pod_of: None,
                body: Body::Fixed(json!({}).into(), vec![]),
                upkeep: Upkeep::CreateOnly,
                after: vec![],
                remove_when: vec![],
            }];
            let gate = Gate::Field { key: "gate".into(), at: "/status/phase".into(), one_of: vec!["Open".into()] };
            match Standing::of(&snapshot, &Arc::new(plan)).closed(&[gate]) {
                Some(Waiting::Field { says, .. }) => says,
                other => panic!("{other:?}"),
            }
        };
        let condition = |status: &str, message: &str| json!([{ "type": "T", "status": status, "message": message }]);
        assert_eq!(says(condition("True", "a condition"), Some("an event")), "an event");
        assert_eq!(says(condition("True", "a condition"), None), "a condition");
        assert_eq!(says(condition("False", "a condition"), None), "");
    }

    /// Returns whether the gate on the success of the role `data` is open.
    fn is_open(snapshot: &Snapshot, data: Role) -> bool {
        Standing::of(snapshot, &Arc::new(crate::testkit::plan(vec![data]))).open(&gate())
    }

    #[test]
    fn a_gate_on_success_opens_with_the_last_replica_and_stays_open_when_its_pods_are_gone() {
        let data = || role("data", 2, text(&["JOB", "-data-", "INDEX"]), json!({}));
        let mut snapshot = snapshot(job("j", "u"));
        let pods = ["j-data-0", "j-data-1"].map(|name| pod(name, "u", PodPhase::Succeeded));
        snapshot.pods = pods.into_iter().map(Arc::new).collect();
        assert!(is_open(&snapshot, data()));
        snapshot.pods.pop();
        assert!(!is_open(&snapshot, data()));
        snapshot.ledger.succeeded.entry("data".into()).or_default().insert(1);
        assert!(is_open(&snapshot, data()));
    }

    #[test]
    fn a_job_behind_a_role_has_succeeded_once_it_is_complete() {
        let data = || Role { backing: Backing::Job(json!({})), ..role("data", 1, text(&["JOB", "-data"]), json!({})) };
        let behind = |condition: &str| {
            let mut snapshot = snapshot(job("j", "u"));
            let conditions = json!({ "conditions": [{ "type": condition, "status": "True" }] });
            snapshot.children.push(child("Job", "j-data", &[("/status", conditions)]));
            snapshot
        };
        assert!(!is_open(&behind("Failed"), data()));
        assert!(is_open(&behind("Complete"), data()));
    }
}
