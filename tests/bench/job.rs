//! The job that the benchmarks ask about.

use decide::{
    Snapshot,
    ledger::Ledger,
    snapshot::{ContainerState, ContainerStatus, Job, Pod, PodPhase},
    testkit,
};
use sandbox::Plugins;
use serde_json::{Value, json};
use std::sync::Arc;

/// The job's uid.
const UID: &str = "9d0a3c3e-1111-4111-8111-000000000001";

/// A PaddleJob in parameter-server mode, all of its pods running.
pub(crate) fn snapshot(plugins: &Plugins, pods: u32) -> Snapshot {
    let (framework, digest) =
        plugins.frameworks().into_iter().find(|(framework, _)| framework.name == "paddle").expect("it is built in");
    let servers = pods / 5;
    let roles = [("ps", servers), ("worker", pods - servers)];
    let now = "2026-01-01T00:00:00Z".parse().expect("a timestamp");
    let pod = |role: &str, index: u32| {
        Arc::new(Pod {
            uid: format!("5f2c8f1e-0000-4000-8000-{index:012}"),
            resource_version: "100200".into(),
            created: now,
            ips: vec![format!("10.244.{}.{}", index / 250, index % 250)],
            node: "node-1".into(),
            containers: vec![ContainerStatus {
                name: "paddle".into(),
                init: false,
                ready: true,
                restarts: 0,
                state: ContainerState::Running { since: now },
            }],
            ..testkit::pod(&format!("wide-and-deep-{role}-{index}"), UID, PodPhase::Running)
        })
    };
    let job = Job {
        namespace: "default".into(),
        resource_version: "100100".into(),
        spec: json!({ "intranet": "PodIP", "ps": role(servers), "worker": role(pods - servers) }),
        status: json!({ "phase": "Starting", "troupe": { "uid": UID } }),
        ..testkit::job("wide-and-deep", UID)
    };
    Snapshot {
        now,
        kind: Arc::new(framework.kinds[0].clone()),
        pods: roles.iter().flat_map(|(role, replicas)| (0..*replicas).map(move |index| pod(role, index))).collect(),
        ledger: Ledger::default(),
        digest: Some(digest),
        ..testkit::snapshot(job)
    }
}

fn role(replicas: u32) -> Value {
    let container = json!({
        "name": "paddle",
        "image": "registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1",
        "command": ["sh", "-c", "python train.py --epochs 10 --batch-size 128"],
        "resources": { "requests": { "cpu": "4", "memory": "8Gi" }, "limits": { "cpu": "4", "memory": "8Gi" } },
        "volumeMounts": [{ "name": "data", "mountPath": "/data" }, { "name": "shm", "mountPath": "/dev/shm" }],
        "env": [{ "name": "LOG_LEVEL", "value": "info" }, { "name": "SEED", "value": "7" }],
    });
    let volumes = json!([
        { "name": "data", "persistentVolumeClaim": { "claimName": "wide-and-deep-data" } },
        { "name": "shm", "emptyDir": { "medium": "Memory", "sizeLimit": "2Gi" } },
    ]);
    let spec = json!({ "containers": [container], "volumes": volumes, "restartPolicy": "Never",
        "tolerations": [{ "key": "gpu", "operator": "Exists", "effect": "NoSchedule" }] });
    json!({ "replicas": replicas, "template": { "metadata": { "labels": { "app": "wide-and-deep" } }, "spec": spec } })
}
