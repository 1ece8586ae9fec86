//! A PaddleJob's spec, and the plugin's config.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use troupe_plugin::{GivenResources, MAX_REPLICAS, Name, Number, UserTemplate};

// What the fields may be, for the CRD and for the check of a job.

pub(crate) const REPLICAS: Number = Number { path: "replicas", least: 0, most: MAX_REPLICAS as i64 };
/// With 0 no pod waits for another.
pub(crate) const MIN_AVAILABLE: Number = Number::at_least("spec.schedulingPolicy.minAvailable", 0);
pub(crate) const QUEUE: Name = Name { path: "spec.schedulingPolicy.queue" };
pub(crate) const PRIORITY_CLASS: Name = Name { path: "spec.schedulingPolicy.priorityClass" };

/// The clean-pod policies. The original takes any other text for Never.
pub(crate) const CLEAN_POD_POLICIES: [&str; 4] = ["Always", "Never", "OnFailure", "OnCompletion"];
/// How pods may address each other. The original takes any other text for `PodIP`.
pub(crate) const INTRANETS: [&str; 3] = ["PodIP", "Service", "Host"];

/// `spec` of a PaddleJob. Enumerations are plain text, since the original accepts any value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(
    all(feature = "crd", not(target_family = "wasm")),
    derive(schemars::JsonSchema, kube::CustomResource),
    kube(
        group = "batch.paddlepaddle.org",
        version = "v1",
        kind = "PaddleJob",
        plural = "paddlejobs",
        singular = "paddlejob",
        shortname = "pdj",
        namespaced,
        status = "crate::crd::PaddleJobStatus",
        doc = "PaddleJob trains a model with PaddlePaddle: with parameter servers, collectively, or in one pod.",
        printcolumn(name = "Status", type_ = "string", json_path = ".status.phase"),
        printcolumn(name = "Mode", type_ = "string", json_path = ".status.mode"),
        printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
    )
)]
pub struct PaddleJobSpec {
    /// Which pods are deleted when: Always, Never, OnFailure, OnCompletion. Absent is OnCompletion, other text Never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clean_pod_policy: Option<String>,
    /// How pods address each other: PodIP, Service, Host. Absent or other text is PodIP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intranet: Option<String>,
    /// More than 0 adds the gloo variables to a job with parameter servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with_gloo: Option<i64>,
    /// Present, with any value, makes the job elastic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elastic: Option<i64>,
    /// How Volcano sees the job; without Volcano it has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_policy: Option<SchedulingPolicy>,
    /// The parameter servers: with them the job is of mode PS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ps: Option<ResourceSpec>,
    /// The trainers. Several without parameter servers train collectively.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<ResourceSpec>,
    /// The heterogeneous workers, which compute a part of the model on other hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heter: Option<ResourceSpec>,
}

/// One role of a PaddleJob.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(all(feature = "crd", not(target_family = "wasm")), derive(schemars::JsonSchema))]
pub struct ResourceSpec {
    /// How many pods.
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crate::crd::replicas"))]
    pub replicas: i64,
    /// The least pods of an elastic job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<i64>,
    /// The most pods of an elastic job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<i64>,
    /// The pods: their metadata and spec, as in a Pod. The first container runs the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        all(feature = "crd", not(target_family = "wasm")),
        schemars(schema_with = "troupe_plugin::crd::pod_template_merged_as_1_23")
    )]
    pub template: Option<UserTemplate>,
}

/// Tuning of the PodGroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(all(feature = "crd", not(target_family = "wasm")), derive(schemars::JsonSchema))]
pub struct SchedulingPolicy {
    /// The least pods that start together. Defaults to all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crate::crd::min_available"))]
    pub min_available: Option<i32>,
    /// Volcano's queue. Defaults to Volcano's own default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(all(feature = "crd", not(target_family = "wasm")), schemars(schema_with = "crate::crd::queue"))]
    pub queue: Option<String>,
    /// The PriorityClass of the group of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        all(feature = "crd", not(target_family = "wasm")),
        schemars(schema_with = "crate::crd::priority_class")
    )]
    pub priority_class: Option<String>,
    /// The resources that have to be free before any pod starts, by resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        all(feature = "crd", not(target_family = "wasm")),
        schemars(schema_with = "troupe_plugin::crd::quantities")
    )]
    pub min_resources: Option<BTreeMap<String, Value>>,
}

