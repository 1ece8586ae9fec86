//! What a plugin returns: facts about its framework, the plan for a job, bodies of objects, the verdict.
//!
//! These are the host's own types; the generated bindings are used only in `convert.rs` of the host.

use crate::grants::Grants;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

mod series;

pub use crate::{
    fault::{Budget, Fault, Scope},
    rejection::{FieldError, Objection, Rejection},
};
pub use series::{Run, Runs, Series};

/// Facts that hold for every job of a framework.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Descriptor {
    /// The framework's short name.
    pub name: String,
    /// The plugin's version.
    pub version: String,
    /// The kinds of job it serves.
    pub kinds: Vec<JobKind>,
    /// The kinds of object its jobs own, Pod among them.
    pub children: Vec<ChildKind>,
    /// A JSON schema of the plugin's config.
    pub config_schema: Value,
    /// The framework's own event reasons, by the host's reasons.
    #[serde(default)]
    pub event_reasons: BTreeMap<String, String>,
    /// The grants that it asks for, beside its kinds of child.
    #[serde(default)]
    pub asks: Grants,
}

impl Descriptor {
    /// Returns all grants that the plugin needs: those it asks for, and its kinds of object.
    #[must_use]
    pub fn wanted_grants(&self) -> Grants {
        let mut wanted = self.asks.clone();
        wanted.kinds.extend(self.children.iter().map(ChildKind::id));
        wanted
    }
}

/// A kind of job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobKind {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural, as in a URL.
    pub plural: String,
    /// JSON pointer of the suspend switch in the spec.
    pub suspend: Option<String>,
    /// JSON pointer of the managed-by switch in the spec.
    pub managed_by: Option<String>,
    /// The value of the managed-by switch that names this operator.
    pub own_manager: Option<String>,
    /// Finalizers of an original operator, removed from a job that is being deleted.
    pub retired_finalizers: Vec<String>,
    /// The roles that its plans may have; empty where the job's user names them.
    #[serde(default)]
    pub roles: Vec<String>,
    /// The reporting component of events about its jobs.
    #[serde(default)]
    pub event_source: String,
    /// Who queues its jobs.
    #[serde(default)]
    pub queueing: Queueing,
}

/// Who queues jobs of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Queueing {
    /// The host, by Workloads that it makes.
    #[default]
    Host,
    /// The queue's own controller.
    Elsewhere,
}

impl JobKind {
    /// Returns whether both are the same kind of job, in any version.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.group == other.group && self.kind == other.kind
    }

    /// Returns the name of its CRD.
    #[must_use]
    pub fn crd(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Returns `group/version`, or `version` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the kind as in `spec.grants.deletes`: `TaleJob.example.com`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}.{}", self.kind, self.group)
    }
}

/// Returns the group of an API version; "" is the core group.
#[must_use]
pub fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// A kind of object that jobs of a framework own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildKind {
    /// `v1`, `batch/v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Plural, as in a URL.
    pub plural: String,
    /// A label selector that matches every child of this kind; `None` watches all.
    pub selector: Option<String>,
    /// JSON pointers of the fields kept of each object.
    pub keep: Vec<String>,
    /// Whether jobs are also served without this kind.
    pub optional: bool,
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
    /// Number of consecutive host ports reserved for this job.
    pub host_ports: u32,
    /// Which pods the host deletes, and when.
    pub policy: Policy,
    /// Events about the plan, emitted with the first verdict.
    pub warnings: Vec<Event>,
}

/// A role: replicas that share a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Role {
    /// Name of the role in the framework.
    pub name: String,
    /// Number of replicas.
    pub replicas: u32,
    /// What makes its pods.
    pub backing: Backing,
    /// Name of the pod, or of the Job.
    pub pod_name: Text,
    /// `spec.hostname`.
    pub hostname: Option<Text>,
    /// `spec.subdomain`.
    pub subdomain: Option<Text>,
    /// A PodTemplateSpec.
    pub template: Value,
    /// JSON pointer into the job's spec to the user's template from which this one is made; `None` where the template
    /// is the plugin's own.
    #[serde(default)]
    pub template_at: Option<String>,
    /// Variables to expand.
    pub env: Vec<EnvEntry>,
    /// Labels to expand.
    pub labels: Vec<(String, Text)>,
    /// Texts to expand at JSON pointers of the template.
    pub fill: Vec<(String, Text)>,
    /// What the success of a pod means.
    pub success: Success,
    /// What becomes of failed pods: the first rule that matches decides; without one a pod stays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureRule>,
    /// Whether pods that are deleted count as failed.
    #[serde(default)]
    pub deletion: Deletion,
    /// Maximum number of replicas with a pod that has not ended; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// How often one replica may fail before it is given up; `None` for as often as it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures_per_replica: Option<u32>,
    /// Gates to open before the pods are created.
    pub after: Vec<Gate>,
    /// Hash of the template that it is made from; "" in a plan that an earlier host recorded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template_hash: String,
}

impl Role {
    /// Returns how many pods that have not ended the role has at most.
    #[must_use]
    pub fn most_at_once(&self) -> u32 {
        self.at_once.map_or(self.replicas, |most| most.min(self.replicas))
    }

    /// Returns whether a Job with `ttlSecondsAfterFinished` backs the role: when that Job is gone, it may have done its
    /// work.
    #[must_use]
    pub fn removes_itself(&self) -> bool {
        match &self.backing {
            Backing::Job(body) => body.pointer("/spec/ttlSecondsAfterFinished").is_some_and(Value::is_number),
            Backing::Pods => false,
        }
    }
}

