//! What a host takes that watches many running PaddleJobs of which nothing happens: memory, processor time, and how long
//! it is until it is ready and has looked at each job.
//!
//! `cargo bench --workspace --bench scale`. Each row is a process of its own, with the image's environment and the
//! plugins' compiled code. Its API server
//! is in the process and makes its pages while they are asked for, so their processor time is in the figures, and TLS and
//! HTTP are not.
//!
//! The goals, in whole MB as they are printed: at rest at most 100 MB at 10,000 pods and 35 MB without any; ready within 2 s;
//! at most 2.3 s of processor time, half of what the host once took at 10,000 pods. A row that misses one fails, and the
//! benchmark with it, once all rows are printed.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says so by its panic")]

mod fleet;

use clap::Parser;
use fleet::{Fleet, PODS, RunningJob, judged};
use image::troupe::{ENV, PRECOMPILED};
use mimalloc::MiMalloc;
use sandbox::{Compiler, Executor, Plugins};
use std::{
    env, fs,
    process::{Command, ExitCode},
    sync::Arc,
    time::{Duration, Instant},
};
use troupe::{
    clock::Clock,
    control::operator::{Operator, Options},
};
use troupe_cli::args::Args;

/// As in the host.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const SIZES: [usize; 5] = [0, 1_000, 10_000, 20_000, 50_000];

/// The most that the row of so many pods takes, as it is printed.
struct Goal {
    pods: usize,
    ready_ms: u128,
    cpu_ms: u128,
    rest_mb: u128,
}

const GOALS: [Goal; 2] = [
    Goal { pods: 0, ready_ms: 2_000, cpu_ms: 2_300, rest_mb: 35 },
    Goal { pods: 10_000, ready_ms: 2_000, cpu_ms: 2_300, rest_mb: 100 },
];

/// Says to the process of a row how many pods there are.
const OF_PODS: &str = "TROUPE_BENCH_PODS";

/// Says to the process of a row in which file the job is that all others are like.
const LIKE: &str = "TROUPE_BENCH_JOB";

/// Between the last pass and the look at the memory.
const REST: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some("compile") {
        // As the host compiles its plugins.
        return troupe_cli::run(Args::parse()).unwrap();
    }
    if let Ok(pods) = env::var(OF_PODS) {
        let like = fs::read(env::var_os(LIKE).unwrap()).unwrap();
        row(pods.parse().unwrap(), &serde_json::from_slice(&like).unwrap());
        return ExitCode::SUCCESS;
    }
    let folder = env::temp_dir().join(format!("troupe-scale-{}", std::process::id()));
    // As in the image, whose hosts compile nothing when they start.
    sandbox::precompile(&folder).unwrap();
    let like = folder.join("job.json");
    fs::write(&like, serde_json::to_vec(&fleet::running_job()).unwrap()).unwrap();
    println!("{:>8}{:>10}{:>12}{:>12}{:>10}{:>10}", "pods", "ready ms", "looked ms", "cpu ms", "rest MB", "peak MB");
    let failed = SIZES.into_iter().filter(|pods| {
        let mut row = Command::new(env::current_exe().unwrap());
        let row = row.env(OF_PODS, pods.to_string()).env(LIKE, &like);
        !row.envs(ENV.iter().copied()).env(PRECOMPILED.0, &folder).status().unwrap().success()
    });
    let failed: Vec<_> = failed.collect();
    fs::remove_dir_all(folder).unwrap();
    assert!(failed.is_empty(), "the rows of {failed:?} pods failed");
    ExitCode::SUCCESS
}

fn row(pods: usize, like: &RunningJob) {
    let jobs = pods / PODS;
    let fleet = Fleet::new(jobs, like);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (began, spent) = (Instant::now(), processor_time());
    let (ready, looked) = runtime.block_on(async {
        let compiler = Compiler::of_this_program();
        let precompiled = env::var_os(PRECOMPILED.0).map(Into::into);
        let options = sandbox::Options { compiler, precompiled, ..sandbox::Options::new(Executor::blocking()) };
        let plugins = Arc::new(Plugins::builtin_with(options).await.unwrap());
        let options = Options::alone(Clock::system(), [1; 32]);
        let mut operator = Operator::new(fleet.client(), Arc::clone(&plugins), options);
        let host = operator.context();
        let before = judged(&plugins);
        tokio::spawn(async move { operator.run(std::future::pending()).await });
        until(|| host.is_ready()).await;
        let ready = began.elapsed();
        until(|| judged(&plugins) - before >= jobs as u64).await;
        (ready, began.elapsed())
    });
    let spent = processor_time() - spent;
    std::thread::sleep(REST);
    let [rest, peak] = ["VmRSS:", "VmHWM:"].map(|field| u128::from(memory(field) / 1024));
    let [ready, looked, spent] = [ready, looked, spent].map(|time| time.as_millis());
    println!("{pods:>8}{ready:>10}{looked:>12}{spent:>12}{rest:>10}{peak:>10}");
    assert_eq!(fleet.writes(), 0, "there was nothing to write");
    if let Some(goal) = GOALS.iter().find(|goal| goal.pods == pods) {
        let figures =
            [("ready ms", ready, goal.ready_ms), ("cpu ms", spent, goal.cpu_ms), ("rest MB", rest, goal.rest_mb)];
        let missed: Vec<_> = figures.iter().filter(|(_, took, most)| took > most).collect();
        assert!(missed.is_empty(), "at {pods} pods (what, taken, goal): {missed:?}");
    }
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A field of this process's status, in KB.
fn memory(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What all threads of this process and the children that compiled its plugins have used up.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = [11, 12, 13, 14].iter().map(|at| fields[*at].parse::<u64>().unwrap()).sum();
    // A tick is a hundredth of a second on every Linux that Rust runs on.
    Duration::from_millis(ticks * 10)
}
