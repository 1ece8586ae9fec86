//! What one pass of a job costs in its plugin: fresh instances, fuel and epoch on, the real component of PaddleJob.
//!
//! `cargo bench -p tests --bench plugin`. The goal for 10 pods is a median of 60 us for bind and judge, 90 us for all
//! three.

use decide::{
    Outlook, Snapshot,
    ledger::Ledger,
    plan::{Answer, Body, Plan},
    snapshot::{ContainerState, ContainerStatus, Job, Pod, PodPhase},
};
use divan::Bencher;
use futures::executor::block_on;
use mimalloc::MiMalloc;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};
use troupe::plugin::{Plugins, Seam};

/// As in the host.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

static PLUGINS: LazyLock<Plugins> =
    LazyLock::new(|| Plugins::builtin(Seam::Inline).expect("the built-in plugins load"));

fn main() {
    divan::main();
    println!("{:<12}{:<14}{:>9}{:>12}{:>14}", "plugin", "function", "calls", "median us", "fuel a call");
    for (plugin, function, stats) in PLUGINS.calls() {
        let median = stats.median().as_nanos() / 1000;
        println!("{plugin:<12}{function:<14}{:>9}{median:>12}{:>14}", stats.count, stats.fuel / stats.count.max(1));
    }
}

/// The plan is remembered from the pass before; bodies are wanted.
#[divan::bench(args = [10, 100])]
fn bind_and_judge(bencher: Bencher<'_, '_>, pods: u32) {
    let snapshot = snapshot(pods);
    let plan = planned(&PLUGINS, &snapshot);
    bencher.bench(|| judged(&PLUGINS, &snapshot, &plan));
}

/// The same with the look-up of the remembered plan.
#[divan::bench(args = [10, 100])]
fn remembered_plan_bind_and_judge(bencher: Bencher<'_, '_>, pods: u32) {
    let snapshot = snapshot(pods);
    bencher.bench(|| judged(&PLUGINS, &snapshot, &planned(&PLUGINS, &snapshot)));
}

/// Nothing is remembered.
#[divan::bench(args = [10, 100])]
fn plan_bind_and_judge(bencher: Bencher<'_, '_>, pods: u32) {
    let snapshot = snapshot(pods);
    let fresh = bencher.with_inputs(|| PLUGINS.fork());
    fresh.bench_refs(|plugins| judged(plugins, &snapshot, &planned(plugins, &snapshot)));
}

fn planned(plugins: &Plugins, snapshot: &Snapshot) -> Arc<Plan> {
    block_on(plugins.plan(snapshot)).expect("the job is right")
}

fn judged(plugins: &Plugins, snapshot: &Snapshot, plan: &Arc<Plan>) -> Answer {
    let bound = plan.objects.iter().filter(|object| object.body == Body::Bound);
    let wanted: Vec<String> = bound.map(|object| object.key.clone()).collect();
    assert!(!wanted.is_empty());
    let answer = block_on(plugins.judge(snapshot, plan, &wanted, Outlook { suspended: false, waiting: None }));
    assert!(matches!(&answer, Answer::Judged { bodies, .. } if bodies.len() == wanted.len()));
    answer
}

/// A PaddleJob in parameter-server mode, all of its pods running.
fn snapshot(pods: u32) -> Snapshot {
    let (framework, digest) =
        PLUGINS.frameworks().into_iter().find(|(framework, _)| framework.name == "paddle").expect("it is built in");
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
