//! What a job costs: requests on the success path, told by the audit log, and none once it is settled. The modules
//! beside `cluster` count the same on the simulator.

use super::{
    jobs::{mpi, paddle},
    objects::{CONFIG_MAPS, Kind, MPI_JOBS, PADDLE_JOBS, PODS, SERVICES, Versions, at, text},
    requests::{Requests, time},
    world::World,
};
use harness::until;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// How long a settled job is watched.
const QUIET: Duration = Duration::from_secs(30);

/// Counts alone are written at most this often.
const FOLD: Duration = Duration::from_secs(1);

/// What a client of the original sees as a step: the phase, or the conditions with their status.
fn headline(status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let conditions = conditions.map(|one| format!("{}={}", text(one, "/type"), text(one, "/status")));
    format!("{} {}", text(status, "/phase"), conditions.collect::<Vec<_>>().join(" "))
}

fn is_succeeded(job: &Value) -> bool {
    headline(&job["status"]).ends_with("Succeeded=True")
}

/// How many status writes there were for headlines, and how many for counts alone, each of which came a second or more
/// after the write before it.
fn status_writes(requests: &Requests, job: &str, kind: &Kind, versions: &Versions) -> (usize, usize) {
    let writes = requests.that("patch", &format!("{}/status", kind.plural()));
    let versions = versions.lock();
    let own = versions.iter().filter(|version| text(version, "/metadata/name") == job);
    let seen: Vec<_> = own.map(|version| &version["status"]).collect();
    assert_eq!(writes.len(), seen.len() - 1, "each write is a version: {seen:#?}");
    let (mut headlines, mut folded) = (0, 0);
    for (number, write) in writes.iter().enumerate() {
        if headline(seen[number]) != headline(seen[number + 1]) {
            headlines += 1;
            continue;
        }
        let since = time(writes[number - 1].at, write.at);
        assert!(since >= FOLD, "write {number} came {since:?} after the one before: {seen:#?}");
        folded += 1;
    }
    (headlines, folded)
}

/// What the operator asks while this time passes.
async fn during(world: &World, span: Duration) -> Requests {
    let (before, begun) = (world.requests(), Instant::now());
    let passed = || async { Ok((begun.elapsed() >= span).then_some(())) };
    until(span * 2, format!("{span:?} to pass"), passed).await.unwrap();
    world.requests().after(&before).without_watches()
}

fn print(job: &str, requests: &Requests, headlines: usize, folded: usize) {
    println!("\nrequests of one {job}: {} ({headlines} headlines, {folded} folded counts)", requests.count());
    for (what, count) in requests.table() {
        println!("  {count:3}  {what}");
    }
}

fn table(rows: &[(&str, usize)]) -> BTreeMap<String, usize> {
    rows.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect()
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_job_costs_what_it_makes_and_a_write_per_headline_and_nothing_once_it_is_settled() {
    let world = World::shared("budget").await;
    let operator = world.operator().await;
    let synced = world.requests();
    let jobs = [
        (PADDLE_JOBS, paddle("wide").ps(2).worker(2).runs("2500ms").manifest),
        (PADDLE_JOBS, paddle("kept").worker(1).policy("Never").runs("2500ms").manifest),
        (PADDLE_JOBS, paddle("endless").ps(1).worker(1).manifest),
        (MPI_JOBS, mpi("pi").cleaned().runs("2500ms").manifest),
    ];
    let (paddles, mpis) = (world.follow(&PADDLE_JOBS).await, world.follow(&MPI_JOBS).await);
    for (kind, manifest) in &jobs {
        world.create(kind, manifest).await;
    }
    for (name, phase) in [("wide", "Completed"), ("kept", "Completed"), ("endless", "Running")] {
        world.is(&PADDLE_JOBS, name, phase, |job| at(job, "/status/phase") == phase).await;
    }
    world.is(&MPI_JOBS, "pi", "Succeeded", is_succeeded).await;
    for gone in ["wide-ps-0", "wide-ps-1", "wide-worker-0", "wide-worker-1", "pi-worker-0", "pi-worker-1"] {
        world.is_gone(&PODS, gone).await;
    }
    world.are(&SERVICES, &["endless-ps-0", "endless-worker-0", "kept-worker-0", "pi"]).await;
    // The last counts may still wait for their second.
    during(&world, FOLD * 3).await;
    let requests = world.requests().after(&synced).without_watches();
    assert!(requests.refused().is_empty(), "{:#?}", requests.refused());

    // Paddle: pods, Services and the ConfigMap, the headlines, the clean-up; one event that names what was made.
    let wide = requests.of("wide");
    let (headlines, folded) = status_writes(&wide, "wide", &PADDLE_JOBS, &paddles);
    print("PaddleJob of 2 + 2 pods, cleaned", &wide, headlines, folded);
    let expected = [
        ("create configmaps", 1),
        ("create events", 1),
        ("create pods", 4),
        ("create services", 4),
        ("delete pods", 4),
        ("delete services", 4),
        ("patch paddlejobs/status", headlines + folded),
    ];
    assert_eq!(wide.table(), table(&expected));

    // MPI: three headlines with an event each, and the ConfigMap that follows the workers.
    let pi = requests.of("pi");
    let (headlines, folded) = status_writes(&pi, "pi", &MPI_JOBS, &mpis);
    print("MPIJob of a launcher and 2 workers, cleaned", &pi, headlines, folded);
    let follows = pi.that("patch", "configmaps").len();
    assert!((1..=2).contains(&follows), "one patch for each change of the running workers: {follows}");
    assert_eq!(headlines, 3);
    let expected = [
        ("create configmaps", 1),
        ("create events", 3),
        ("create jobs", 1),
        ("create pods", 2),
        ("create secrets", 1),
        ("create services", 1),
        ("delete pods", 2),
        ("patch configmaps", follows),
        ("patch mpijobs/status", headlines + folded),
    ];
    assert_eq!(pi.table(), table(&expected));

    // Finished or running, settled is settled, whatever is said of a child that changes nothing of the job.
    let touch = json!({ "metadata": { "annotations": { "touched": "yes" } } });
    let pods = world.names(&PODS).await.unwrap();
    let launcher = pods.iter().find(|name| name.starts_with("pi-launcher")).unwrap();
    for pod in ["kept-worker-0", "endless-ps-0", launcher] {
        world.patch(&PODS, pod, &touch).await;
    }
    world.patch(&CONFIG_MAPS, "endless", &touch).await;
    let writes = during(&world, QUIET).await;
    assert!(writes.is_empty(), "{:#?}", writes.table());
    operator.stop().await;
}
