//! What a hundred jobs at once of each kind of training-operator cost the API server: with training-operator as it is installed, with
//! training-operator without its limit of requests, and with the host, each on a real control plane of its own with fake nodes.
//!
//! `cargo bench --workspace --bench training_operator` needs Go and openssl and takes ten minutes. It prints requests for each job
//! as the audit log has them, without watches, the time until all jobs have succeeded, and the statuses that are left in the
//! end. `TROUPE_BINARY` names a release build of the host. The goal: in no kind more requests for a job than the original.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says so by its panic")]

#[path = "../it/cluster/objects.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod objects;
#[path = "../it/operator.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod operator;

use futures::future::join_all;
use harness::{ControlPlane, Options, RUN_FOR, TrainingOperator, audit::Record, until};
use objects::{Kind, Namespace, PODS, condition_of, text};
use operator::Operator;
use serde_json::{Value, json};
use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

const JOBS: usize = 100;
const FAKE_NODES: usize = 4;
const PATIENCE: Duration = Duration::from_secs(600);

/// Without a request for this long, an operator has done all that it does for its jobs.
const QUIET: Duration = Duration::from_secs(4);

/// Who runs the jobs.
#[derive(Debug, Clone, Copy)]
enum Who {
    AsInstalled,
    Unlimited,
    Host,
}

impl Who {
    const ALL: [Self; 3] = [Self::AsInstalled, Self::Unlimited, Self::Host];

    fn name(self) -> String {
        let version = TrainingOperator::VERSION;
        match self {
            Self::AsInstalled => format!("training-operator {version}"),
            Self::Unlimited => format!("training-operator {version}, unlimited"),
            Self::Host => "Troupe".to_owned(),
        }
    }

    /// A control plane with its definitions, where it is the user `troupe`.
    async fn plane(self) -> ControlPlane {
        let crds = match self {
            Self::Host => install::crds::all(),
            Self::AsInstalled | Self::Unlimited => {
                tokio::task::spawn_blocking(TrainingOperator::crds).await.unwrap().unwrap()
            }
        };
        ControlPlane::start(Options::default().fake_nodes(FAKE_NODES).crds(crds)).await.unwrap()
    }

    /// Starts it; it ends with the value.
    async fn start(self, plane: &ControlPlane) -> Box<dyn Any> {
        let original = |arguments| TrainingOperator::start(plane, "troupe", arguments);
        match self {
            Self::AsInstalled => Box::new(original(&[]).await.unwrap()),
            Self::Unlimited => {
                let unlimited = ["--kube-api-qps=1000", "--kube-api-burst=1000", "--controller-threads=10"];
                Box::new(original(&unlimited).await.unwrap())
            }
            Self::Host => Box::new(Operator::start(plane, &[]).await),
        }
    }
}

/// A kind of job, as a job of four pods.
struct Job {
    kind: &'static str,
    objects: Kind,
    replicas: &'static str,
    container: &'static str,
    types: &'static [(&'static str, u32)],
}

const MASTER_AND_WORKERS: &[(&str, u32)] = &[("Master", 1), ("Worker", 3)];

const JOBS_OF_FOUR: [Job; 5] = [
    job("TFJob", "tfjobs", "tfReplicaSpecs", "tensorflow", &[("Chief", 1), ("Worker", 3)]),
    job("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs", "pytorch", MASTER_AND_WORKERS),
    job("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs", "xgboost", MASTER_AND_WORKERS),
    job("JAXJob", "jaxjobs", "jaxReplicaSpecs", "jax", &[("Worker", 4)]),
    job("PaddleJob", "paddlejobs", "paddleReplicaSpecs", "paddle", MASTER_AND_WORKERS),
];

const fn job(
    kind: &'static str,
    plural: &'static str,
    replicas: &'static str,
    container: &'static str,
    types: &'static [(&'static str, u32)],
) -> Job {
    Job { kind, objects: Kind::new("apis/kubeflow.org/v1", plural), replicas, container, types }
}

impl Job {
    fn manifest(&self, name: &str) -> Value {
        let container =
            json!({ "name": self.container, "image": "docker.io/local/train:1", "command": ["python", "train.py"] });
        let template =
            json!({ "metadata": { "annotations": { RUN_FOR: "1s" } }, "spec": { "containers": [container] } });
        let of = |replicas: u32| json!({ "replicas": replicas, "restartPolicy": "Never", "template": template });
        let types: serde_json::Map<_, _> =
            self.types.iter().map(|(name, count)| ((*name).into(), of(*count))).collect();
        json!({ "apiVersion": "kubeflow.org/v1", "kind": self.kind, "metadata": { "name": name },
            "spec": { self.replicas: types } })
    }
}

