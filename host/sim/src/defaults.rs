//! Defaults that the API server adds to a new object, as far as a job operator depends on them.

use serde_json::{Map, Value, json};

use crate::store::{Kind, name, text, uid};

/// Completes a new object: sets defaults, clears the status, sets the first phase. `address` returns a free cluster IP.
pub(crate) fn complete(kind: &Kind, object: &mut Value, address: &mut dyn FnMut() -> String, now: &str) {
    match kind.kind.as_str() {
        _ if !kind.builtin() && !kind.status => {}
        _ if !kind.builtin() => remove(object, "status"),
        "Pod" => {
            pod_spec(&mut object["spec"]);
            object["status"] = json!({ "phase": "Pending", "qosClass": quality(&object["spec"]) });
        }
        "Service" => service(object, address),
        "Job" => job(object),
        "Namespace" => {
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name(object));
            object["spec"] = json!({ "finalizers": ["kubernetes"] });
            object["status"] = json!({ "phase": "Active" });
        }
        "Event" if kind.group.is_empty() => {
            for (field, value) in
                [("source", json!({})), ("reportingComponent", json!("")), ("reportingInstance", json!(""))]
            {
                default(object, field, value);
            }
            for field in ["firstTimestamp", "lastTimestamp", "eventTime"] {
                default(object, field, Value::Null);
            }
        }
        "Event" => {
            default(object, "deprecatedSource", json!({}));
            for field in ["deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
                default(object, field, Value::Null);
            }
        }
        "CustomResourceDefinition" => definition(object, now),
        _ => {}
    }
}

/// Converts a written object into the form in which the API server stores it; called after every write.
pub(crate) fn settle(kind: &Kind, object: &mut Value) {
    match kind.kind.as_str() {
        _ if !kind.builtin() => {}
        "Pod" => {
            // A patch that replaces a list removes the defaults in it.
            pod_spec(&mut object["spec"]);
            pod_status(&mut object["status"]);
        }
        "Secret" => secret(object),
        "ConfigMap" => {
            for field in ["data", "binaryData"] {
                if object[field].as_object().is_none_or(Map::is_empty) {
                    remove(object, field);
                }
            }
        }
        _ => {}
    }
}

fn pod_status(status: &mut Value) {
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        for field in ["lastProbeTime", "lastTransitionTime"] {
            default(condition, field, Value::Null);
        }
    }
    if status["conditions"].is_null() {
        remove(status, "conditions");
    }
    let address = text(&status["podIP"]).to_owned();
    if !address.is_empty() && status["podIPs"][0]["ip"] != address.as_str() {
        status["podIPs"] = json!([{ "ip": address }]);
    }
    for field in ["podIP", "podIPs"] {
        if status[field].is_null() {
            remove(status, field);
        }
    }
}

fn default(object: &mut Value, field: &str, value: Value) {
    if object[field].is_null() {
        object[field] = value;
    }
}

pub(crate) fn remove(object: &mut Value, field: &str) {
    if let Value::Object(object) = object {
        object.remove(field);
    }
}

fn pod_spec(spec: &mut Value) {
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
    ] {
        default(spec, field, value);
    }
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            let latest =
                match text(&container["image"]).rsplit_once('/').map_or(text(&container["image"]), |(_, last)| last) {
                    image if image.contains('@') => false,
                    image => !image.contains(':') || image.ends_with(":latest"),
                };
            for (field, value) in [
                ("terminationMessagePath", json!("/dev/termination-log")),
                ("terminationMessagePolicy", json!("File")),
                ("imagePullPolicy", json!(if latest { "Always" } else { "IfNotPresent" })),
                ("resources", json!({})),
            ] {
                default(container, field, value);
            }
            for port in container["ports"].as_array_mut().into_iter().flatten() {
                default(port, "protocol", json!("TCP"));
            }
            for entry in container["env"].as_array_mut().into_iter().flatten() {
                if entry["valueFrom"]["fieldRef"].is_object() {
                    default(&mut entry["valueFrom"]["fieldRef"], "apiVersion", json!("v1"));
                }
                if entry["value"] == "" {
                    remove(entry, "value");
                }
            }
        }
        if spec[list].is_null() {
            remove(spec, list);
        }
    }
    for volume in spec["volumes"].as_array_mut().into_iter().flatten() {
        for source in ["configMap", "secret", "projected", "downwardAPI"] {
            if volume[source].is_object() {
                default(&mut volume[source], "defaultMode", json!(420));
            } else {
                remove(volume, source);
            }
        }
    }
    if spec["volumes"].is_null() {
        remove(spec, "volumes");
    }
    tidy(spec);
}

