//! A sequence is data: requests with bodies, and no expectation.

use http::Method;
use serde_json::{Value, json};

pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const JSON: &str = "application/json-patch+json";
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// A kind and where it is served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kind {
    pub(super) api_version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    /// The real server adds fields to its spec or status that the simulator has not.
    pub(super) loose: bool,
}

const fn kind(api_version: &'static str, kind: &'static str, plural: &'static str, loose: bool) -> Kind {
    Kind { api_version, kind, plural, loose }
}

pub(super) const PODS: Kind = kind("v1", "Pod", "pods", true);
pub(super) const SERVICES: Kind = kind("v1", "Service", "services", true);
pub(super) const CONFIG_MAPS: Kind = kind("v1", "ConfigMap", "configmaps", false);
pub(super) const SECRETS: Kind = kind("v1", "Secret", "secrets", false);
pub(super) const EVENTS: Kind = kind("v1", "Event", "events", false);
pub(super) const JOBS: Kind = kind("batch/v1", "Job", "jobs", true);
pub(super) const LEASES: Kind = kind("coordination.k8s.io/v1", "Lease", "leases", false);
pub(super) const PADDLE_JOBS: Kind = kind("batch.paddlepaddle.org/v1", "PaddleJob", "paddlejobs", false);
pub(super) const MPI_JOBS: Kind = kind("kubeflow.org/v2beta1", "MPIJob", "mpijobs", false);

/// An object by its name.
pub(super) type Make = fn(&str) -> Value;

/// Every kind with an object of it.
pub(super) const KINDS: [(Kind, Make); 9] = [
    (PODS, pod),
    (SERVICES, service),
    (CONFIG_MAPS, config_map),
    (SECRETS, secret),
    (EVENTS, event),
    (JOBS, job),
    (LEASES, lease),
    (PADDLE_JOBS, paddle_job),
    (MPI_JOBS, mpi_job),
];

/// How often a request is made, and what of its answer is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    Once,
    /// The events of a watch.
    Watch,
    /// Again until the answer is as wanted; the last answer counts.
    Until(fn(u16, &Value) -> bool),
}

/// One request. Path, query and body may refer to earlier answers: `{{0.uid}}`, `{{0.version}}`, `{{0.name}}`,
/// `{{0.continue}}`; and to the `{{namespace}}` of the run.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) method: Method,
    pub(super) kind: Kind,
    pub(super) namespace: &'static str,
    pub(super) name: String,
    pub(super) sub: &'static str,
    pub(super) query: String,
    pub(super) content_type: &'static str,
    pub(super) accept: &'static str,
    /// The answer that the body is merged into.
    pub(super) onto: Option<usize>,
    pub(super) body: Value,
    pub(super) how: How,
}

/// Requests made in this order in a namespace of their own.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pub(super) name: String,
    pub(super) steps: Vec<Step>,
    /// With the simulator's controllers at work.
    pub(super) alive: bool,
}

pub(super) fn sequence(name: impl Into<String>, steps: impl IntoIterator<Item = Step>) -> Sequence {
    Sequence { name: name.into(), steps: steps.into_iter().collect(), alive: false }
}

impl Sequence {
    pub(super) fn alive(self) -> Self {
        Self { alive: true, ..self }
    }
}

impl Step {
    fn new(method: Method, kind: Kind, name: &str, body: Value) -> Self {
        Self {
            method,
            kind,
            namespace: "{{namespace}}",
            name: name.into(),
            sub: "",
            query: String::new(),
            content_type: "application/json",
            accept: "application/json",
            onto: None,
            body,
            how: How::Once,
        }
    }

    pub(super) fn status(self) -> Self {
        Self { sub: "status", ..self }
    }

    pub(super) fn query(self, query: &str) -> Self {
        Self { query: query.into(), ..self }
    }

    pub(super) fn within(self, namespace: &'static str) -> Self {
        Self { namespace, ..self }
    }

    pub(super) fn content(self, content_type: &'static str) -> Self {
        Self { content_type, ..self }
    }

    /// Asks for metadata alone.
    pub(super) fn metadata(self) -> Self {
        let list = self.method == Method::GET && self.name.is_empty() && matches!(self.how, How::Once);
        Self { accept: if list { PARTIAL_LIST } else { PARTIAL }, ..self }
    }

    /// Merges the body into the answer of a step before it is sent.
    pub(super) fn onto(self, step: usize) -> Self {
        Self { onto: Some(step), ..self }
    }
}

