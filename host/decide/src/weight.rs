//! Estimates how many bytes of memory values take, for limits. Estimates are cheap, and rather too high than too low.

use crate::{
    Snapshot,
    plan::{Answer, Backing, Body, Criterion, EnvEntry, Event, Gate, Object, Piece, Plan, Role, Text, Upkeep},
    snapshot::{Child, Job, Pod},
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Size of a string without its bytes.
const TEXT: usize = size_of::<String>();

/// Size of a JSON value without what it contains.
pub const VALUE: usize = size_of::<Value>();

/// Size of a node of a B-tree map of JSON values. It has eleven places, of which [`PLACES_USED`] or more are used once there
/// are two nodes.
pub const MAP_NODE: usize = 11 * (TEXT + VALUE);

/// See [`MAP_NODE`].
pub const PLACES_USED: usize = 6;

/// Estimates the size of a JSON document.
pub fn json(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => VALUE,
        Value::String(text) => VALUE + text.len(),
        Value::Array(items) => VALUE + items.iter().map(json).sum::<usize>(),
        Value::Object(fields) => {
            let nodes = fields.len().div_ceil(PLACES_USED) * MAP_NODE;
            VALUE + nodes + fields.iter().map(|(key, value)| key.len() + json(value) - VALUE).sum::<usize>()
        }
    }
}

/// Estimates the size of a whole plan.
pub fn plan(plan: &Plan) -> usize {
    let roles = plan.roles.iter().map(role).sum::<usize>();
    let objects = plan.objects.iter().map(object).sum::<usize>();
    let secrets = plan.secrets.iter().map(|secret| 512 + text(&secret.name) + texts(&secret.labels)).sum::<usize>();
    let criteria = plan.success_criteria.iter().map(criteria).sum::<usize>();
    size_of::<Plan>() + roles + objects + secrets + criteria + events(&plan.warnings)
}

fn criteria(all: &Vec<Criterion>) -> usize {
    let ranges = |one: &Criterion| one.indices.parts() * size_of::<(u32, u32)>();
    size_of_val(all) + all.iter().map(|one| size_of_val(one) + one.role.len() + ranges(one)).sum::<usize>()
}

/// Estimates the size of a pod of a role: its template with what is filled in.
pub fn pod_of(role: &Role) -> usize {
    let env = role
        .env
        .iter()
        .map(|entry| size_of::<EnvEntry>() + entry.container.len() + entry.name.len() + text(&entry.value));
    json(&role.template) + env.sum::<usize>() + filled(&role.fill)
}

fn role(role: &Role) -> usize {
    let backing = match &role.backing {
        Backing::Pods => 0,
        Backing::Job(body) => json(body),
    };
    let names = role.hostname.iter().chain(&role.subdomain).chain([&role.pod_name]).map(text).sum::<usize>();
    size_of::<Role>() + backing + pod_of(role) + names + filled(&role.labels) + gates(&role.after)
}

fn object(object: &Object) -> usize {
    let body = match &object.body {
        Body::Fixed(body, fill) => json(body) + filled(fill),
        Body::Bound => 0,
    };
    let upkeep = match &object.upkeep {
        Upkeep::Follow(pointers) => pointers.iter().map(|at| TEXT + at.len()).sum(),
        Upkeep::CreateOnly => 0,
    };
    size_of::<Object>() + 128 + body + upkeep + text(&object.name) + gates(&object.after)
}

fn gates(gates: &[Gate]) -> usize {
    let one = |gate: &Gate| match gate {
        Gate::Pods { role, .. } => role.len(),
        Gate::Field { key, at, one_of } => {
            key.len() + at.len() + one_of.iter().map(|text| TEXT + text.len()).sum::<usize>()
        }
    };
    gates.iter().map(|gate| size_of::<Gate>() + one(gate)).sum()
}

fn filled(texts: &[(String, Text)]) -> usize {
    texts.iter().map(|(at, value)| 2 * TEXT + at.len() + text(value)).sum()
}

