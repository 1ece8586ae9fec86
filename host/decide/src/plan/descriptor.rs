//! What `describe` returns: facts that hold for every job of a framework.

use super::Reference;
use crate::grants::Grants;
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
    /// Where job specs name objects whose content plans depend on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Reference>,
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
    /// Returns the kinds of object that its plans may have.
    pub fn own_children(&self) -> impl Iterator<Item = &ChildKind> {
        self.children.iter().filter(|child| child.owned_by == OwnedBy::Job)
    }

    /// Returns all grants that the plugin needs: those it asks for, and its kinds of object.
    #[must_use]
    pub fn wanted_grants(&self) -> Grants {
        let mut wanted = self.asks.clone();
        wanted.kinds.extend(self.children.iter().map(ChildKind::id));
        wanted.reads.extend(self.reads.iter().map(|reference| reference.kind.kind().to_owned()));
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
    /// The queue's own controller, which knows the kind; the host where that controller does not act on the job.
    Elsewhere,
    /// The queue's own controller alone: the cluster operator says so.
    Kueue,
}

impl Descriptor {
    /// Returns whether the host may queue jobs of this framework: it makes their Workloads, or may where the queue's own
    /// controller does not act on them. Jobs without pods have nothing to queue there.
    #[must_use]
    pub fn may_be_queued_by_host(&self) -> bool {
        let has_pods = self.children.iter().any(|child| child.id() == "Pod");
        self.kinds.iter().any(|kind| match kind.queueing {
            Queueing::Host => true,
            Queueing::Elsewhere => has_pods,
            Queueing::Kueue => false,
        })
    }
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
    /// Whose objects they are.
    #[serde(default)]
    pub owned_by: OwnedBy,
}

/// What the controller of a child is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnedBy {
    /// The job, or a batch/v1 Job of it.
    #[default]
    Job,
    /// A pod of the job. The host never writes such an object.
    Pod,
}
