//! Validation: names, labels, owners, finalizers, and the specs that a job operator writes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::error::Fault;
use crate::names::{label_name, label_value, qualified, subdomain};
use crate::store::{Kind, deleting, finalizers, name, owners, text};

/// Returns the faults of an object that is to be created.
pub(crate) fn new_object(kind: &Kind, object: &Value) -> Vec<Fault> {
    let mut faults = metadata(kind, object);
    match kind.kind.as_str() {
        _ if !kind.builtin() => {}
        "Pod" => pod_spec(&object["spec"], "spec", &mut faults),
        "Job" => job(object, &mut faults),
        _ => {}
    }
    faults
}

/// Returns the faults of an update.
pub(crate) fn update(kind: &Kind, old: &Value, new: &Value) -> Vec<Fault> {
    let faults = metadata(kind, new);
    let mut changed = Vec::new();
    if deleting(old) {
        let had = finalizers(old);
        let extra: BTreeSet<String> = finalizers(new).into_iter().filter(|name| !had.contains(name)).collect();
        if !extra.is_empty() {
            let extra: Vec<String> = extra.iter().map(|name| format!("{name:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                extra.join(", ")
            );
            changed.push(Fault::forbidden("metadata.finalizers", &why));
        }
    }
    for field in ["uid", "deletionTimestamp"] {
        let (before, after) = (&old["metadata"][field], &new["metadata"][field]);
        if before != after {
            changed.push(Fault::invalid(format!("metadata.{field}"), after, "field is immutable"));
        }
    }
    // The real server checks the metadata in general and again for the kind, except of Events, and reports all errors.
    // On a change it checks the content as well, and often the content on its own.
    let (contents, changes) = match kind.builtin() {
        _ if kind.is("Event") => (2, 1),
        true => (4, 2),
        false => (3, 2),
    };
    let mut faults = [vec![faults; contents].concat(), vec![changed; changes].concat()].concat();
    match kind.kind.as_str() {
        _ if !kind.builtin() => {}
        "Pod" => pod_update(&old["spec"], &new["spec"], &mut faults),
        "Job" => job_update(old, new, &mut faults),
        "Secret" if old["type"] != new["type"] => {
            faults.push(Fault::invalid("type", &new["type"], "field is immutable"));
        }
        "Service" => {
            let (before, after) = (&old["spec"]["clusterIP"], &new["spec"]["clusterIP"]);
            if before.is_string() && before != after && old["spec"]["type"] != "ExternalName" {
                faults.push(Fault::invalid("spec.clusterIPs[0]", &json!([after]), "may not change once set"));
            }
        }
        _ => {}
    }
    faults
}

fn metadata(kind: &Kind, object: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    let meta = &object["metadata"];
    let check: fn(&str) -> Vec<String> = match kind.kind.as_str() {
        "Service" | "Namespace" if kind.builtin() => label_name,
        "Event" if kind.builtin() => |_| Vec::new(),
        _ => subdomain,
    };
    let generate = text(&meta["generateName"]);
    if !generate.is_empty() {
        let base = generate.strip_suffix('-').unwrap_or(generate);
        let base = if base.is_empty() { "a" } else { base };
        faults.extend(check(base).iter().map(|why| Fault::invalid("metadata.generateName", &json!(generate), why)));
    }
    if name(object).is_empty() {
        faults.push(Fault::required("metadata.name", "name or generateName is required"));
    } else {
        faults.extend(check(name(object)).iter().map(|why| Fault::invalid("metadata.name", &meta["name"], why)));
    }
    labels(&meta["labels"], "metadata.labels", &mut faults);
    for key in meta["annotations"].as_object().into_iter().flat_map(|all| all.keys()) {
        faults.extend(
            qualified(&key.to_lowercase()).iter().map(|why| Fault::invalid("metadata.annotations", &json!(key), why)),
        );
    }
    let mut boss: Option<String> = None;
    for (index, owner) in owners(object).iter().enumerate() {
        let kind = text(&owner["kind"]);
        for key in ["apiVersion", "kind", "name", "uid"] {
            if text(&owner[key]).is_empty() {
                faults.push(Fault::required(format!("metadata.ownerReferences[{index}].{key}"), "must not be empty"));
            }
        }
        if owner["controller"] == true {
            let this = format!("{kind}/{}", text(&owner["name"]));
            if let Some(first) = &boss {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                let owners: Vec<String> = owners(object).iter().map(in_order).collect();
                let body = format!("Invalid value: [{}]: {why}", owners.join(","));
                faults.push(Fault { reason: "FieldValueInvalid", field: "metadata.ownerReferences".into(), body });
            } else {
                boss = Some(this);
            }
        }
    }
    for finalizer in finalizers(object) {
        faults.extend(
            qualified(&finalizer).iter().map(|why| Fault::invalid("metadata.finalizers", &json!(finalizer), why)),
        );
    }
    for (index, finalizer) in finalizers(object).iter().enumerate().filter(|_| kind.builtin() && !kind.is("Event")) {
        if !finalizer.contains('/') && !matches!(finalizer.as_str(), "orphan" | "foregroundDeletion" | "kubernetes") {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            faults.push(Fault::invalid(format!("metadata.finalizers[{index}]"), &json!(finalizer), why));
        }
    }
    faults
}

/// Formats an owner reference with its fields in the order of the real server.
fn in_order(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let fields: Vec<String> =
        fields.iter().filter_map(|field| Some(format!("\"{field}\":{}", owner.get(field)?))).collect();
    format!("{{{}}}", fields.join(","))
}

fn labels(labels: &Value, field: &str, faults: &mut Vec<Fault>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        faults.extend(qualified(key).iter().map(|why| Fault::invalid(field, &json!(key), why)));
        faults.extend(label_value(text(value)).iter().map(|why| Fault::invalid(field, value, why)));
    }
}

