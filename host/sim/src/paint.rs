//! The status that a kubelet writes for a pod at a given progress.

use serde_json::{Value, json};

use crate::record::Hash;
use crate::store::{text, uid};

/// The progress of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Bound to a node, waiting for volumes.
    Creating,
    /// It has an address; its images are being pulled.
    Sandbox,
    /// A container names a ConfigMap or Secret that does not exist; `init` is its index if it is an init container.
    ConfigError { init: usize, missing: String },
    /// The init container of this index runs.
    Init(usize),
    /// The containers run.
    Running,
    /// The containers exited and will be restarted.
    Crashed { code: i64, backing_off: bool },
    /// The containers exited for good.
    Ended(i64),
}

impl Progress {
    pub(crate) fn has_address(&self) -> bool {
        !matches!(self, Progress::Creating | Progress::Ended(_))
    }

    fn phase(&self) -> &'static str {
        match self {
            Progress::Running | Progress::Crashed { .. } => "Running",
            Progress::Ended(0) => "Succeeded",
            Progress::Ended(_) => "Failed",
            _ => "Pending",
        }
    }
}

/// Sets the condition that the scheduler sets.
pub(crate) fn scheduled(pod: &mut Value, now: &str) {
    condition(pod, "PodScheduled", true, "", now);
}

/// Rewrites the status of a pod for this progress.
pub(crate) fn paint(pod: &mut Value, progress: &Progress, address: &str, now: &str, restarts: u64) {
    let generation = pod["metadata"]["generation"].clone();
    let status = &mut pod["status"];
    if generation.is_i64() || generation.is_u64() {
        status["observedGeneration"] = generation;
    }
    status["phase"] = json!(progress.phase());
    if status["startTime"].is_null() {
        status["startTime"] = json!(now);
    }
    if !address.is_empty() {
        status["podIP"] = json!(address);
        status["podIPs"] = json!([{ "ip": address }]);
        status["hostIP"] = json!("172.18.0.2");
        status["hostIPs"] = json!([{ "ip": "172.18.0.2" }]);
    }
    let inits = pod["spec"]["initContainers"].as_array().map_or(0, Vec::len);
    for (list, field, init) in
        [("initContainers", "initContainerStatuses", true), ("containers", "containerStatuses", false)]
    {
        let containers = pod["spec"][list].as_array().cloned().unwrap_or_default();
        let statuses: Vec<Value> = containers
            .iter()
            .enumerate()
            .map(|(index, container)| {
                let before = pod["status"][field][index].clone();
                let state = if init {
                    init_state(progress, index, container, &before, now)
                } else {
                    main_state(progress, inits, &before, now)
                };
                let last = if init { json!({}) } else { last_state(progress, &before, now) };
                container_status(pod, container, &state, &last, init, if init { 0 } else { restarts })
            })
            .collect();
        if !statuses.is_empty() {
            pod["status"][field] = Value::Array(statuses);
        }
    }
    conditions(pod, progress, now);
}

fn conditions(pod: &mut Value, progress: &Progress, now: &str) {
    let ended = matches!(progress, Progress::Ended(_));
    let has_inits = pod["spec"]["initContainers"].as_array().is_some_and(|list| !list.is_empty());
    let waits_in_init = matches!(progress, Progress::Init(_) | Progress::Creating | Progress::Sandbox)
        || matches!(progress, Progress::ConfigError { init, .. } if *init != usize::MAX && has_inits
            && *init < pod["spec"]["initContainers"].as_array().map_or(0, Vec::len));
    let initialized = !(has_inits && waits_in_init);
    let running = *progress == Progress::Running;
    let completed = *progress == Progress::Ended(0);
    let not_ready = match progress {
        _ if running => "",
        _ if completed => "PodCompleted",
        Progress::Ended(_) => "PodFailed",
        _ => "ContainersNotReady",
    };
    let sandbox = !matches!(progress, Progress::Creating) && !ended;
    condition(pod, "PodReadyToStartContainers", sandbox, "", now);
    let why = match (initialized, completed) {
        (false, _) => "ContainersNotInitialized",
        (true, true) => "PodCompleted",
        _ => "",
    };
    condition(pod, "Initialized", initialized, why, now);
    condition(pod, "Ready", running, not_ready, now);
    condition(pod, "ContainersReady", running, not_ready, now);
    condition(pod, "PodScheduled", true, "", now);
}

