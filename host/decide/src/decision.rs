//! The host's answer to a snapshot: actions, what to publish, when to look again.

use crate::{
    condition::{Condition, Reason},
    plan::{Event, SecretRecipe},
    snapshot::{Child, Job, Pod},
    waiting::{Waiting, object},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt};

/// What follows from one snapshot and one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// API writes, each independent of the others.
    pub actions: Vec<Action>,
    /// What to publish in the job's status.
    pub report: Report,
    /// Why the pass does nothing, or nothing more.
    pub waiting: Vec<Waiting>,
    /// Which pods were created from an older template, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outdated: Option<String>,
    /// Where the label of a queue is that does not belong there, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misplaced: Option<String>,
    /// What the plan warns of, of a job that has not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// When to look again.
    pub wake: Wake,
}

impl Decision {
    /// Returns a decision that leaves the status unchanged.
    #[must_use]
    pub fn without_report(actions: Vec<Action>, wake: Wake) -> Self {
        Self {
            actions,
            report: Report::Unchanged,
            waiting: vec![],
            outdated: None,
            misplaced: None,
            warnings: vec![],
            wake,
        }
    }
}

/// What to publish in the job's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// The current status stays.
    Unchanged,
    /// The plugin's verdict.
    Verdict {
        /// The framework's whole status.
        status: Value,
        /// The job's step as users see it.
        headline: String,
        /// The ledger to write with the status.
        ledger: Box<crate::ledger::Ledger>,
        /// Events to emit after the status is written.
        events: Vec<Event>,
    },
    /// There is no verdict; this is the reason. Recordings call it `Trouble`.
    #[serde(rename = "Trouble")]
    Condition(HostCondition),
}

/// A condition that the host sets, and an event with the same reason and message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCondition {
    /// Type of the condition.
    #[serde(rename = "condition")]
    pub kind: Condition,
    /// Its reason.
    pub reason: Reason,
    /// Human-readable message.
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
    /// API version: `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name; the namespace is the job's.
    pub name: String,
    /// The write. Private, so that every action has the precondition that its constructor sets.
    write: Write,
    /// Key to record in the ledger after the write, so that the write is never repeated.
    pub ledger_key: Option<String>,
}

impl Action {
    /// Creates a part of the plan under this name.
    #[must_use]
    pub fn create(api_version: &str, kind: &str, name: &str, part: Part) -> Self {
        Self::new(api_version, kind, name, Write::Create(part))
    }

    /// Creates a Secret with a fresh key pair; `metadata` is complete, owner included.
    #[must_use]
    pub fn create_secret(name: &str, recipe: SecretRecipe, metadata: Value) -> Self {
        Self::new("v1", "Secret", name, Write::CreateSecret { recipe, metadata })
    }

    /// Requires this Secret to exist before anything is created.
    #[must_use]
    pub fn require_secret(name: &str) -> Self {
        Self::new("v1", "Secret", name, Write::Require)
    }

    /// Patches a child at the uid and resource version that were seen.
    #[must_use]
    pub fn patch(child: &Child, patch: Value) -> Self {
        Self::new(&child.api_version, &child.kind, &child.name, Write::Patch(versioned(child, patch)))
    }

    /// Patches the status of a child at the version that was seen.
    #[must_use]
    pub fn patch_status(child: &Child, patch: Value) -> Self {
        Self::new(&child.api_version, &child.kind, &child.name, Write::PatchStatus(versioned(child, patch)))
    }

    /// Sets the finalizers of the job at the version that was seen.
    #[must_use]
    pub fn set_finalizers(api_version: &str, kind: &str, job: &Job, finalizers: &[&String]) -> Self {
        let metadata = json!({ "uid": job.uid, "resourceVersion": job.resource_version, "finalizers": finalizers });
        Self::new(api_version, kind, &job.name, Write::Patch(json!({ "metadata": metadata })))
    }

    /// Deletes a child at the uid and resource version that were seen.
    #[must_use]
    pub fn delete(child: &Child) -> Self {
        Self::deletion(&child.api_version, &child.kind, &child.name, &child.uid, &child.resource_version)
    }

    /// Deletes a pod at the version that was seen.
    #[must_use]
    pub fn delete_pod(pod: &Pod) -> Self {
        Self::deletion("v1", "Pod", &pod.name, &pod.uid, &pod.resource_version)
    }

