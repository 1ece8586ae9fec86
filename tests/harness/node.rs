//! A real node: containerd, CNI, kubelet and CoreDNS. One at a time on a machine; needs root.
//!
//! containerd and kubelet live in process and mount namespaces of their own. Killing the first process of these ends all containers,
//! and no mount outlives it. What is left to remove then is in `machine.rs`.

mod logs;
mod machine;
mod relay;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{self, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::net::TcpStream;

use self::machine::{ADDRESS, BRIDGE, CGROUP, DATA, Machine, STATE, SUBNET};
use self::relay::Relay;
use crate::binaries::{Binaries, Tool};
use crate::control_plane::ControlPlane;
use crate::credentials::NODE_USER;
use crate::images::Image;
use crate::kwok::is_ready;
use crate::packages;
use crate::poll::until;
use crate::ports::free_port;
use crate::process::{Process, output, stop_all, until_alive};
use crate::run_dir::RunDir;

const START: Duration = Duration::from_secs(120);
/// How long it may take to unpack an image, which has up to a gigabyte.
const IMPORT: Duration = Duration::from_secs(600);
/// How long processes may take to end by themselves. Nothing they could save is needed again.
const PATIENCE: Duration = Duration::from_millis(500);
const STOP: Duration = Duration::from_secs(60);

/// A running node. Its containers and processes end with the value.
pub struct Node {
    processes: Vec<Process>,
    client: Client,
    dir: RunDir,
    _relay: Relay,
    // Dropped after the processes.
    machine: Machine,
}

impl Node {
    /// Installs and builds what is missing, starts the node and returns when it is Ready and names are served.
    /// Waits for a node of another process to end first. The control plane must have the option `scheduler`.
    pub async fn start(control_plane: &ControlPlane) -> Result<Node> {
        if !control_plane.has_scheduler() {
            bail!("a node gets no pods without the option scheduler");
        }
        let (binaries, pause, machine) =
            tokio::task::spawn_blocking(prepare).await.context("preparing the node panicked")??;
        let client = control_plane.client("admin").await?;
        let dir = RunDir::create("node")?;
        machine.furnish()?;
        let relay = Relay::start(control_plane.url().trim_start_matches("https://")).await?;
        let mut node = Node { processes: vec![], client, dir, _relay: relay, machine };
        node.configure(&pause)?;
        let kubeconfig = control_plane.kubeconfig("coredns")?;
        let init = node.init(&binaries, &control_plane.kubeconfig(NODE_USER)?)?;
        node.processes.push(Process::start("init", node.dir.path(), init)?);
        let names = node.names(&binaries, &kubeconfig)?;
        node.processes.push(Process::start("coredns", node.dir.path(), names)?);
        node.containerd_answers().await?;
        node.import_image(pause.archive())?;
        node.ready().await?;
        Ok(node)
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        NODE_USER.trim_start_matches("system:node:")
    }

    /// The folder with all configurations and logs of this run.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Makes an image available to pods, by the name it has in the OCI archive.
    pub fn import_image(&self, archive: &Path) -> Result<()> {
        output(ctr(IMPORT).args(["images", "import"]).arg(archive))
            .with_context(|| format!("failed to import {}", archive.display()))?;
        Ok(())
    }

    /// What a container of a pod has printed so far, its earlier attempts included. Gone soon after the pod is deleted.
    pub fn logs(&self, pod: &Pod, container: &str) -> Result<String> {
        logs::read(&self.dir.join("pods"), pod, container)
    }

    /// Deletes all pods of the node, waits until they are gone, and ends it; an error if something of it stays on the machine.
    /// Dropping the value kills what runs.
    pub async fn stop(mut self) -> Result<()> {
        // Pods that are replaced by their controllers must not come back here.
        let nodes = Api::<v1::Node>::all(self.client.clone());
        let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
        nodes
            .patch(self.name(), &PatchParams::default(), &cordon)
            .await
            .with_context(|| format!("failed to cordon node/{}", self.name()))?;
        let pods = Api::<Pod>::all(self.client.clone());
        let mine = ListParams::default().fields(&format!("spec.nodeName={}", self.name()));
        let deletions = pods.list(&mine).await?.items.into_iter().map(|pod| self.delete(pod));
        try_join_all(deletions).await?;
        until(STOP, format!("all pods of node/{} to be gone", self.name()), || {
            let (pods, mine) = (&pods, &mine);
            async move { Ok(pods.list(mine).await?.items.is_empty().then_some(())) }
        })
        .await?;
        stop_all(&mut self.processes, PATIENCE);
        self.machine.clear()
    }

