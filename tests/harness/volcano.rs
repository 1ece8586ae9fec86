//! Real Volcano beside a control plane: its scheduler and its controllers of queues and PodGroups, built from its Go module as
//! that is published, with its own CRDs.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::manifests::{create, define, documents_in, get};
use crate::process::{Process, until_alive};
use crate::published::Published;

/// Its `go.mod` has the API in a folder that is not published; this is the version of it that is.
const VOLCANO: Published = Published {
    module: "volcano.sh/volcano",
    version: "v1.14.1",
    commands: &["controller-manager", "scheduler"],
    replaced: &[("volcano.sh/apis", "v1.14.0")],
};

const START: Duration = Duration::from_secs(120);

/// The queue that the scheduler makes and the controllers open.
const QUEUE: &str = "/apis/scheduling.volcano.sh/v1beta1/queues/default";

/// Gangs are admitted by what their queue has room for, and bound as a whole.
const SCHEDULING: &str = "actions: \"enqueue, allocate, backfill\"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n- \
                          plugins:\n  - name: predicates\n  - name: proportion\n  - name: nodeorder\n";

/// A running Volcano; its programs end with the value.
#[derive(Debug)]
pub struct Volcano {
    _programs: [Process; 2],
}

impl Volcano {
    /// Builds it if it is missing, starts it, and returns when its queue is open.
    pub async fn start(plane: &ControlPlane) -> Result<Volcano> {
        let built = tokio::task::spawn_blocking(|| VOLCANO.build()).await.context("building Volcano panicked")??;
        let client = plane.client("admin").await?;
        define(&client, &documents_in(&built.module.join("config/crd/volcano/bases"))?).await?;
        create::<Namespace>(Api::all(client.clone()), json!({ "metadata": { "name": "volcano-system" } })).await?;
        let kubeconfig = plane.kubeconfig("admin")?;
        let program = |name: &str| {
            let mut command = Command::new(built.program(name));
            command.arg("--kubeconfig").arg(&kubeconfig).args(["--leader-elect=false", "--enable-healthz=false"]);
            command
        };
        // The scheduler watches the folder of its configuration, in which nothing else may be.
        let folder = plane.dir().join("volcano");
        fs::create_dir_all(&folder)?;
        let file = folder.join("scheduler.conf");
        fs::write(&file, SCHEDULING)?;
        let mut scheduler = program("scheduler");
        scheduler.arg("--scheduler-conf").arg(file).args(["--scheduler-name=volcano", "--schedule-period=200ms"]);
        let mut controllers = program("controller-manager");
        controllers.arg("--controllers=queue-controller,pg-controller");
        let mut programs = [
            Process::start("volcano-scheduler", plane.dir(), scheduler)?,
            Process::start("volcano-controllers", plane.dir(), controllers)?,
        ];
        until_alive(&mut programs, START, "Volcano to open its queue", || async {
            let queue: Result<Value, _> = client.request(get(QUEUE)?).await;
            Ok(queue.ok().filter(|queue| queue["status"]["state"] == "Open").map(drop))
        })
        .await?;
        Ok(Volcano { _programs: programs })
    }
}