/// Removes the nulls that mutable indexing inserts.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(tidy);
        }
        Value::Array(list) => list.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn quality(spec: &Value) -> &'static str {
    let containers =
        || ["containers", "initContainers"].into_iter().flat_map(|list| spec[list].as_array().into_iter().flatten());
    let amount = |container: &Value, side: &str, resource: &str| container["resources"][side][resource].clone();
    let resources = ["cpu", "memory"];
    let none = containers().all(|container| {
        resources.iter().all(|resource| {
            amount(container, "requests", resource).is_null() && amount(container, "limits", resource).is_null()
        })
    });
    let full = containers().all(|container| {
        resources.iter().all(|resource| {
            let (request, limit) = (amount(container, "requests", resource), amount(container, "limits", resource));
            !limit.is_null() && (request.is_null() || request == limit)
        })
    });
    match (none, full) {
        (true, _) => "BestEffort",
        (_, true) => "Guaranteed",
        _ => "Burstable",
    }
}

fn service(object: &mut Value, address: &mut dyn FnMut() -> String) {
    let spec = &mut object["spec"];
    default(spec, "type", json!("ClusterIP"));
    default(spec, "sessionAffinity", json!("None"));
    if spec["type"] != "ExternalName" {
        if text(&spec["clusterIP"]).is_empty() {
            spec["clusterIP"] = json!(address());
        }
        let address = spec["clusterIP"].clone();
        default(spec, "clusterIPs", json!([address]));
        let headless = spec["clusterIP"] == "None";
        let selectorless = spec["selector"].as_object().is_none_or(Map::is_empty);
        if headless && selectorless {
            default(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
            default(spec, "ipFamilyPolicy", json!("RequireDualStack"));
        }
        default(spec, "ipFamilies", json!(["IPv4"]));
        default(spec, "ipFamilyPolicy", json!("SingleStack"));
        default(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        default(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        default(port, "targetPort", number);
    }
    tidy(spec);
    object["status"] = json!({ "loadBalancer": {} });
}

fn job(object: &mut Value) {
    let (uid, name) = (uid(object).to_owned(), name(object).to_owned());
    let spec = &mut object["spec"];
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        spec["completions"] = json!(1);
    }
    let limit = if spec["backoffLimitPerIndex"].is_null() { json!(6) } else { json!(i32::MAX) };
    let replacement = if spec["podFailurePolicy"].is_null() { "TerminatingOrFailed" } else { "Failed" };
    for (field, value) in [
        ("parallelism", json!(1)),
        ("backoffLimit", limit),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("podReplacementPolicy", json!(replacement)),
        ("manualSelector", json!(false)),
    ] {
        default(spec, field, value);
    }
    if spec["manualSelector"] == false {
        for (label, value) in [
            ("job-name", &name),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            ("batch.kubernetes.io/controller-uid", &uid),
        ] {
            default(&mut spec["template"]["metadata"]["labels"], label, json!(value));
        }
        default(&mut spec["selector"]["matchLabels"], "batch.kubernetes.io/controller-uid", json!(uid));
    }
    pod_spec(&mut spec["template"]["spec"]);
    tidy(spec);
    // A Job without labels of its own gets those of its template, including the generated ones.
    if object["metadata"]["labels"].as_object().is_none_or(Map::is_empty) {
        object["metadata"]["labels"] = object["spec"]["template"]["metadata"]["labels"].clone();
    }
    object["status"] = json!({});
}

fn secret(object: &mut Value) {
    default(object, "type", json!("Opaque"));
    if let Value::Object(plain) = object["stringData"].take() {
        for (key, value) in plain {
            object["data"][key] = json!(base64(text(&value).as_bytes()));
        }
    }
    remove(object, "stringData");
    if object["data"].is_null() {
        remove(object, "data");
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let index = (bits >> (18 - 6 * at)) & 63;
            out.push(if at <= chunk.len() { ALPHABET[index as usize] as char } else { '=' });
        }
    }
    out
}

fn definition(object: &mut Value, now: &str) {
    let names = object["spec"]["names"].clone();
    let kind = text(&names["kind"]).to_owned();
    default(&mut object["spec"]["names"], "listKind", json!(format!("{kind}List")));
    default(&mut object["spec"]["names"], "singular", json!(kind.to_lowercase()));
    default(&mut object["spec"], "conversion", json!({ "strategy": "None" }));
    let names = object["spec"]["names"].clone();
    let stored: Vec<Value> = object["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    object["status"] = json!({
        "acceptedNames": names,
        "storedVersions": stored,
        "conditions": [
            { "type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found",
              "lastTransitionTime": now, "observedGeneration": 1 },
            { "type": "Established", "status": "True", "reason": "InitialNamesAccepted",
              "message": "the initial names have been accepted", "lastTransitionTime": now, "observedGeneration": 1 },
        ],
    });
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_pads_as_everybody_does() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
