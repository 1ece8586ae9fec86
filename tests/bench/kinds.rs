//! What one pass costs in the plugin of each kind of job, for 10 pods that run: `cargo bench -p tests --bench kinds` prints a
//! row for each kind, with medians of fresh instances, and the instructions (fuel), which are the same on every machine.

mod calls;

use calls::judged;
use decide::{
    Snapshot, names,
    plan::{Backing, Plan},
    snapshot::{ContainerState, ContainerStatus, Job, Pod, PodPhase},
    testkit,
};
use futures::executor::block_on;
use mimalloc::MiMalloc;
use sandbox::{Executor, Plugins};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// As in the host.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const ROUNDS: usize = 2_000;

const UID: &str = "9d0a3c3e-1111-4111-8111-000000000001";

fn main() {
    let plugins = Plugins::builtin(Executor::Inline).expect("the built-in plugins load");
    println!("| kind | component, bytes | `plan` | `bind` and `judge` | all three |");
    println!("|---|---|---|---|---|");
    for (group, kind, spec) in kinds() {
        let (snapshot, bytes) = snapshot(&plugins, group, kind, spec);
        let plan = planned(&plugins, &snapshot);
        let snapshot = running(snapshot, &plan);
        let before = fuel(&plugins);
        let (mut plans, mut passes) = (vec![], vec![]);
        for _ in 0..ROUNDS {
            let fresh = plugins.fork();
            let began = Instant::now();
            let plan = planned(&fresh, &snapshot);
            let planned = Instant::now();
            judged(&fresh, &snapshot, &plan);
            plans.push(planned - began);
            passes.push(planned.elapsed());
        }
        let of = |function: &str| {
            let spent = |all: &[(String, u64)]| {
                all.iter().filter(|(name, _)| name.as_str() == function).map(|(_, fuel)| fuel).sum::<u64>()
            };
            (spent(&fuel(&plugins)) - spent(&before)) / ROUNDS as u64
        };
        let (plan, pass) = (median(plans), median(passes));
        let (planning, passing) = (of("plan"), of("bind") + of("judge"));
        println!(
            "| {kind} of `{group}` | {bytes} | {} us, {planning} | {} us, {passing} | {} us, {} |",
            plan.as_micros(),
            pass.as_micros(),
            (plan + pass).as_micros(),
            planning + passing
        );
    }
}

/// The kinds that come with the host, each with a job of 10 pods.
fn kinds() -> Vec<(&'static str, &'static str, Value)> {
    let of =
        |container: &str, first: &str, second: &str| json!({ first: role(container, 1), second: role(container, 9) });
    vec![
        ("batch.paddlepaddle.org", "PaddleJob", json!({ "ps": role("paddle", 2), "worker": role("paddle", 8) })),
        ("kubeflow.org", "MPIJob", json!({ "mpiReplicaSpecs": of("main", "Launcher", "Worker") })),
        ("openrhino.org", "RhinoJob", json!({ "image": "rhino:1", "appExec": "./app", "parallelism": 9, "ttl": 60 })),
        ("kubeflow.org", "TFJob", json!({ "tfReplicaSpecs": of("tensorflow", "Chief", "Worker") })),
        ("kubeflow.org", "PyTorchJob", json!({ "pytorchReplicaSpecs": of("pytorch", "Master", "Worker") })),
        ("kubeflow.org", "XGBoostJob", json!({ "xgbReplicaSpecs": of("xgboost", "Master", "Worker") })),
        ("kubeflow.org", "JAXJob", json!({ "jaxReplicaSpecs": { "Worker": role("jax", 10) } })),
        ("kubeflow.org", "PaddleJob", json!({ "paddleReplicaSpecs": { "Worker": role("paddle", 10) } })),
        (
            "batch.troupe.dev",
            "IndexedJob",
            json!({ "completions": 10, "parallelism": 10, "completionMode": "Indexed",
                "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "x" }] } } }),
        ),
        (
            "batch.tutorial.kubebuilder.io",
            "CronJob",
            json!({ "schedule": "0 * * * *", "jobTemplate": { "spec": { "template": { "spec": {
                "restartPolicy": "Never", "containers": [{ "name": "main", "image": "x" }] } } } } }),
        ),
    ]
}

fn role(container: &str, replicas: u32) -> Value {
    let container = json!({ "name": container, "image": "registry.example.com/train:1", "command": ["python", "train.py"],
        "resources": { "requests": { "cpu": "4", "memory": "8Gi" } } });
    json!({ "replicas": replicas, "template": { "spec": { "containers": [container] } } })
}

/// A new job of a kind, and the size of the component that serves it.
fn snapshot(plugins: &Plugins, group: &str, kind: &str, spec: Value) -> (Snapshot, usize) {
    for (framework, digest) in plugins.frameworks() {
        if let Some(served) = framework.kinds.iter().find(|served| served.group == group && served.kind == kind) {
            let job = Job { namespace: "default".into(), spec, ..testkit::job("train", UID) };
            let bytes = Plugins::built_in(&framework.name).map_or(0, <[u8]>::len);
            let kind = Arc::new(served.clone());
            return (Snapshot { kind, digest: Some(digest), ..testkit::snapshot(job) }, bytes);
        }
    }
    panic!("no built-in plugin serves {kind} of {group}")
}

/// The job with every pod that the host makes itself, all running.
fn running(snapshot: Snapshot, plan: &Plan) -> Snapshot {
    let pods = plan.roles.iter().filter(|role| role.backing == Backing::Pods).flat_map(|role| {
        (0..role.replicas).map(|index| pod(&names::of_replica(role, &snapshot.job.name, index), snapshot.now))
    });
    let mut pods: Vec<_> = pods.collect();
    pods.sort_by(|one, other| one.name.cmp(&other.name));
    Snapshot { pods, ..snapshot }
}

fn pod(name: &str, now: jiff::Timestamp) -> Arc<Pod> {
    let main = ContainerStatus {
        name: "main".into(),
        init: false,
        ready: true,
        restarts: 0,
        state: ContainerState::Running { since: now },
    };
    let ips = vec!["10.244.0.7".to_owned()];
    Arc::new(Pod { ips, node: "node-1".into(), containers: vec![main], ..testkit::pod(name, UID, PodPhase::Running) })
}

fn planned(plugins: &Plugins, snapshot: &Snapshot) -> Arc<Plan> {
    block_on(plugins.plan(snapshot)).unwrap_or_else(|error| panic!("{}: {error:?}", snapshot.kind.kind))
}

/// The fuel of each function so far, over all plugins: one is asked at a time.
fn fuel(plugins: &Plugins) -> Vec<(String, u64)> {
    plugins.calls().into_iter().map(|(_, function, stats)| (function, stats.fuel)).collect()
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all[all.len() / 2]
}
