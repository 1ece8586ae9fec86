//! About how much memory values take, for what is bounded by bytes. Cheap, and rather too much than too little.

use decide::{
    Snapshot,
    plan::{Answer, Backing, Body, Plan},
    snapshot::{Child, Job, Pod},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Of a JSON document.
pub(crate) fn json(value: &Value) -> usize {
    const NODE: usize = size_of::<Value>();
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => NODE,
        Value::String(text) => NODE + text.len(),
        Value::Array(items) => NODE + items.iter().map(json).sum::<usize>(),
        Value::Object(fields) => {
            NODE + fields.iter().map(|(key, value)| 2 * NODE + key.len() + json(value)).sum::<usize>()
        }
    }
}

/// Of a plan: what can be large in it, and something for the rest.
pub(crate) fn plan(plan: &Plan) -> usize {
    let roles = plan.roles.iter().map(|role| match &role.backing {
        Backing::Pods => json(&role.template),
        Backing::Job(body) => json(&role.template) + json(body),
    });
    let objects = plan.objects.iter().map(|object| match &object.body {
        Body::Fixed(body, _) => json(body),
        Body::Bound => 0,
    });
    roles.chain(objects).map(|bytes| bytes + 1024).sum::<usize>() + 1024 * (1 + plan.secrets.len())
}

/// Of a snapshot, as if nothing of it were shared.
pub(crate) fn snapshot(snapshot: &Snapshot) -> usize {
    let pods = snapshot.pods.iter().map(|one| pod(one)).sum::<usize>();
    let children = snapshot.children.iter().map(|one| child(one)).sum::<usize>();
    1024 + job(&snapshot.job) + pods + children + 64 * snapshot.taken.len()
}

/// Of an answer, its plan included.
pub(crate) fn answer(answer: &Answer) -> usize {
    match answer {
        Answer::Judged { plan: planned, bodies, verdict } => {
            let bodies = bodies.values().map(json).sum::<usize>();
            let events = verdict.events.iter().map(|event| 64 + event.reason.len() + event.message.len());
            plan(planned) + bodies + json(&verdict.status) + events.sum::<usize>()
        }
        Answer::Rejected(rejection) => 512 + rejection.to_string().len(),
        Answer::Faulted(fault) => 512 + fault.to_string().len(),
    }
}

fn job(job: &Job) -> usize {
    1024 + texts(&job.labels) + texts(&job.annotations) + json(&job.spec) + json(&job.status)
}

fn pod(pod: &Pod) -> usize {
    512 + pod.message.len() + pod.containers.len() * 256
}

fn child(child: &Child) -> usize {
    512 + child.fields.iter().map(|(at, value)| 64 + at.len() + json(value)).sum::<usize>()
}

fn texts(map: &BTreeMap<String, String>) -> usize {
    map.iter().map(|(name, value)| 64 + name.len() + value.len()).sum()
}
