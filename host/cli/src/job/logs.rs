//! `troupe job logs`: the logs of all containers of a job, each line behind the name of its pod.

use super::cluster::Cluster;
use crate::args::job::JobName;
use anyhow::bail;
use futures::{AsyncBufReadExt, StreamExt, TryStreamExt, stream::FuturesUnordered};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::LogParams};
use std::process::ExitCode;
use troupe::out;

pub(super) async fn logs(
    cluster: &Cluster,
    name: &JobName,
    follow: bool,
    tail: Option<i64>,
) -> anyhow::Result<ExitCode> {
    let found = cluster.job(name).await?;
    let pods = cluster.pods(&found).await?;
    let containers: Vec<_> = pods.iter().flat_map(started).collect();
    if containers.is_empty() {
        bail!("no container of {} has started; `explain` says why", found.title());
    }
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let api = &api;
    let mut reads: FuturesUnordered<_> = containers
        .iter()
        .map(async |(pod, container, prefix)| {
            let params =
                LogParams { container: Some(container.clone()), follow, tail_lines: tail, ..LogParams::default() };
            let read = async {
                let mut lines = api.log_stream(pod, &params).await?.lines();
                while let Some(line) = lines.try_next().await? {
                    out::raw(format_args!("{prefix}| {line}\n"));
                }
                anyhow::Ok(())
            };
            (prefix, read.await)
        })
        .collect();
    let mut is_complete = true;
    while let Some((prefix, read)) = reads.next().await {
        if let Err(error) = read {
            is_complete = false;
            out::diagnostic(format_args!("{prefix}| {error:#}"));
        }
    }
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns pod, container and the text in front of a line of each container of the pod that has started.
fn started(pod: &Pod) -> Vec<(String, String, String)> {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let status = pod.status.as_ref();
    let statuses = status
        .into_iter()
        .flat_map(|it| it.init_container_statuses.iter().flatten().chain(it.container_statuses.iter().flatten()));
    let started = statuses.filter(|it| {
        let is_up = it.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some());
        is_up || it.restart_count > 0
    });
    let names: Vec<_> = started.map(|it| it.name.clone()).collect();
    let only = names.len() == 1;
    let prefix = |container: &str| if only { format!("{name} ") } else { format!("{name} {container} ") };
    names.iter().map(|container| (name.clone(), container.clone(), prefix(container))).collect()
}
