//! The same of Plugin objects: what the API server does not refuse of a field's value is harmless, with the reason, and the host
//! can read it.

use super::{
    fields::fields,
    settings::{Tried, why},
};
use crate::{
    cluster::objects::{CONFIG_MAPS, Namespace, SOON, at, text},
    operator::Operator,
    trust,
};
use anyhow::{Result, ensure};
use harness::{ControlPlane, until};
use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Client,
    api::{GetParams, PostParams},
    core::Request,
};
use sandbox::source;
use serde_json::{Value, json};

const PLUGINS: &str = "/apis/troupe.dev/v1alpha1/plugins";

/// What the component calls itself.
const NAME: &str = "paddle";

/// Valid Plugins that have, together, every field.
fn samples() -> [Value; 3] {
    let names = json!(["a"]);
    let lists = [
        "appArmorProfiles",
        "capabilities",
        "configMaps",
        "deletes",
        "hostPaths",
        "imagePullSecrets",
        "images",
        "kinds",
        "namespaces",
        "nodeNames",
        "nodeSelectors",
        "otherFields",
        "persistentVolumeClaims",
        "priorityClasses",
        "procMounts",
        "reads",
        "runtimeClasses",
        "schedulers",
        "seccompProfiles",
        "secrets",
        "serviceAccounts",
        "serviceTypes",
        "sysctls",
        "tolerations",
        "volumes",
    ];
    let mut grants = json!({ "maxObjects": 1, "maxReplicas": 1 });
    for switch in [
        "allowPrivilegeEscalation",
        "commands",
        "dns",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostPorts",
        "privileged",
        "runAsRoot",
        "serviceAccountToken",
    ] {
        grants[switch] = json!(false);
    }
    for list in lists {
        grants[list] = names.clone();
    }
    let limits = json!({ "answerBytes": 1 << 20, "concurrency": 1, "fuel": 1 << 30, "fuelPerMinute": 1_u64 << 40, "logLines": 1,
        "memoryBytes": 1 << 26, "wallMilliseconds": 10_000 });
    let upgrade = json!({ "approve": "a".repeat(64), "shadow": false, "strategy": "Manual",
        "canary": { "percent": 1, "matchLabels": { "a": "b" } } });
    let key = "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n";
    let of = |spec: Value| json!({ "apiVersion": "troupe.dev/v1alpha1", "kind": "Plugin", "metadata": { "name": NAME }, "spec": spec });
    [
        of(
            json!({ "source": { "configMap": { "name": "a", "namespace": "a", "key": "plugin.wasm" } }, "digest": "a".repeat(64),
            "config": { "a": 1 }, "limits": limits, "grants": grants, "upgrade": upgrade }),
        ),
        of(json!({ "source": { "oci": { "reference": "registry.example/a:1", "pullSecret": "a", "insecure": false } },
            "publicKey": key })),
        of(json!({ "source": { "builtIn": {} } })),
    ]
}

/// What an API server said of all values.
pub(crate) struct Asked {
    pub(crate) tried: Vec<Tried>,
    /// The Plugins that it takes, by the value that each has.
    pub(crate) taken: Vec<(String, Value)>,
    /// The fields that no sample has.
    pub(crate) without: Vec<String>,
}

/// Asks the API server for each value, without storing anything.
pub(crate) async fn asked(client: &Client, crds: &[CustomResourceDefinition]) -> Result<Asked> {
    let crd = crds.iter().find(|crd| crd.metadata.name.as_deref() == Some("plugins.troupe.dev")).unwrap();
    let mut asked = Asked { tried: vec![], taken: vec![], without: vec![] };
    for sample in samples() {
        assert_eq!(refused(client, &sample).await?, None, "{sample:#}");
    }
    for field in fields(crd) {
        let mut found = false;
        for sample in samples() {
            for place in field.places(&sample) {
                found = true;
                for value in field.nonsense(sample.pointer(&place.pointer).unwrap_or(&Value::Null)) {
                    let plugin = place.with(&sample, &value);
                    if plugin != sample {
                        let refused = refused(client, &plugin).await?;
                        if refused.is_none() {
                            asked.taken.push((format!("{} = {value}", place.name), plugin));
                        }
                        asked.tried.push(Tried { of: "a Plugin".into(), name: place.name.clone(), value, refused });
                    }
                }
            }
        }
        if !found {
            asked.without.push(field.name());
        }
    }
    Ok(asked)
}

