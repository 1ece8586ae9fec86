//! What a plugin's calls cost while another plugin misbehaves: the 99th percentile beside a neighbour that loops, traps or
//! takes all the memory it can, as a multiple of that beside none.
//!
//! `cargo bench --workspace --bench neighbours`. The goal is a ratio below 1.2 as a host asks: a pass over one of the
//! neighbour's two hundred jobs every few milliseconds, with its breaker. Without any breaker, and asked as fast as it can
//! be, the neighbour shows what permits and fresh instances alone keep away.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says so by its panic")]

#[path = "../it/hostile/handmade.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod handmade;
mod job;

use decide::{Outlook, Snapshot, plan::Answer};
use handmade::Handmade;
use jiff::SignedDuration;
use mimalloc::MiMalloc;
use sandbox::{Executor, Plugins};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

/// As in the host.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const CALLS: usize = 4000;
const ROUNDS: usize = 9;

/// Those that ask the neighbour, and the jobs of each.
const TASKS: usize = 4;
const JOBS: usize = 50;

/// Longer than any call of the neighbour.
const REST: Duration = Duration::from_secs(1);

/// Between two passes that one of them makes.
const PAUSE: Duration = Duration::from_millis(20);

fn main() {
    println!(
        "{:<10}{:<22}{:>12}{:>12}{:>12}{:>10}{:>16}",
        "asked", "neighbour", "median us", "p99 us", "p99 alone", "ratio", "times a second"
    );
    let spin = "(loop (br 0)) unreachable";
    let grow =
        "(loop (drop (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 65536))) (br 0)) unreachable";
    for (asked, pace) in [("by a host", Pace::Host), ("at once", Pace::Flood)] {
        for (misdeed, plan) in [("loops", spin), ("traps", "unreachable"), ("takes all its memory", grow)] {
            let seen = beside(plan, pace);
            let [median, p99, alone] = [seen.median, seen.p99, seen.alone].map(|took| took.as_micros());
            let (ratio, times) = (seen.ratio, seen.neighbours);
            println!("{asked:<10}{misdeed:<22}{median:>12}{p99:>12}{alone:>12}{ratio:>10.2}{times:>16.0}");
        }
    }
}

/// How a neighbour is asked.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// About its jobs in turn, in the host's way.
    Host,
    /// Again and again, as if it had not failed yet.
    Flood,
}

/// Of the round whose ratio is the median.
struct Seen {
    median: Duration,
    p99: Duration,
    /// The same while the neighbour rests.
    alone: Duration,
    ratio: f64,
    /// Calls of the neighbour in a second.
    neighbours: f64,
}

/// What a neighbour costs. It rests for every other round, since the machine is not as fast at one time as at another.
fn beside(plan: &str, pace: Pace) -> Seen {
    let plugins = Arc::new(Plugins::builtin(Executor::blocking()).unwrap());
    let neighbour = Handmade { plan: plan.to_owned(), pages: 1, ..Handmade::default() };
    plugins.load("neighbour", &neighbour.component()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (over, rests) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
    let asked = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    for task in 0..TASKS {
        let (plugins, over, rests) = (Arc::clone(&plugins), Arc::clone(&over), Arc::clone(&rests));
        let asked = Arc::clone(&asked);
        runtime.spawn(async move {
            let mut jobs: Vec<_> = (0..JOBS).map(|job| neighbours_job(&plugins, TASKS * job + task)).collect();
            let first = jobs[0].now;
            for turn in (0..JOBS).cycle() {
                while rests.load(Ordering::Relaxed) && !over.load(Ordering::Relaxed) {
                    tokio::time::sleep(PAUSE).await;
                }
                if over.load(Ordering::Relaxed) {
                    return;
                }
                jobs[turn].now =
                    first + SignedDuration::from_millis(i64::try_from(began.elapsed().as_millis()).unwrap());
                match pace {
                    Pace::Flood => drop(plugins.fork().plan(&jobs[turn]).await),
                    Pace::Host => {
                        drop(plugins.plan(&jobs[turn]).await);
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                asked.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let snapshot = job::snapshot(&plugins, 10);
    let mut rounds: Vec<_> = (0..ROUNDS)
        .map(|_| {
            rests.store(true, Ordering::Relaxed);
            // What was under way ends.
            std::thread::sleep(REST);
            let (_, alone) = round(&runtime, &plugins, &snapshot);
            rests.store(false, Ordering::Relaxed);
            let (before, start) = (asked.load(Ordering::Relaxed), Instant::now());
            let (median, p99) = round(&runtime, &plugins, &snapshot);
            let neighbours = (asked.load(Ordering::Relaxed) - before) as f64 / start.elapsed().as_secs_f64();
            Seen { median, p99, alone, ratio: p99.as_secs_f64() / alone.as_secs_f64(), neighbours }
        })
        .collect();
    over.store(true, Ordering::Relaxed);
    rounds.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    rounds.swap_remove(ROUNDS / 2)
}

fn round(runtime: &Runtime, plugins: &Plugins, snapshot: &Snapshot) -> (Duration, Duration) {
    let mut took: Vec<Duration> = (0..CALLS)
        .map(|_| {
            let began = Instant::now();
            let answer = runtime.block_on(async {
                let plan = plugins.plan(snapshot).await.unwrap();
                plugins
                    .judge(snapshot, &plan, &[], Outlook { suspended: false, waiting: None, criteria_met: None })
                    .await
            });
            assert!(matches!(answer, Answer::Judged { .. }), "{answer:?}");
            began.elapsed()
        })
        .collect();
    took.sort_unstable();
    (took[CALLS / 2], took[CALLS * 99 / 100])
}

fn neighbours_job(plugins: &Plugins, number: usize) -> Snapshot {
    let mut snapshot = job::snapshot(plugins, 0);
    let (framework, digest) =
        plugins.frameworks().into_iter().find(|(framework, _)| framework.name == "handmade").unwrap();
    snapshot.kind = Arc::new(framework.kinds[0].clone());
    snapshot.digest = Some(digest);
    let job = Arc::make_mut(&mut snapshot.job);
    (job.spec, job.uid) = (json!({}), format!("uid-{number}"));
    snapshot
}