/// What the success of a pod means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Success {
    /// The replica's work is done; it is never created again.
    Final,
    /// Only its pod has ended; the replica has not succeeded.
    Momentary,
    /// The work of the whole role is done; no pod of it is created again.
    Shared,
}

/// What becomes of the failed pods that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRule {
    /// The pods.
    pub about: Failure,
    /// What becomes of them.
    pub then: Remedy,
}

/// What becomes of a failed pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Remedy {
    /// It is counted, deleted and created again.
    Replace,
    /// It is deleted and created again, and not counted.
    ReplaceUncounted,
    /// It is counted, and its replica has no other pod.
    GiveUp,
    /// It stays.
    Keep,
}

/// Whether a pod that is deleted counts as failed, unless it has succeeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Deletion {
    /// No.
    #[default]
    Uncounted,
    /// If it fails while it is being deleted.
    WhenFailed,
    /// As soon as it is being deleted.
    AtOnce,
}

/// Which failed pods a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// Every failed pod.
    Any,
    /// Pods whose container of this name ended with an exit code in one of these ranges, first to last.
    ExitCodes {
        /// Name of the container; "" for any.
        container: String,
        /// The first and last exit code of each range.
        ranges: Vec<(i32, i32)>,
    },
    /// Pods whose container of this name has no exit code.
    NoExitCode {
        /// Name of the container.
        container: String,
    },
    /// Pods with this condition.
    Condition {
        /// Its type.
        kind: String,
        /// Its status.
        status: String,
    },
}

/// What makes a role's pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Backing {
    /// The host.
    Pods,
    /// A batch/v1 Job with this body; identity, template and suspend are added.
    Job(Value),
}

/// A variable with a value that only the host can expand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvEntry {
    /// Container of the variable: "" the first, "*" all, else by name.
    pub container: String,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Text,
}

impl EnvEntry {
    /// Returns whether the variable belongs to the container with this place and name.
    #[must_use]
    pub fn is_for(&self, place: usize, called: &str) -> bool {
        match self.container.as_str() {
            "" => place == 0,
            "*" => true,
            name => name == called,
        }
    }
}

/// A condition that must hold before the host creates something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gate {
    /// All replicas of a role have reached a state.
    Pods {
        /// Name of the role.
        role: String,
        /// The required state.
        reached: Reached,
    },
    /// A field of an object of the plan has an accepted value.
    Field {
        /// Key of the object.
        key: String,
        /// JSON pointer of the field.
        at: String,
        /// The accepted values.
        one_of: Vec<String>,
    },
}

/// State that a pod has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reached {
    /// It exists.
    Exists,
    /// It has an address.
    Ip,
    /// Its phase is Running, Succeeded or Failed.
    Running,
    /// Its condition Ready is True.
    Ready,
    /// It has succeeded, or its replica has for good.
    Succeeded,
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
    /// This value, with texts filled in at JSON pointers.
    Fixed(Value, Vec<(String, Text)>),
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

/// The plugin's judgement of the observed job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The framework's whole status.
    pub status: Value,
    /// The job's step as users see it.
    pub headline: String,
    /// Whether the job is finished, and how.
    pub outcome: Outcome,
    /// Which pods the host deletes after this end; `None` for the plan's policy.
    pub clean: Option<Clean>,
    /// When to look at the job again if nothing changes before.
    pub wake_at: Option<jiff::Timestamp>,
    /// Events to emit after the status is written.
    pub events: Vec<Event>,
}

impl Verdict {
    /// Returns a verdict without events, by the plan's own rules.
    #[must_use]
    pub fn new(status: Value, headline: &str, outcome: Outcome) -> Self {
        Self { status, headline: headline.to_owned(), outcome, clean: None, wake_at: None, events: vec![] }
    }
}

/// Whether a job is finished, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It is not finished.
    Open,
    /// It has succeeded but for its pods, some of which have not ended.
    Succeeding,
    /// It has failed but for its pods, some of which have not ended.
    Failing,
    /// It is finished and has succeeded.
    Succeeded,
    /// It is finished and has failed.
    Failed,
}

impl Outcome {
    /// Returns whether the job is finished.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// Returns how the job is going to end, if that is known and it has not ended.
    #[must_use]
    pub fn ending(self) -> Option<Ending> {
        match self {
            Self::Succeeding => Some(Ending::Succeeding),
            Self::Failing => Some(Ending::Failing),
            Self::Open | Self::Succeeded | Self::Failed => None,
        }
    }
}

/// How a job is going to end once its pods have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// It succeeds.
    Succeeding,
    /// It fails.
    Failing,
}

/// An event on the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Whether the type is Warning instead of Normal.
    pub warning: bool,
    /// CamelCase reason.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
}

/// What `bind` returned.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Bindings {
    /// Bodies of bound objects, by key.
    pub bodies: BTreeMap<String, Value>,
    /// Objects of series to create and to delete.
    #[serde(default, skip_serializing_if = "Runs::is_empty")]
    pub runs: Runs,
}

/// A plan with bodies and a verdict, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The plugin answered.
    Judged {
        /// The plan.
        plan: std::sync::Arc<Plan>,
        /// What `bind` returned.
        #[serde(flatten)]
        bindings: Bindings,
        /// The verdict.
        verdict: Verdict,
    },
    /// The user's mistake.
    Rejected(Rejection),
    /// The plugin's fault.
    Faulted(Fault),
}