    /// Deletes the job at the version that was seen.
    #[must_use]
    pub fn delete_job(api_version: &str, kind: &str, job: &Job) -> Self {
        Self::deletion(api_version, kind, &job.name, &job.uid, &job.resource_version)
    }

    /// Sets the key to record in the ledger after the write.
    #[must_use]
    pub fn with_ledger_key(self, key: Option<String>) -> Self {
        Self { ledger_key: key, ..self }
    }

    /// Returns the write.
    #[must_use]
    pub fn write(&self) -> &Write {
        &self.write
    }

    fn deletion(api_version: &str, kind: &str, name: &str, uid: &str, resource_version: &str) -> Self {
        let write = Write::Delete { uid: uid.to_owned(), resource_version: resource_version.to_owned() };
        Self::new(api_version, kind, name, write)
    }

    fn new(api_version: &str, kind: &str, name: &str, write: Write) -> Self {
        Self { api_version: api_version.into(), kind: kind.into(), name: name.into(), write, ledger_key: None }
    }

    /// Returns whether the action creates an object.
    #[must_use]
    pub fn creates(&self) -> bool {
        matches!(self.write, Write::Create(_) | Write::CreateSecret { .. })
    }

    /// Returns the place in the plan of the role of which this creates a pod.
    pub(crate) fn creates_pod_of(&self) -> Option<usize> {
        match self.write {
            Write::Create(Part::Pod { role, .. }) => Some(role),
            _ => None,
        }
    }
}

/// A part of a plan that becomes one object. A decision names the part and the writer builds the body, since all bodies
/// of a wide job together may exceed the host's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// The pod of a replica.
    Pod {
        /// Place of its role in the plan.
        role: usize,
        /// Index of the replica.
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
        /// Index of the replica; 0 for an object of the whole job.
        index: u32,
    },
    /// An object of a series.
    Run {
        /// Its place among the runs of the answer.
        run: usize,
    },
    /// The Workload by which the job is queued.
    Workload,
}

/// What an [`Action`] writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Write {
    /// Creates a part of the plan. [`build::body`](crate::build::body) builds its body just before it is sent.
    Create(Part),
    /// Creates a Secret with a fresh key pair.
    CreateSecret {
        /// Recipe of the Secret.
        recipe: SecretRecipe,
        /// `metadata` of the Secret, with its owner reference.
        metadata: Value,
    },
    /// Writes nothing: the object must exist before anything is created.
    Require,
    /// A merge patch with the uid and resource version as preconditions.
    Patch(Value),
    /// A merge patch of the status, with the same preconditions.
    PatchStatus(Value),
    /// Deletes the object only as it was seen: while the request is under way, a user may take the object from the job,
    /// or it may succeed.
    Delete {
        /// Uid of the object.
        uid: String,
        /// Resource version of the object.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        resource_version: String,
    },
}

/// Adds the uid and resource version of the child to the patch, as preconditions.
fn versioned(child: &Child, mut patch: Value) -> Value {
    patch["metadata"]["uid"] = json!(child.uid);
    patch["metadata"]["resourceVersion"] = json!(child.resource_version);
    patch
}

impl fmt::Display for Action {
    /// Formats as `create pod/x`, for the log, errors and scenarios.
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

/// Returns the actions in order of execution: creates come last, since a deletion may free the quota that they need.
#[must_use]
pub fn in_order(actions: &[Action]) -> [Vec<&Action>; 2] {
    let (creates, others) = actions.iter().partition(|action| action.creates());
    [others, creates]
}

/// The result of a decision's actions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Keys to record in the ledger.
    pub made: Vec<String>,
    /// Created objects: `pod/x`.
    pub created: Vec<String>,
    /// Writes that did not succeed.
    pub failures: Vec<Waiting>,
    /// Warnings of the API server by their text, with the first child that each concerns: `pod/x`.
    pub warnings: BTreeMap<String, String>,
}

impl Applied {
    /// Returns whether a required object is missing.
    #[must_use]
    pub fn lacks_required_object(&self) -> bool {
        self.failures.iter().any(|failure| matches!(failure, Waiting::Deleted { .. }))
    }
}
