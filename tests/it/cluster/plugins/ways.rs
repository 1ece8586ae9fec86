//! What a job says while its plugin is lost, was never accepted, or is not asked.

use super::{Stage, digest_of, grants, kept_copy, marked};
use crate::{
    cluster::{
        jobs::paddle,
        objects::{PADDLE_JOBS, at},
        world::World,
    },
    hostile::guest,
    operator,
    ways::Views,
};
use kube::api::DeleteParams;
use serde_json::json;

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_job_says_that_its_plugin_is_lost() {
    let (mut stage, one, _) = Stage::upgraded("ways-lost").await;
    stage.maps.delete(&kept_copy(&one), &DeleteParams::default()).await.unwrap();
    stage.restart().await;
    let kubeconfig = stage.world.plane.kubeconfig("user").unwrap();
    Views::of(&stage.world, kubeconfig, &stage.host).await.tell(&PADDLE_JOBS, "old", "The plugin is lost").await;
    stage.end().await;
}

/// Whoever may write the status of a job may write any digest there.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_job_says_that_its_plugin_was_never_accepted() {
    let world = World::alone("ways-accepted").await;
    let job = world.create(&PADDLE_JOBS, &paddle("mnist").worker(1).by_hand().manifest).await;
    let ledger = json!({ "uid": at(&job, "/metadata/uid"), "digest": digest_of(b"somebody's"), "headline": "Running" });
    world.set_status(&PADDLE_JOBS, "mnist", &json!({ "phase": "Running", "troupe": ledger })).await;
    let host = super::host(&world, operator::binary()).await;
    let views = Views::of(&world, world.plane.kubeconfig("user").unwrap(), &host).await;
    views.tell(&PADDLE_JOBS, "mnist", "The plugin was never accepted").await;
    host.stop().await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_job_says_that_its_plugin_is_not_asked_after_faults() {
    let stage = Stage::of("ways-breaker").await;
    let poses = marked(&guest("poses-as-paddle"), "breaks");
    stage.apply(poses.clone()).await;
    stage.create(json!({})).await;
    let mut granted = grants();
    granted.images.extend(["one", "two"].map(str::to_owned));
    stage.patch(json!({ "spec": { "grants": granted } })).await;
    stage.serves(&poses).await;
    let mut job = paddle("mnist").worker(1).by_hand().manifest;
    job["metadata"]["annotations"] = json!({ "hostile/judge": "trap" });
    stage.world.create(&PADDLE_JOBS, &job).await;
    let kubeconfig = stage.world.plane.kubeconfig("user").unwrap();
    let views = Views::of(&stage.world, kubeconfig, &stage.host).await;
    views.tell(&PADDLE_JOBS, "mnist", "The plugin is not asked, since it failed before").await;
    stage.end().await;
}