fn condition(pod: &mut Value, kind: &str, holds: bool, reason: &str, now: &str) {
    let holds = if holds { "True" } else { "False" };
    if !pod["status"]["conditions"].is_array() {
        pod["status"]["conditions"] = json!([]);
    }
    let Some(list) = pod["status"]["conditions"].as_array_mut() else {
        return;
    };
    let at = list.iter().position(|condition| condition["type"] == kind);
    let since = at.map(|at| &list[at]).filter(|before| before["status"] == holds);
    let since = since.map_or(json!(now), |before| before["lastTransitionTime"].clone());
    let mut condition = json!({ "type": kind, "status": holds, "lastProbeTime": null, "lastTransitionTime": since });
    if !reason.is_empty() {
        condition["reason"] = json!(reason);
    }
    match at {
        Some(at) => list[at] = condition,
        None => list.push(condition),
    }
}

fn waiting(reason: &str) -> Value {
    json!({ "waiting": { "reason": reason } })
}

fn running(before: &Value, now: &str) -> Value {
    match &before["state"]["running"]["startedAt"] {
        Value::Null => json!({ "running": { "startedAt": now } }),
        since => json!({ "running": { "startedAt": since } }),
    }
}

fn terminated(before: &Value, code: i64, now: &str) -> Value {
    if before["state"]["terminated"].is_object() {
        return before["state"].clone();
    }
    let started = match &before["state"]["running"]["startedAt"] {
        Value::Null => json!(now),
        since => since.clone(),
    };
    json!({ "terminated": {
        "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" },
        "startedAt": started, "finishedAt": now, "containerID": before["containerID"],
    } })
}

fn init_state(progress: &Progress, index: usize, container: &Value, before: &Value, now: &str) -> Value {
    let sidecar = container["restartPolicy"] == "Always";
    match progress {
        Progress::Init(at) if index == *at => running(before, now),
        Progress::Init(at) | Progress::ConfigError { init: at, .. } if index < *at => {
            if sidecar {
                running(before, now)
            } else {
                terminated(before, 0, now)
            }
        }
        Progress::ConfigError { init, missing } if index == *init => {
            json!({ "waiting": { "reason": "CreateContainerConfigError", "message": missing } })
        }
        Progress::Running | Progress::Crashed { .. } if sidecar => running(before, now),
        Progress::Running | Progress::Crashed { .. } => terminated(before, 0, now),
        Progress::Ended(code) if before["state"]["running"].is_object() => terminated(before, *code, now),
        Progress::Ended(_) if before["state"].is_object() => before["state"].clone(),
        _ => waiting("PodInitializing"),
    }
}

fn main_state(progress: &Progress, inits: usize, before: &Value, now: &str) -> Value {
    match progress {
        Progress::ConfigError { init, missing } if *init >= inits => {
            json!({ "waiting": { "reason": "CreateContainerConfigError", "message": missing } })
        }
        Progress::Running => running(before, now),
        Progress::Crashed { code, backing_off: false } => terminated(before, *code, now),
        Progress::Crashed { .. } => waiting("CrashLoopBackOff"),
        Progress::Ended(code) => terminated(before, *code, now),
        _ if inits > 0 => waiting("PodInitializing"),
        _ => waiting("ContainerCreating"),
    }
}

fn container_status(pod: &Value, container: &Value, state: &Value, last: &Value, init: bool, restarts: u64) -> Value {
    let runs = state["running"].is_object();
    let terminated = state["terminated"].is_object();
    let ready = runs || (init && state["terminated"]["exitCode"] == 0);
    let mut status = json!({
        "name": container["name"], "image": container["image"], "imageID": "", "ready": ready,
        "restartCount": restarts, "started": runs, "state": state, "lastState": last,
    });
    if runs || terminated {
        let mut hash = Hash::default();
        for part in [uid(pod), text(&container["name"]), &restarts.to_string()] {
            hash.field(part);
        }
        let id = format!("containerd://{0:016x}{0:016x}{0:016x}{0:016x}", hash.0);
        status["containerID"] = json!(id);
        status["imageID"] = json!(format!("{}@sha256:{:064x}", text(&container["image"]), hash.0));
        if terminated && status["state"]["terminated"]["containerID"].is_null() {
            status["state"]["terminated"]["containerID"] = json!(id);
        }
    }
    status
}

/// Returns how the container ended the last time, once it is starting again.
fn last_state(progress: &Progress, before: &Value, now: &str) -> Value {
    match progress {
        Progress::Crashed { code, backing_off: true } => terminated(before, *code, now),
        Progress::Running if before["state"]["terminated"].is_object() => before["state"].clone(),
        _ if before["lastState"].is_object() => before["lastState"].clone(),
        _ => json!({}),
    }
}
