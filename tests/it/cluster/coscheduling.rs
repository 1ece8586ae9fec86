//! Gangs with the real plugin Coscheduling, in a scheduler of its own beside the cluster's.

use super::{
    objects::{Kind, Namespace, condition_of, text},
    together::Scheduler,
};
use harness::{ControlPlane, Coscheduling, Options};
use serde_json::Value;

/// It says of the pods that it has no room: of the one that found no node, and of the other, which gave back its own.
const COSCHEDULING: Scheduler = Scheduler {
    name: Coscheduling::NAME,
    pod_groups: Kind::new("apis/scheduling.x-k8s.io/v1alpha1", "podgroups"),
    count: "/spec/minMember",
    turned_away: |_, pods| {
        let says = |what: &str| pods.iter().any(|pod| scheduled(pod).contains(what));
        says("gets rejected due to Pod") && says("optimistic rejection in PostFilter")
    },
};

fn scheduled(pod: &Value) -> &str {
    condition_of(pod, "PodScheduled").map_or("", |condition| text(condition, "/message"))
}

// A14, M20, AC-20
#[tokio::test]
#[cfg_attr(any(lacks_cluster, lacks_ecosystem), ignore = "needs TROUPE_REQUIRE=ecosystem")]
async fn coscheduling_starts_all_pods_of_a_job_or_none() {
    let options = Options::default().fake_nodes(2).crds(install::crds::all());
    let plane = ControlPlane::start(options).await.unwrap();
    let scheduler = Coscheduling::start(&plane).await.unwrap();
    let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "gangs").await;
    let operator = COSCHEDULING.host(&plane, &namespace).await;
    COSCHEDULING.starts_all_pods_or_none(&namespace).await;
    operator.stop().await;
    drop(scheduler);
}
