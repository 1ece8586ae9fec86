//! A whole job that starts again when one of its pods fails, on a real API server.

use super::{
    objects::{Kind, PODS, SOON, at, text},
    world::World,
};
use harness::until;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const JAX_JOBS: Kind = Kind::new("apis/kubeflow.org/v1", "jaxjobs");

fn gang() -> Value {
    let template = json!({ "spec": { "containers": [{ "name": "jax", "image": "jax:1" }] } });
    json!({
        "apiVersion": "kubeflow.org/v1",
        "kind": "JAXJob",
        "metadata": { "name": "gang", "annotations": { "kubeflow.troupe.dev/restart-scope": "Job" } },
        "spec": { "jaxReplicaSpecs": { "Worker": { "replicas": 3, "restartPolicy": "OnFailure", "template": template } } },
    })
}

fn is_running(job: &Value) -> bool {
    let running = |condition: &Value| condition["type"] == "Running" && condition["status"] == "True";
    at(job, "/status/conditions").as_array().is_some_and(|all| all.iter().any(running))
}

// AC-26
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn all_pods_of_a_job_start_again_once_when_one_fails_although_the_host_is_killed() {
    let world = World::shared("restarts").await;
    let pods = world.follow(&PODS).await;
    let host = world.operator().await;
    world.create(&JAX_JOBS, &gang()).await;
    world.is(&JAX_JOBS, "gang", "running", is_running).await;
    let ends = json!({ "metadata": { "annotations": { "troupe.dev/exit-code": "1", "troupe.dev/run-for": "0s" } } });
    // A kubelet would start the container again with the policy that the job names.
    let first = world.get(&PODS, "gang-worker-1").await.unwrap();
    assert_eq!(text(&first, "/spec/restartPolicy"), "Never");
    world.patch(&PODS, "gang-worker-1", &ends).await;
    let counted = |job: &Value| at(job, "/status/troupe/attempts/worker/count") == &json!(1);
    world.is(&JAX_JOBS, "gang", "started again", counted).await;
    host.kill();
    let host = world.operator().await;
    let again = || async {
        let pods = world.list(&PODS).await?;
        let is_new = |pod: &Value| {
            at(pod, "/metadata/annotations")["troupe.dev/attempt"] == "1" && at(pod, "/status/phase") == "Running"
        };
        Ok((pods.len() == 3 && pods.iter().all(is_new)).then_some(()))
    };
    until(SOON, "three running pods of the second attempt".to_owned(), again).await.unwrap();
    world.is(&JAX_JOBS, "gang", "running", is_running).await;

    let mut uids: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for pod in pods.lock().iter() {
        uids.entry(text(pod, "/metadata/name").into()).or_default().insert(text(pod, "/metadata/uid").into());
    }
    assert!(uids.len() == 3 && uids.values().all(|uids| uids.len() == 2), "each pod was made twice: {uids:?}");
    let job = world.get(&JAX_JOBS, "gang").await.unwrap();
    let failures = at(&job, "/status/troupe/failures");
    let count: u64 = failures.as_object().unwrap().values().filter_map(|role| role["count"].as_u64()).sum();
    assert_eq!(count, 1, "{failures}");
    host.stop().await;
}
