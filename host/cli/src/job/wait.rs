//! `troupe job wait`: waits until a job has ended.

use super::cluster::{Cluster, Found};
use crate::args::job::{End, JobName};
use anyhow::{Context, bail};
use decide::summary::{state, why};
use futures::TryStreamExt;
use kube::{
    Api,
    api::DynamicObject,
    runtime::{WatchStreamExt, watcher},
};
use serde_json::Value;
use std::{pin::pin, process::ExitCode, time::Duration};
use troupe::out;

pub(super) async fn wait(
    cluster: &Cluster,
    name: &JobName,
    end: End,
    timeout: Option<Duration>,
) -> anyhow::Result<ExitCode> {
    let found = cluster.job(name).await?;
    let watched = watch(cluster, &found, end);
    let Some(timeout) = timeout else { return watched.await };
    match tokio::time::timeout(timeout, watched).await {
        Ok(ended) => ended,
        Err(_) => bail!("{} has not ended after {} s", found.title(), timeout.as_secs()),
    }
}

/// Prints each state of the job until its end.
async fn watch(cluster: &Cluster, found: &Found, end: End) -> anyhow::Result<ExitCode> {
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &found.resource);
    let config = watcher::Config::default().fields(&format!("metadata.name={}", found.name()));
    let mut jobs = pin!(watcher(api, config).default_backoff().touched_objects());
    let mut printed = String::new();
    while let Some(job) = jobs.try_next().await.context("the job cannot be watched")? {
        if job.metadata.uid.as_deref() != Some(found.uid()) || job.metadata.deletion_timestamp.is_some() {
            bail!("{} was deleted", found.title());
        }
        let status = &job.data["status"];
        let line = [Some(state(status)), why(status)].into_iter().flatten().collect::<Vec<_>>().join(": ");
        if line != printed {
            out::line(format_args!("{} {line}", found.title()));
            printed = line;
        }
        match (outcome(status), end) {
            (None, _) => {}
            (Some(_), End::Ended) | (Some("succeeded"), End::Succeeded) => return Ok(ExitCode::SUCCESS),
            (Some(_), End::Succeeded) => return Ok(ExitCode::FAILURE),
        }
    }
    bail!("the watch of {} ended", found.title())
}

/// Returns `succeeded` or `failed` once the job has ended.
fn outcome(status: &Value) -> Option<&str> {
    status.pointer("/troupe/finished/outcome")?.as_str()
}