fn text(text: &Text) -> usize {
    let one = |piece: &Piece| match piece {
        Piece::Fixed(part) | Piece::PeerIp(part, _) | Piece::PeerHost(part, _) => part.len(),
        Piece::Index(_) | Piece::Attempt | Piece::JobName | Piece::PodName => 0,
    };
    text.0.iter().map(|piece| size_of::<Piece>() + one(piece)).sum()
}

fn events(events: &[Event]) -> usize {
    events.iter().map(|event| 64 + event.reason.len() + event.message.len()).sum()
}

/// Estimates the size of a snapshot, as if no part of it were shared.
pub fn snapshot(snapshot: &Snapshot) -> usize {
    let pods = snapshot.pods.iter().map(|one| pod(one)).sum::<usize>();
    let workload = snapshot.queue.iter().filter_map(|queue| queue.workload.as_ref());
    let children = snapshot.children.iter().chain(workload).map(|one| child(one)).sum::<usize>();
    let dependents = snapshot.dependents.iter().map(|one| 64 + one.pod.len() + child(&one.object)).sum::<usize>();
    let contents = snapshot.contents.iter().filter_map(|content| content.data.as_ref()).map(texts).sum::<usize>();
    let reports = snapshot.reports.values().map(|message| 128 + message.len()).sum::<usize>();
    1024 + dependents + reports + contents + job(&snapshot.job) + pods + children + 64 * snapshot.taken.len()
}

/// Estimates the size of a job's spec and status as values: what a snapshot shares with nobody, while the stores hold its
/// pods and other children too.
pub fn values(job: &Job) -> usize {
    json(&job.spec) + json(&job.status)
}

/// Estimates the size of an answer, its plan included.
pub fn answer(answer: &Answer) -> usize {
    match answer {
        Answer::Judged { plan: planned, bindings, verdict } => {
            let runs = &bindings.runs;
            let bodies = bindings.bodies.values().map(json).sum::<usize>();
            let runs =
                runs.make.iter().map(|run| 256 + texts(&run.annotations)).sum::<usize>() + 64 * runs.remove.len();
            plan(planned) + bodies + runs + json(&verdict.status) + events(&verdict.events)
        }
        Answer::Rejected(rejection) => 512 + rejection.to_string().len(),
        Answer::Faulted(fault) => 512 + fault.to_string().len(),
    }
}

fn job(job: &Job) -> usize {
    1024 + texts(&job.labels) + texts(&job.annotations) + values(job)
}

/// Estimates the size of a pod with the fields that are kept of it.
pub fn pod(pod: &Pod) -> usize {
    let unscheduled = pod.unscheduled.as_ref().map_or(0, |it| it.message.len());
    let addresses = pod.addresses.as_ref().map_or(0, String::len);
    512 + pod.message.len() + unscheduled + addresses + pod.containers.len() * 256 + fields(&pod.fields)
}

/// Estimates the size of a child with the fields that are kept of it.
pub fn child(child: &Child) -> usize {
    512 + fields(&child.fields)
}

fn fields(kept: &BTreeMap<String, Value>) -> usize {
    kept.iter().map(|(at, value)| 64 + at.len() + json(value)).sum()
}

/// Estimates the size of labels and the like.
pub fn texts(map: &BTreeMap<String, String>) -> usize {
    map.iter().map(|(name, value)| 64 + name.len() + value.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;
    use serde_json::json;

    fn plan_of(env: usize) -> Plan {
        let entry = EnvEntry { container: String::new(), name: "x".repeat(1_000), value: testkit::text(&["JOB", "y"]) };
        let role = testkit::role("worker", 1, testkit::text(&["JOB"]), json!({}));
        testkit::plan(vec![Role { env: vec![entry; env], ..role }])
    }

    // Variables may hold as much text as a template.
    #[test]
    fn the_weight_of_a_plan_includes_its_variables() {
        assert!(plan(&plan_of(1_000)) >= 1_000_000);
        assert!(plan(&plan_of(1)) < 4_000);
    }
}
