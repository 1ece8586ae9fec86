//! Gangs on a real API server: with the test as Volcano (A14), and with the real scheduler of Kubernetes and its own PodGroup
//! (KEP-4671).

use super::{
    jobs::paddle,
    objects::{Kind, Namespace, PADDLE_JOBS, PODS, PYTORCH_JOBS, SERVICES, SOON, at, condition_of, text},
    together::{self, Scheduler, are_without_a_node, is_true, paddle_job},
    world::World,
};
use crate::operator::Operator;
use harness::{ControlPlane, Options, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const POD_GROUPS: Kind = Kind::new("apis/scheduling.volcano.sh/v1beta1", "podgroups");
const NODES: Kind = Kind::new("api/v1", "nodes");
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

/// It says of each pod that it has no node.
pub(crate) const fn kubernetes(pod_groups: Kind) -> Scheduler {
    Scheduler {
        name: "kubernetes",
        pod_groups,
        count: "/spec/schedulingPolicy/gang/minCount",
        turned_away: |_, pods| are_without_a_node(pods, 2),
    }
}

/// Kubernetes 1.37 has no earlier version of it.
const KUBERNETES: Scheduler = kubernetes(Kind::new("apis/scheduling.k8s.io/v1beta1", "podgroups"));

/// A control plane with gangs and a host that asks for them.
async fn with_gangs(fake_nodes: usize) -> (ControlPlane, Namespace, Operator) {
    let options = Options::default().fake_nodes(fake_nodes).gangs().crds(install::crds::all());
    let plane = ControlPlane::start(options).await.unwrap();
    let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "own").await;
    let operator = KUBERNETES.host(&plane, &namespace).await;
    (plane, namespace, operator)
}

// KEP-4671: all pods of a gang are bound, or none.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn kubernetes_own_scheduler_starts_all_pods_of_a_job_or_none_and_follows_its_scale() {
    let (_plane, namespace, operator) = with_gangs(2).await;
    KUBERNETES.starts_all_pods_or_none(&namespace).await;

    // `minCount` can be changed since Kubernetes 1.37: the gang of a job that is scaled to what fits is bound.
    namespace.create(&PODS, &together::filler()).await;
    namespace.is(&PODS, "filler", "bound", together::is_bound).await;
    let mut job = paddle_job();
    job["metadata"]["name"] = json!("scaled");
    namespace.create(&PADDLE_JOBS, &job).await;
    let count = |wanted: u32| move |group: &Value| at(group, KUBERNETES.count) == &json!(wanted);
    namespace.is(&KUBERNETES.pod_groups, "scaled", "of two pods", count(2)).await;
    until(SOON, "both pods to be turned away", || async {
        Ok(are_without_a_node(&namespace.list(&PODS).await?, 2).then_some(()))
    })
    .await
    .unwrap();
    namespace.patch(&PADDLE_JOBS, "scaled", &json!({ "spec": { "worker": { "replicas": 1 } } })).await;
    namespace.is(&KUBERNETES.pod_groups, "scaled", "of one pod", count(1)).await;
    namespace.is(&PADDLE_JOBS, "scaled", "Completed", |job| at(job, "/status/phase") == "Completed").await;

    // Kubernetes 1.37 starts no pod of a gang whose pods have priorities that differ.
    let mut mixed = together::pytorch_job();
    mixed["metadata"]["name"] = json!("mixed");
    mixed["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["priorityClassName"] = json!("high");
    namespace.create(&PYTORCH_JOBS, &mixed).await;
    let rejected = namespace.is(&PYTORCH_JOBS, "mixed", "rejected", |job| is_true(job, "Rejected")).await;
    let said = condition_of(&rejected, "Rejected").map(|it| text(it, "/message").to_owned()).unwrap_or_default();
    assert!(said.contains("spec.pytorchReplicaSpecs.Worker.template.spec.priorityClassName"), "{said}");
    operator.stop().await;
}

/// The number of pairs of gangs. Each pair has two nodes, with room for one gang.
const PAIRS: usize = 100;

// A gang that is half bound would hold a node for ever that the other needs.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn of_two_gangs_with_room_for_one_one_starts_and_no_pod_of_the_other_in_a_hundred_tries() {
    let (_plane, namespace, operator) = with_gangs(2 * PAIRS).await;
    for node in 0..2 * PAIRS {
        let pair = json!({ "metadata": { "labels": { "pair": (node / 2).to_string() } } });
        namespace.patch_in_cluster(&NODES, &format!("fake-{node}"), &pair).await;
    }
    for pair in 0..PAIRS {
        for side in ["a", "b"] {
            let mut job = paddle_job();
            job["metadata"]["name"] = json!(format!("{side}{pair}"));
            let spec = &mut job["spec"]["worker"]["template"]["spec"];
            spec["nodeSelector"] = json!({ "pair": pair.to_string() });
            // The pods do not end, so that a gang that is bound keeps its nodes.
            job["spec"]["worker"]["template"]["metadata"] = json!({});
            namespace.create(&PADDLE_JOBS, &job).await;
        }
    }
    // How many pods of each job are bound.
    let bound = || async {
        let mut bound: BTreeMap<String, usize> = BTreeMap::new();
        for pod in namespace.list(&PODS).await? {
            let job = text(&pod, "/metadata/name").split('-').next().unwrap_or_default().to_owned();
            *bound.entry(job).or_default() += usize::from(together::is_bound(&pod));
        }
        anyhow::Ok(bound)
    };
    let settled = |bound: &BTreeMap<String, usize>| bound.values().filter(|count| **count == 2).count();
    let first = until(SOON, "one gang of each pair to be bound", || async {
        let bound = bound().await?;
        Ok((settled(&bound) == PAIRS).then_some(bound))
    });
    let first = first.await.unwrap();
    let halves: Vec<_> = first.iter().filter(|(_, count)| **count == 1).collect();
    assert!(halves.is_empty() && first.len() == 2 * PAIRS, "{halves:?} of {}", first.len());
    for (winner, _) in first.iter().filter(|(_, count)| **count == 2) {
        namespace.delete(&PADDLE_JOBS, winner).await;
    }
    let second = until(SOON, "the other gang of each pair to be bound", || async {
        let mut bound = bound().await?;
        bound.retain(|job, _| first[job] == 0);
        Ok((settled(&bound) == PAIRS).then_some(bound))
    });
    assert_eq!(second.await.unwrap().len(), PAIRS);
    operator.stop().await;
}
