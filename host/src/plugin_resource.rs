//! The `Plugin` resource: where a plugin comes from, what it may do, and what became of it.
#![allow(unreachable_pub, reason = "KubeSchema repeats each type inside a function")]
#![allow(clippy::duplicated_attributes, reason = "each printer column has a type")]

use decide::grants::Grants;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `spec` of a Plugin (`troupe.dev/v1alpha1`, cluster-scoped). Its name is the name that the plugin gives itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema, kube::CustomResource)]
#[kube(
    group = "troupe.dev",
    version = "v1alpha1",
    kind = "Plugin",
    plural = "plugins",
    status = "PluginStatus",
    doc = "Plugin says which component serves the jobs of a framework, and what it may do.",
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.shortDigest"),
    printcolumn(name = "Serving", type_ = "string", json_path = ".status.conditions[?(@.type==\"Serving\")].status"),
    printcolumn(name = "Degraded", type_ = "string", json_path = ".status.conditions[?(@.type==\"Degraded\")].reason"),
    printcolumn(name = "Candidate", type_ = "string", json_path = ".status.candidate.state"),
    printcolumn(name = "Jobs", type_ = "integer", json_path = ".status.jobs"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.lastError", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct PluginSpec {
    /// Where its bytes come from.
    pub source: Source,
    /// Only the component with this SHA-256, in hex, serves: the source's if it has it, else the one that the host has kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self.matches('^[0-9a-f]{64}$')").message("must be 64 hex digits"))]
    pub digest: Option<String>,
    /// A cosign public key, PEM: an artifact of a registry that it has not signed is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self.contains('-----BEGIN PUBLIC KEY-----')").message("must be a public key in PEM"))]
    pub public_key: Option<String>,
    /// Settings, valid against the plugin's own schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "troupe_plugin::crd::opaque")]
    pub config: Option<Value>,
    /// What its calls may use up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<sandbox::PluginLimits>,
    /// What its plans may contain beyond what a job's user asks for. Nothing unless it stands here; with source.builtIn all
    /// that the plugin asks for, unless anything stands here.
    #[serde(default)]
    #[schemars(transform = without_blanks)]
    pub grants: Grants,
    /// How a new digest comes to serve.
    #[serde(default)]
    pub upgrade: Upgrade,
}

impl PluginSpec {
    /// Returns the grants of the component. `None` means all that it asks for: so it is with what comes with the host, where
    /// the Plugin names no grant.
    #[must_use]
    pub fn granted(&self) -> Option<&Grants> {
        let is_trusted = self.source.built_in.is_some() && self.grants == Grants::default();
        (!is_trusted).then_some(&self.grants)
    }

    /// Returns the grants that hold for what comes with the host: fewer than it asks for, perhaps.
    #[must_use]
    pub fn granted_to_built_in(&self) -> Option<&Grants> {
        self.granted().filter(|_| self.source.built_in.is_some())
    }
}

/// What a grant names has no spaces.
fn without_blanks(schema: &mut Schema) {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for list in fields.into_iter().flat_map(serde_json::Map::values_mut) {
        if list["items"]["type"] == "string" {
            list["items"]["pattern"] = json!(r"^\S+$");
        }
    }
}

/// No job has a label with another key or value, nor as many.
fn labels(schema: &mut Schema) {
    schema.insert("maxProperties".to_owned(), json!(16));
    let key = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$";
    let rule =
        json!({ "rule": format!("self.all(key, key.matches(r'{key}'))"), "message": "must have keys of labels" });
    schema.insert("x-kubernetes-validations".to_owned(), json!([rule]));
    let values = schema.get_mut("additionalProperties").and_then(Value::as_object_mut);
    if let Some(values) = values {
        values.insert("pattern".to_owned(), json!("^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"));
    }
}

/// Where a plugin's bytes come from: exactly one of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(
    "[has(self.configMap), has(self.oci), has(self.builtIn)].filter(it, it).size() == 1"
).message("must have exactly one of configMap, oci and builtIn"))]
pub struct Source {
    /// A ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,
    /// An artifact of a registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSource>,
    /// The plugin of this name that comes with the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in: Option<BuiltInSource>,
}

/// A ConfigMap with the component in `binaryData`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// Its name.
    #[schemars(regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub name: String,
    /// Its namespace: the host's own, which is the default, or one that the host is configured to allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
    /// The key; `plugin.wasm` or `plugin.wasm.zst` unless it stands here. What ends in `.zst` is decompressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[-._a-zA-Z0-9]+$"))]
    pub key: Option<String>,
}

