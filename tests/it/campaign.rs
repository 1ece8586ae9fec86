//! The whole host on the simulator, under seeded faults.

use std::collections::BTreeMap;
use troupe::campaign;

/// How many seeds run in every test run; `troupe sim --seeds N` runs more.
const SEEDS: u64 = 1000;

// S1, S2, S3, S4, S5, S7, S8, L1 of the list of invariants.
#[test]
fn invariants_hold_under_faults_and_crashes() {
    let plugins = campaign::plugins().unwrap();
    let (mut bad, mut crashes) = (BTreeMap::new(), 0);
    for seed in 0..SEEDS {
        let run = campaign::run(seed, &plugins).unwrap();
        crashes += run.crashes;
        if !run.violations.is_empty() {
            bad.insert(seed, run.violations);
        }
        if (seed + 1) % 200 == 0 {
            eprintln!("{} of {SEEDS} seeds, {} with violations, {crashes} crashes", seed + 1, bad.len());
        }
    }
    let first = bad.keys().next().map(|seed| format!("troupe sim --seeds 1 --first {seed} --trace"));
    assert!(bad.is_empty(), "replay with: {first:?}\n{bad:#?}");
    assert!(crashes > 100, "the fault plan is meant to crash the host, and did so {crashes} times");
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let plugins = campaign::plugins().unwrap();
    for seed in [0, 3, 7, 8, 9] {
        let (once, again) = (campaign::run(seed, &plugins).unwrap(), campaign::run(seed, &plugins).unwrap());
        assert_eq!(once.log_hash, again.log_hash, "seed {seed}");
        assert_eq!(once.trace, again.trace, "seed {seed}");
    }
    assert_ne!(campaign::run(7, &plugins).unwrap().log_hash, campaign::run(8, &plugins).unwrap().log_hash);
}

// A namespace that does nothing wrong is served as if it were alone.
#[test]
fn two_thousand_jobs_of_one_namespace_delay_the_first_pod_of_another_by_a_fifth_at_most() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let plugins = campaign::plugins().unwrap();
    let [alone, beside] = [0, 2000].map(|jobs| runtime().block_on(campaign::crowd(jobs, &plugins)));
    let ratio = beside.mean().as_secs_f64() / alone.mean().as_secs_f64();
    eprintln!(
        "alone {:?}, beside the crowd {:?}, {} of it left: {ratio:.2}",
        alone.mean(),
        beside.mean(),
        beside.crowd_left
    );
    assert!(beside.crowd_left > 0, "the crowd was still waiting");
    assert!(ratio <= 1.2, "{ratio:.2}");
}