/// Writes each Plugin that the API server takes over one that serves, and that one again where it does not. Returns those of
/// which the host says that it cannot read them, or does not say why they do not serve.
pub(crate) async fn unread(plane: &ControlPlane, taken: &[(String, Value)]) -> Result<Vec<String>> {
    let namespace = Namespace::create_in(plane.client("user").await?, "values-of-plugins").await;
    let client = &namespace.client;
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "paddle" },
        "binaryData": { source::KEY: ByteString(trust::version("values")) } });
    let request = CONFIG_MAPS.requests(&namespace.name).create(&PostParams::default(), serde_json::to_vec(&map)?)?;
    let _: Value = client.request(request).await?;
    let arguments = ["--namespace", &namespace.name, "--plugin-namespace", &namespace.name];
    let operator = Operator::start(plane, &arguments).await;
    let serving = serving(&samples()[0]);
    let request = Request::new(PLUGINS).create(&PostParams::default(), serde_json::to_vec(&serving)?)?;
    let _: Value = client.request(request).await?;
    let said = written(client, &serving).await?;
    ensure!(is_serving(&said), "{said:#}");
    let mut unread = vec![];
    for (name, plugin) in taken {
        let said = written(client, &self::serving(plugin)).await?;
        let is_said = is_serving(&said)
            || why_not(&said).is_some_and(|(reason, words)| reason != "InvalidSpec" && !words.is_empty());
        if !is_said {
            unread.push(format!("{name}: {said}"));
        }
        if !is_serving(&said) {
            let said = written(client, &serving).await?;
            ensure!(is_serving(&said), "after {name}: {said}");
        }
    }
    operator.stop().await;
    Ok(unread)
}

/// The values that are accepted without a reason.
pub(crate) fn silent(tried: &[Tried]) -> Vec<String> {
    let silent = tried.iter().filter(|it| it.refused.is_none() && why(it).is_none());
    silent.map(|it| format!("{} = {}", it.name, it.value)).collect()
}

/// The Plugin as one that serves from the ConfigMap, with what its component needs beside what a sample grants.
fn serving(plugin: &Value) -> Value {
    let (mut plugin, sample) = (plugin.clone(), &samples()[0]);
    let spec = &mut plugin["spec"];
    for place in ["digest", "config"] {
        if spec[place] == sample["spec"][place] {
            spec.as_object_mut().unwrap().remove(place);
        }
    }
    spec["upgrade"]["strategy"] = json!("NewJobs");
    spec["source"] = json!({ "configMap": { "name": "paddle" } });
    for (grant, needed) in json!(trust::grants()).as_object().unwrap() {
        if spec["grants"][grant] == sample["spec"]["grants"][grant] {
            spec["grants"][grant] = needed.clone();
        }
    }
    plugin
}

/// Puts the Plugin in the place of the one that is there, and returns its conditions once the host has looked at it.
async fn written(client: &Client, plugin: &Value) -> Result<Value> {
    let get = || Request::new(PLUGINS).get(NAME, &GetParams::default());
    let there: Value = client.request(get()?).await?;
    let mut plugin = plugin.clone();
    plugin["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"].clone();
    let request = Request::new(PLUGINS).replace(NAME, &PostParams::default(), serde_json::to_vec(&plugin)?)?;
    let stored: Value = client.request(request).await?;
    let generation = at(&stored, "/metadata/generation").clone();
    until(SOON, "the host to have looked at the Plugin", || async {
        let plugin: Value = client.request(get()?).await?;
        ensure!(at(&plugin, "/status/observedGeneration") == &generation, "{:#}", at(&plugin, "/status"));
        Ok(Some(at(&plugin, "/status/conditions").clone()))
    })
    .await
}

fn is_serving(conditions: &Value) -> bool {
    conditions.as_array().into_iter().flatten().any(|it| it["type"] == "Serving" && it["status"] == "True")
}

/// Reason and words of the first step that failed.
fn why_not(conditions: &Value) -> Option<(&str, &str)> {
    let failed = conditions.as_array()?.iter().find(|it| it["type"] != "Serving" && it["status"] == "False")?;
    Some((text(failed, "/reason"), text(failed, "/message")))
}

async fn refused(client: &Client, plugin: &Value) -> Result<Option<String>> {
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let request = Request::new(PLUGINS).create(&parameters, serde_json::to_vec(plugin)?)?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(Some(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}
