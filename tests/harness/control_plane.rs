//! A control plane of its own for one test: etcd, API server, controllers, and what the options add.

mod programs;
mod trouble;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};

use self::programs::{api_server, controller_manager, etcd, scheduler, tools};
use crate::binaries::{Binaries, Tool};
use crate::credentials::{Credentials, kubeconfig, kubeconfig_file, logins};
use crate::options::Options;
use crate::poll::until;
use crate::ports::free_port;
use crate::process::{Process, stop_all, until_alive};
use crate::run_dir::RunDir;
use crate::{audit, kwok};

pub use self::trouble::Part;

const START: Duration = Duration::from_secs(90);

/// A running control plane. Its processes end, and its folder goes, with the value.
#[derive(Debug)]
pub struct ControlPlane {
    processes: Vec<Process>,
    url: String,
    options: Options,
    dir: RunDir,
}

impl ControlPlane {
    /// Builds what is missing, starts everything, and returns when the API server is ready, the CRDs are established and the fake nodes are Ready.
    pub async fn start(options: Options) -> Result<ControlPlane> {
        // Trusting either of two linked crypto providers is a choice that has to be made once; that it was made before is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let binaries = {
            let (tools, release) = (tools(&options), options.release);
            tokio::task::spawn_blocking(move || Binaries::of_release(release, &tools))
                .await
                .context("building the control plane panicked")??
        };
        let dir = RunDir::create("control-plane")?;
        let credentials = Credentials::create(&dir, &options)?;
        let [store, peers, port] = [free_port()?, free_port()?, free_port()?];
        let url = format!("https://127.0.0.1:{port}");
        for user in logins(&options) {
            dir.write(&kubeconfig_file(user), &kubeconfig(&url, &credentials.certificate, user))?;
        }
        let mut it = ControlPlane { processes: vec![], url, options, dir };
        it.launch("etcd", etcd(&binaries, &it.dir, store, peers)?)?;
        it.launch("kube-apiserver", api_server(&binaries, &it.dir, &credentials, &it.options, store, port)?)?;
        it.ready().await?;
        let admin = it.client("admin").await?;
        try_join_all(it.options.crds.iter().map(|crd| establish(&admin, crd))).await?;
        let manager = controller_manager(&binaries, &it.kubeconfig("controller-manager")?, &credentials, &it.options)?;
        it.launch("kube-controller-manager", manager)?;
        if it.options.scheduler {
            it.launch("kube-scheduler", scheduler(&binaries, &it.kubeconfig("scheduler")?, &it.options)?)?;
        }
        if it.options.fake_nodes > 0 {
            let program = Command::new(binaries.path(Tool::Kwok)?);
            let kwok = kwok::start(program, &it.kubeconfig("kwok")?, &it.dir, &admin, it.options.fake_nodes).await?;
            it.processes.push(kwok);
        }
        Ok(it)
    }

    /// The API server's address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder with all configurations and logs of this run.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The kubeconfig file of `admin`, `troupe`, `user` or an actor of the options.
    pub fn kubeconfig(&self, user: &str) -> Result<PathBuf> {
        if !logins(&self.options).any(|login| login == user) {
            bail!("{user} cannot log in: the options name no such actor");
        }
        Ok(self.dir.join(&kubeconfig_file(user)))
    }

    /// A client that is this user.
    pub async fn client(&self, user: &str) -> Result<Client> {
        let file = Kubeconfig::read_from(self.kubeconfig(user)?)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// Every finished request so far.
    pub fn audit(&self) -> Result<Vec<audit::Record>> {
        audit::read(&self.dir.join("audit.log"))
    }

    /// Ends all processes and removes the folder. Dropping the value does the same.
    pub fn stop(self) {
        drop(self);
    }

    /// Whether pods are scheduled at all.
    pub(crate) fn has_scheduler(&self) -> bool {
        self.options.scheduler
    }

    fn launch(&mut self, name: &str, command: Command) -> Result<()> {
        self.processes.push(Process::start(name, self.dir.path(), command)?);
        Ok(())
    }

    async fn ready(&mut self) -> Result<()> {
        let client = self.client("admin").await?;
        let what = format!("the API server at {} to be ready", self.url);
        until_alive(&mut self.processes, START, what, || async {
            let request = http::Request::get("/readyz").body(vec![])?;
            Ok(client.request_text(request).await.map(|_| Some(()))?)
        })
        .await
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        stop_all(&mut self.processes, Duration::from_millis(500));
    }
}

async fn establish(client: &Client, crd: &CustomResourceDefinition) -> Result<()> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let name = crd.name_any();
    api.create(&PostParams::default(), crd).await.with_context(|| format!("failed to create crd/{name}"))?;
    until(START, format!("crd/{name} to be established"), || {
        let (api, name) = (&api, &name);
        async move {
            let conditions = api.get(name).await?.status.and_then(|status| status.conditions).unwrap_or_default();
            Ok(conditions
                .iter()
                .any(|condition| condition.type_ == "Established" && condition.status == "True")
                .then_some(()))
        }
    })
    .await
}

#[cfg(test)]
mod tests;
