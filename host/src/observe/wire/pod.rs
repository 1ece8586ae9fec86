//! Decoding of pods.

use super::{
    Held, Metadata, Object, Wire, is_stored_child, or_default,
    sections::{Parts, metadata, typed, unreadable, within},
};
use crate::observe::{layout::WatchSpec, places::Places};
use decide::{
    addresses::ADDRESSES_ANNOTATION,
    attempts::ATTEMPT_ANNOTATION,
    outdated::TEMPLATE_HASH_ANNOTATION,
    plan::FieldError,
    snapshot::{ContainerState, ContainerStatus, Pod, PodPhase, Unscheduled},
};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpecWire {
    #[serde(deserialize_with = "or_default")]
    node_name: String,
    #[serde(deserialize_with = "or_default")]
    containers: Vec<ContainerPortsWire>,
    #[serde(deserialize_with = "or_default")]
    scheduling_gates: Vec<GateWire>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct GateWire {
    #[serde(deserialize_with = "or_default")]
    name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ContainerPortsWire {
    #[serde(deserialize_with = "or_default")]
    ports: Vec<PortWire>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PortWire {
    host_port: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatusWire {
    #[serde(deserialize_with = "or_default")]
    phase: String,
    #[serde(deserialize_with = "or_default")]
    reason: String,
    #[serde(deserialize_with = "or_default")]
    message: String,
    start_time: Option<Timestamp>,
    #[serde(rename = "podIP", deserialize_with = "or_default")]
    pod_ip: String,
    #[serde(rename = "podIPs", deserialize_with = "or_default")]
    pod_ips: Vec<IpWire>,
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<ConditionWire>,
    #[serde(deserialize_with = "or_default")]
    init_container_statuses: Vec<ContainerWire>,
    #[serde(deserialize_with = "or_default")]
    container_statuses: Vec<ContainerWire>,
}

#[derive(Debug, Clone, Deserialize)]
struct IpWire {
    #[serde(default)]
    ip: String,
}

#[derive(Debug, Clone, Deserialize)]
struct ConditionWire {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(default, deserialize_with = "or_default")]
    reason: String,
    #[serde(default, deserialize_with = "or_default")]
    message: String,
    #[serde(default, rename = "lastTransitionTime")]
    since: Option<Timestamp>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerWire {
    name: String,
    #[serde(default)]
    ready: bool,
    #[serde(default)]
    restart_count: u32,
    #[serde(default)]
    state: Option<StateWire>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct StateWire {
    waiting: Option<WaitingWire>,
    running: Option<RunningWire>,
    terminated: Option<TerminatedWire>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct WaitingWire {
    #[serde(deserialize_with = "or_default")]
    reason: String,
    #[serde(deserialize_with = "or_default")]
    message: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunningWire {
    #[serde(default)]
    started_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TerminatedWire {
    exit_code: i32,
    #[serde(deserialize_with = "or_default")]
    reason: String,
    #[serde(deserialize_with = "or_default")]
    message: String,
    finished_at: Option<Timestamp>,
}

/// A pod of which nothing is kept but what the host reads itself.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PodWire {
    #[serde(deserialize_with = "or_default")]
    metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    spec: PodSpecWire,
    #[serde(deserialize_with = "or_default")]
    status: PodStatusWire,
}

impl Wire<'_> for PodWire {
    fn object(self, _: &WatchSpec) -> Option<Object> {
        Some(pod(self, BTreeMap::new(), None))
    }
}

/// Decodes a pod section by section, with the other fields that the framework keeps.
pub(super) fn by_section(text: &str, parts: &Parts<'_>, keep: &Places) -> Object {
    let (metadata, wrong_metadata) = metadata(parts);
    let (spec, wrong_spec) = typed::<PodSpecWire>(parts.spec);
    let (mut status, wrong_status) = typed::<PodStatusWire>(parts.status);
    if wrong_status.is_some() {
        status.phase = "Unknown".into();
    }
    let wrong = wrong_spec.map(|error| unreadable("spec", &error));
    let wrong = wrong.or(wrong_status.map(|error| unreadable("status", &error)));
    let is_stored = is_stored_child(metadata.controller());
    let (fields, wrong_fields) = if is_stored { keep.values(text) } else { Default::default() };
    pod(PodWire { metadata, spec, status }, fields, wrong_metadata.or(wrong).or(wrong_fields))
}

fn pod(wire: PodWire, fields: BTreeMap<String, Value>, unreadable: Option<FieldError>) -> Object {
    let PodWire { metadata, spec, status } = wire;
    let unreadable = unreadable.map(|error| within(error, "Pod", &metadata.name));
    let ports = spec.containers.iter().flat_map(|container| &container.ports);
    let host_ports = ports.filter_map(|port| port.host_port).collect();
    let pod = Pod { fields, ..seen(&metadata, spec, status) };
    Object { host_ports, ..metadata.object(unreadable, Held::Pod(pod.into())) }
}

/// Returns a pod as the host sees it, from its JSON.
///
/// # Errors
/// The text is no JSON of an object.
pub fn read_pod(text: &str) -> Result<Pod, serde_json::Error> {
    let parts: Parts<'_> = serde_json::from_str(text)?;
    match by_section(text, &parts, &Places::default()).held {
        Held::Pod(pod) => Ok(Arc::unwrap_or_clone(pod)),
        _ => unreachable!("a pod is held as one"),
    }
}

fn seen(metadata: &Metadata, spec: PodSpecWire, status: PodStatusWire) -> Pod {
    let node_lost = node_lost(metadata, &status);
    let ips = if status.pod_ips.is_empty() {
        Some(status.pod_ip).filter(|ip| !ip.is_empty()).into_iter().collect()
    } else {
        status.pod_ips.into_iter().map(|ip| ip.ip).collect()
    };
    let init = status.init_container_statuses.into_iter().map(|wire| container(wire, true));
    let main = status.container_statuses.into_iter().map(|wire| container(wire, false));
    let taken = status.start_time.filter(|_| status.phase == "Pending");
    let has_failed = status.phase == "Failed";
    let conditions = status.conditions.iter().filter(|_| has_failed).map(|it| (it.kind.clone(), it.status.clone()));
    Pod {
        conditions: conditions.collect(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        owner_uid: metadata.controller().map(|owner| owner.uid.clone()).unwrap_or_default(),
        created: metadata.creation_timestamp.unwrap_or_default(),
        terminating: metadata.deletion_timestamp.is_some(),
        // A pod that had ended before gets no time. The cache remembers it, since the kubelet takes the time away at the end.
        stopped: metadata.deletion_timestamp.is_some()
            && metadata.deletion_grace_period_seconds.is_some_and(|it| it > 0),
        phase: match status.phase.as_str() {
            "Pending" | "" => PodPhase::Pending,
            "Running" => PodPhase::Running,
            "Succeeded" => PodPhase::Succeeded,
            "Failed" => PodPhase::Failed,
            _ => PodPhase::Unknown,
        },
        reason: status.reason,
        message: status.message,
        ready: status.conditions.iter().any(|condition| condition.kind == "Ready" && condition.status == "True"),
        ips,
        node: spec.node_name,
        unscheduled: status.conditions.into_iter().find_map(|condition| unscheduled(condition, &spec.scheduling_gates)),
        taken,
        node_lost,
        fields: BTreeMap::new(),
        template_hash: metadata.annotations.get(TEMPLATE_HASH_ANNOTATION).cloned(),
        attempt: metadata.annotations.get(ATTEMPT_ANNOTATION).and_then(|text| text.parse().ok()).unwrap_or_default(),
        addresses: metadata.annotations.get(ADDRESSES_ANNOTATION).cloned(),
        containers: init.chain(main).collect(),
    }
}

fn unscheduled(condition: ConditionWire, gates: &[GateWire]) -> Option<Unscheduled> {
    let ConditionWire { kind, status, reason, message, .. } = condition;
    if kind != "PodScheduled" || status != "False" {
        return None;
    }
    let gates = gates.iter().map(|gate| gate.name.as_str()).collect::<Vec<_>>().join(", ");
    Some(Unscheduled { reason, message: if gates.is_empty() { message } else { gates } })
}

/// Returns since when the pod's node has not been ready. Kubernetes' node lifecycle controller then turns the pod's
/// condition Ready to False and leaves the rest as the kubelet has reported it last: a kubelet gives a reason, and says
/// so of the containers, too. Earlier Kubernetes gives the pod the reason NodeLost.
fn node_lost(metadata: &Metadata, status: &PodStatusWire) -> Option<Timestamp> {
    let ready = status.conditions.iter().find(|condition| condition.kind == "Ready");
    let containers = &status.container_statuses;
    let is_stale = status.phase == "Running"
        && ready.is_some_and(|ready| ready.status == "False" && ready.reason.is_empty())
        && !containers.is_empty()
        && containers.iter().all(|container| container.ready);
    let since = || ready.and_then(|ready| ready.since).or(metadata.creation_timestamp).unwrap_or_default();
    (is_stale || status.reason == "NodeLost").then(since)
}

fn container(wire: ContainerWire, init: bool) -> ContainerStatus {
    let state = match wire.state.unwrap_or_default() {
        StateWire { terminated: Some(ended), .. } => ContainerState::Terminated {
            exit_code: ended.exit_code,
            reason: ended.reason,
            message: ended.message,
            at: ended.finished_at.unwrap_or_default(),
        },
        StateWire { running: Some(running), .. } => {
            ContainerState::Running { since: running.started_at.unwrap_or_default() }
        }
        StateWire { waiting: Some(WaitingWire { reason, message }), .. } => ContainerState::Waiting { reason, message },
        StateWire { .. } => ContainerState::Unknown,
    };
    ContainerStatus { name: wire.name, init, ready: wire.ready, restarts: wire.restart_count, state }
}
