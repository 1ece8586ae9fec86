//! What a job says while its plugin is lost, was never accepted, or is not asked.

use super::{Stage, digest_of, grants, kept_copy, marked, version, with};
use crate::{
    cluster::{
        jobs::paddle,
        objects::{Kind, PADDLE_JOBS, SOON, at},
        world::World,
    },
    hostile::guest,
    operator,
    ways::Views,
};
use harness::until;
use install::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionNames,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

const POODLES: &str = "poodlejobs";

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
async fn a_job_says_that_the_plugin_of_its_kind_was_refused() {
    const POODLE_JOBS: Kind = Kind::new("apis/batch.paddlepaddle.org/v1", POODLES);
    let stage = Stage::of("ways-plugin-refused").await;
    let definitions: Api<CustomResourceDefinition> = Api::all(stage.world.client.clone());
    let definition = poodle_definition();
    let name = definition.name_any();
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    until(SOON, format!("{name} to be served"), || async { Ok(stage.world.list(&POODLE_JOBS).await.ok()) })
        .await
        .unwrap();

    let renamed = with(&version("poodle"), b"paddle0.1.0", b"poodle0.1.0", |_| true);
    stage.apply(with(&renamed, b"PaddleJobpaddlejobs", b"PoodleJobpoodlejobs", |_| true)).await;
    let spec = json!({ "source": { "configMap": { "name": "paddle" } } });
    let plugin = json!({ "apiVersion": "troupe.dev/v1alpha1", "kind": "Plugin", "metadata": { "name": "poodle" }, "spec": spec });
    stage.plugins.create(&PostParams::default(), &serde_json::from_value(plugin).unwrap()).await.unwrap();
    let mut job = paddle("mnist").worker(1).manifest;
    job["kind"] = json!("PoodleJob");
    stage.world.create(&POODLE_JOBS, &job).await;
    let kubeconfig = stage.world.plane.kubeconfig("user").unwrap();
    let views = Views::of(&stage.world, kubeconfig, &stage.host).await;
    views.tell(&POODLE_JOBS, "mnist", "The plugin of the kind was refused").await;

    stage.plugins.delete("poodle", &DeleteParams::default()).await.unwrap();
    definitions.delete(&name, &DeleteParams::default()).await.unwrap();
    stage.host.stop().await;
}

/// The definition of a kind like PaddleJob.
fn poodle_definition() -> CustomResourceDefinition {
    let of_paddle = |it: &CustomResourceDefinition| it.name_any() == PADDLE_JOBS.resource();
    let mut definition = crds::all().into_iter().find(of_paddle).unwrap();
    let (group, plural) = (&definition.spec.group, POODLES);
    definition.metadata.name = Some(format!("{plural}.{group}"));
    let categories = definition.spec.names.categories.take();
    definition.spec.names = CustomResourceDefinitionNames {
        categories,
        kind: "PoodleJob".into(),
        plural: plural.into(),
        singular: Some("poodlejob".into()),
        ..CustomResourceDefinitionNames::default()
    };
    definition
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
