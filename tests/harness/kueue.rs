//! Real Kueue beside a control plane: built from its Go module as that is published, with its own CRDs and webhooks.
//!
//! Nothing of the module is kept here: its CRDs and webhooks are read from the module's folder. Out of a cluster, Kueue's
//! webhooks are reached by a Service of type ExternalName, whose name its own certificate has.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::slice;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Request;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::control_plane::ControlPlane;
use crate::manifests::{DEFINITIONS, create, documents, documents_in, post};
use crate::poll::until;
use crate::ports::free_port;
use crate::process::{Process, until_alive};
use crate::published::Published;

const KUEUE: Published =
    Published { module: "sigs.k8s.io/kueue", version: "v0.19.2", commands: &["kueue"], replaced: &[] };
const START: Duration = Duration::from_secs(180);

/// The namespace of Kueue and of its webhooks' Service.
const NAMESPACE: &str = "kueue-system";
const SERVICE: &str = "kueue-webhook-service";
const SECRET: &str = "kueue-webhook-server-cert";

/// Where webhook configurations are.
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1";

/// The webhooks of Kueue's own kinds. Those of jobs fail closed, so they are there for [`FRAMEWORKS`] alone.
const HOOKS: [&str; 3] = ["workload", "clusterqueue", "resourceflavor"];

/// Which of its integrations Kueue has on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integrations {
    /// All that are for kinds of these tests.
    All,
    /// Those of them that are on in the values of its chart.
    AsInstalled,
}

/// The kinds of jobs that Kueue can queue by its own integrations.
const FRAMEWORKS: [&str; 7] = [
    "batch/job",
    "kubeflow.org/mpijob",
    "kubeflow.org/tfjob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/xgboostjob",
    "kubeflow.org/jaxjob",
    "kubeflow.org/paddlejob",
];

/// The kinds that have two forms; Kueue gives their CRDs its certificate.
const CONVERTED: [&str; 5] = ["localqueues", "clusterqueues", "workloads", "cohorts", "multikueueclusters"];

/// A running Kueue. [`Kueue::stop`] removes it from the control plane; its process ends with the value.
#[derive(Debug)]
pub struct Kueue {
    process: Process,
    definitions: Vec<String>,
}

impl Kueue {
    /// Builds it if it is missing, starts it, and returns when its webhooks answer.
    pub async fn start(plane: &ControlPlane, integrations: Integrations) -> Result<Kueue> {
        let built = tokio::task::spawn_blocking(|| KUEUE.build()).await.context("building Kueue panicked")??;
        let client = plane.client("admin").await?;
        let port = free_port()?;
        let certificates = plane.dir().join("kueue-certificates");
        fs::create_dir_all(&certificates)?;
        let definitions = prepare(&client, &built.module, port).await?;
        let config = plane.dir().join("kueue.yaml");
        let frameworks = frameworks(&built.module, integrations)?;
        fs::write(&config, configuration(&certificates, port, &frameworks).to_string())?;
        let mut command = Command::new(built.program("kueue"));
        command.arg("--config").arg(config).arg("--kubeconfig").arg(plane.kubeconfig("admin")?);
        let process = Process::start("kueue", plane.dir(), command)?;
        let mut kueue = Kueue { process, definitions };
        kueue.ready(&client, &certificates).await?;
        Ok(kueue)
    }

    /// Ends it, and removes its webhooks, which would refuse everything, and its kinds.
    pub async fn stop(self, plane: &ControlPlane) -> Result<()> {
        let client = plane.client("admin").await?;
        for [kind, name] in configurations() {
            delete(&client, &format!("{WEBHOOKS}/{kind}/{name}")).await?;
        }
        drop(self.process);
        for name in &self.definitions {
            delete(&client, &format!("{DEFINITIONS}/{name}")).await?;
        }
        Ok(())
    }

    /// Gives Kueue the certificate that it makes, as the volume of its pod would, and waits until its webhooks answer.
    async fn ready(&mut self, client: &Client, certificates: &Path) -> Result<()> {
        let secrets = Api::<Secret>::namespaced(client.clone(), NAMESPACE);
        let files = until(START, "Kueue to make its certificate", || async {
            let data = secrets.get(SECRET).await?.data.unwrap_or_default();
            Ok(data.contains_key("tls.key").then_some(data))
        });
        for (name, ByteString(content)) in files.await? {
            fs::write(certificates.join(name), content)?;
        }
        let flavor = json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ResourceFlavor",
            "metadata": { "name": "asked-for-by-nobody" },
        });
        until_alive(slice::from_mut(&mut self.process), START, "Kueue's webhooks to answer", || async {
            let path = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors?dryRun=All";
            let answer: Result<Value, _> = client.request(post(path, &flavor)?).await;
            Ok(answer.ok().map(drop))
        })
        .await
    }
}

