//! Two hosts with `--leader-elect` on a real API server: one serves, the other takes over.

use super::{
    jobs::paddle,
    objects::{PADDLE_JOBS, PODS, SOON, at, text},
    world::World,
};
use crate::operator::Operator;
use harness::until;
use std::collections::{BTreeMap, BTreeSet};

impl World {
    async fn electing(&self) -> Operator {
        let namespace = self.name.as_str();
        let arguments = ["--namespace", namespace, "--leader-elect", "--lease-namespace", namespace];
        Operator::start(&self.plane, &arguments).await
    }
}

// M8 and S9 of the reliability page: SIGKILL to the first write of the next, and nothing made twice
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_next_host_goes_on_where_the_first_was_killed() {
    let world = World::shared("turns").await;
    let pods = world.follow(&PODS).await;
    let first = world.electing().await;
    world.create(&PADDLE_JOBS, &paddle("long").worker(2).policy("Never").runs("2s").manifest).await;
    world.is(&PADDLE_JOBS, "long", "begun", |job| !at(job, "/status/phase").is_null()).await;
    let second = world.electing().await;
    let asked = r#"resource="leases"} "#;
    let waits = || async { Ok(second.metrics().await?.contains(asked).then_some(())) };
    until(SOON, "the second host to ask for the lease", waits).await.unwrap();
    let metrics = second.metrics().await.unwrap();
    let mut requests = metrics.lines().filter(|line| line.starts_with("rest_client_requests_total{"));
    let reads = requests.any(|line| line.contains(r#"resource="paddlejobs""#) || line.contains(r#"resource="pods""#));
    assert!(metrics.contains("leader_election_master_status{name=\"troupe\"} 0\n"), "{metrics}");
    assert!(!reads, "it lists or watches: {metrics}");
    first.kill();
    let completed = |job: &serde_json::Value| at(job, "/status/phase") == "Completed";
    world.is(&PADDLE_JOBS, "long", "Completed", completed).await;
    let mut made: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for pod in pods.lock().iter() {
        made.entry(text(pod, "/metadata/name").into()).or_default().insert(text(pod, "/metadata/uid").into());
    }
    assert!(made.len() == 2 && made.values().all(|uids| uids.len() == 1), "{made:?}");

    // One that is asked to stop gives the lease back.
    second.stop().await;
    let third = world.electing().await;
    world.create(&PADDLE_JOBS, &paddle("next").worker(1).runs("1s").manifest).await;
    world.is(&PADDLE_JOBS, "next", "Completed", completed).await;
    third.stop().await;
}