    async fn delete(&self, pod: Pod) -> Result<()> {
        let api = Api::<Pod>::namespaced(self.client.clone(), &pod.namespace().context("a pod has a namespace")?);
        match api.delete(&pod.name_any(), &DeleteParams::default().grace_period(1)).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            other => other.map(drop).with_context(|| format!("failed to delete pod/{}", pod.name_any())),
        }
    }

    fn configure(&self, pause: &Image) -> Result<()> {
        for folder in ["cni", "pods"].map(|name| self.dir.join(name)) {
            fs::create_dir(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
        }
        let run = self.dir.path().display().to_string();
        let filled = |template: &str| {
            template
                .replace("{run}", &run)
                .replace("{state}", STATE)
                .replace("{data}", DATA)
                .replace("{pause}", pause.name())
                .replace("{bridge}", BRIDGE)
                .replace("{subnet}", SUBNET)
                .replace("{address}", ADDRESS)
                .replace("{cgroup}", CGROUP)
        };
        let port = free_port()?.to_string();
        self.dir.write("init.sh", include_str!("node/init.sh"))?;
        self.dir.write("containerd.toml", &filled(include_str!("node/containerd.toml")))?;
        self.dir.write("cni/10-troupe.conflist", &filled(include_str!("node/cni.conflist")))?;
        self.dir.write("kubelet.yaml", &filled(include_str!("node/kubelet.yaml")).replace("{port}", &port))?;
        self.dir.write("Corefile", &filled(include_str!("node/Corefile")))?;
        Ok(())
    }

    fn init(&self, binaries: &Binaries, kubeconfig: &Path) -> Result<Command> {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh"])
            .arg(self.dir.join("init.sh"))
            .arg(self.dir.path())
            .arg(STATE)
            .arg(binaries.path(Tool::Kubelet)?)
            .arg(kubeconfig)
            .args([self.name(), ADDRESS, DATA]);
        Ok(command)
    }

    fn names(&self, binaries: &Binaries, kubeconfig: &Path) -> Result<Command> {
        let corefile = self.dir.join("Corefile");
        let text = fs::read_to_string(&corefile)?.replace("{kubeconfig}", &kubeconfig.display().to_string());
        fs::write(&corefile, text)?;
        let mut command = Command::new(binaries.path(Tool::CoreDns)?);
        command.arg("-conf").arg(corefile);
        Ok(command)
    }

    async fn containerd_answers(&mut self) -> Result<()> {
        until_alive(&mut self.processes, START, "containerd to answer", || async {
            output(ctr(START).arg("version")).map(Some)
        })
        .await
        .map(drop)
    }

    async fn ready(&mut self) -> Result<()> {
        let nodes = Api::<v1::Node>::all(self.client.clone());
        let name = self.name();
        until_alive(&mut self.processes, START, format!("node/{name} to be ready"), || async {
            let node = nodes.get(name).await?;
            let tainted = node.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
            Ok((is_ready(&node) && !tainted).then_some(()))
        })
        .await?;
        until_alive(&mut self.processes, START, format!("names to be served at {ADDRESS}"), || async {
            Ok(Some(TcpStream::connect((ADDRESS, 53)).await?))
        })
        .await
        .map(drop)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        stop_all(&mut self.processes, PATIENCE);
    }
}

/// What takes long and needs no control plane.
fn prepare() -> Result<(Binaries, Image, Machine)> {
    packages::have(packages::NODE)?;
    Ok((Binaries::node()?, Image::pause()?, Machine::hold()?))
}

/// The command line of containerd, which gives up after this time.
fn ctr(patience: Duration) -> Command {
    let mut command = Command::new("ctr");
    command.args(["--address", &format!("{STATE}/containerd.sock"), "--namespace", "k8s.io"]);
    command.args(["--timeout", &format!("{}s", patience.as_secs())]);
    command
}

#[cfg(test)]
mod tests;
