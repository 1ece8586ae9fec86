//! The real training-operator beside a control plane: built from its Go module as that is published, with its own CRDs.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::slice;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use serde_json::json;

use crate::certificate::certificate;
use crate::control_plane::ControlPlane;
use crate::manifests::{create, documents_in};
use crate::ports::free_port;
use crate::process::{Process, until_alive};
use crate::published::Published;

const TRAINING_OPERATOR: Published = Published {
    module: "github.com/kubeflow/training-operator",
    version: "v1.9.3",
    commands: &["training-operator.v1"],
    replaced: &[],
};

const START: Duration = Duration::from_secs(120);

/// Its own namespace, in which it keeps its certificate.
const NAMESPACE: &str = "kubeflow";
const SECRET: &str = "training-operator-webhook-cert";

/// Where it looks for a certificate before it starts its controllers; the name is fixed in the program, and nothing is read from there.
const MOUNTED: &str = "/tmp/k8s-webhook-server/serving-certs";

/// A running training-operator; it ends with the value.
#[derive(Debug)]
pub struct TrainingOperator {
    _process: Process,
}

impl TrainingOperator {
    /// Its version.
    pub const VERSION: &str = TRAINING_OPERATOR.version;

    /// Its own CRDs, for [`Options::crds`](crate::Options::crds).
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn crds() -> Result<Vec<CustomResourceDefinition>> {
        let definitions = documents_in(&TRAINING_OPERATOR.build()?.module.join("manifests/base/crds"))?;
        let definitions = definitions.into_iter().filter(|one| one["kind"] == "CustomResourceDefinition");
        definitions.map(|definition| Ok(serde_json::from_value(definition)?)).collect()
    }

    /// Builds it if it is missing, starts it as a user with these arguments beside those that give it ports, and returns when
    /// it has its certificate: its controllers start within seconds.
    ///
    /// No webhook of it is registered, so that its requests alone are what its jobs cost.
    pub async fn start(plane: &ControlPlane, user: &str, arguments: &[&str]) -> Result<TrainingOperator> {
        let built = tokio::task::spawn_blocking(|| TRAINING_OPERATOR.build());
        let built = built.await.context("building training-operator panicked")??;
        let client = plane.client("admin").await?;
        create::<Namespace>(Api::all(client.clone()), json!({ "metadata": { "name": NAMESPACE } })).await?;
        let secrets = Api::<Secret>::namespaced(client.clone(), NAMESPACE);
        create::<Secret>(secrets.clone(), json!({ "metadata": { "name": SECRET } })).await?;
        let hooks = json!({ "metadata": { "name": "validator.training-operator.kubeflow.org" }, "webhooks": [] });
        create::<ValidatingWebhookConfiguration>(Api::all(client.clone()), hooks).await?;
        let folder = plane.dir().join("training-operator");
        mount_certificate(&folder)?;
        let ports = [free_port()?, free_port()?, free_port()?];
        let mut command = Command::new(built.program("training-operator.v1"));
        command
            .arg("--kubeconfig")
            .arg(plane.kubeconfig(user)?)
            .arg(format!("--webhook-server-port={}", ports[0]))
            .arg(format!("--metrics-bind-address=127.0.0.1:{}", ports[1]))
            .arg(format!("--health-probe-bind-address=127.0.0.1:{}", ports[2]))
            .args(arguments)
            .env("MY_POD_NAMESPACE", NAMESPACE)
            .env("TMPDIR", &folder);
        let mut process = Process::start("training-operator", plane.dir(), command)?;
        until_alive(slice::from_mut(&mut process), START, "training-operator to make its certificate", || async {
            let data = secrets.get(SECRET).await?.data.unwrap_or_default();
            Ok(data.contains_key("tls.key").then_some(()))
        })
        .await?;
        Ok(TrainingOperator { _process: process })
    }
}

/// What the volume of its pod would have: a certificate for its webhook server, which nobody asks, where its library looks for one
/// (below `TMPDIR`), and a file of the same name at the place that has to be there.
fn mount_certificate(temporary: &Path) -> Result<()> {
    let folder = temporary.join("k8s-webhook-server/serving-certs");
    fs::create_dir_all(&folder)?;
    let (certificate, key) = certificate(temporary)?;
    fs::copy(certificate, folder.join("tls.crt"))?;
    fs::copy(key, folder.join("tls.key"))?;
    fs::create_dir_all(MOUNTED).with_context(|| format!("failed to make {MOUNTED}"))?;
    fs::File::options().create(true).append(true).open(Path::new(MOUNTED).join("tls.crt"))?;
    Ok(())
}
