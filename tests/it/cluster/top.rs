//! What pods use, as the metrics API says it. The API is a definition of its kind, and the test writes what metrics-server
//! would.

use super::{
    jobs::paddle,
    objects::{Kind, Namespace, PADDLE_JOBS, PODS, SOON},
    world::World,
};
use crate::kubectl::Kubectl;
use harness::until;
use serde_json::{Value, json};

const DEFINITIONS: Kind = Kind::new("apis/apiextensions.k8s.io/v1", "customresourcedefinitions");
const METRICS: Kind = Kind::new("apis/metrics.k8s.io/v1beta1", "pods");

fn definition() -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "pods.metrics.k8s.io",
            "annotations": { "api-approved.kubernetes.io": "unapproved, stands for metrics-server in a test" },
        },
        "spec": {
            "group": "metrics.k8s.io",
            "scope": "Namespaced",
            "names": { "kind": "PodMetrics", "plural": "pods" },
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

/// Brings the metrics API into the cluster.
pub(crate) async fn install(namespace: &Namespace) {
    namespace.create_in_cluster(&DEFINITIONS, &definition()).await;
    until(SOON, "the metrics API", || async { Ok(namespace.list(&METRICS).await.ok()) }).await.unwrap();
}

/// Says what the only container of a pod uses.
pub(crate) async fn measure(namespace: &Namespace, pod: &str, cpu: &str, memory: &str) {
    let metrics = json!({
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": { "name": pod },
        "timestamp": "2026-01-01T00:00:00Z",
        "window": "15s",
        "containers": [{ "name": "main", "usage": { "cpu": cpu, "memory": memory } }],
    });
    namespace.create(&METRICS, &metrics).await;
}

/// The words of each line.
fn cells(printed: &str) -> Vec<Vec<&str>> {
    printed.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_user_sees_what_his_jobs_use_of_what_they_request_as_kubectl_top_says_it() {
    let world = World::alone("top").await;
    let _operator = world.operator().await;
    let mut job = paddle("wide").worker(2).by_hand().manifest;
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] =
        json!({ "requests": { "cpu": "2", "memory": "1Gi" } });
    world.create(&PADDLE_JOBS, &job).await;
    until(SOON, "both pods", || async { Ok((world.list(&PODS).await?.len() == 2).then_some(())) }).await.unwrap();
    let user = Kubectl::of(world.plane.kubeconfig("user").unwrap(), "top").await;
    let error = user.troupe(&["top"]).unwrap_err().to_string();
    assert!(error.contains("nobody measures pods here: the cluster has no metrics API"), "{error}");

    install(&world).await;
    measure(&world, "wide-worker-0", "1500000001n", "262144Ki").await;
    let printed = user.troupe(&["top"]).unwrap();
    let head = ["CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"];
    let row = ["paddlejob/wide", "1", "of", "2", "1501m", "75%", "256Mi", "25%"];
    assert_eq!(cells(&printed), [[&["JOB", "PODS"], &head[..]].concat(), row.to_vec()]);
    let printed = user.troupe(&["top", "wide"]).unwrap();
    let rows = [["wide-worker-0", "1501m", "75%", "256Mi", "25%"], ["wide-worker-1", "-", "-", "-", "-"]];
    assert_eq!(cells(&printed), [[&["POD"], &head[..]].concat(), rows[0].to_vec(), rows[1].to_vec()]);
    let printed = user.run(&["top", "pods"]).unwrap();
    assert_eq!(cells(&printed), [vec!["NAME", "CPU(cores)", "MEMORY(bytes)"], vec!["wide-worker-0", "1501m", "256Mi"]]);
    world.delete_in_cluster(&DEFINITIONS, "pods.metrics.k8s.io").await;
}
