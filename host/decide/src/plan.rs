//! What a plugin says: facts about its framework, the plan for a job, bodies for an instant, the verdict.
//!
//! These are the host's own types; the generated bindings stop at `convert.rs` in the host.

use crate::grants::Grants;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

pub use crate::{
    fault::{Fault, Scope},
    rejection::{FieldError, Objection, Rejection},
};

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
    /// A JSON schema of its config.
    pub config_schema: Value,
    /// The name its events are reported under.
    pub event_source: String,
    /// The framework's own reasons of events, by the host's.
    #[serde(default)]
    pub event_reasons: BTreeMap<String, String>,
    /// What it asks for, beside its kinds of child.
    #[serde(default)]
    pub asks: Grants,
}

impl Descriptor {
    /// Everything that the plugin needs: what it asks for, and its kinds of object.
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
    /// JSON pointer into spec of the suspend switch.
    pub suspend: Option<String>,
    /// JSON pointer into spec of the managed-by switch.
    pub managed_by: Option<String>,
    /// The value of that switch that means this operator.
    pub own_manager: Option<String>,
    /// Finalizers of an original operator, removed from a job that is being deleted.
    pub retired_finalizers: Vec<String>,
    /// The roles that its plans may have; none where the job's user names them.
    #[serde(default)]
    pub roles: Vec<String>,
}

impl JobKind {
    /// The same kind of job, in whatever version.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.group == other.group && self.kind == other.kind
    }

    /// The name of its CRD.
    #[must_use]
    pub fn crd(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// `group/version`, or `version` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// As `spec.grants.deletes` has it: `TaleJob.example.com`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}.{}", self.kind, self.group)
    }
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
    /// A label selector that every such child carries; None watches all.
    pub selector: Option<String>,
    /// JSON pointers kept of each object.
    pub keep: Vec<String>,
    /// Jobs are served also without it.
    pub optional: bool,
}

/// A text that is filled in per replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text(pub Vec<Piece>);

/// A part of a [`Text`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Piece {
    /// As it is.
    Fixed(String),
    /// The replica's index plus this.
    Index(i32),
    /// The job's name.
    JobName,
    /// The name of the replica's pod.
    PodName,
    /// The first address of the pod of this role and index.
    PeerIp(String, u32),
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
    /// So many consecutive ports of the nodes, for this job alone.
    pub host_ports: u32,
    /// Which pods are removed when.
    pub policy: Policy,
    /// Things the user should know.
    pub warnings: Vec<Event>,
}

/// A role: replicas that share a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Role {
    /// As the framework calls it.
    pub name: String,
    /// How many.
    pub replicas: u32,
    /// What makes its pods.
    pub backing: Backing,
    /// The pod's name, or the Job's.
    pub pod_name: Text,
    /// `spec.hostname`.
    pub hostname: Option<Text>,
    /// `spec.subdomain`.
    pub subdomain: Option<Text>,
    /// A PodTemplateSpec.
    pub template: Value,
    /// Where in the job's spec the user's template stands that it was made of, a JSON pointer; None when it is the plugin's
    /// own.
    #[serde(default)]
    pub template_at: Option<String>,
    /// Variables the host expands.
    pub env: Vec<EnvEntry>,
    /// Labels the host expands.
    pub labels: Vec<(String, Text)>,
    /// Texts at JSON pointers of the template.
    pub fill: Vec<(String, Text)>,
    /// What it means that a pod has succeeded.
    pub success: Success,
    /// Gates before the pods are made.
    pub after: Vec<Gate>,
}

impl Role {
    /// A Job is behind it that removes itself some time after it has ended: when it is gone, it may have done its work.
    #[must_use]
    pub fn may_vanish(&self) -> bool {
        match &self.backing {
            Backing::Job(body) => body.pointer("/spec/ttlSecondsAfterFinished").is_some_and(Value::is_number),
            Backing::Pods => false,
        }
    }
}

/// What it means that a pod has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Success {
    /// The replica's work is done; it is never made again.
    Final,
    /// Its pod has ended, no more.
    Momentary,
}

/// What makes a role's pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Backing {
    /// The host.
    Pods,
    /// A batch/v1 Job: this body without identity, template and suspend.
    Job(Value),
}