pub(super) fn post(kind: Kind, body: Value) -> Step {
    Step::new(Method::POST, kind, "", body)
}

pub(super) fn get(kind: Kind, name: &str) -> Step {
    Step::new(Method::GET, kind, name, Value::Null)
}

pub(super) fn list(kind: Kind, query: &str) -> Step {
    get(kind, "").query(query)
}

pub(super) fn put(kind: Kind, name: &str, body: Value) -> Step {
    Step::new(Method::PUT, kind, name, body)
}

pub(super) fn merge(kind: Kind, name: &str, body: Value) -> Step {
    Step::new(Method::PATCH, kind, name, body).content(MERGE)
}

pub(super) fn json_patch(kind: Kind, name: &str, body: Value) -> Step {
    Step::new(Method::PATCH, kind, name, body).content(JSON)
}

pub(super) fn strategic(kind: Kind, name: &str, body: Value) -> Step {
    Step::new(Method::PATCH, kind, name, body).content(STRATEGIC)
}

/// The options are DeleteOptions without their kind, or null for none.
pub(super) fn delete(kind: Kind, name: &str, options: Value) -> Step {
    Step::new(Method::DELETE, kind, name, options)
}

pub(super) fn delete_all(kind: Kind, query: &str) -> Step {
    delete(kind, "", Value::Null).query(query)
}

/// The last write before it has to be one that it shows.
pub(super) fn watch(kind: Kind, query: &str) -> Step {
    Step { how: How::Watch, ..list(kind, query) }
}

pub(super) fn until(kind: Kind, name: &str, wanted: fn(u16, &Value) -> bool) -> Step {
    Step { how: How::Until(wanted), ..get(kind, name) }
}

/// Merges `more` into `object`; nulls stay.
pub(super) fn with(mut object: Value, more: Value) -> Value {
    join(&mut object, more);
    object
}

fn join(object: &mut Value, more: Value) {
    match (object, more) {
        (Value::Object(object), Value::Object(more)) => {
            for (key, value) in more {
                join(object.entry(key).or_insert(Value::Null), value);
            }
        }
        (object, more) => *object = more,
    }
}

pub(super) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

pub(super) fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque",
        "data": {"a": "MQ=="}, "stringData": {"b": "two"}})
}

/// No scheduler looks at it.
pub(super) fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "restartPolicy": "Never", "schedulerName": "nobody", "containers": [{"name": "main", "image": "none:1"}]}})
}

/// On a node that nobody plays.
pub(super) fn bound_pod(name: &str) -> Value {
    with(pod(name), json!({"spec": {"nodeName": "nowhere"}}))
}

pub(super) fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
        "clusterIP": "None", "selector": {"app": "a"}, "ports": [{"name": "x", "port": 2379}]}})
}

pub(super) fn event(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "a", "namespace": "{{namespace}}"},
        "reason": "Tested", "message": "it was tested", "type": "Normal", "count": 1,
        "source": {"component": "conformance"},
        "firstTimestamp": "2020-02-02T02:02:02Z", "lastTimestamp": "2020-02-02T02:02:02Z"})
}

/// No controller looks at it. Labelled, as the operator's are.
pub(super) fn job(name: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": {"app": "a"}}, "spec": {
        "managedBy": "troupe.dev/nobody",
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none:1"}]}}}})
}

pub(super) fn lease(name: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {
        "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": "2020-02-02T02:02:02.000002Z", "renewTime": "2020-02-02T02:02:03.000003Z"}})
}

pub(super) fn paddle_job(name: &str) -> Value {
    let template = json!({"spec": {"containers": [{"name": "paddle", "image": "none:1"}]}});
    json!({"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": name}, "spec": {
        "cleanPodPolicy": "Never", "withGloo": 1, "intranet": "Service",
        "ps": {"replicas": 1, "template": template}, "worker": {"replicas": 2, "template": template}}})
}

/// With every default spelled out, since the simulator knows no schema.
pub(super) fn mpi_job(name: &str) -> Value {
    let template = json!({"spec": {"containers": [{"name": "mpi", "image": "none:1"}]}});
    json!({"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name}, "spec": {
        "launcherCreationPolicy": "AtStartup", "mpiImplementation": "OpenMPI", "runLauncherAsWorker": false,
        "slotsPerWorker": 1, "sshAuthMountPath": "/root/.ssh", "runPolicy": {"suspend": false, "cleanPodPolicy": "None"},
        "mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": template},
            "Worker": {"replicas": 2, "template": template}}}})
}
