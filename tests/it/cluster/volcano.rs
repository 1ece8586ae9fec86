//! Gangs with real Volcano.

use super::{
    objects::{Kind, Namespace, PADDLE_JOBS, PODS, at},
    together::{Scheduler, is_true, paddle_job},
};
use harness::{ControlPlane, Options, Volcano};
use serde_json::{Value, json};

const QUEUES: Kind = Kind::new("apis/scheduling.volcano.sh/v1beta1", "queues");

/// No pod is there before Volcano has admitted the group, and it says of the group that it has no room.
const VOLCANO: Scheduler = Scheduler {
    name: "volcano",
    pod_groups: Kind::new("apis/scheduling.volcano.sh/v1beta1", "podgroups"),
    count: "/spec/minMember",
    turned_away: |group, _| is_true(group, "Unschedulable"),
};

// A14, M20, AC-20
#[tokio::test]
#[cfg_attr(any(lacks_cluster, lacks_ecosystem), ignore = "needs TROUPE_REQUIRE=ecosystem")]
async fn volcano_starts_all_pods_of_a_job_or_none() {
    let options = Options::default().fake_nodes(2).crds(install::crds::all());
    let plane = ControlPlane::start(options).await.unwrap();
    let volcano = Volcano::start(&plane).await.unwrap();
    let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "gangs").await;
    let operator = VOLCANO.host(&plane, &namespace).await;
    VOLCANO.starts_all_pods_or_none(&namespace).await;

    // A queue without room: the group stays Pending, and the job says why, which Volcano has in an event of the group alone.
    let queue = json!({ "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": { "name": "small" },
        "spec": { "weight": 1, "capability": { "cpu": "100" } } });
    namespace.create_in_cluster(&QUEUES, &queue).await;
    let mut job = paddle_job();
    job["spec"]["schedulingPolicy"] = json!({ "queue": "small" });
    namespace.create(&PADDLE_JOBS, &job).await;
    let says = |job: &Value| {
        at(job, "/status/troupe/conditions").to_string().contains("it has Pending: queue resource quota insufficient")
    };
    namespace.is(&PADDLE_JOBS, "wide", "waiting for its queue", says).await;
    namespace.are(&PODS, &[]).await;
    operator.stop().await;
    drop(volcano);
}
