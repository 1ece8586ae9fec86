//! A CronJob whose runs are MPIJobs of real Open MPI.

use super::{
    mpi::pi,
    world::{World, built, is},
};
use crate::cluster::objects::{CRON_JOBS, MPI_JOBS, at, text};
use harness::images::Image;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SCHEDULED_AT: &str = "batch.tutorial.kubebuilder.io/scheduled-at";

// C03, C06, C08, C12, C14
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_node, ignore = "needs Go, openssl, apt and root")]
async fn a_cron_job_runs_a_real_mpi_job_twice() {
    let image = built(Image::openmpi).await;
    let world = World::start(vec![image.clone()], None).await;
    let template = json!({
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "spec": pi(&image, None)["spec"].take(),
    });
    let cron_job = json!({
        "apiVersion": "batch.tutorial.kubebuilder.io/v1",
        "kind": "CronJob",
        "metadata": { "name": "nightly" },
        "spec": { "schedule": "@every 5s", "concurrencyPolicy": "Forbid", "template": template },
    });
    let owner = world.create(&CRON_JOBS, &cron_job).await;
    let runs = world.comes("two runs to succeed", async || {
        let mut runs = world.list(&MPI_JOBS).await?;
        runs.retain(|run| is(run, "Succeeded"));
        Ok((runs.len() >= 2).then_some(runs))
    });
    let runs = runs.await;
    world.patch(&CRON_JOBS, "nightly", &json!({ "spec": { "suspend": true } })).await;
    let ended: BTreeSet<_> = runs.iter().map(|run| text(run, "/metadata/name")).collect();
    let mut launchers = world.pods("training.kubeflow.org/job-role", "launcher").await;
    launchers
        .retain(|pod| ended.contains(at(pod, "/metadata/labels")["training.kubeflow.org/job-name"].as_str().unwrap()));
    assert_eq!(launchers.len(), runs.len());
    for pod in &launchers {
        let log = world.said(pod);
        assert!(log.contains("pi is approximately 3.14"), "{log}");
    }
    let slot = |run: &Value| at(run, "/metadata/annotations")[SCHEDULED_AT].as_str().unwrap_or_default().to_owned();
    // The run that begins just before the CronJob is suspended ends as well.
    let all = world.comes("the last run to be over and known", async || {
        let cron_job = world.get(&CRON_JOBS, "nightly").await?;
        let all = world.list(&MPI_JOBS).await?;
        let last = all.iter().map(slot).max();
        let is_known = last.as_deref() == at(&cron_job, "/status/lastScheduleTime").as_str();
        Ok((is_known && at(&cron_job, "/status/active").is_null()).then_some(all))
    });
    let all = all.await;
    let slots: BTreeSet<_> = all.iter().map(slot).collect();
    assert_eq!(slots.len(), all.len(), "a slot has one run: {slots:?}");
    for run in &all {
        assert_eq!(at(run, "/metadata/ownerReferences/0/uid"), at(&owner, "/metadata/uid"));
    }

    world.delete(&CRON_JOBS, "nightly").await;
    world.are(&MPI_JOBS, &[]).await;
    world.stop("a CronJob of MPIJobs").await;
}