fn pod_spec(spec: &Value, at: &str, faults: &mut Vec<Fault>) {
    let containers = spec["containers"].as_array().map_or(&[][..], Vec::as_slice);
    if containers.is_empty() {
        faults.push(Fault::required(format!("{at}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for (list, containers) in [
        ("containers", containers),
        ("initContainers", spec["initContainers"].as_array().map_or(&[][..], Vec::as_slice)),
    ] {
        for (index, container) in containers.iter().enumerate() {
            let field = format!("{at}.{list}[{index}]");
            let name = text(&container["name"]);
            if name.is_empty() {
                faults.push(Fault::required(format!("{field}.name"), ""));
            } else {
                let whys = label_name(name);
                faults.extend(whys.iter().map(|why| Fault::invalid(format!("{field}.name"), &json!(name), why)));
            }
            if text(&container["image"]).is_empty() {
                faults.push(Fault::required(format!("{field}.image"), ""));
            }
            mounts(spec, container, &field, faults);
            if !name.is_empty() && !names.insert(name) {
                faults.push(Fault::duplicate(format!("{field}.name"), &json!(name)));
            }
        }
    }
    let policy = text(&spec["restartPolicy"]);
    if !matches!(policy, "Always" | "OnFailure" | "Never") {
        faults.push(Fault::unsupported(
            format!("{at}.restartPolicy"),
            &json!(policy),
            &["Always", "OnFailure", "Never"],
        ));
    }
}

fn mounts(spec: &Value, container: &Value, field: &str, faults: &mut Vec<Fault>) {
    for (index, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
        let known = spec["volumes"].as_array().into_iter().flatten().any(|volume| volume["name"] == mount["name"]);
        if !known {
            faults.push(Fault {
                reason: "FieldValueNotFound",
                field: format!("{field}.volumeMounts[{index}].name"),
                body: format!("Not found: {}", mount["name"]),
            });
        }
    }
}

/// Reports changes of a pod's spec, which is immutable except for images, tolerations, gates and two durations.
fn pod_update(old: &Value, new: &Value, faults: &mut Vec<Fault>) {
    let fixed = |spec: &Value| {
        let mut spec = spec.clone();
        for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
            crate::defaults::remove(&mut spec, field);
        }
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                crate::defaults::remove(container, "image");
            }
        }
        spec
    };
    if fixed(old) != fixed(new) {
        faults.push(Fault::forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
             `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
             `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        ));
    }
}

fn job(object: &Value, faults: &mut Vec<Fault>) {
    let spec = &object["spec"];
    if spec["completionMode"] == "Indexed" && spec["completions"].is_null() {
        faults.push(Fault::required("spec.completions", "when completion mode is Indexed"));
    }
    pod_spec(&spec["template"]["spec"], "spec.template.spec", faults);
    labels(&spec["template"]["metadata"]["labels"], "spec.template.labels", faults);
    if spec["template"]["spec"]["restartPolicy"] == "Always" {
        let field = "spec.template.spec.restartPolicy";
        faults.push(Fault::required(field, "valid values: \"OnFailure\", \"Never\""));
    }
}

fn job_update(old: &Value, new: &Value, faults: &mut Vec<Fault>) {
    let (before, after) = (&old["spec"], &new["spec"]);
    let resting = before["suspend"] == true && old["status"]["active"].as_i64().unwrap_or(0) == 0;
    let indexed = after["completionMode"] == "Indexed";
    if before["completions"] != after["completions"] && !(indexed && after["completions"] == after["parallelism"]) {
        let why = if indexed { "can only be modified in tandem with spec.parallelism" } else { "field is immutable" };
        faults.push(Fault::invalid("spec.completions", &after["completions"], why));
    }
    for field in [
        "selector",
        "template",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        if before[field] != after[field] && !(field == "template" && resting) {
            faults.push(Fault::invalid(format!("spec.{field}"), &after[field], "field is immutable"));
        }
    }
}
