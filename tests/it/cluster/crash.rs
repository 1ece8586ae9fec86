//! The operator is killed without a last word, twice, and nothing is made twice or lost.

use super::{
    jobs::{mpi, paddle},
    objects::{MPI_JOBS, PADDLE_JOBS, PODS, SOON, Versions, at, text},
    world::World,
};
use futures::future::{join, join_all};
use harness::until;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const PADDLES: usize = 10;
const MPIS: usize = 5;
/// Of 2 + 2 pods each, and of 2 workers each; launcher pods are made by the Job controller.
const ALL_PODS: usize = PADDLES * 4 + MPIS * 2;

/// The uids that each pod of the operator's making has had, by its name. The audit log does not tell: a request that was
/// under way when the operator died may have been done and is told as a failure.
fn made(pods: &Versions) -> BTreeMap<String, BTreeSet<String>> {
    let mut made: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let seen = pods.lock();
    for pod in seen.iter().filter(|pod| text(pod, "/metadata/ownerReferences/0/kind") != "Job") {
        let (name, uid) = (text(pod, "/metadata/name"), text(pod, "/metadata/uid"));
        made.entry(name.to_owned()).or_default().insert(uid.to_owned());
    }
    made
}

async fn until_made(pods: &Versions, count: usize) {
    let enough = || async { Ok((made(pods).len() >= count).then_some(())) };
    until(SOON, format!("{count} pods to be made"), enough).await.unwrap();
}

impl World {
    async fn ended(&self) -> anyhow::Result<usize> {
        let paddles = self.list(&PADDLE_JOBS).await?;
        let mpis = self.list(&MPI_JOBS).await?;
        Ok(paddles.iter().filter(|job| completed(job)).count() + mpis.iter().filter(|job| succeeded(job)).count())
    }
}

fn completed(job: &Value) -> bool {
    at(job, "/status/phase") == "Completed"
}

fn succeeded(job: &Value) -> bool {
    let conditions = at(job, "/status/conditions").as_array().into_iter().flatten();
    conditions.into_iter().any(|one| text(one, "/type") == "Succeeded" && text(one, "/status") == "True")
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn an_operator_that_is_killed_twice_in_mid_run_makes_nothing_twice_and_finishes_every_job() {
    let world = World::shared("crash").await;
    let pods = world.follow(&PODS).await;
    let first = world.operator().await;
    world.create(&PADDLE_JOBS, &paddle("old").worker(1).runs("500ms").manifest).await;
    world.create(&MPI_JOBS, &mpi("gone").cleaned().runs("2s").manifest).await;
    world.is(&PADDLE_JOBS, "old", "Completed", completed).await;
    world.is(&MPI_JOBS, "gone", "Succeeded", succeeded).await;
    for pod in ["old-worker-0", "gone-worker-0", "gone-worker-1"] {
        world.is_gone(&PODS, pod).await;
    }
    let settled = made(&pods).len();
    let before = [world.get(&PADDLE_JOBS, "old").await.unwrap(), world.get(&MPI_JOBS, "gone").await.unwrap()];

    // While pods are being made.
    let paddles = (0..PADDLES).map(|n| paddle(&format!("wide-{n}")).ps(2).worker(2).runs("6s").manifest);
    let mpis = (0..MPIS).map(|n| mpi(&format!("pi-{n}")).cleaned().runs("6s").manifest);
    let jobs: Vec<_> = paddles.map(|job| (PADDLE_JOBS, job)).chain(mpis.map(|job| (MPI_JOBS, job))).collect();
    let submitted = join_all(jobs.iter().map(|(kind, job)| world.create(kind, job)));
    join(submitted, until_made(&pods, settled + 1)).await;
    first.kill();
    let at_first_kill = world.requests();
    println!("killed first with {} of {ALL_PODS} pods made", made(&pods).len() - settled);

    // While pods run.
    let second = world.operator().await;
    until_made(&pods, settled + ALL_PODS).await;
    let running = || async {
        let pods = world.list(&PODS).await?;
        Ok(pods.iter().any(|pod| at(pod, "/status/phase") == "Running").then_some(()))
    };
    until(SOON, "a pod to run", running).await.unwrap();
    second.kill();
    println!("killed again with {} of {} jobs ended", world.ended().await.unwrap(), PADDLES + MPIS + 2);

    let third = world.operator().await;
    let all = PADDLES + MPIS + 2;
    let ended = || async {
        let count = world.ended().await?;
        anyhow::ensure!(count == all, "{count} have");
        Ok(Some(()))
    };
    until(SOON, format!("{all} jobs to end"), ended).await.unwrap();
    for n in 0..MPIS {
        world.is_gone(&PODS, &format!("pi-{n}-worker-1")).await;
    }

    let made = made(&pods);
    assert_eq!(made.len(), settled + ALL_PODS);
    let twice: Vec<_> = made.iter().filter(|(_, uids)| uids.len() > 1).collect();
    assert!(twice.is_empty(), "made more than once: {twice:?}");
    let later = world.requests().after(&at_first_kill).without_watches();
    for (kind, job) in [(PADDLE_JOBS, &before[0]), (MPI_JOBS, &before[1])] {
        let name = text(job, "/metadata/name");
        assert!(later.of(name).is_empty(), "{name}: {:#?}", later.of(name).table());
        let now = world.get(&kind, name).await.unwrap();
        assert_eq!(text(&now, "/metadata/resourceVersion"), text(job, "/metadata/resourceVersion"));
    }
    third.stop().await;
}
