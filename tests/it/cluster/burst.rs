//! Many jobs at once, told by the audit log: every object is made once, and a job takes a bounded number of requests. How
//! fast is printed; figures belong to the bench.

use super::{
    jobs::{mpi, paddle},
    objects::{BATCH_JOBS, CONFIG_MAPS, MPI_JOBS, PADDLE_JOBS, PODS, SECRETS, SERVICES, at, condition_of, text},
    requests::{Requests, time},
    world::World,
};
use crate::operator;
use futures::future::join_all;
use harness::{audit::Record, until};
use std::{collections::BTreeMap, time::Duration};

const JOBS: usize = 100;
const PODS_EACH: usize = 4;
const PATIENCE: Duration = Duration::from_secs(120);

/// What a user made of a kind, each time it did, by name.
fn made<'a>(records: &'a [Record], user: &str, plural: &str) -> BTreeMap<&'a str, Vec<&'a Record>> {
    let mut made: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for record in records {
        if record.user == user && record.verb == "create" && record.target() == plural && record.code == 201 {
            made.entry(record.name.as_str()).or_default().push(record);
        }
    }
    made
}

/// The host made so many objects of each kind, and none twice.
fn are_made_once(records: &[Record], kinds: &[(&str, usize)]) {
    for (kind, expected) in kinds {
        let made = made(records, "troupe", kind);
        assert_eq!(made.len(), *expected, "{kind}");
        assert!(made.values().all(|times| times.len() == 1), "{kind} made twice: {made:#?}");
    }
}

/// Until all jobs ran, each took at most this number of requests on average. A slow machine folds fewer counts of pods into a
/// write; `budget.rs` asserts the exact cost on the simulator.
fn cost_at_most(requests: &Requests, most: usize) {
    let requests = requests.of("job");
    println!("  requests a job until all ran: {:.2}", requests.count() as f64 / JOBS as f64);
    for (what, count) in requests.table() {
        println!("  {count:5}  {what}");
    }
    assert!(requests.count() <= most * JOBS, "{:#?}", requests.table());
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

// The issue of the original: 100 jobs of 4 pods at once take it 38 s.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_hundred_paddle_jobs_at_once_get_their_pods_each_once() {
    let world = World::alone("burst").await;
    let host = world.operator().await;
    let jobs: Vec<_> = (0..JOBS).map(|number| paddle(&format!("job-{number:02}")).ps(2).worker(2)).collect();
    join_all(jobs.iter().map(|job| world.create(&PADDLE_JOBS, &job.manifest))).await;
    let running = || async {
        let jobs = world.list(&PADDLE_JOBS).await?;
        let count = jobs.iter().filter(|job| at(job, "/status/phase") == "Running").count();
        anyhow::ensure!(count == JOBS, "{count} are");
        Ok(Some(()))
    };
    until(PATIENCE, format!("{JOBS} jobs to be Running"), running).await.unwrap();

    let records = world.audit().unwrap();
    are_made_once(&records, &[("pods", JOBS * PODS_EACH), ("services", JOBS * PODS_EACH), ("configmaps", JOBS)]);
    let requests = world.requests().without_watches();
    assert!(requests.refused().is_empty(), "{:#?}", requests.refused());

    let (submitted, pods) = (made(&records, "user", "paddlejobs"), made(&records, "troupe", "pods"));
    let last_submit = submitted.values().map(|times| times[0].at).max().unwrap();
    let complete = |job: &str| {
        let own = pods.iter().filter(|(pod, _)| pod.starts_with(&format!("{job}-")));
        own.map(|(_, times)| times[0].at).max().unwrap()
    };
    let mut waits: Vec<_> = submitted.iter().map(|(job, times)| time(times[0].at, complete(job))).collect();
    waits.sort_unstable();
    let last = pods.values().map(|times| time(last_submit, times[0].at)).max().unwrap();
    println!("\n{JOBS} PaddleJobs of {PODS_EACH} pods at once, {}:", operator::binary().display());
    println!("  submit to all pods made: p50 {:.2?}, p99 {:.2?}", percentile(&waits, 50), percentile(&waits, 99));
    println!("  last submit to last pod made: {last:.2?}");
    // What is made and an event of it, a write for each headline, and the counts anew with each pod that runs.
    cost_at_most(&requests, (1 + 2 * PODS_EACH + 1) + 2 + PODS_EACH);

    // Nobody after this should have to share the fake nodes with so many.
    join_all(jobs.iter().map(|job| world.delete(&PADDLE_JOBS, &job.name))).await;
    for kind in [PODS, SERVICES, CONFIG_MAPS] {
        world.are(&kind, &[]).await;
    }
    host.stop().await;
}

// The same of MPIJobs with four workers each, for which the original takes 24 requests a job.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_hundred_mpi_jobs_at_once_get_their_pods_each_once() {
    const WORKERS: u32 = 4;
    let world = World::alone("burst-mpi").await;
    let host = world.operator().await;
    let jobs = (0..JOBS).map(|number| mpi(&format!("job-{number:02}")).workers(WORKERS).runs("1h").manifest);
    let jobs: Vec<_> = jobs.collect();
    join_all(jobs.iter().map(|job| world.create(&MPI_JOBS, job))).await;
    let running = || async {
        let jobs = world.list(&MPI_JOBS).await?;
        let is_running = |job: &&_| condition_of(job, "Running").is_some_and(|it| text(it, "/status") == "True");
        let count = jobs.iter().filter(is_running).count();
        anyhow::ensure!(count == JOBS, "{count} are");
        Ok(Some(()))
    };
    until(PATIENCE, format!("{JOBS} jobs to be Running"), running).await.unwrap();

    let records = world.audit().unwrap();
    let one_each = ["jobs", "services", "configmaps", "secrets"].map(|kind| (kind, JOBS));
    are_made_once(&records, &one_each);
    are_made_once(&records, &[("pods", JOBS * WORKERS as usize)]);
    let requests = world.requests().without_watches();
    assert!(requests.refused().is_empty(), "{:#?}", requests.refused());
    println!("\n{JOBS} MPIJobs of a launcher and {WORKERS} workers at once, {}:", operator::binary().display());
    // The same; workers and launcher run, and the list of hosts grows with each worker.
    let (workers, launcher) = (WORKERS as usize, 1);
    cost_at_most(&requests, (4 + workers + 2) + workers + 2 + (workers + launcher));

    join_all(jobs.iter().map(|job| world.delete(&MPI_JOBS, text(job, "/metadata/name")))).await;
    for kind in [PODS, BATCH_JOBS, SERVICES, CONFIG_MAPS, SECRETS] {
        world.are(&kind, &[]).await;
    }
    host.stop().await;
}
