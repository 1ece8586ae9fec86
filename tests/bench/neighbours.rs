//! What a plugin's calls cost while another plugin misbehaves: the 99th percentile beside a neighbour that loops, traps or
//! takes all the memory it can, as a multiple of that beside a quiet one.
//!
//! `cargo bench -p tests --bench neighbours`. The goal is a ratio below 1.2, on a machine with a core to spare.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says so by its panic")]

#[path = "../it/hostile/handmade.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod handmade;
mod job;

use decide::{Outlook, Snapshot, plan::Answer};
use handmade::Handmade;
use mimalloc::MiMalloc;
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;
use troupe::plugin::{Plugins, Seam};

/// As in the host.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const CALLS: usize = 4000;
const ROUNDS: usize = 5;

fn main() {
    let quiet = percentiles(None);
    println!("{:<22}{:>12}{:>12}{:>10}{:>18}", "neighbour", "median us", "p99 us", "ratio", "its calls/s");
    println!("{:<22}{:>12}{:>12}", "none", quiet.median.as_micros(), quiet.p99.as_micros());
    let spin = "(loop (br 0)) unreachable";
    let grow =
        "(loop (drop (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 65536))) (br 0)) unreachable";
    for (misdeed, plan) in [("loops", spin), ("traps", "unreachable"), ("takes all its memory", grow)] {
        let beside = percentiles(Some(plan));
        let ratio = beside.p99.as_secs_f64() / quiet.p99.as_secs_f64();
        let (median, p99) = (beside.median.as_micros(), beside.p99.as_micros());
        println!("{misdeed:<22}{median:>12}{p99:>12}{ratio:>10.2}{:>18.0}", beside.neighbours);
    }
}

struct Percentiles {
    median: Duration,
    p99: Duration,
    /// Calls of the neighbour in a second.
    neighbours: f64,
}

/// Of the best of some rounds, since other programs of the machine are none of our neighbours.
fn percentiles(misdeed: Option<&str>) -> Percentiles {
    let plugins = Plugins::builtin(Seam::blocking()).unwrap();
    if let Some(plan) = misdeed {
        let neighbour = Handmade { plan: plan.to_owned(), pages: 1, ..Handmade::default() };
        plugins.load("neighbour", &neighbour.component()).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    if misdeed.is_some() {
        for _ in 0..4 {
            // Its breaker would stop it: each call is of plugins that have not failed yet, on the same seats.
            let (plugins, over, asked) = (plugins.fork(), Arc::clone(&over), Arc::clone(&asked));
            runtime.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    drop(plugins.fork().plan(&neighbours_job(&plugins)).await);
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    }
    let snapshot = job::snapshot(&plugins, 10);
    let rounds = (0..ROUNDS).map(|_| round(&runtime, &plugins, &snapshot));
    let (median, p99) = rounds.min_by_key(|(_, p99)| *p99).unwrap();
    let neighbours = asked.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    over.store(true, Ordering::Relaxed);
    Percentiles { median, p99, neighbours }
}

fn round(runtime: &Runtime, plugins: &Plugins, snapshot: &Snapshot) -> (Duration, Duration) {
    let mut took: Vec<Duration> = (0..CALLS)
        .map(|_| {
            let began = Instant::now();
            let answer = runtime.block_on(async {
                let plan = plugins.plan(snapshot).await.unwrap();
                plugins.judge(snapshot, &plan, &[], Outlook { suspended: false, waiting: None }).await
            });
            assert!(matches!(answer, Answer::Judged { .. }), "{answer:?}");
            began.elapsed()
        })
        .collect();
    took.sort_unstable();
    (took[CALLS / 2], took[CALLS * 99 / 100])
}

fn neighbours_job(plugins: &Plugins) -> Snapshot {
    let mut snapshot = job::snapshot(plugins, 0);
    let (framework, digest) =
        plugins.frameworks().into_iter().find(|(framework, _)| framework.name == "handmade").unwrap();
    snapshot.kind = Arc::new(framework.kinds[0].clone());
    snapshot.digest = digest;
    Arc::make_mut(&mut snapshot.job).spec = json!({});
    snapshot
}
