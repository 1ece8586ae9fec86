//! Jobs, Jobs' statuses and pods that the tests share, one word per deviation.

use crate::{Job, launcher, workers};
use serde_json::{Value, json};
use troupe_plugin::testkit;
use troupe_plugin::types::{ChildView, ContainerRow, ContainerState, PodRow};

/// The spec of a job with two processes, as the field knows it.
pub(crate) fn sample() -> Value {
    json!({
        "image": "openrhino/mpi-func:v1",
        "appExec": "/app/mpi-func",
        "appArgs": ["1", "10", "1"],
        "parallelism": 2,
        "ttl": 300,
    })
}

/// A v1alpha1 spec, with the defaults that the API server adds for v1alpha2 left out.
pub(crate) fn grape() -> Value {
    json!({
        "image": "openrhino/grape:v1",
        "appExec": "./grape",
        "parallelism": 4,
        "ttl": 36_000,
        "dataServer": "10.0.0.7",
        "dataPath": "/kfnmck56",
    })
}

pub(crate) fn job(name: &str, spec: &Value) -> Job {
    let mut view = testkit::job("RhinoJob", name, spec);
    view.namespace = "default".into();
    view.uid = "abcdef01-2345".into();
    Job::parse(view).unwrap()
}

pub(crate) fn with_config(config: &Value, spec: &Value) -> Job {
    let mut job = job("sample", spec);
    job.config = serde_json::from_value(config.clone()).unwrap();
    job
}

/// The launcher's Job with this status, made when the job was.
pub(crate) fn launcher_job(status: &Value) -> ChildView {
    let fields = [("/status", status.clone()), ("/metadata/creationTimestamp", json!("2026-01-01T00:00:00Z"))];
    testkit::child(launcher::ROLE, "Job", "sample-abcde-launcher", &fields)
}

/// The Job of two workers with this status, made ten seconds later.
pub(crate) fn workers_job(status: &Value) -> ChildView {
    let fields = [
        ("/status", status.clone()),
        ("/spec/completions", json!(2)),
        ("/metadata/creationTimestamp", json!("2026-01-01T00:00:10Z")),
    ];
    testkit::child(workers::ROLE, "Job", "sample-abcde-workers", &fields)
}

/// A pending pod of the launcher's Job, made when the job was.
pub(crate) fn launcher_pod() -> PodRow {
    PodRow { index: None, ..testkit::pod(launcher::ROLE, 0, "sample-abcde-launcher-x7k2p") }
}

/// A pending pod of the workers' Job.
pub(crate) fn worker_pod(index: u32) -> PodRow {
    PodRow { index: None, ..testkit::pod(workers::ROLE, 0, &format!("sample-abcde-workers-{index}-q9z4t")) }
}

/// The pod with its one container in this state.
pub(crate) fn with_state(mut pod: PodRow, state: ContainerState) -> PodRow {
    let name = if pod.role == launcher::ROLE { launcher::CONTAINER } else { workers::CONTAINER };
    pod.containers = vec![ContainerRow { name: name.into(), init: false, ready: false, restarts: 0, state }];
    pod
}

/// The pod with its one container waiting for this reason.
pub(crate) fn waiting(pod: PodRow, reason: &str) -> PodRow {
    with_state(pod, ContainerState::Waiting((reason.into(), "back-off".into())))
}

pub(crate) fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}
