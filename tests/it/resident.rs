//! What the host holds in memory of jobs that run and of which nothing happens, counted and not measured.

use crate::fleet::{Fleet, PODS, RunningJob, judged, running_job};
use allocation_counter::measure;
use sandbox::{Executor, Plugins};
use std::{sync::Arc, time::Duration};
use troupe::{
    clock::Clock,
    control::operator::{Operator, Options},
};

/// Bytes that a host holds after it has looked at so many running jobs.
fn held_with(plugins: &Plugins, jobs: usize, like: &RunningJob) -> u64 {
    let fleet = Fleet::new(jobs, like);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let plugins = Arc::new(plugins.fork());
    let (before, mut kept) = (judged(&plugins), None);
    let taken = measure(|| {
        runtime.block_on(async {
            let options = Options::alone(Clock::system(), [1; 32]);
            let mut operator = Operator::new(fleet.client(), Arc::clone(&plugins), options);
            let host = operator.context();
            let task = tokio::spawn(async move { operator.run(std::future::pending()).await });
            // The answer of an optional kind's watch wakes all jobs again; what a pass holds is not held at rest.
            let mut last = u64::MAX;
            while judged(&plugins) - before < jobs as u64 || judged(&plugins) != last {
                last = judged(&plugins);
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            eprintln!("{} passes of {jobs} jobs", judged(&plugins) - before);
            kept = Some((host, task));
        });
    });
    assert_eq!(fleet.writes(), 0, "there was nothing to write");
    drop(kept);
    u64::try_from(taken.bytes_current).unwrap()
}

// 10,000 pods of 2,500 jobs leave the host below 100 MB, with 35 MB for the process itself.
#[test]
fn what_is_held_of_running_jobs_has_a_budget() {
    let plugins = Plugins::builtin(Executor::Inline).unwrap();
    let like = running_job();
    let [some, more] = [300, 600].map(|jobs| held_with(&plugins, jobs, &like));
    let per_pod = (more - some) / (300 * PODS as u64);
    eprintln!("{some} bytes for 300 jobs, {more} for 600: {per_pod} for a pod and its share of a job");
    assert!(per_pod <= 4_700, "{per_pod} bytes for a pod and its share of a job");
}
