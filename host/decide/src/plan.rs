//! What a plugin says: facts about its framework, the plan for a job, bodies for an instant, the verdict.
//!
//! These are the host's own types; the generated bindings stop at `convert.rs` in the host.

use crate::{grants::Grants, status::rfc3339};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

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
    /// What it asks for, beside its kinds of child.
    #[serde(default)]
    pub asks: Grants,
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

    /// `group/version`, or `version` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
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

/// Why a job is refused: the user has to change something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Rejection {
    /// Fields are wrong.
    #[error("{}", FieldErrors(.0))]
    Invalid(Vec<FieldError>),
    /// The plugin or the host lacks something.
    #[error("not supported: {0}")]
    Unsupported(String),
}

/// One field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// Which.
    pub path: String,
    /// What would be right.
    pub message: String,
}

struct FieldErrors<'a>(&'a [FieldError]);

impl std::fmt::Display for FieldErrors<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}: {}", error.path, error.message)?;
        }
        Ok(())
    }
}

/// What a plugin did wrong. The plugin's author has to change something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Fault {
    /// It trapped or exited.
    #[error("plugin {plugin} trapped in {function}: {message}")]
    Trapped {
        /// Which plugin.
        plugin: String,
        /// In which of its functions.
        function: String,
        /// What the runtime said.
        message: String,
    },
    /// It used up its fuel or its time.
    #[error("plugin {plugin} ran out of {budget} in {function}")]
    OutOfBudget {
        /// Which plugin.
        plugin: String,
        /// In which of its functions.
        function: String,
        /// `fuel`, `time` or `memory`.
        budget: String,
    },
    /// It said so itself.
    #[error("plugin {plugin} reported an internal error in {function}: {message}")]
    Internal {
        /// Which plugin.
        plugin: String,
        /// In which of its functions.
        function: String,
        /// Its words.
        message: String,
    },
    /// It is not there.
    #[error("{}", missing(.digest))]
    Missing {
        /// Its digest; "" when no plugin serves new jobs of the framework.
        digest: String,
    },
    /// Its answer is not acceptable.
    #[error("plugin {plugin} gave an answer in {function} that the host does not accept: {message}")]
    Unacceptable {
        /// Which plugin.
        plugin: String,
        /// In which of its functions.
        function: String,
        /// What is wrong with it.
        message: String,
    },
    /// It answered the same question in two ways.
    #[error("plugin {plugin} is not deterministic: asked {function} twice, {message}")]
    NonDeterministic {
        /// Which plugin.
        plugin: String,
        /// Which of its functions.
        function: String,
        /// Where the answers differ.
        message: String,
    },
    /// It failed so often in a row that it is not asked for a while.
    #[error("plugin {plugin} is not asked {}: {cause}", pause(*.scope, *.until))]
    BreakerOpen {
        /// Which plugin.
        plugin: String,
        /// About what.
        scope: Scope,
        /// When it is asked again.
        until: Timestamp,
        /// The last fault of those that led to this.
        cause: String,
    },
    /// It has used up what all of its calls together may use up in a minute.
    #[error(
        "plugin {plugin} is not asked for a while: its calls have used up the {fuel} units of fuel that it has for a \
             minute; raise limits.fuelPerMinute of its Plugin, or find out what it does with them"
    )]
    Throttled {
        /// Which plugin.
        plugin: String,
        /// What it has for a minute.
        fuel: u64,
        /// When it is asked again.
        until: Timestamp,
    },
}

/// What a plugin is not asked about while its breaker is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// The one job that it failed for again and again.
    Job,
    /// Any job: it failed for several.
    Plugin,
}

/// The words for a pause. Those for all jobs name no time, since a new one would be a write to the status of each.
fn pause(scope: Scope, until: Timestamp) -> String {
    match scope {
        Scope::Job => format!("about this job before {}, since it failed again and again", rfc3339(until)),
        Scope::Plugin => "about any job for a while, since it failed for several in a row".to_owned(),
    }
}

fn missing(digest: &str) -> String {
    match digest.get(..12) {
        Some(short) => format!(
            "the plugin {short} that planned this job is lost: neither this host nor its namespace has the bytes; the job's \
             pods are left alone, and it goes on when a ConfigMap troupe-plugin-{short}-0, its registry or a Plugin brings them back"
        ),
        None => "no plugin serves new jobs of this kind; make a Plugin that does".to_owned(),
    }
}

impl Fault {
    /// The reason of a condition: one CamelCase word per kind of fault.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Trapped { .. } => "Trapped",
            Self::OutOfBudget { .. } => "OutOfBudget",
            Self::Missing { .. } => "PluginMissing",
            Self::Internal { .. } => "InternalError",
            Self::Unacceptable { .. } => "UnacceptableAnswer",
            Self::NonDeterministic { .. } => "NonDeterministic",
            Self::BreakerOpen { .. } => "BreakerOpen",
            Self::Throttled { .. } => "Throttled",
        }
    }
}
