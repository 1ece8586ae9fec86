//! The newest release of Kubernetes: gangs in the API version that it alone has.

use super::{
    gang::kubernetes,
    objects::{Kind, Namespace, PADDLE_JOBS, PODS, PYTORCH_JOBS, SOON, at, condition_of, text},
    together::{self, Scheduler, are_without_a_node, is_true, paddle_job},
};
use crate::operator::Operator;
use harness::{ControlPlane, Options, Release, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NODES: Kind = Kind::new("api/v1", "nodes");

/// Kubernetes 1.37 has no earlier version of it.
const KUBERNETES: Scheduler = kubernetes(Kind::new("apis/scheduling.k8s.io/v1beta1", "podgroups"));

/// A control plane with gangs and a host that asks for them.
async fn with_gangs(fake_nodes: usize) -> (ControlPlane, Namespace, Operator) {
    let options = Options::default().release(Release::Newest).fake_nodes(fake_nodes).gangs().crds(install::crds::all());
    let plane = ControlPlane::start(options).await.unwrap();
    let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "own").await;
    let operator = KUBERNETES.host(&plane, &namespace).await;
    (plane, namespace, operator)
}

// KEP-4671: all pods of a gang are bound, or none.
#[tokio::test]
#[cfg_attr(lacks_releases, ignore = "builds another Kubernetes: TROUPE_REQUIRE=releases")]
async fn the_newest_kubernetes_starts_all_pods_of_a_job_or_none_and_follows_its_scale() {
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
#[cfg_attr(lacks_releases, ignore = "two hundred nodes: TROUPE_REQUIRE=releases")]
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
