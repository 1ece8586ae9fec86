//! Fake nodes, played by kwok: pods on them go through their life without any process.

use std::path::Path;
use std::process::Command;
use std::slice;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::process::{Process, until_alive};
use crate::run_dir::RunDir;

/// Annotation of a pod on a fake node: how long its containers run, such as `2s`. Without it they run until the pod is deleted.
/// The time starts anew whenever the pod object changes.
pub const RUN_FOR: &str = "troupe.dev/run-for";

/// Annotation of a pod on a fake node: the exit code of its containers. Anything but 0 makes the pod `Failed`, whatever its restart policy.
pub const EXIT_CODE: &str = "troupe.dev/exit-code";

const START: Duration = Duration::from_secs(60);
const STAGES: &str = include_str!("kwok/stages.yaml");
const FAKE: &str = "troupe.dev/fake";

/// Starts kwok with `command` (its path) and creates the nodes; returns when all are ready.
pub(crate) async fn start(
    mut command: Command,
    kubeconfig: &Path,
    dir: &RunDir,
    client: &Client,
    nodes: usize,
) -> Result<Process> {
    let stages = dir.write("stages.yaml", STAGES)?;
    command
        .arg("--config")
        .arg(stages)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--node-lease-duration-seconds=40")
        .arg(format!("--manage-nodes-with-label-selector={FAKE}=true"))
        .env("HOME", dir.path());
    let mut process = Process::start("kwok", dir.path(), command)?;
    let api = Api::<Node>::all(client.clone());
    try_join_all((0..nodes).map(|index| create(&api, index))).await?;
    let fake = ListParams::default().labels(FAKE);
    until_alive(slice::from_mut(&mut process), START, format!("{nodes} fake nodes to be ready"), || async {
        let list = api.list(&fake).await?;
        Ok((list.items.iter().filter(|node| is_ready(node)).count() == nodes).then_some(()))
    })
    .await?;
    Ok(process)
}

/// Whether the node's condition `Ready` is true.
pub(crate) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|conditions| {
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
}

async fn create(api: &Api<Node>, index: usize) -> Result<()> {
    let (high, low) = (index / 256, index % 256);
    let name = format!("fake-{index}");
    let range = format!("10.{}.{low}.0/24", 64 + high);
    let node: Node = serde_json::from_value(json!({
        "metadata": {
            "name": name,
            "labels": {FAKE: "true", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            "annotations": {"troupe.dev/address": format!("10.63.{high}.{low}")},
        },
        "spec": {"podCIDR": range, "podCIDRs": [range]},
    }))?;
    api.create(&PostParams::default(), &node).await.with_context(|| format!("failed to create node/{name}"))?;
    Ok(())
}
