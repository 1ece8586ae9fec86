//! Estimates how many bytes of memory values take, for limits. Estimates are cheap, and rather too high than too low.

use crate::{
    Snapshot,
    plan::{
        Answer, Backing, Body, Criterion, EnvEntry, Event, Failure, FailureRule, Gate, Object, Piece, Plan, Role,
        SecretRecipe, Series, Text, Upkeep,
    },
    ranges::Ranges,
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
    // Without `..`, here and below: a field that comes later is weighed, or does not compile.
    let Plan { roles, objects, secrets, series: listed, success_criteria, host_ports: _, policy: _, warnings } = plan;
    let roles = roles.iter().map(role).sum::<usize>();
    let objects = objects.iter().map(object).sum::<usize>();
    let secrets = secrets.iter().map(secret).sum::<usize>();
    let listed = listed.iter().map(series).sum::<usize>();
    let criteria = success_criteria.iter().map(criteria).sum::<usize>();
    size_of::<Plan>() + roles + objects + secrets + listed + criteria + events(warnings)
}

fn secret(secret: &SecretRecipe) -> usize {
    let SecretRecipe { key, name, secret_type, labels, private_key, public_key, algorithm: _ } = secret;
    let words = [key, secret_type, private_key, public_key].map(String::len).iter().sum::<usize>();
    size_of::<SecretRecipe>() + words + text(name) + texts(labels)
}

fn series(series: &Series) -> usize {
    let Series { key, api_version, kind, template_at, labels } = series;
    let words = [key, api_version, kind, template_at].map(String::len).iter().sum::<usize>();
    size_of::<Series>() + words + texts(labels)
}

fn criteria(all: &Vec<Criterion>) -> usize {
    size_of_val(all) + all.iter().map(|one| size_of_val(one) + one.role.len() + ranges(&one.indices)).sum::<usize>()
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
    let Role {
        name,
        replicas: _,
        backing,
        pod_name,
        hostname,
        subdomain,
        // These three are in `pod_of`.
        template: _,
        env: _,
        fill: _,
        template_at,
        labels,
        success: _,
        failures,
        deletion: _,
        at_once: _,
        failures_per_replica: _,
        left_out,
        on_new_address: _,
        after,
        template_hash,
    } = role;
    let backing = match backing {
        Backing::Pods => 0,
        Backing::Job(body) => json(body),
    };
    let words = name.len() + template_at.as_ref().map_or(0, String::len) + template_hash.len();
    let names = hostname.iter().chain(subdomain).chain([pod_name]).map(text).sum::<usize>();
    let rules = failures.iter().map(failure).sum::<usize>();
    size_of::<Role>()
        + words
        + backing
        + pod_of(role)
        + names
        + filled(labels)
        + rules
        + ranges(left_out)
        + gates(after)
}

fn failure(rule: &FailureRule) -> usize {
    let about = match &rule.about {
        Failure::Any => 0,
        Failure::ExitCodes { container, ranges } => container.len() + size_of_val(&ranges[..]),
        Failure::NoExitCode { container } => container.len(),
        Failure::Condition { kind, status } => kind.len() + status.len(),
    };
    size_of::<FailureRule>() + about
}

fn ranges(ranges: &Ranges) -> usize {
    ranges.parts() * size_of::<(u32, u32)>()
}

fn object(object: &Object) -> usize {
    let Object { key, api_version, kind, name, per_pod_of, body, upkeep, after, remove_when } = object;
    let body = match body {
        Body::Fixed(body, fill) => json(body) + filled(fill),
        Body::Bound => 0,
    };
    let upkeep = match upkeep {
        Upkeep::Follow(pointers) => pointers.iter().map(|at| TEXT + at.len()).sum(),
        Upkeep::CreateOnly => 0,
    };
    let words = [key, api_version, kind].into_iter().chain(per_pod_of).map(String::len).sum::<usize>();
    size_of::<Object>() + words + body + upkeep + text(name) + gates(after) + size_of_val(&remove_when[..])
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
    512 + pod.message.len() + unscheduled + annotations(pod) + pod.containers.len() * 256 + fields(&pod.fields)
}

/// Returns the bytes of the annotations of a pod that the host keeps for itself.
pub fn annotations(pod: &Pod) -> usize {
    [&pod.template_hash, &pod.addresses].into_iter().flatten().map(String::len).sum()
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
    use crate::{plan::Remedy, testkit};
    use serde_json::json;

    fn plan_of(env: usize) -> Plan {
        let entry = EnvEntry { container: String::new(), name: "x".repeat(1_000), value: testkit::text(&["JOB", "y"]) };
        let role = testkit::role("worker", 1, testkit::text(&["JOB"]), json!({}));
        testkit::plan(vec![Role { env: vec![entry; env], ..role }])
    }

    // What a plugin answers may be in any of its parts.
    #[test]
    fn the_weight_of_a_plan_includes_rules_of_failures_and_labels_of_series() {
        let long = "x".repeat(1_000);
        let about = Failure::Condition { kind: long.clone(), status: long.clone() };
        let role = testkit::role("worker", 1, testkit::text(&["JOB"]), json!({}));
        let failures = vec![FailureRule { about, then: Remedy::Keep }; 500];
        assert!(plan(&testkit::plan(vec![Role { failures, ..role }])) >= 1_000_000);
        let (key, api_version, kind) = (String::new(), "batch/v1".into(), "Job".into());
        let labels = (0..1_000).map(|at| (at.to_string(), long.clone())).collect();
        let series = vec![Series { key, api_version, kind, template_at: String::new(), labels }];
        assert!(plan(&Plan { series, ..testkit::plan(vec![]) }) >= 1_000_000);
    }

    // Variables may hold as much text as a template.
    #[test]
    fn the_weight_of_a_plan_includes_its_variables() {
        assert!(plan(&plan_of(1_000)) >= 1_000_000);
        assert!(plan(&plan_of(1)) < 4_000);
    }
}