/// A variable with a value that only the host can expand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvEntry {
    /// "" the first container, "*" all, else by name.
    pub container: String,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Text,
}

impl EnvEntry {
    /// It belongs to the container that stands at this place and is called so.
    #[must_use]
    pub fn is_for(&self, place: usize, called: &str) -> bool {
        match self.container.as_str() {
            "" => place == 0,
            "*" => true,
            name => name == called,
        }
    }
}

/// Something that has to be so before something is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gate {
    /// All replicas of a role have come so far.
    Pods {
        /// Which role.
        role: String,
        /// How far.
        reached: Reached,
    },
    /// An object of the plan says so.
    Field {
        /// Key of the object.
        key: String,
        /// JSON pointer into it.
        at: String,
        /// Any of these texts is right.
        one_of: Vec<String>,
    },
}

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reached {
    /// It exists.
    Exists,
    /// It has an address.
    Ip,
    /// Its phase is Running (or past it).
    Running,
    /// Its condition Ready is True.
    Ready,
}

/// An object beside the pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Unique within the plan.
    pub key: String,
    /// `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Its name.
    pub name: Text,
    /// One for each replica of this role.
    pub per_pod_of: Option<String>,
    /// Where its content comes from.
    pub body: Body,
    /// How it is treated once it exists.
    pub upkeep: Upkeep,
    /// Gates before it is made.
    pub after: Vec<Gate>,
    /// When it is removed.
    pub remove_when: Vec<Moment>,
}

/// Where an object's content comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Body {
    /// This, with texts filled in at JSON pointers.
    Fixed(Value, Vec<(String, Text)>),
    /// The plugin's `bind`, when the gates are open.
    Bound,
}

/// How an object is treated once it exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Upkeep {
    /// Never changed.
    CreateOnly,
    /// These JSON pointers are kept equal to the body.
    Follow(Vec<String>),
}

/// When an object is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Moment {
    /// While the job is suspended.
    Suspended,
    /// When the job is finished, whatever its clean-pod rule.
    Finished,
    /// When the clean-pod rule of a finished job removes pods.
    Cleaned,
    /// When the replica it belongs to is no longer wanted.
    ReplicaGone,
}

/// A Secret that is made once from fresh randomness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRecipe {
    /// Unique within the plan, objects included.
    pub key: String,
    /// Its name.
    pub name: Text,
    /// `type` of the Secret.
    pub secret_type: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Data key of the private key.
    pub private_key: String,
    /// Data key of the public key.
    pub public_key: String,
    /// How the pair is made.
    pub algorithm: Algorithm,
}

/// How a key pair is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// ECDSA on NIST P-521; private key as SEC1 PEM, public key as an authorized_keys line.
    EcdsaP521,
}

/// Which pods are removed when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// When the job has succeeded.
    pub clean_on_success: Clean,
    /// When it has failed.
    pub clean_on_failure: Clean,
    /// While it is suspended.
    pub clean_on_suspend: Clean,
    /// When the job itself is deleted.
    pub ttl: Option<Ttl>,
}

/// When the host deletes a job itself, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ttl {
    /// So long after it finished.
    AfterFinished(u32),
    /// So long after it was created, finished or not.
    AfterCreation(u32),
}

/// Which pods are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clean {
    /// None.
    Keep,
    /// Those that are pending or running.
    Active,
    /// All.
    All,
}

/// The plugin's judgement of an instant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The framework's whole status.
    pub status: Value,
    /// What a user sees as a step.
    pub headline: String,
    /// Whether the job is over.
    pub outcome: Outcome,
    /// What to tell when the status was written.
    pub events: Vec<Event>,
}

/// Whether a job is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It goes on.
    Open,
    /// It is over, well.
    Succeeded,
    /// It is over, badly.
    Failed,
}

/// An event on the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Warning instead of Normal.
    pub warning: bool,
    /// CamelCase reason.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// A plan with everything said about this instant, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The plugin answered.
    Judged {
        /// The plan.
        plan: std::sync::Arc<Plan>,
        /// Bodies of bound objects, by key.
        bodies: BTreeMap<String, Value>,
        /// The verdict.
        verdict: Verdict,
    },
    /// The user's mistake.
    Rejected(Rejection),
    /// The plugin's fault.
    Faulted(Fault),
}
