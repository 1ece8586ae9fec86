//! The host's answer to a snapshot: actions, what to publish, when to look again.

use crate::{
    plan::{Event, SecretRecipe},
    snapshot::{Child, Job, Pod},
    waiting::{Waiting, object},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt};

/// Everything that follows from one snapshot and one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// API writes, each independent of the others.
    pub actions: Vec<Action>,
    /// What the job's status should say.
    pub report: Report,
    /// Why nothing, or no more, is done.
    pub waiting: Vec<Waiting>,
    /// When to look again.
    pub wake: Wake,
}

impl Decision {
    /// These writes, and nothing to say about them.
    #[must_use]
    pub fn unsaid(actions: Vec<Action>, wake: Wake) -> Self {
        Self { actions, report: Report::Unchanged, waiting: vec![], wake }
    }
}

/// What the job's status should say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// What it says already.
    Unchanged,
    /// What the plugin judged.
    Verdict {
        /// The framework's whole status.
        status: Value,
        /// What a user sees as a step.
        headline: String,
        /// The ledger that goes with it.
        ledger: Box<crate::ledger::Ledger>,
        /// Told when the status was written.
        events: Vec<Event>,
    },
    /// There is no verdict, and this is why.
    Trouble(Trouble),
}

/// A condition of the host's own, with an event of the same words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// `Rejected` or `PluginFaulted`.
    pub condition: String,
    /// CamelCase reason.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// When to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Wake {
    /// At this time, or when something changes.
    At(Timestamp),
    /// When something changes.
    OnChange,
}

/// Exactly one API write, with its precondition and its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name; the namespace is the job's.
    pub name: String,
    /// What is written. Private: no action comes to be without the precondition that its constructor gives it.
    write: Write,
    /// Noted in the ledger once it is written: it is never done again.
    pub noted: Option<String>,
}

impl Action {
    /// Creates this part of the plan under this name.
    #[must_use]
    pub fn create(api_version: &str, kind: &str, name: &str, part: Part) -> Self {
        Self::new(api_version, kind, name, Write::Create(part))
    }

    /// Creates a Secret with a fresh key pair; `metadata` is complete, owner included.
    #[must_use]
    pub fn create_secret(name: &str, recipe: SecretRecipe, metadata: Value) -> Self {
        Self::new("v1", "Secret", name, Write::CreateSecret { recipe, metadata })
    }

    /// Has this Secret be there before anything is created.
    #[must_use]
    pub fn require_secret(name: &str) -> Self {
        Self::new("v1", "Secret", name, Write::Require)
    }

    /// Merges into a child, if it still is the one that was seen, as it was seen.
    #[must_use]
    pub fn patch(child: &Child, patch: Value) -> Self {
        Self::new(&child.api_version, &child.kind, &child.name, Write::Patch(versioned(child, patch)))
    }

    /// The same for its status.
    #[must_use]
    pub fn patch_status(child: &Child, patch: Value) -> Self {
        Self::new(&child.api_version, &child.kind, &child.name, Write::PatchStatus(versioned(child, patch)))
    }

    /// Sets the finalizers of the job, if it still is as it was seen.
    #[must_use]
    pub fn set_finalizers(api_version: &str, kind: &str, job: &Job, finalizers: &[&String]) -> Self {
        let metadata = json!({ "uid": job.uid, "resourceVersion": job.resource_version, "finalizers": finalizers });
        Self::new(api_version, kind, &job.name, Write::Patch(json!({ "metadata": metadata })))
    }

    /// Deletes a child, if it still is the one that was seen, as it was seen.
    #[must_use]
    pub fn delete(child: &Child) -> Self {
        Self::deletion(&child.api_version, &child.kind, &child.name, &child.uid, &child.resource_version)
    }

    /// The same for a pod.
    #[must_use]
    pub fn delete_pod(pod: &Pod) -> Self {
        Self::deletion("v1", "Pod", &pod.name, &pod.uid, &pod.resource_version)
    }

