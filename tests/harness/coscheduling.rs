//! The real plugin Coscheduling beside a control plane: the scheduler of scheduler-plugins, built from its Go module as that is
//! published, with its own CRD of PodGroups.
//!
//! Its controller is left out: that keeps the status of PodGroups, which the scheduler does not read.

use std::process::Command;
use std::slice;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::manifests::{define, documents, get};
use crate::process::{Process, until_alive};
use crate::published::Published;

const SCHEDULER_PLUGINS: Published = Published {
    module: "sigs.k8s.io/scheduler-plugins",
    version: "v0.35.4-devel",
    commands: &["scheduler"],
    replaced: &[],
};

const START: Duration = Duration::from_secs(60);

const POD_GROUPS: &str = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups";

/// A running scheduler; it ends with the value.
#[derive(Debug)]
pub struct Coscheduling {
    _scheduler: Process,
}

impl Coscheduling {
    /// The `schedulerName` of its pods, which its own chart gives it.
    pub const NAME: &str = "scheduler-plugins-scheduler";

    /// Builds it if it is missing, starts it, and returns when its PodGroups are served.
    pub async fn start(plane: &ControlPlane) -> Result<Coscheduling> {
        let built = tokio::task::spawn_blocking(|| SCHEDULER_PLUGINS.build());
        let built = built.await.context("building scheduler-plugins panicked")??;
        let client = plane.client("admin").await?;
        let definition = built.module.join("config/crd/bases/scheduling.x-k8s.io_podgroups.yaml");
        define(&client, &documents(&definition)?).await?;
        let config = plane.dir().join("coscheduling.yaml");
        std::fs::write(&config, configuration(plane)?.to_string())?;
        let mut command = Command::new(built.program("scheduler"));
        command.arg("--config").arg(config).arg("--secure-port=0");
        let mut scheduler = Process::start("coscheduling", plane.dir(), command)?;
        until_alive(slice::from_mut(&mut scheduler), START, "PodGroups to be served", || async {
            let served: Result<Value, _> = client.request(get(POD_GROUPS)?).await;
            Ok(served.ok().map(drop))
        })
        .await?;
        Ok(Coscheduling { _scheduler: scheduler })
    }
}

/// As its manifests have it, under a name of its own.
fn configuration(plane: &ControlPlane) -> Result<Value> {
    let coscheduling = json!([{ "name": "Coscheduling" }]);
    Ok(json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": { "leaderElect": false },
        "clientConnection": { "kubeconfig": plane.kubeconfig("scheduler")?, "qps": 500, "burst": 1000 },
        "profiles": [{
            "schedulerName": Coscheduling::NAME,
            "plugins": {
                "multiPoint": { "enabled": coscheduling },
                "queueSort": { "enabled": coscheduling, "disabled": [{ "name": "*" }] },
            },
            "pluginConfig": [{ "name": "Coscheduling", "args": { "permitWaitingTimeSeconds": 10 } }],
        }],
    }))
}
