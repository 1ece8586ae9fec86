//! Changes to pods by kubelets and nodes, one word per deviation.

use super::{words, world::text};
use anyhow::{Context, bail};
use decide::time::rfc3339;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The lists of containers in the spec, and those of their statuses.
const SECTIONS: [(&str, &str); 2] = [("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")];

/// Whether a pod still exists after the words of `> pods`.
pub(super) enum Fate {
    Stays,
    Goes,
}

/// Changes the pod as the words say: `pending`, `initialising <container>`, `running`, `unready`, `succeeded`,
/// `waiting <reason>`, `failed [code]`, `exits <container> <code>`, `restarts <count>`, `evicted`, `unknown`, `reason <word>`, `message <text>`, `ip <address>`,
/// `condition <type>`, `terminating`, `gone`.
pub(super) fn befall(pod: &mut Value, story: &[&str], place: u8, now: Timestamp) -> anyhow::Result<Fate> {
    let mut story = story.iter().copied().peekable();
    while let Some(word) = story.next() {
        let mut next = |what: &str| story.next().with_context(|| format!("{word} needs {what}"));
        match word {
            "pending" => pod["status"] = json!({ "phase": "Pending" }),
            "waiting" => held_up(pod, next("a reason")?),
            "initialising" => initialising(pod, next("a container")?, now),
            "running" => ended_or_running(pod, "Running", &running(now), true, now),
            "unready" => ended_or_running(pod, "Running", &running(now), false, now),
            "succeeded" => ended_or_running(pod, "Succeeded", &ended(0, "Completed", now), false, now),
            "failed" => {
                let code = story.next_if(|word| word.parse::<i32>().is_ok()).and_then(|word| word.parse().ok());
                ended_or_running(pod, "Failed", &ended(code.unwrap_or(1), "Error", now), false, now);
            }
            "exits" => exits(pod, next("a container")?, next("an exit code")?.parse()?, now)?,
            "restarts" => restarts(pod, next("a count")?.parse()?),
            "evicted" => {
                pod["status"]["phase"] = json!("Failed");
                pod["status"]["reason"] = json!("Evicted");
            }
            "unknown" => pod["status"]["phase"] = json!("Unknown"),
            "reason" => pod["status"]["reason"] = json!(words::text(next("a word")?)),
            "message" => pod["status"]["message"] = json!(words::text(next("a text")?)),
            "condition" => {
                let condition = json!({ "type": next("a type")?, "status": "True" });
                match pod["status"]["conditions"].as_array_mut() {
                    Some(conditions) => conditions.push(condition),
                    None => pod["status"]["conditions"] = json!([condition]),
                }
            }
            "ip" => {
                address(pod, &counted_up(next("an address")?, place));
                created(pod);
            }
            "terminating" => {
                pod["metadata"]["deletionTimestamp"] = json!(rfc3339(now));
                pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
            }
            "gone" => return Ok(Fate::Goes),
            other => bail!("{other} is nothing that befalls pods"),
        }
    }
    Ok(Fate::Stays)
}

/// Returns the address of the pod at this place among the selected ones: addresses are consecutive from `first`.
fn counted_up(first: &str, place: u8) -> String {
    match first.rsplit_once('.') {
        Some((net, host)) => format!("{net}.{}", host.parse::<u8>().unwrap_or(0).saturating_add(place)),
        None => first.to_owned(),
    }
}

fn address(pod: &mut Value, ip: &str) {
    pod["spec"]["nodeName"] = json!("node");
    pod["status"]["podIP"] = json!(ip);
    pod["status"]["podIPs"] = json!([{ "ip": ip }]);
}

/// Sets the containers to not started yet, unless they have statuses.
fn created(pod: &mut Value) {
    for (section, statuses) in SECTIONS {
        let names = names(pod, section);
        if pod["status"].get(statuses).is_none() && !names.is_empty() {
            pod["status"][statuses] = names.iter().map(|name| container(name, false, &waiting())).collect();
        }
    }
}

/// Puts a pod on a node and gives it an address that is unique among the pods.
fn bind(pod: &mut Value) {
    pod["spec"]["nodeName"] = json!("node");
    if pod.pointer("/status/podIP").is_none() {
        let number = text(pod, "/metadata/uid").replace("uid-", "");
        address(pod, &format!("10.0.9.{number}"));
    }
}

/// Sets the containers to waiting for this reason.
fn held_up(pod: &mut Value, reason: &str) {
    bind(pod);
    let state = json!({ "waiting": { "reason": reason } });
    pod["status"]["phase"] = json!("Pending");
    pod["status"]["containerStatuses"] =
        names(pod, "containers").iter().map(|name| container(name, false, &state)).collect();
}

fn initialising(pod: &mut Value, busy: &str, now: Timestamp) {
    bind(pod);
    let inits = names(pod, "initContainers");
    let at = inits.iter().position(|name| name == busy).unwrap_or(inits.len());
    let statuses = inits.iter().enumerate().map(|(place, name)| match place.cmp(&at) {
        std::cmp::Ordering::Less => container(name, true, &ended(0, "Completed", now)),
        std::cmp::Ordering::Equal => container(name, false, &running(now)),
        std::cmp::Ordering::Greater => container(name, false, &waiting()),
    });
    pod["status"]["initContainerStatuses"] = statuses.collect();
    pod["status"]["containerStatuses"] =
        names(pod, "containers").iter().map(|name| container(name, false, &waiting())).collect();
    pod["status"]["phase"] = json!("Pending");
}

fn ended_or_running(pod: &mut Value, phase: &str, state: &Value, ready: bool, now: Timestamp) {
    bind(pod);
    let done = ended(0, "Completed", now);
    pod["status"]["initContainerStatuses"] =
        names(pod, "initContainers").iter().map(|name| container(name, true, &done)).collect();
    pod["status"]["containerStatuses"] =
        names(pod, "containers").iter().map(|name| container(name, ready, state)).collect();
    pod["status"]["conditions"] = json!([{ "type": "Ready", "status": if ready { "True" } else { "False" } }]);
    pod["status"]["phase"] = json!(phase);
}

/// Ends one container with this exit code.
fn exits(pod: &mut Value, container: &str, code: i32, now: Timestamp) -> anyhow::Result<()> {
    let statuses = pod.pointer_mut("/status/containerStatuses").and_then(Value::as_array_mut);
    let status = statuses.into_iter().flatten().find(|status| status["name"] == container);
    status.with_context(|| format!("no container {container} was started"))?["state"] = ended(code, "Error", now);
    Ok(())
}

/// Sets the restart counts of all containers.
fn restarts(pod: &mut Value, count: u32) {
    for status in pod.pointer_mut("/status/containerStatuses").and_then(Value::as_array_mut).into_iter().flatten() {
        status["restartCount"] = json!(count);
    }
}

fn container(name: &str, ready: bool, state: &Value) -> Value {
    let runs = state.get("running").is_some();
    json!({ "name": name, "ready": ready, "started": runs, "restartCount": 0, "state": state, "lastState": {} })
}

fn running(now: Timestamp) -> Value {
    json!({ "running": { "startedAt": rfc3339(now) } })
}

fn waiting() -> Value {
    json!({ "waiting": { "reason": "PodInitializing" } })
}

fn ended(code: i32, reason: &str, now: Timestamp) -> Value {
    json!({ "terminated": { "exitCode": code, "reason": reason, "finishedAt": rfc3339(now) } })
}

fn names(pod: &Value, section: &str) -> Vec<String> {
    let listed = pod["spec"].get(section).and_then(Value::as_array).into_iter().flatten();
    listed.map(|container| text(container, "/name")).collect()
}