/// What the jobs of a kind cost, and what they left.
struct Seen {
    requests: BTreeMap<(String, String), usize>,
    /// From the first create to the last success.
    took: Duration,
    /// The statuses that were left, in words, with how many jobs have each.
    left: BTreeMap<String, usize>,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let seen: Vec<_> = Who::ALL.map(|who| (who.name(), runtime.block_on(measured(who)))).into();
    println!("\n| kind | operator | pods, Services | events | status | others | all | until all succeeded |");
    println!("|---|---|---|---|---|---|---|---|");
    for (number, job) in JOBS_OF_FOUR.iter().enumerate() {
        for (who, kinds) in &seen {
            println!("{}", row(job.kind, who, &kinds[number]));
        }
    }
    for (number, job) in JOBS_OF_FOUR.iter().enumerate() {
        for (who, kinds) in &seen {
            println!("\n{}, {who}:", job.kind);
            for ((verb, target), count) in &kinds[number].requests {
                println!("{:>8.2}  {verb} {target}", each(*count));
            }
            for (status, count) in &kinds[number].left {
                println!("  {count} jobs: {status}");
            }
        }
    }
}

async fn measured(who: Who) -> Vec<Seen> {
    let plane = who.plane().await;
    let _running = who.start(&plane).await;
    let mut all = vec![];
    for job in &JOBS_OF_FOUR {
        eprintln!("{} of {}", job.kind, who.name());
        all.push(burst(&plane, job).await);
    }
    all
}

/// Runs one job of a kind, so that whoever runs them is known to be there, then all at once.
async fn burst(plane: &ControlPlane, job: &Job) -> Seen {
    let namespace = Namespace::create_in(plane.client("user").await.unwrap(), job.objects.plural()).await;
    namespace.create(&job.objects, &job.manifest("first")).await;
    succeed(&namespace, job, 1).await;
    let (before, begun) = (rest(plane).await.len(), Instant::now());
    let manifests: Vec<_> = (0..JOBS).map(|number| job.manifest(&format!("job-{number:02}"))).collect();
    join_all(manifests.iter().map(|manifest| namespace.create(&job.objects, manifest))).await;
    succeed(&namespace, job, JOBS + 1).await;
    let took = begun.elapsed();
    let ended = |pod: &Value| matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    let pods = || async { Ok(namespace.list(&PODS).await?.iter().all(ended).then_some(())) };
    until(PATIENCE, "all pods to end", pods).await.unwrap();
    let mut requests = BTreeMap::new();
    for record in &rest(plane).await[before..] {
        *requests.entry((record.verb.clone(), record.target())).or_default() += 1;
    }
    let mut left = BTreeMap::new();
    for one in namespace.list(&job.objects).await.unwrap() {
        *left.entry(status(&one)).or_default() += 1;
    }
    Seen { requests, took, left }
}

async fn succeed(namespace: &Namespace, job: &Job, count: usize) {
    let has = |job: &&Value| condition_of(job, "Succeeded").is_some_and(|succeeded| succeeded["status"] == "True");
    let all = || async {
        let succeeded = namespace.list(&job.objects).await?.iter().filter(has).count();
        anyhow::ensure!(succeeded == count, "{succeeded} have");
        Ok(Some(()))
    };
    until(PATIENCE, format!("{count} {} to succeed", job.objects.plural()), all).await.unwrap();
}

/// What the operator has asked for so far, once it has asked for nothing for [`QUIET`].
async fn rest(plane: &ControlPlane) -> Vec<Record> {
    let asked = || {
        let mut records = plane.audit().unwrap();
        records.retain(|record| record.user == "troupe" && record.verb != "watch");
        records
    };
    let mut before = asked();
    loop {
        tokio::time::sleep(QUIET).await;
        let now = asked();
        if now.len() == before.len() {
            return now;
        }
        before = now;
    }
}

/// Conditions, counts and times, without what differs from job to job.
fn status(job: &Value) -> String {
    let status = &job["status"];
    let neutral = |text: &str| text.replace(job["metadata"]["name"].as_str().unwrap(), "<job>");
    let conditions = status["conditions"].as_array().into_iter().flatten().map(|one| {
        let [kind, value, reason, message] =
            ["type", "status", "reason", "message"].map(|field| one[field].as_str().unwrap_or_default());
        format!("{kind}={value} {reason} {:?}", neutral(message))
    });
    let conditions = conditions.collect::<Vec<_>>().join("; ");
    let times: BTreeSet<_> = status.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
    format!("{conditions}; {}; fields {times:?}", neutral(&status["replicaStatuses"].to_string()))
}

fn each(count: usize) -> f64 {
    count as f64 / JOBS as f64
}

fn row(kind: &str, who: &str, seen: &Seen) -> String {
    let [mut children, mut events, mut statuses, mut others] = [0; 4];
    for ((_, target), count) in &seen.requests {
        let place = match target.as_str() {
            "pods" | "services" => &mut children,
            "events" => &mut events,
            target if target.ends_with("/status") => &mut statuses,
            _ => &mut others,
        };
        *place += count;
    }
    let all = each(children + events + statuses + others);
    let [children, events, statuses, others] = [children, events, statuses, others].map(each);
    let took = seen.took.as_secs_f64();
    format!("| {kind} | {who} | {children:.2} | {events:.2} | {statuses:.2} | {others:.2} | {all:.2} | {took:.1} s |")
}
