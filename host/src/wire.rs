//! Objects as the API server sends them, decoded to what is kept.

use decide::snapshot::{Child, ContainerState, ContainerStatus, Job, Pod, PodPhase};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The controller of an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Owner {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    #[serde(default)]
    controller: bool,
}

/// What is kept of an object, by what it is to the host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Held {
    Job(std::sync::Arc<Job>),
    Pod(std::sync::Arc<Pod>),
    Child(std::sync::Arc<Child>),
}

/// An object of a watch: where it is, who controls it, and what is kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: u64,
    pub(crate) owner: Option<Owner>,
    /// Digest of the plugin that planned it, where it says so.
    pub(crate) made_by: Option<String>,
    pub(crate) held: Held,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    namespace: String,
    #[serde(deserialize_with = "or_default")]
    uid: String,
    #[serde(deserialize_with = "or_default")]
    resource_version: String,
    #[serde(deserialize_with = "or_default")]
    generation: i64,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "or_default")]
    finalizers: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    owner_references: Vec<Owner>,
}

/// Null counts as absent, as in Go.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

impl Metadata {
    fn owner(&self) -> Option<Owner> {
        self.owner_references.iter().find(|owner| owner.controller).cloned()
    }

    fn object(self, held: Held) -> Object {
        Object {
            resource_version: self.resource_version.parse().unwrap_or(0),
            owner: self.owner(),
            made_by: self.annotations.get(decide::ownership::MADE_BY).cloned(),
            namespace: self.namespace,
            name: self.name,
            uid: self.uid,
            held,
        }
    }
}

/// What is read of the answer to a write.
#[derive(Debug, Deserialize)]
pub(crate) struct Written {
    /// Null where the answer is about a deletion.
    #[serde(default)]
    metadata: Metadata,
    /// Where it was asked for.
    #[serde(default)]
    pub(crate) status: Value,
}

impl Written {
    /// The resource version as the number it is (KEP-5504); 0 where the answer has none.
    pub(crate) fn version(&self) -> u64 {
        self.metadata.resource_version.parse().unwrap_or(0)
    }

    /// The uid of the object's controller.
    pub(crate) fn controller(&self) -> Option<&str> {
        self.metadata.owner_references.iter().find(|owner| owner.controller).map(|owner| owner.uid.as_str())
    }
}

/// A Pod without what nobody asks for.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PodWire {
    metadata: Metadata,
    #[serde(default)]
    spec: PodSpecWire,
    #[serde(default)]
    status: PodStatusWire,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpecWire {
    #[serde(deserialize_with = "or_default")]
    node_name: String,
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

impl From<PodWire> for Object {
    fn from(wire: PodWire) -> Self {
        let PodWire { metadata, spec, status } = wire;
        let ips = if status.pod_ips.is_empty() {
            Some(status.pod_ip).filter(|ip| !ip.is_empty()).into_iter().collect()
        } else {
            status.pod_ips.into_iter().map(|ip| ip.ip).collect()
        };
        let init = status.init_container_statuses.into_iter().map(|wire| container(wire, true));
        let main = status.container_statuses.into_iter().map(|wire| container(wire, false));
        let pod = Pod {
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            owner_uid: metadata.owner().map(|owner| owner.uid).unwrap_or_default(),
            created: metadata.creation_timestamp.unwrap_or_default(),
            terminating: metadata.deletion_timestamp.is_some(),
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
            containers: init.chain(main).collect(),
        };
        metadata.object(Held::Pod(pod.into()))
    }
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

/// A job; one whose metadata cannot be read is told as an error and passed over, so that it cannot stop a watch.
pub(crate) fn job(mut object: Value) -> Result<Object, serde_json::Error> {
    let metadata = metadata(&mut object)?;
    let mut section = |name: &str| match object.get_mut(name) {
        Some(value @ Value::Object(_)) => value.take(),
        _ => json!({}),
    };
    let job = Job {
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        generation: metadata.generation,
        created: metadata.creation_timestamp.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        finalizers: metadata.finalizers.clone(),
        labels: metadata.labels.clone(),
        annotations: metadata.annotations.clone(),
        spec: section("spec"),
        status: section("status"),
    };
    Ok(metadata.object(Held::Job(job.into())))
}

/// A child, with only the parts that the framework keeps.
pub(crate) fn child(
    mut object: Value,
    api_version: &str,
    kind: &str,
    keep: &[String],
) -> Result<Object, serde_json::Error> {
    let metadata = metadata(&mut object)?;
    let kept = keep.iter().filter_map(|pointer| Some((pointer.clone(), object.pointer(pointer)?.clone())));
    let child = Child {
        api_version: api_version.into(),
        kind: kind.into(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        terminating: metadata.deletion_timestamp.is_some(),
        fields: kept.collect(),
    };
    Ok(metadata.object(Held::Child(child.into())))
}

fn metadata(object: &mut Value) -> Result<Metadata, serde_json::Error> {
    serde_json::from_value(object.get_mut("metadata").map(Value::take).unwrap_or_default())
}