    /// The same for the job itself.
    #[must_use]
    pub fn delete_job(api_version: &str, kind: &str, job: &Job) -> Self {
        Self::deletion(api_version, kind, &job.name, &job.uid, &job.resource_version)
    }

    /// The same, noted in the ledger under this key once it is written.
    #[must_use]
    pub fn noted(self, key: Option<String>) -> Self {
        Self { noted: key, ..self }
    }

    /// What is written.
    #[must_use]
    pub fn write(&self) -> &Write {
        &self.write
    }

    fn deletion(api_version: &str, kind: &str, name: &str, uid: &str, resource_version: &str) -> Self {
        let write = Write::Delete { uid: uid.to_owned(), resource_version: resource_version.to_owned() };
        Self::new(api_version, kind, name, write)
    }

    fn new(api_version: &str, kind: &str, name: &str, write: Write) -> Self {
        Self { api_version: api_version.into(), kind: kind.into(), name: name.into(), write, noted: None }
    }

    /// It makes an object that is not there.
    #[must_use]
    pub fn creates(&self) -> bool {
        matches!(self.write, Write::Create(_) | Write::CreateSecret { .. })
    }
}

/// A part of a plan that becomes one object. All bodies of a wide job together may be larger than the host's memory, so
/// a decision names the part and the writer builds the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// The pod of a replica.
    Pod {
        /// Place of its role in the plan.
        role: usize,
        /// Its index.
        index: u32,
    },
    /// The Job that backs a role.
    Job {
        /// Place of the role in the plan.
        role: usize,
    },
    /// An object beside the pods.
    Object {
        /// Its place in the plan.
        object: usize,
        /// The replica that it is made for; 0 for one of the whole job.
        index: u32,
    },
}

/// What an [`Action`] writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Write {
    /// This part of the plan. Its body is built just before it is sent, see [`build::body`](crate::build::body).
    Create(Part),
    /// A Secret with a fresh key pair; the metadata is complete, owner included.
    CreateSecret {
        /// How.
        recipe: SecretRecipe,
        /// `metadata` of the Secret.
        metadata: Value,
    },
    /// Nothing: the object has to be there before anything is created.
    Require,
    /// A merge patch that names the version it was made from.
    Patch(Value),
    /// The same for the status subresource.
    PatchStatus(Value),
    /// A deletion of the object with this uid, as it was seen: a user may take it from the job, or it may succeed, while
    /// the request is on its way.
    Delete {
        /// Which.
        uid: String,
        /// As of which version.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        resource_version: String,
    },
}

/// The patch with the version and the uid that it was made from as preconditions.
fn versioned(child: &Child, mut patch: Value) -> Value {
    patch["metadata"]["uid"] = json!(child.uid);
    patch["metadata"]["resourceVersion"] = json!(child.resource_version);
    patch
}

impl fmt::Display for Action {
    /// `create pod/x`, the words of the log, of errors and of the scenarios.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.write {
            Write::Create(_) | Write::CreateSecret { .. } => "create",
            Write::Require => "require",
            Write::Patch(_) => "patch",
            Write::PatchStatus(_) => "patch the status of",
            Write::Delete { .. } => "delete",
        };
        write!(f, "{verb} {}", object(&self.kind, &self.name))
    }
}

/// The actions in the order in which they are made: creates come last, since a deletion may free the quota that they need.
#[must_use]
pub fn in_order(actions: &[Action]) -> [Vec<&Action>; 2] {
    let (creates, others) = actions.iter().partition(|action| action.creates());
    [others, creates]
}

/// What became of a decision's actions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// What the ledger is to note.
    pub made: Vec<String>,
    /// What was created: `pod/x`.
    pub created: Vec<String>,
    /// Writes that did not happen.
    pub failures: Vec<Waiting>,
    /// What the API server warned of, by its words, and the first child that it did for: `pod/x`.
    pub warnings: BTreeMap<String, String>,
}

impl Applied {
    /// Something is missing without which nothing is created.
    #[must_use]
    pub fn lacks_something(&self) -> bool {
        self.failures.iter().any(|failure| matches!(failure, Waiting::Deleted { .. }))
    }
}
