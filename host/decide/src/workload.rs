//! The Workload of a job: its name, the pods that it records, its priority. Kueue admits Workloads; the host makes them
//! for jobs of the kinds that Kueue does not know.
//!
//! What the host believes of a Workload: only of the one with the name that the host gives, whose controller is this job
//! by uid, and whose record of the pods is that of the job's plan. Whoever may write the status of such a Workload
//! decides whether the job runs. That is Kueue, and by the rights that it comes with no user of a namespace.

mod kinds;
mod place;

pub use kinds::{CLASSES, Class, WORKLOADS, Watched};
pub(crate) use place::place;

use crate::{
    Snapshot,
    first_failure::shortened,
    ownership,
    plan::{Plan, Role},
    snapshot::{Child, Hold, Queue},
    waiting::Waiting,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The annotation with the hash of the recorded pods. Kueue changes their requests, so that they cannot be compared.
const PODS_ANNOTATION: &str = "troupe.dev/pod-sets";

/// The fields of a pod's spec that matter to a quota or to a place. Only these are recorded: no variable of a user's
/// container stands in a Workload, and what a plan changes elsewhere takes no job out of its queue.
const OF_POD: [&str; 11] = [
    "affinity",
    "nodeSelector",
    "overhead",
    "priorityClassName",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "tolerations",
    "topologySpreadConstraints",
];

/// The same of a container; `image` makes the template one that a pod can be made of.
const OF_CONTAINER: [&str; 4] = ["name", "image", "resources", "restartPolicy"];

/// At most this much of the kind and the job's name stands in the name of a Workload.
const MOST_OF_NAME: usize = 200;

/// Returns the name of the job's Workload, which no other job's has.
#[must_use]
pub fn name(snapshot: &Snapshot) -> String {
    let mut name = format!("{}-{}", snapshot.kind.kind.to_lowercase(), snapshot.job.name);
    name.truncate(MOST_OF_NAME);
    format!("{}-{}", name.trim_end_matches(['-', '.']), &hex(&snapshot.job.uid)[..8])
}

/// Returns the Workload as the API server gets it; `None` where its priority is not known, or the job has no pods.
pub(crate) fn body(snapshot: &Snapshot, plan: &Plan) -> Option<Value> {
    let pod_sets = pod_sets(plan);
    let priority = priority(snapshot, snapshot.queue.as_ref()?, plan).ok()?;
    if pod_sets.is_empty() {
        return None;
    }
    let (label, value) = WORKLOADS.label;
    let labels = json!({ "kueue.x-k8s.io/job-uid": snapshot.job.uid, label: value });
    let annotations = json!({ PODS_ANNOTATION: hash(&pod_sets) });
    let metadata = json!({ "labels": labels, "annotations": annotations });
    let mut spec = json!({ "active": true, "queueName": snapshot.queue_name()?, "podSets": pod_sets });
    priority.put_into(&mut spec);
    Some(json!({
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": ownership::metadata(snapshot, &name(snapshot), &metadata),
        "spec": spec,
    }))
}

/// Returns the templates that a Workload is made from.
pub(crate) fn templates(plan: &Plan) -> impl Iterator<Item = &Value> {
    with_pods(plan).map(|role| &role.template)
}

/// Returns whether the plan has pods to queue for.
pub(crate) fn has_pods(plan: &Plan) -> bool {
    with_pods(plan).next().is_some()
}

/// Returns why the queue of the job holds it back, with the queue's words at a limited length.
pub(crate) fn held(snapshot: &Snapshot) -> Option<Waiting> {
    let hold = match snapshot.hold()? {
        Hold::NotAdmitted { why } => Hold::NotAdmitted { why: shortened(&why) },
        Hold::Evicted { reason, why } => Hold::Evicted { reason, why: shortened(&why) },
        Hold::Inactive { why } => Hold::Inactive { why: shortened(&why) },
        hold @ (Hold::Unseen | Hold::ClassMissing { .. }) => hold,
    };
    Some(Waiting::Queue { workload: name(snapshot), hold })
}

/// Returns whether the Workload records the pods of this plan, and is admitted for as many if it is admitted.
pub(crate) fn is_of(queue: &Queue, workload: &Child, plan: &Plan) -> bool {
    let annotations = workload.fields.get("/metadata/annotations").unwrap_or(&Value::Null);
    let counted = queue.assignments().all(|of| {
        let role = with_pods(plan).find(|role| of["name"] == pod_set(role));
        role.is_some_and(|role| of["count"].as_u64().is_none_or(|count| count == u64::from(role.most_at_once())))
    });
    counted && annotations[PODS_ANNOTATION] == hash(&pod_sets(plan))
}

fn with_pods(plan: &Plan) -> impl Iterator<Item = &Role> {
    plan.roles.iter().filter(|role| role.most_at_once() > 0)
}

/// Returns the name of the role in a Workload.
pub(crate) fn pod_set(role: &Role) -> String {
    role.name.to_lowercase()
}

fn pod_sets(plan: &Plan) -> Vec<Value> {
    let of = |role: &Role| json!({ "name": pod_set(role), "count": role.most_at_once(), "template": template(&role.template) });
    with_pods(plan).map(of).collect()
}

fn template(whole: &Value) -> Value {
    let mut spec = some_of(&whole["spec"], &OF_POD);
    for list in ["initContainers", "containers"] {
        if let Some(containers) = whole["spec"][list].as_array() {
            spec[list] = containers.iter().map(|container| some_of(container, &OF_CONTAINER)).collect();
        }
    }
    json!({ "metadata": some_of(&whole["metadata"], &["labels"]), "spec": spec })
}

fn some_of(object: &Value, fields: &[&str]) -> Value {
    let some = fields.iter().filter_map(|field| Some(((*field).to_owned(), object.get(field)?.clone())));
    Value::Object(Map::from_iter(some))
}

fn hash(pod_sets: &[Value]) -> String {
    hex(&Value::from(pod_sets).to_string())[..16].to_owned()
}

fn hex(text: &str) -> String {
    format!("{:x}", Sha256::digest(text))
}

/// How urgent a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Priority {
    value: i64,
    /// The class: group, kind, name.
    class: Option<[String; 3]>,
}

