//! What one pass of a job costs in its plugin: fresh instances, fuel and epoch on, the real component of PaddleJob.
//!
//! `cargo bench -p tests --bench plugin`. The goal for 10 pods is a median of 50 us for bind and judge, 180 us for all
//! three.

mod calls;
mod job;

use calls::judged;
use decide::{
    Snapshot,
    plan::{Body, Plan},
};
use divan::Bencher;
use futures::executor::block_on;
use mimalloc::MiMalloc;
use sandbox::{Executor, Plugins};
use std::sync::{Arc, LazyLock};

/// As in the host.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

static PLUGINS: LazyLock<Plugins> =
    LazyLock::new(|| Plugins::builtin(Executor::Inline).expect("the built-in plugins load"));

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
    let snapshot = job::snapshot(&PLUGINS, pods);
    let plan = planned(&PLUGINS, &snapshot);
    bencher.bench(|| judged(&PLUGINS, &snapshot, &plan));
}

/// The same with the look-up of the remembered plan.
#[divan::bench(args = [10, 100])]
fn remembered_plan_bind_and_judge(bencher: Bencher<'_, '_>, pods: u32) {
    let snapshot = job::snapshot(&PLUGINS, pods);
    bencher.bench(|| judged(&PLUGINS, &snapshot, &planned(&PLUGINS, &snapshot)));
}

/// Nothing is remembered.
#[divan::bench(args = [10, 100])]
fn plan_bind_and_judge(bencher: Bencher<'_, '_>, pods: u32) {
    let snapshot = job::snapshot(&PLUGINS, pods);
    let fresh = bencher.with_inputs(|| PLUGINS.fork());
    fresh.bench_refs(|plugins| judged(plugins, &snapshot, &planned(plugins, &snapshot)));
}

fn planned(plugins: &Plugins, snapshot: &Snapshot) -> Arc<Plan> {
    let plan = block_on(plugins.plan(snapshot)).expect("the job is right");
    assert!(plan.objects.iter().any(|object| object.body == Body::Bound), "there is something to bind");
    plan
}
