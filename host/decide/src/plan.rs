//! What a plugin returns: facts about its framework, the plan for a job, bodies of objects, the verdict.
//!
//! These are the host's own types; the generated bindings are used only in `convert.rs` of the host.

mod content;
mod criterion;
mod descriptor;
mod role;
mod series;
mod settings;
mod verdict;

pub use self::{
    content::{Content, Reference, Referred},
    criterion::Criterion,
    descriptor::{ChildKind, Descriptor, JobKind, OwnedBy, Queueing},
    role::{Backing, Deletion, EnvEntry, Failure, FailureRule, Gate, OnNewAddress, Reached, Remedy, Role, Success},
    series::{Run, Runs, Series},
    settings::SettingsError,
    verdict::{Answer, Bindings, Ending, Event, Outcome, Verdict},
};
pub use crate::{
    fault::{Budget, Fault, Scope},
    rejection::{FieldError, Objection, Rejection},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc};

/// Returns the group of an API version; "" is the core group.
#[must_use]
pub fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// A text that is expanded for each replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text(pub Vec<Piece>);

/// A part of a [`Text`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Piece {
    /// Literal text.
    Fixed(String),
    /// The replica's index plus this.
    Index(i32),
    /// How often the replica's role was started again as a whole.
    Attempt,
    /// The job's name.
    JobName,
    /// The name of the replica's pod.
    PodName,
    /// The first address of the pod of this role and index.
    PeerIp(String, u32),
    /// The same as it is written before a port: an IPv6 address in brackets.
    PeerHost(String, u32),
}

/// What the plugin wants for a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Roles, in the framework's order.
    pub roles: Vec<Role>,
    /// Objects beside the pods.
    pub objects: Vec<Object>,
    /// Secrets made once from fresh randomness.
    pub secrets: Vec<SecretRecipe>,
    /// Objects that come and go by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    /// When the job's work is done: all criteria of one of these lists are met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub success_criteria: Vec<Vec<Criterion>>,
    /// Number of consecutive host ports reserved for this job.
    pub host_ports: u32,
    /// Which pods the host deletes, and when.
    pub policy: Policy,
    /// Events about the plan, emitted with the first verdict.
    pub warnings: Vec<Event>,
}

/// An object beside the pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Unique within the plan.
    pub key: String,
    /// API version: `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name of the object.
    pub name: Text,
    /// Role with one object for each replica; `None` for a single object.
    pub per_pod_of: Option<String>,
    /// Where its content comes from.
    pub body: Body,
    /// How the host treats the object once it exists.
    pub upkeep: Upkeep,
    /// Gates to open before it is created.
    pub after: Vec<Gate>,
    /// When the host deletes it.
    pub remove_when: Vec<Moment>,
}

/// Where an object's content comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Body {
    /// This value, which other plans may share, with texts filled in at JSON pointers.
    Fixed(Arc<Value>, Vec<(String, Text)>),
    /// The result of the plugin's `bind`, once the gates are open.
    Bound,
}

/// How the host treats an object once it exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Upkeep {
    /// The object is never changed.
    CreateOnly,
    /// The fields at these JSON pointers are kept equal to the body.
    Follow(Vec<String>),
}

/// When the host deletes an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Moment {
    /// While the job is suspended.
    Suspended,
    /// When the job is finished, whatever its clean-pod policy.
    Finished,
    /// When the clean-pod policy of a finished job deletes pods.
    Cleaned,
    /// When its replica is no longer wanted.
    ReplicaGone,
}

/// A Secret that is created once from fresh randomness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRecipe {
    /// Unique within the plan, objects included.
    pub key: String,
    /// Name of the Secret.
    pub name: Text,
    /// `type` of the Secret.
    pub secret_type: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Data key of the private key.
    pub private_key: String,
    /// Data key of the public key.
    pub public_key: String,
    /// How the key pair is generated.
    pub algorithm: Algorithm,
}

/// How a key pair is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// ECDSA on NIST P-521; private key as SEC1 PEM, public key as an authorized_keys line.
    EcdsaP521,
}

/// Which pods the host deletes, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// After the job has succeeded.
    pub clean_on_success: Clean,
    /// After the job has failed.
    pub clean_on_failure: Clean,
    /// While the job is suspended.
    pub clean_on_suspend: Clean,
    /// When the host deletes the job itself.
    pub ttl: Option<Ttl>,
}

/// When the host deletes a job itself, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ttl {
    /// This long after the job finished.
    AfterFinished(u32),
    /// This long after the job was created, finished or not.
    AfterCreation(u32),
}

/// Which pods the host deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clean {
    /// No pods.
    Keep,
    /// Pods that are pending or running.
    Active,
    /// All pods.
    All,
}
