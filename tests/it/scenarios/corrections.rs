//! What holds for the pods of every kind, over all objects that the host creates in every scenario: the table of
//! `plugins/README.md`, each row of which one plugin once had right and another one wrong.

use super::{folder, written};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A row of the table, and what it asks of an object that was created for a job.
struct Correction {
    row: &'static str,
    /// Whether the object is as it has to be; None where the row is not about it.
    holds: fn(object: &Value, job: &Value) -> Option<bool>,
}

const CORRECTIONS: [Correction; 3] = [
    Correction { row: "Names of pods resolve before they are ready", holds: publishes_all_addresses },
    Correction { row: "Containers that are added ask for what the framework's asks for", holds: added_containers_ask },
    Correction { row: "Pods that are created are no pods of a queue by themselves", holds: is_no_queues },
];

/// A headless Service is there for names.
fn publishes_all_addresses(object: &Value, _: &Value) -> Option<bool> {
    let is_headless = object["kind"] == "Service" && object["spec"]["clusterIP"] == "None";
    is_headless.then(|| object["spec"]["publishNotReadyAddresses"] == true)
}

/// A container that is not in the job asks for a resource if, and only if, one of the user's does: a quota of the namespace
/// refuses pods otherwise, and so does a queue that does not cover it.
fn added_containers_ask(object: &Value, job: &Value) -> Option<bool> {
    let spec = pod_spec(object)?;
    let containers = |list: &str| spec[list].as_array().cloned().unwrap_or_default();
    let said = job["spec"].to_string();
    let is_users = |container: &Value| said.contains(&format!(r#""name":{}"#, container["name"]));
    let asks = |container: &Value| -> BTreeSet<String> {
        let of =
            |list: &str| container["resources"][list].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        of("requests").chain(of("limits")).collect()
    };
    let (users, added): (Vec<_>, Vec<_>) =
        containers("containers").into_iter().chain(containers("initContainers")).partition(is_users);
    let of_users: BTreeSet<_> = users.iter().flat_map(asks).filter(|name| !name.contains('/')).collect();
    (!added.is_empty()).then(|| added.iter().all(|container| asks(container) == of_users))
}

fn is_no_queues(object: &Value, job: &Value) -> Option<bool> {
    pod_spec(object)?;
    let label = "kueue.x-k8s.io/queue-name";
    let template = if object["kind"] == "Job" { &object["spec"]["template"] } else { object };
    let said_twice = job["spec"].to_string().contains(label);
    Some(said_twice || template["metadata"]["labels"][label].is_null())
}

fn pod_spec(object: &Value) -> Option<&Value> {
    match object["kind"].as_str() {
        Some("Pod") => Some(&object["spec"]),
        Some("Job") => object.pointer("/spec/template/spec"),
        _ => None,
    }
}

#[test]
fn every_kind_has_the_corrections_that_hold_for_all() {
    let page = std::fs::read_to_string(folder().join("../../plugins/README.md")).unwrap();
    // By row: the kinds of jobs of which an object was looked at.
    let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (file, written) in written() {
        for (object, job) in &written.created {
            for Correction { row, holds } in &CORRECTIONS {
                let Some(holds) = holds(object, job) else { continue };
                seen.entry(row).or_default().insert(job["kind"].as_str().unwrap_or_default().to_owned());
                assert!(holds, "{row}: {}: {object:#}", file.display());
            }
        }
    }
    for Correction { row, .. } in &CORRECTIONS {
        let kinds = seen[row].iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ");
        let line = format!("| {row} | {kinds} |");
        assert!(page.lines().any(|it| it.starts_with(&line)), "plugins/README.md lacks {line}");
    }
}
