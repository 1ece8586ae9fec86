//! Why nothing, or no more, was done.

use crate::{ledger::NoPorts, plan::Reached};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A reason for inaction. Its `Display` feeds the condition's message, `explain`, the log and the scenarios.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waiting {
    /// Pods of the plan's roles have not come as far as something needs.
    Pods {
        /// How far.
        reached: Reached,
        /// How many have.
        have: u32,
        /// How many must.
        want: u32,
    },
    /// An object of this name exists and is not the job's.
    NameTaken {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The object that had the name before is still being deleted.
    Terminating {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// An object of the job does not say yet what it must.
    Field {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// JSON pointer into it.
        at: String,
        /// What it says.
        has: String,
        /// What it may say.
        one_of: Vec<String>,
    },
    /// An object that is made once in the job's life was deleted, and pods that are still to come need it.
    Deleted {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The installed CRD drops `status.troupe`, where something has to be written down first.
    StatusPruned {
        /// The CRD's name.
        crd: String,
    },
    /// The namespace is being deleted: nothing can be created in it any more.
    NamespaceTerminating {
        /// Its name.
        namespace: String,
    },
    /// There is no block of the nodes' ports for the job.
    HostPorts {
        /// How many it takes.
        count: u32,
        /// Why there are none for this job.
        #[serde(default)]
        why: NoPorts,
    },
    /// An object that removes itself some time after it has ended is gone, and nobody saw how it ended.
    Lost {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The API server refuses a write: quota, a webhook, rights. It is tried again, and may be let through then.
    Refused {
        /// What was tried: `create pod/x`.
        attempt: String,
        /// What the API server said.
        why: String,
    },
    /// A write did not go through; it is tried again.
    WriteFailed {
        /// What was tried: `create pod/x`.
        attempt: String,
        /// What the API server said.
        why: String,
    },
}

impl Waiting {
    /// One CamelCase word per kind of waiting. A condition is rewritten only when this changes.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Pods { reached: Reached::Exists, .. } => "Pods",
            Self::Pods { reached: Reached::Ip, .. } => "PodAddresses",
            Self::Pods { reached: Reached::Running, .. } => "PodsRunning",
            Self::Pods { reached: Reached::Ready, .. } => "PodsReady",
            Self::NameTaken { .. } => "NameTaken",
            Self::Terminating { .. } => "Terminating",
            Self::Field { .. } => "Field",
            Self::Deleted { .. } => "Deleted",
            Self::StatusPruned { .. } => "StatusPruned",
            Self::NamespaceTerminating { .. } => "NamespaceTerminating",
            Self::HostPorts { .. } => "HostPorts",
            Self::Lost { .. } => "Lost",
            Self::Refused { .. } => "Refused",
            Self::WriteFailed { .. } => "WriteFailed",
        }
    }
}

impl Waiting {
    /// A person may have to act: it is told at once, with an event.
    #[must_use]
    pub fn is_alarm(&self) -> bool {
        match self {
            Self::NameTaken { .. }
            | Self::Refused { .. }
            | Self::Lost { .. }
            | Self::Deleted { .. }
            | Self::StatusPruned { .. } => true,
            Self::Pods { .. }
            | Self::Terminating { .. }
            | Self::Field { .. }
            | Self::NamespaceTerminating { .. }
            | Self::HostPorts { .. }
            | Self::WriteFailed { .. } => false,
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods { reached, have, want } => {
                let what = match reached {
                    Reached::Exists => "pods",
                    Reached::Ip => "pod addresses",
                    Reached::Running => "running pods",
                    Reached::Ready => "ready pods",
                };
                write!(f, "{what} ({have} of {want})")
            }
            Self::NameTaken { kind, name } => {
                write!(f, "{} exists and is not this job's; delete or rename it", object(kind, name))
            }
            Self::Terminating { kind, name } => write!(f, "an earlier {} to be gone", object(kind, name)),
            Self::Field { kind, name, at, has, one_of } => {
                let (what, has) = (object(kind, name), if has.is_empty() { "nothing" } else { has });
                write!(f, "{what} to have {} at {at}, it has {has}", one_of.join(" or "))
            }
            Self::Deleted { kind, name } => write!(
                f,
                "{}, which was deleted and is not made again, since pods that run may hold what was in it; restore it, \
                 or make the job again",
                object(kind, name)
            ),
            Self::StatusPruned { crd } => write!(
                f,
                "the CRD {crd} to keep status.troupe: it drops what has to be written down before pods are made; \
                 apply the CRD of `troupe crds`"
            ),
            Self::NamespaceTerminating { namespace } => {
                write!(f, "nothing: the namespace {namespace} is being deleted, and nothing can be created in it")
            }
            Self::HostPorts { count, why } => write!(f, "{count} consecutive ports of the nodes; {why}"),
            Self::Lost { kind, name } => write!(
                f,
                "{} is gone by its time to live and nobody saw how it ended; it is not run again",
                object(kind, name)
            ),
            Self::Refused { attempt, why } | Self::WriteFailed { attempt, why } => {
                write!(f, "failed to {attempt}: {why}")
            }
        }
    }
}

/// `pod/name`, as kubectl says it.
#[must_use]
pub fn object(kind: &str, name: &str) -> String {
    format!("{}/{name}", kind.to_lowercase())
}