/// How pods address each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intranet {
    PodIp,
    Service,
    Host,
}

/// A role of the spec: the original's name, Paddle's `TRAINING_ROLE`, and the user's section.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Role<'a> {
    pub(crate) name: &'static str,
    pub(crate) training_role: &'static str,
    pub(crate) spec: &'a ResourceSpec,
}

impl Role<'_> {
    /// Returns the number of pods; 0 for a negative number, which `plan` refuses.
    pub(crate) fn replicas(&self) -> u32 {
        u32::try_from(self.spec.replicas).unwrap_or(0)
    }
}

/// The roles that a job may have, in the original's order: the original's name and Paddle's `TRAINING_ROLE`. Better: Paddle
/// refuses the original's `HETER` (seen with 2.6.2 and 3.3.1).
pub(crate) const ROLES: [(&str, &str); 3] = [("ps", "PSERVER"), ("worker", "TRAINER"), ("heter", "HETER_TRAINER")];

impl PaddleJobSpec {
    /// Returns the roles of the spec, in the original's order.
    pub(crate) fn roles(&self) -> impl Iterator<Item = Role<'_>> {
        let specs = [&self.ps, &self.worker, &self.heter];
        let roles = ROLES.into_iter().zip(specs);
        roles.filter_map(|((name, training_role), spec)| Some(Role { name, training_role, spec: spec.as_ref()? }))
    }

    /// Returns the names of the roles that the spec does not have.
    pub(crate) fn other_roles(&self) -> impl Iterator<Item = &'static str> {
        let names = ROLES.into_iter().map(|(name, _)| name);
        names.filter(|name| self.roles().all(|role| role.name != *name))
    }

    pub(crate) fn intranet(&self) -> Intranet {
        match self.intranet.as_deref() {
            Some("Service") => Intranet::Service,
            Some("Host") => Intranet::Host,
            _ => Intranet::PodIp,
        }
    }
}

/// The default image of the init container.
pub(crate) const INIT_IMAGE: &str = "docker.io/library/alpine:3.10";

/// The cluster operator's settings. The process flags of the original are keys here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Config {
    /// Image of the init container that waits until the names of its role resolve (`--initImage`). An empty image omits
    /// the container.
    pub init_image: String,
    /// `resources` of that container. Absent: those of the user's first container, cpu, memory and ephemeral storage.
    pub init_resources: Option<GivenResources>,
    /// The gang scheduler of each job that names no other: `volcano`, `kubernetes`, or the name of a scheduler with the
    /// scheduler-plugins' PodGroup (`--scheduling`).
    pub scheduling: String,
    /// Accepted and ignored, as in the original since v0.3.3 (`--etcd-server`).
    pub etcd_server: String,
    /// Jobs with intranet PodIP get neither Services nor the init container: their pods find each other by address.
    pub lean: bool,
    /// A job with servers is Completed when its other pods have succeeded, even if its servers still run. The servers
    /// are then deleted.
    pub complete_without_servers: bool,
}

impl Config {
    /// Returns whether a job with this intranet gets neither Services nor the init container.
    pub(crate) fn is_lean(&self, intranet: Intranet) -> bool {
        self.lean && intranet == Intranet::PodIp
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            init_image: INIT_IMAGE.into(),
            init_resources: None,
            scheduling: String::new(),
            etcd_server: String::new(),
            lean: false,
            complete_without_servers: false,
        }
    }
}

/// The JSON Schema of [`Config`].
pub(crate) const CONFIG_SCHEMA: &str = include_str!("config.json");
