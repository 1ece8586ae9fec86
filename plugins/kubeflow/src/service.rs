//! The headless Service of each replica, which has the pod's name.

use crate::env;
use crate::family::Group;
use crate::pods::REPLICA_INDEX;
use crate::valid::Valid;
use serde::Serialize;
use std::borrow::Cow;
use troupe_plugin::types::{Body, Moment, Object, Upkeep};
use troupe_plugin::{json_text, pod_name};

#[derive(Serialize)]
struct Service<'a> {
    metadata: Metadata<'a>,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    labels: Labels<'a>,
}

#[derive(Serialize)]
struct Spec<'a> {
    #[serde(rename = "clusterIP")]
    cluster_ip: &'static str,
    /// Better: the original publishes ready pods alone, so that a probe that waits for the others has them wait for the name.
    #[serde(rename = "publishNotReadyAddresses")]
    publish_not_ready_addresses: bool,
    selector: Labels<'a>,
    ports: Vec<Port<'a>>,
}

/// The labels of one replica's pod and Service; its index is filled in.
#[derive(Clone, Copy, Serialize)]
struct Labels<'a> {
    #[serde(rename = "training.kubeflow.org/operator-name")]
    operator_name: &'static str,
    #[serde(rename = "training.kubeflow.org/job-name")]
    job_name: &'a str,
    #[serde(rename = "training.kubeflow.org/replica-type")]
    replica_type: &'static str,
    #[serde(rename = "training.kubeflow.org/replica-index")]
    replica_index: &'static str,
}

#[derive(Serialize)]
struct Port<'a> {
    name: Cow<'a, str>,
    port: u16,
}

/// Returns the Services of a group. Those of replicas that the job does not have are removed.
pub(crate) fn of(valid: &Valid<'_>, group: &Group<'_>) -> Object {
    let labels = Labels {
        operator_name: valid.family.kind.operator,
        job_name: valid.family.job.name(),
        replica_type: group.of.lower,
        replica_index: "",
    };
    let spec =
        Spec { cluster_ip: "None", publish_not_ready_addresses: true, selector: labels, ports: ports(valid, group) };
    let body = json_text(&Service { metadata: Metadata { labels }, spec });
    let index = |place: &str| ([place, "/", &REPLICA_INDEX.replace('/', "~1")].concat(), vec![env::piece(group, 0)]);
    Object {
        key: ["service-", group.role].concat(),
        api_version: "v1".into(),
        kind: "Service".into(),
        name: vec![pod_name()],
        per_pod_of: Some(group.role.into()),
        body: Body::Fixed((body, vec![index("/metadata/labels"), index("/spec/selector")])),
        upkeep: Upkeep::CreateOnly,
        after: vec![],
        remove_when: vec![Moment::Suspended, Moment::Cleaned, Moment::ReplicaGone],
    }
}

/// Returns the ports of the framework's container. Each has a name, which a Service of several needs.
fn ports<'v>(valid: &'v Valid<'_>, group: &Group<'_>) -> Vec<Port<'v>> {
    let kind = valid.family.kind;
    let Some(pods) = valid.pods(group.of) else { return vec![] };
    let mut ports = Vec::with_capacity(pods.ports.len() + 1);
    for (place, user) in pods.ports.iter().enumerate() {
        let name = user.name.as_deref().map_or_else(|| ["port-", &place.to_string()].concat().into(), Cow::Borrowed);
        ports.push(Port { name, port: user.container_port });
    }
    if !pods.has_port {
        ports.push(Port { name: kind.port_name.into(), port: kind.port });
    }
    ports
}
