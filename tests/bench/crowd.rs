//! What many jobs of one namespace cost a job of another in real time: how long its first pod takes, alone and beside two
//! thousand jobs, on a simulated API server in this process that answers within 20 ms. The other namespace submits twenty
//! jobs a second.
//!
//! `cargo bench --workspace --bench crowd`. The goal is a ratio of at most 1.2; the API server's own work is in it, on the
//! same cores. The campaign asserts the same ratio in virtual time, where nothing but queues can cost anything.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on says so by its panic")]

use lab::campaign::{self, Seen};
use mimalloc::MiMalloc;
use sandbox::{Executor, Plugins};
use std::{sync::Arc, time::Duration};

/// As in the host.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const JOBS: usize = 2000;
const ROUNDS: usize = 5;

fn main() {
    println!("{:>12}{:>12}{:>12}{:>12}{:>10}{:>12}", "alone ms", "p99", "beside ms", "p99", "ratio", "crowd left");
    let mut rounds: Vec<_> = (0..ROUNDS).map(|_| (seen(0), seen(JOBS))).collect();
    rounds.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    for round in &rounds {
        let (alone, beside) = round;
        let [a, b] = [alone, beside].map(|seen| (millis(seen.mean()), millis(p99(seen))));
        let (ratio, left) = (ratio(round), beside.crowd_left);
        println!("{:>12.1}{:>12.1}{:>12.1}{:>12.1}{ratio:>10.2}{left:>12}", a.0, a.1, b.0, b.1);
    }
    println!("the median of {ROUNDS}: {:.2}", ratio(&rounds[ROUNDS / 2]));
}

fn seen(jobs: usize) -> Seen {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let plugins = Arc::new(Plugins::builtin(Executor::blocking()).unwrap());
    runtime.block_on(campaign::crowd(jobs, &plugins))
}

fn ratio((alone, beside): &(Seen, Seen)) -> f64 {
    beside.mean().as_secs_f64() / alone.mean().as_secs_f64()
}

fn p99(seen: &Seen) -> Duration {
    seen.waits[(seen.waits.len() * 99 / 100).min(seen.waits.len() - 1)]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
