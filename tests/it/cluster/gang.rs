//! Gangs on a real API server: with the test as Volcano (A14), and with the real scheduler of Kubernetes and its own PodGroup
//! (KEP-4671).

use super::{
    jobs::paddle,
    objects::{Kind, Namespace, PADDLE_JOBS, PODS, SERVICES, at, text},
    preflight::{has, lines, preflight},
    together::{Scheduler, are_without_a_node},
    world::World,
};
use crate::operator::Operator;

use harness::{ControlPlane, Options};
use serde_json::{Value, json};

const POD_GROUPS: Kind = Kind::new("apis/scheduling.volcano.sh/v1beta1", "podgroups");
const CRDS: Kind = Kind::new("apis/apiextensions.k8s.io/v1", "customresourcedefinitions");

/// Volcano's kind, as far as it matters: spec and status as they come, status apart, its default queue.
pub(crate) fn volcano() -> Value {
    let queue = json!({ "type": "string", "default": "default" });
    let spec =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "queue": queue } });
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec, "status": any } } });
    let version = json!({ "name": "v1beta1", "served": true, "storage": true, "schema": schema, "subresources": { "status": {} } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "podgroups.scheduling.volcano.sh" },
        "spec": {
            "group": "scheduling.volcano.sh",
            "scope": "Namespaced",
            "names": { "kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList" },
            "versions": [version],
        },
    })
}

// A14
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn pods_wait_until_volcano_admits_their_group_even_if_volcano_comes_later() {
    let world = World::alone("gang").await;
    let config = world.plane.dir().join("paddle.yaml");
    std::fs::write(&config, "scheduling: volcano\n").unwrap();
    let config = format!("paddle={}", config.display());
    let operator = Operator::start(&world.plane, &["--namespace", &world.name, "--plugin-config", &config]).await;
    let mut job = paddle("wide").ps(1).worker(2).runs("1s").manifest;
    job["spec"]["schedulingPolicy"] = json!({ "minAvailable": 3 });
    for role in ["ps", "worker"] {
        // The fake nodes have no Volcano; their scheduler takes the pods, as Volcano would.
        job["spec"][role]["template"]["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "100m" } });
    }
    world.create(&PADDLE_JOBS, &job).await;
    let waits = |job: &Value| text(job, "/status/troupe/conditions/0/message").contains("podgroup/wide");
    world.is(&PADDLE_JOBS, "wide", "waiting for its PodGroup", waits).await;
    world.create_in_cluster(&CRDS, &volcano()).await;
    let group = world.is(&POD_GROUPS, "wide", "there", |_| true).await;
    assert_eq!((at(&group, "/spec/minMember"), text(&group, "/spec/minResources/cpu")), (&json!(3), "300m"));
    assert_eq!(text(&group, "/spec/queue"), "default");
    world.are(&PODS, &[]).await;
    world.set_status(&POD_GROUPS, "wide", &json!({ "phase": "Inqueue" })).await;
    let pod = world.is(&PODS, "wide-ps-0", "there", |_| true).await;
    assert_eq!(text(&pod, "/spec/schedulerName"), "volcano");
    assert_eq!(text(&pod, "/metadata/annotations/scheduling.k8s.io~1group-name"), "wide");
    // A status that changes nothing of the plan costs nothing: the default queue is Volcano's, not ours.
    let before = world.get(&POD_GROUPS, "wide").await.unwrap();
    for pod in ["wide-ps-0", "wide-worker-0", "wide-worker-1"] {
        world.is(&PODS, pod, "there", |_| true).await;
        world.set_status(&PODS, pod, &super::played::addressed("10.0.0.9")).await;
        world.set_status(&PODS, pod, &super::played::succeeded()).await;
    }
    world.is(&PADDLE_JOBS, "wide", "Completed", |job| at(job, "/status/phase") == "Completed").await;
    world.is_gone(&POD_GROUPS, "wide").await;
    world.are(&SERVICES, &[]).await;
    assert_eq!(at(&before, "/metadata/generation"), &json!(1), "nobody wrote its spec again");
    world.delete_in_cluster(&CRDS, "podgroups.scheduling.volcano.sh").await;
    operator.stop().await;
}

const OF_THE_ALPHA: Kind = Kind::new("apis/scheduling.k8s.io/v1alpha2", "podgroups");

/// It says of each pod that it has no node.
pub(crate) const fn kubernetes(pod_groups: Kind) -> Scheduler {
    Scheduler {
        name: "kubernetes",
        pod_groups,
        count: "/spec/schedulingPolicy/gang/minCount",
        turned_away: |_, pods| are_without_a_node(pods, 2),
    }
}

// KEP-4671 in Kubernetes 1.36, whose API version 1.37 does not have: all pods of a gang are bound, or none.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn kubernetes_own_scheduler_starts_all_pods_of_a_job_or_none() {
    let options = Options::default().fake_nodes(2).gangs().crds(install::crds::all());
    let plane = ControlPlane::start(options).await.unwrap();
    let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "own").await;
    let scheduler = kubernetes(OF_THE_ALPHA);
    let operator = scheduler.host(&plane, &namespace).await;
    scheduler.starts_all_pods_or_none(&namespace).await;
    operator.stop().await;

    // What an upgrade to 1.37 cannot keep.
    has(&lines(&preflight(&plane, &[]).await), &["ok    there are no objects of scheduling.k8s.io/v1alpha2"]);
    let group = json!({ "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": { "name": "left" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 2 } } } });
    namespace.create(&OF_THE_ALPHA, &group).await;
    let expected = "note  there is 1 object of scheduling.k8s.io/v1alpha2, which Kubernetes 1.37 does not serve: podgroup/own/left";
    has(&lines(&preflight(&plane, &[]).await), &[expected]);
}
