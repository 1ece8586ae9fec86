//! Builds children as the API server gets them: templates and bodies with identity, names and variables filled in.

use crate::{
    Snapshot, addresses, attempts,
    decision::Part,
    gang, names, outdated, ownership,
    plan::{Answer, Backing, Body, Object, Plan, Role, Run, Text},
    standing, weight, workload,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Returns the whole object, owner reference included; `None` where the answer lacks the part.
#[must_use]
pub fn body(snapshot: &Snapshot, answer: &Answer, part: Part) -> Option<Value> {
    let Answer::Judged { plan, bindings, .. } = answer else { return None };
    let job_name = &snapshot.job.name;
    match part {
        Part::Pod { role, index } => {
            let role = plan.roles.get(role)?;
            Some(pod(snapshot, plan, role, index, &names::of_replica(role, job_name, index)))
        }
        Part::Job { role } => {
            let role = plan.roles.get(role)?;
            let Backing::Job(body) = &role.backing else { return None };
            Some(job(snapshot, plan, role, body, &names::of_replica(role, job_name, 0)))
        }
        Part::Object { object: place, index } => {
            let planned = plan.objects.get(place)?;
            let content = content(snapshot, plan, planned, index, &bindings.bodies)?;
            Some(object(snapshot, planned, content, &names::of_object(plan, planned, job_name, index)))
        }
        Part::Run { run } => run_of_series(snapshot, plan, bindings.runs.make.get(run)?),
        Part::Workload => workload::body(snapshot, plan),
    }
}

/// Returns about how many bytes the body of a part takes in memory; `None` where the answer lacks the part.
#[must_use]
pub fn bytes(snapshot: &Snapshot, answer: &Answer, part: Part) -> Option<usize> {
    let Answer::Judged { plan, bindings, .. } = answer else { return None };
    match part {
        Part::Pod { role, .. } | Part::Job { role } => Some(weight::pod_of(plan.roles.get(role)?)),
        Part::Object { object, .. } => {
            let object = plan.objects.get(object)?;
            match &object.body {
                Body::Fixed(body, _) => Some(weight::json(body)),
                Body::Bound => bindings.bodies.get(&object.key).map(weight::json),
            }
        }
        Part::Run { run } => {
            let series = plan.series_of(bindings.runs.make.get(run)?)?;
            Some(snapshot.job.spec.pointer(&series.template_at).map_or(0, weight::json))
        }
        Part::Workload => Some(workload::templates(plan).map(weight::json).sum()),
    }
}

/// Returns the content of an object from the plan or from the plugin's `bind`, without identity.
pub(crate) fn content(
    snapshot: &Snapshot,
    plan: &Plan,
    object: &Object,
    index: u32,
    bodies: &BTreeMap<String, Value>,
) -> Option<Value> {
    match &object.body {
        Body::Bound => bodies.get(&object.key).cloned(),
        Body::Fixed(body, fill) => {
            let job_name = &snapshot.job.name;
            let role = names::role_of_object(plan, object);
            let pod_name = role.map(|role| names::of_replica(role, job_name, index));
            let mut body = Value::clone(body);
            let attempt = role.map_or(0, |role| snapshot.ledger.attempt(&role.name));
            fill_in(&mut body, snapshot, plan, fill, pod_name.as_deref(), (index, attempt));
            Some(body)
        }
    }
}

/// Returns the pod of a replica.
#[must_use]
pub fn pod(snapshot: &Snapshot, plan: &Plan, role: &Role, index: u32, name: &str) -> Value {
    let mut template = template(snapshot, plan, role, index, name);
    let mut pod = json!({ "apiVersion": "v1", "kind": "Pod" });
    pod["metadata"] = ownership::metadata(snapshot, name, &template["metadata"]);
    if let Some(hash) = outdated::annotation(snapshot, role) {
        pod["metadata"]["annotations"][outdated::TEMPLATE_HASH_ANNOTATION] = json!(hash);
    }
    let attempt = snapshot.ledger.attempt(&role.name);
    if let Some(Value::Object(annotations)) = pod.pointer_mut("/metadata/annotations") {
        // The user's template may have it.
        annotations.remove(attempts::ATTEMPT_ANNOTATION);
        annotations.remove(addresses::ADDRESSES_ANNOTATION);
    }
    if let Some(hash) = addresses::hash(snapshot, plan, role) {
        pod["metadata"]["annotations"][addresses::ADDRESSES_ANNOTATION] = json!(hash);
    }
    if attempt > 0 {
        pod["metadata"]["annotations"][attempts::ATTEMPT_ANNOTATION] = json!(attempt.to_string());
    }
    pod["spec"] = template["spec"].take();
    pod
}

/// Returns the Job that backs a role, suspended if the job is.
#[must_use]
pub fn job(snapshot: &Snapshot, plan: &Plan, role: &Role, body: &Value, name: &str) -> Value {
    let mut spec = body.get("spec").cloned().unwrap_or_else(|| json!({}));
    spec["template"] = template(snapshot, plan, role, 0, name);
    if let Some(hash) = outdated::annotation(snapshot, role) {
        spec["template"]["metadata"]["annotations"][outdated::TEMPLATE_HASH_ANNOTATION] = json!(hash);
    }
    if snapshot.suspended() {
        spec["suspend"] = json!(true);
    }
    let mut job = json!({ "apiVersion": "batch/v1", "kind": "Job" });
    job["metadata"] = ownership::metadata(snapshot, name, &body["metadata"]);
    job["spec"] = spec;
    job
}

/// Returns one object of a series: the user's template, with the labels and annotations of the plugin in place of the
/// template's.
fn run_of_series(snapshot: &Snapshot, plan: &Plan, run: &Run) -> Option<Value> {
    let series = plan.series_of(run)?;
    let template = snapshot.job.spec.pointer(&series.template_at)?;
    let mut metadata = json!({});
    for (section, entries) in ownership::given(&template["metadata"]) {
        metadata[section] = entries.clone();
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(ownership::PLUGIN_DIGEST_ANNOTATION);
    }
    for (section, entries) in [("labels", &series.labels), ("annotations", &run.annotations)] {
        for (name, value) in entries {
            metadata[section][name.as_str()] = json!(value);
        }
    }
    Some(json!({
        "apiVersion": series.api_version,
        "kind": series.kind,
        "metadata": ownership::metadata(snapshot, &run.name, &metadata),
        "spec": template["spec"],
    }))
}

fn object(snapshot: &Snapshot, object: &Object, body: Value, name: &str) -> Value {
    let (mut whole, api_version) = (body, snapshot.served(&object.api_version));
    gang::fit(api_version, &mut whole);
    whole["metadata"] = ownership::metadata(snapshot, name, &whole["metadata"]);
    whole["apiVersion"] = json!(api_version);
    whole["kind"] = json!(object.kind);
    whole
}

/// Fills in the texts of a fixed body for one replica.
fn fill_in(
    body: &mut Value,
    snapshot: &Snapshot,
    plan: &Plan,
    fill: &[(String, Text)],
    pod_name: Option<&str>,
    (index, attempt): (u32, u32),
) {
    for (pointer, text) in fill {
        if let Some(place) = body.pointer_mut(pointer) {
            *place = json!(expanded(snapshot, plan, text, pod_name, (index, attempt)));
        }
    }
}

/// Expands a text for a replica's index and attempt.
fn expanded(
    snapshot: &Snapshot,
    plan: &Plan,
    text: &Text,
    pod_name: Option<&str>,
    (index, attempt): (u32, u32),
) -> String {
    let peer = |role: &str, index| standing::address(snapshot, plan, role, index).unwrap_or_default().to_owned();
    names::expand_with(text, &snapshot.job.name, pod_name, (index, attempt), peer)
}

fn template(snapshot: &Snapshot, plan: &Plan, role: &Role, index: u32, name: &str) -> Value {
    let place = (index, snapshot.ledger.attempt(&role.name));
    let fill = |text: &Text| expanded(snapshot, plan, text, Some(name), place);
    let mut template = json!({ "metadata": {} });
    for (section, entries) in ownership::given(&role.template["metadata"]) {
        template["metadata"][section] = entries.clone();
    }
    template["spec"] = role.template["spec"].clone();
    for (label, value) in &role.labels {
        template["metadata"]["labels"][label.as_str()] = json!(fill(value));
    }
    if let Some(hostname) = &role.hostname {
        template["spec"]["hostname"] = json!(fill(hostname));
    }
    if let Some(subdomain) = &role.subdomain {
        template["spec"]["subdomain"] = json!(fill(subdomain));
    }
    if let Some(Value::Array(containers)) = template["spec"].get_mut("containers") {
        for (place, container) in containers.iter_mut().enumerate() {
            let Some(container) = container.as_object_mut() else { continue };
            let called = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            for entry in role.env.iter().filter(|entry| entry.is_for(place, &called)) {
                set_env(container, &entry.name, &fill(&entry.value));
            }
        }
    }
    fill_in(&mut template, snapshot, plan, &role.fill, Some(name), place);
    workload::place(snapshot, role, &mut template);
    template
}

/// Replaces the last variable of this name in place, or appends one.
fn set_env(container: &mut Map<String, Value>, name: &str, value: &str) {
    let entry = json!({ "name": name, "value": value });
    match container.get_mut("env") {
        Some(Value::Array(env)) => match env.iter_mut().rfind(|old| old["name"] == name) {
            Some(old) => *old = entry,
            None => env.push(entry),
        },
        _ => {
            container.insert("env".into(), json!([entry]));
        }
    }
}
