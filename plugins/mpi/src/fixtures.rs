//! Jobs and pods that the tests share.

use crate::MpiJob;
use crate::spec::Config;
use serde_json::{Value, json};
use troupe_plugin::Job;
use troupe_plugin::testkit;
use troupe_plugin::types::{ChildView, PodRow};

/// Returns the spec of the well-known pi example: two workers that approximate pi as a non-root user.
pub(crate) fn pi() -> Value {
    let limits = json!({ "limits": { "cpu": 1, "memory": "1Gi" } });
    let container = |name: &str, command: &str, args: &[&str]| json!({ "name": name, "image": "mpi-pi", "command": [command], "args": args, "resources": limits });
    let launcher = container("mpi-launcher", "mpirun", &["-n", "2", "/home/mpiuser/pi"]);
    let worker = container("mpi-worker", "/usr/sbin/sshd", &["-De", "-f", "/home/mpiuser/.sshd_config"]);
    json!({
        "slotsPerWorker": 1,
        "runPolicy": { "cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 60 },
        "sshAuthMountPath": "/home/mpiuser/.ssh",
        "mpiReplicaSpecs": {
            "Launcher": { "replicas": 1, "template": { "spec": { "containers": [launcher] } } },
            "Worker": { "replicas": 2, "template": { "spec": { "containers": [worker] } } },
        },
    })
}

/// Returns a job `foo` with one worker and these fields of the spec.
pub(crate) fn foo(fields: &Value) -> MpiJob {
    let template = |name: &str| json!({ "spec": { "containers": [{ "name": name, "image": "i" }] } });
    let mut spec = json!({ "mpiReplicaSpecs": {
        "Launcher": { "template": template("l") },
        "Worker": { "replicas": 1, "template": template("w") },
    } });
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    job("foo", &spec)
}

pub(crate) fn job(name: &str, spec: &Value) -> MpiJob {
    let mut view = testkit::job("MPIJob", name, spec);
    view.namespace = "default".into();
    Job::parse(view).unwrap()
}

/// Returns a job `pi` in a cluster with this domain.
pub(crate) fn with_domain(domain: &str, spec: &Value) -> MpiJob {
    let mut job = job("pi", spec);
    job.config = serde_json::from_value::<Config>(json!({ "cluster-domain": domain })).unwrap();
    job
}

/// Returns a pending worker pod.
pub(crate) fn worker(job: &str, index: u32) -> PodRow {
    testkit::pod("worker", index, &format!("{job}-worker-{index}"))
}

/// Returns the first `count` workers, each changed by `is`.
pub(crate) fn workers(job: &str, count: u32, is: impl Fn(PodRow) -> PodRow) -> Vec<PodRow> {
    (0..count).map(|index| is(worker(job, index))).collect()
}

/// Returns a pending pod of pi's launcher, as its Job creates it.
pub(crate) fn launcher_pod() -> PodRow {
    PodRow { index: None, ..testkit::pod("launcher", 0, "pi-launcher-x7k2p") }
}

/// Returns pi's launcher Job with this status.
pub(crate) fn launcher_job(status: &Value) -> ChildView {
    testkit::child("launcher", "Job", "pi-launcher", &[("/status", status.clone())])
}

pub(crate) fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

/// Returns names and values of the first container's environment, in order.
pub(crate) fn env(template: &Value) -> Vec<(String, String)> {
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let env = template["spec"]["containers"][0]["env"].as_array().unwrap();
    env.iter().map(|entry| (text(entry, "name"), text(entry, "value"))).collect()
}