/// An artifact of a registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OciSource {
    /// `registry/repository:tag` or `registry/repository@sha256:...`.
    #[schemars(regex(pattern = r"^[^\s/]+/\S+$"))]
    pub reference: String,
    /// A Secret of type `kubernetes.io/dockerconfigjson` in the host's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub pull_secret: Option<String>,
    /// The registry is asked by plain HTTP.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}

/// The plugin that comes with the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BuiltInSource {}

/// How a new digest comes to serve.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// What a new digest does to jobs.
    #[serde(default)]
    pub strategy: Strategy,
    /// The digest that may serve: with `Manual`, or although its canary was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9a-f]{64})?$"))]
    pub approve: Option<String>,
    /// A new digest is asked beside the active one on every pass, and never acts, until this is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shadow: bool,
    /// A new digest serves only some of the new jobs, until this is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
}

/// What a new digest does to jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// New jobs are planned by it; those that run stay with theirs.
    #[default]
    NewJobs,
    /// Running jobs move to it too, where its plan differs in nothing that touches a live pod.
    Migrate,
    /// Nothing, until `approve` names it.
    Manual,
}

/// Which new jobs a candidate serves: those of the percentage that the selector selects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Canary {
    /// How many of a hundred jobs, by their uid.
    #[x_kube(validation = Rule::new("self >= 0 && self <= 100").message("must be between 0 and 100"))]
    pub percent: u32,
    /// Labels that the job must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = labels)]
    pub match_labels: BTreeMap<String, String>,
}

/// `status` of a Plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginStatus {
    /// The generation that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The digest that serves new jobs, the active one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Its first twelve digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_digest: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest that served before; `troupe plugin rollback` goes back to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// A digest that does not serve all new jobs, or not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
    /// The component that the host looks at now, or that hosts ended by looking at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looking: Option<Looking>,
    /// What the reference of a registry resolved to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// Unfinished jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// Unfinished jobs by the digest that plans them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub jobs_by_digest: BTreeMap<String, u32>,
    /// The last thing that went wrong, until it is put right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Fetched, Compiled, Accepted, Serving, Degraded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "troupe_plugin::crd::conditions")]
    pub conditions: Vec<Condition>,
}

/// A digest that does not serve all new jobs, or not yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Candidate {
    /// The SHA-256 of its component, in hex.
    pub digest: String,
    /// Its version.
    pub version: String,
    /// How far it has come.
    pub state: CandidateState,
    /// What it would do to the jobs that are there.
    pub preflight: Comparison,
    /// What it would have done since, as a shadow or a canary.
    pub live: Comparison,
    /// Why it was refused or stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A look at a component that does not serve, written down before it begins and removed after it has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Looking {
    /// The SHA-256 of the component, in hex.
    pub digest: String,
    /// The generation of the Plugin for which it is looked at.
    pub generation: i64,
    /// Looks that have begun since the last one that has ended.
    pub times: u32,
}

/// How far a candidate has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CandidateState {
    /// It may not serve.
    #[default]
    Refused,
    /// It waits for `spec.upgrade.approve`.
    Waiting,
    /// It is asked and does not act.
    Shadow,
    /// It serves some of the new jobs.
    Canary,
    /// It served some of the new jobs and was stopped.
    Stopped,
}

/// Answers of two digests to the same snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Comparison {
    /// Passes that were compared.
    pub passes: u32,
    /// Those with any difference.
    pub different: u32,
    /// Those with a difference that would touch a live pod.
    pub dangerous: u32,
    /// Those that the candidate gave no answer to, where the active one did.
    pub failed: u32,
    /// The first differences, by job and field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::CustomResourceExt;
    use serde_json::json;

    /// The schemas of whole numbers in it, by place.
    fn numbers(at: &str, schema: &Value) -> Vec<(String, Value)> {
        let mut found = vec![];
        if schema["type"] == "integer" {
            found.push((at.to_owned(), schema.clone()));
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            found.extend(numbers(&format!("{at}.{name}"), property));
        }
        found
    }

    // One number that the host cannot read would cost its Plugin everything else that it says.
    #[test]
    fn the_api_server_takes_no_number_that_the_host_cannot_read() {
        let crd = json!(Plugin::crd());
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let numbers = numbers("spec", spec);
        assert!(numbers.len() > 8, "{numbers:#?}");
        for (at, schema) in numbers {
            let most = match schema["format"].as_str() {
                Some("uint32") => f64::from(u32::MAX),
                _ => 9_007_199_254_740_991.0,
            };
            let is_bounded = schema["maximum"].as_f64().is_some_and(|maximum| maximum <= most);
            assert!(is_bounded || schema["x-kubernetes-validations"].is_array(), "{at}: {schema}");
            assert!(schema["minimum"].as_f64().is_some_and(|minimum| minimum >= 0.0), "{at}: {schema}");
        }
    }
}