impl Priority {
    fn put_into(&self, spec: &mut Value) {
        spec["priority"] = json!(self.value);
        if let Some([group, kind, name]) = &self.class {
            spec["priorityClassRef"] = json!({ "group": group, "kind": kind, "name": name });
        }
    }

    /// Returns the fields of a Workload that differ, as a merge patch of its spec.
    pub(crate) fn differs(&self, workload: &Child) -> Value {
        let mut wanted = json!({ "priority": null, "priorityClassRef": null });
        self.put_into(&mut wanted);
        let is = |field: &str| workload.fields.get(&format!("/spec/{field}")).unwrap_or(&Value::Null);
        let differs = wanted.as_object().into_iter().flatten().filter(|(field, want)| is(field) != *want);
        Value::Object(differs.map(|(field, want)| (field.clone(), want.clone())).collect())
    }
}

/// Returns the priority as Kueue finds it: the class that the job's label names, else the class of the first pods that
/// have one, else the default class.
pub(crate) fn priority(snapshot: &Snapshot, queue: &Queue, plan: &Plan) -> Result<Priority, Hold> {
    let [_, of_workloads, of_pods] = &CLASSES;
    let by_label = snapshot.job.labels.get("kueue.x-k8s.io/priority-class").map(|name| (of_workloads, name.as_str()));
    let named = |template: &'_ Value| Some(template["spec"]["priorityClassName"].as_str()?.to_owned());
    let by_pods = templates(plan).find_map(named);
    let of_class = |class: &Child, kind: &Class| Priority {
        value: class.fields.get("/value").and_then(Value::as_i64).unwrap_or_default(),
        class: Some([kind.group().to_owned(), kind.kind.to_owned(), class.name.clone()]),
    };
    match by_label.or(by_pods.as_deref().map(|name| (of_pods, name))) {
        Some((kind, name)) => match queue.class(kind.kind, name) {
            Some(class) => Ok(of_class(class, kind)),
            None => Err(Hold::ClassMissing { kind: kind.kind.to_owned(), name: name.to_owned() }),
        },
        None => {
            let is_default = |class: &&Child| class.fields.get("/globalDefault") == Some(&Value::Bool(true));
            let defaults = queue.classes.iter().map(AsRef::as_ref).filter(|class| class.kind == of_pods.kind);
            let priorities = defaults.filter(is_default).map(|class| of_class(class, of_pods));
            Ok(priorities.min_by_key(|priority| priority.value).unwrap_or(Priority { value: 0, class: None }))
        }
    }
}

#[cfg(test)]
mod tests;