/// Creates what Kueue needs before it starts; returns the names of its CRDs.
async fn prepare(client: &Client, module: &Path, port: u16) -> Result<Vec<String>> {
    let named = |name: &str| json!({ "name": name, "namespace": NAMESPACE });
    create::<Namespace>(Api::all(client.clone()), json!({ "metadata": { "name": NAMESPACE } })).await?;
    let service =
        json!({ "metadata": named(SERVICE), "spec": { "type": "ExternalName", "externalName": "localhost" } });
    create::<Service>(Api::namespaced(client.clone(), NAMESPACE), service).await?;
    create::<Secret>(Api::namespaced(client.clone(), NAMESPACE), json!({ "metadata": named(SECRET) })).await?;
    let mut definitions = vec![];
    for mut definition in documents_in(&module.join("config/components/crd/bases"))? {
        let service = json!({ "name": SERVICE, "namespace": NAMESPACE, "path": "/convert", "port": port });
        let webhook = json!({ "clientConfig": { "service": service }, "conversionReviewVersions": ["v1"] });
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        if CONVERTED.contains(&plural) {
            definition["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": webhook });
        }
        definitions.push(definition["metadata"]["name"].as_str().unwrap_or_default().to_owned());
        let _: Value = client.request(post(DEFINITIONS, &definition)?).await?;
    }
    for mut hooks in documents(&module.join("config/components/webhook/manifests.yaml"))? {
        let name = format!("kueue-{}", hooks["metadata"]["name"].as_str().unwrap_or_default());
        let kind = format!("{}s", hooks["kind"].as_str().unwrap_or_default().to_lowercase());
        hooks["metadata"]["name"] = json!(name);
        if let Some(list) = hooks["webhooks"].as_array_mut() {
            // `batch/job` has none here: no Job of this control plane is queued by itself.
            let kinds = FRAMEWORKS.iter().filter_map(|name| name.strip_prefix("kubeflow.org/"));
            let wanted: Vec<_> = kinds.chain(HOOKS).map(|kind| format!("{kind}.kb.io")).collect();
            list.retain(|hook| hook["name"].as_str().is_some_and(|name| wanted.iter().any(|it| name[1..] == *it)));
            for hook in list {
                let service = &mut hook["clientConfig"]["service"];
                (service["name"], service["namespace"]) = (json!(SERVICE), json!(NAMESPACE));
                service["port"] = json!(port);
            }
        }
        let _: Value = client.request(post(&format!("{WEBHOOKS}/{kind}"), &hooks)?).await?;
    }
    Ok(definitions)
}

/// Returns the integrations that are on, which the chart has in a text of its values. The webhooks of the others are registered
/// all the same.
fn frameworks(module: &Path, integrations: Integrations) -> Result<Vec<&'static str>> {
    if integrations == Integrations::All {
        return Ok(FRAMEWORKS.to_vec());
    }
    let values = documents(&module.join("charts/kueue/values.yaml"))?;
    let text = values[0]["managerConfig"]["controllerManagerConfigYaml"].as_str().context("no configuration")?;
    let installed: Value = serde_norway::from_str(text).context("the configuration of the chart")?;
    let on = installed["integrations"]["frameworks"].as_array().context("no integrations")?;
    let on: Vec<_> = FRAMEWORKS.into_iter().filter(|it| on.iter().any(|on| on == it)).collect();
    ensure!(!on.is_empty() && on.len() < FRAMEWORKS.len(), "the chart has {on:?} on");
    Ok(on)
}

fn configuration(certificates: &Path, port: u16, frameworks: &[&str]) -> Value {
    json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": { "healthProbeBindAddress": "0" },
        "metrics": { "bindAddress": "0" },
        "webhook": { "host": "127.0.0.1", "port": port, "certDir": certificates },
        "leaderElection": { "leaderElect": false },
        "internalCertManagement": {
            "enable": true,
            "webhookServiceName": SERVICE,
            "webhookSecretName": SECRET,
        },
        "featureGates": { "VisibilityOnDemand": false },
        "integrations": { "frameworks": frameworks },
    })
}

fn configurations() -> [[&'static str; 2]; 2] {
    [
        ["mutatingwebhookconfigurations", "kueue-mutating-webhook-configuration"],
        ["validatingwebhookconfigurations", "kueue-validating-webhook-configuration"],
    ]
}

async fn delete(client: &Client, path: &str) -> Result<()> {
    let _: Value = client.request(Request::delete(path).body(vec![])?).await?;
    Ok(())
}
