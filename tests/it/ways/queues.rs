//! What a queue or a gang scheduler keeps a job for, with the test as Kueue and as Volcano.

use super::Views;
use crate::{
    cluster::{
        gang::volcano,
        jobs::paddle,
        objects::{Kind, PADDLE_JOBS, SOON, text},
        world::World,
    },
    operator::Operator,
};
use harness::until;
use serde_json::{Value, json};

const DEFINITIONS: Kind = Kind::new("apis/apiextensions.k8s.io/v1", "customresourcedefinitions");
const POD_GROUPS: Kind = Kind::new("apis/scheduling.volcano.sh/v1beta1", "podgroups");
const WORKLOADS: Kind = Kind::new("apis/kueue.x-k8s.io/v1beta2", "workloads");

/// Kueue's kinds that the host looks at, as far as it does.
fn kueue() -> [Value; 3] {
    let of = |kind: &str, scope: &str| {
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let fields = json!({ "spec": any, "status": any, "value": { "type": "integer" } });
        let version = json!({ "name": "v1beta2", "served": true, "storage": true, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "type": "object", "properties": fields } } });
        let (singular, plural) = (kind.to_lowercase(), format!("{}s", kind.to_lowercase()));
        let plural = if kind.ends_with("Class") { format!("{singular}es") } else { plural };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{plural}.kueue.x-k8s.io"),
                "annotations": { "api-approved.kubernetes.io": "unapproved, stands for Kueue in a test" },
            },
            "spec": {
                "group": "kueue.x-k8s.io", "scope": scope, "versions": [version],
                "names": { "kind": kind, "plural": plural, "singular": singular, "listKind": format!("{kind}List") },
            },
        })
    };
    [of("Workload", "Namespaced"), of("ResourceFlavor", "Cluster"), of("WorkloadPriorityClass", "Cluster")]
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_queue_has_suspended_the_job() {
    let world = World::alone("ways-queue").await;
    for definition in kueue() {
        world.create_in_cluster(&DEFINITIONS, &definition).await;
    }
    until(SOON, "Kueue's kinds", || async { Ok(world.list(&WORKLOADS).await.ok()) }).await.unwrap();
    let host = world.operator().await;
    let views = Views::of(&world, world.plane.kubeconfig("user").unwrap(), &host).await;
    let mut job = paddle("mnist").worker(2).by_hand().manifest;
    job["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "team" });
    world.create(&PADDLE_JOBS, &job).await;
    let made = || async { Ok(world.names(&WORKLOADS).await?.pop()) };
    let workload = until(super::PATIENCE, "the job's Workload", made).await.unwrap();
    views.tell(&PADDLE_JOBS, "mnist", "A queue has not looked at the job").await;
    let says =
        "couldn't assign flavors to pod set worker: insufficient unused quota for cpu in flavor spot, 2 more needed";
    let reserved = json!({ "type": "QuotaReserved", "status": "False", "reason": "Pending", "message": says,
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    world.set_status(&WORKLOADS, &workload, &json!({ "conditions": [reserved] })).await;
    views.tell(&PADDLE_JOBS, "mnist", "A queue has suspended the job").await;
    world.patch(&WORKLOADS, &workload, &json!({ "spec": { "active": false } })).await;
    let evicted = json!({ "type": "Evicted", "status": "True", "reason": "Deactivated",
        "message": "The workload is deactivated", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    world.set_status(&WORKLOADS, &workload, &json!({ "conditions": [reserved, evicted] })).await;
    views.tell(&PADDLE_JOBS, "mnist", "The Workload of a job is deactivated").await;
    host.stop().await;
    for definition in kueue() {
        world.delete_in_cluster(&DEFINITIONS, text(&definition, "/metadata/name")).await;
    }
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_gang_finds_no_room() {
    let world = World::alone("ways-gang").await;
    world.create_in_cluster(&DEFINITIONS, &volcano()).await;
    until(SOON, "Volcano's kind", || async { Ok(world.list(&POD_GROUPS).await.ok()) }).await.unwrap();
    let settings = world.plane.dir().join("ways-paddle.yaml");
    std::fs::write(&settings, "scheduling: volcano\n").unwrap();
    let settings = format!("paddle={}", settings.display());
    let host = Operator::start(&world.plane, &["--namespace", &world.name, "--plugin-config", &settings]).await;
    let views = Views::of(&world, world.plane.kubeconfig("user").unwrap(), &host).await;
    world.create(&PADDLE_JOBS, &paddle("mnist").worker(2).manifest).await;
    let says = "2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable";
    let condition =
        json!({ "type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": says });
    let status = json!({ "phase": "Pending", "conditions": [condition] });
    world.set_status(&POD_GROUPS, "mnist", &status).await;
    views.tell(&PADDLE_JOBS, "mnist", "The gang of the pods finds no room").await;
    host.stop().await;
    world.delete_in_cluster(&DEFINITIONS, "podgroups.scheduling.volcano.sh").await;
}
