//! What eight readers of `/recording` cost a job of somebody else in real time: how long a pass over it takes, alone and beside
//! them. Each pass is a task of the runtime on which the readers are answered, as in the host, and begins when it is idle.
//!
//! `cargo bench --workspace --bench readers`. The goal is a ratio of at most 2; the benchmark fails above it. Rounds alone and
//! beside take turns, since the machine is not as fast at one time as at another.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says so by its panic")]

use admin::Access;
use axum::{Router, body::Body};
use futures::StreamExt;
use http::Request;
use lab::campaign::{self, HOST};
use mimalloc::MiMalloc;
use sandbox::{Executor, Plugins};
use serde_json::json;
use sim::{Life, Sim};
use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tower::ServiceExt;
use troupe::{
    clock::Clock,
    control::{
        operator::{Operator, Options},
        reconcile::{Context, Reconciled},
    },
    job_key::JobKey,
    measure::requests::Requests,
};

/// As in the host.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const READERS: usize = 8;
const ROUNDS: usize = 9;
const PASSES: usize = 100;

/// What the recording is of.
const JOBS: usize = 12;
const WORKERS: usize = 200;

/// Between two passes.
const PAUSE: Duration = Duration::from_millis(2);

/// What a round beside readers may take of one alone.
const GOAL: f64 = 2.0;

const VICTIM: &str = "victim";

/// How long passes took in a round, sorted.
struct Round(Vec<Duration>);

impl Round {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<Duration>().as_secs_f64() * 1e3 / self.0.len() as f64
    }

    fn longest(&self) -> f64 {
        self.0.last().unwrap().as_secs_f64() * 1e3
    }
}

fn main() -> ExitCode {
    let context = host();
    let key = context.stores().jobs().into_iter().find(|key| key.name == VICTIM).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (read, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let routes = admin::routes(Arc::clone(&context), Requests::default(), Arc::new(Access::Loopback));
    for _ in 0..READERS {
        runtime.spawn(reader(routes.clone(), Arc::clone(&read), Arc::clone(&sent)));
    }
    println!("{:>12}{:>12}{:>12}{:>12}{:>10}{:>12}", "alone ms", "longest", "beside ms", "longest", "ratio", "MB/s");
    let mut ratios: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let alone = round(&runtime, &context, &key);
            let (before, began) = (sent.load(Ordering::Relaxed), Instant::now());
            read.store(true, Ordering::Relaxed);
            while sent.load(Ordering::Relaxed) == before {
                std::thread::sleep(PAUSE);
            }
            let beside = round(&runtime, &context, &key);
            read.store(false, Ordering::Relaxed);
            let rate = (sent.load(Ordering::Relaxed) - before) as f64 / 1e6 / began.elapsed().as_secs_f64();
            let ratio = beside.mean() / alone.mean();
            let [a, b, c, d] = [alone.mean(), alone.longest(), beside.mean(), beside.longest()];
            println!("{a:>12.2}{b:>12.2}{c:>12.2}{d:>12.2}{ratio:>10.2}{rate:>12.1}");
            ratio
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ROUNDS / 2];
    println!("the median of {ROUNDS}: {median:.2}");
    if median <= GOAL { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns a host that has recorded passes over wide jobs, beside the one that is measured; all of them run.
fn host() -> Arc<Context> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let plugins = Plugins::empty(sandbox::Options::new(Executor::blocking())).unwrap();
        plugins.load("kubeflow", Plugins::built_in("kubeflow").unwrap()).unwrap();
        let plugins = Arc::new(plugins);
        let kinds = campaign::kinds(&plugins);
        let life = Life::default().rule("*", "run-for", "10000h");
        let sim = Sim::new(sim::Options { kinds, life, ..sim::Options::default() });
        let _running = sim.start();
        let options = Options::alone(Clock::starting_at(sim.now()), [1; 32]);
        let mut operator = Operator::new(sim.client(HOST), plugins, options);
        let context = operator.context();
        let host = tokio::spawn(async move { operator.run(std::future::pending()).await });
        let submit = |name: &str, workers: usize| {
            let env: Vec<_> = (0..20).map(|n| json!({ "name": format!("V{n}"), "value": "x".repeat(50) })).collect();
            let container = json!({ "name": "tensorflow", "image": "x", "env": env });
            let worker = json!({ "replicas": workers, "template": { "spec": { "containers": [container] } } });
            sim.create(json!({
                "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": { "name": name, "namespace": name },
                "spec": { "tfReplicaSpecs": { "Worker": worker } },
            }));
        };
        submit(VICTIM, 2);
        (0..JOBS).for_each(|number| submit(&format!("wide-{number}"), WORKERS));
        tokio::time::sleep(Duration::from_secs(120)).await;
        host.abort();
        let recorded = context.passes().latest().count();
        assert!(recorded > JOBS, "{recorded} passes were recorded");
        context
    })
}

/// Reads the recording again and again while `read` says so, and counts its bytes.
async fn reader(routes: Router, read: Arc<AtomicBool>, sent: Arc<AtomicU64>) {
    loop {
        tokio::time::sleep(PAUSE).await;
        if !read.load(Ordering::Relaxed) {
            continue;
        }
        let request = Request::get("/recording").header("host", "localhost").body(Body::empty()).unwrap();
        let response = routes.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let mut lines = response.into_body().into_data_stream();
        while let Some(line) = lines.next().await
            && read.load(Ordering::Relaxed)
        {
            sent.fetch_add(line.unwrap().len() as u64, Ordering::Relaxed);
        }
    }
}

fn round(runtime: &tokio::runtime::Runtime, context: &Arc<Context>, key: &JobKey) -> Round {
    let pass = || {
        std::thread::sleep(PAUSE);
        let (context, key) = (Arc::clone(context), key.clone());
        let began = Instant::now();
        let passed = runtime.spawn(async move {
            let passed = context.run_pass(&key).await;
            assert!(matches!(passed, Reconciled::Passed(_)));
            Instant::now()
        });
        runtime.block_on(passed).unwrap() - began
    };
    let mut took: Vec<_> = (0..PASSES).map(|_| pass()).collect();
    took.sort_unstable();
    Round(took)
}
