//! The job that the benchmarks ask about.

use decide::{
    Snapshot,
    ledger::Ledger,
    snapshot::{ContainerState, ContainerStatus, Job, Pod, PodPhase},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use troupe::plugin::Plugins;

/// A PaddleJob in parameter-server mode, all of its pods running.
pub(crate) fn snapshot(plugins: &Plugins, pods: u32) -> Snapshot {
    let (framework, digest) =
        plugins.frameworks().into_iter().find(|(framework, _)| framework.name == "paddle").expect("it is built in");
    let servers = pods / 5;
    let roles = [("ps", servers), ("worker", pods - servers)];
    let now = "2026-01-01T00:00:00Z".parse().expect("a timestamp");
    let pod = |role: &str, index: u32| {
        Arc::new(Pod {
            name: format!("wide-and-deep-{role}-{index}"),
            uid: format!("5f2c8f1e-0000-4000-8000-{index:012}"),
            resource_version: "100200".into(),
            owner_uid: "9d0a3c3e-1111-4111-8111-000000000001".into(),
            created: now,
            terminating: false,
            phase: PodPhase::Running,
            reason: String::new(),
            message: String::new(),
            ready: true,
            ips: vec![format!("10.244.{}.{}", index / 250, index % 250)],
            node: "node-1".into(),
            containers: vec![ContainerStatus {
                name: "paddle".into(),
                init: false,
                ready: true,
                restarts: 0,
                state: ContainerState::Running { since: now },
            }],
        })
    };
    Snapshot {
        set_aside: None,
        now,
        kind: Arc::new(framework.kinds[0].clone()),
        job: Arc::new(Job {
            namespace: "default".into(),
            name: "wide-and-deep".into(),
            uid: "9d0a3c3e-1111-4111-8111-000000000001".into(),
            resource_version: "100100".into(),
            generation: 1,
            created: jiff::Timestamp::UNIX_EPOCH,
            deleting: false,
            finalizers: vec![],
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            spec: json!({ "intranet": "PodIP", "ps": role(servers), "worker": role(pods - servers) }),
            status: json!({ "phase": "Starting", "troupe": { "uid": "9d0a3c3e-1111-4111-8111-000000000001" } }),
        }),
        ledger: Ledger::default(),
        pods: roles.iter().flat_map(|(role, replicas)| (0..*replicas).map(move |index| pod(role, index))).collect(),
        children: vec![],
        taken: BTreeSet::new(),
        digest,
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
