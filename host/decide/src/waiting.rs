//! Why a pass did nothing, or nothing more.

use crate::{condition::Reason, ledger::NoPorts, plan::Reached};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A reason for inaction. Its `Display` feeds the condition's message, `explain`, the log and the scenarios.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waiting {
    /// Pods of the plan's roles have not reached the state that a gate requires.
    Pods {
        /// The required state.
        reached: Reached,
        /// How many pods have reached it.
        have: u32,
        /// How many pods must reach it.
        want: u32,
    },
    /// An object of this name exists and is not the job's.
    NameTaken {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The previous object of this name is still being deleted.
    Terminating {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// A field of an object of the job does not have an accepted value yet.
    Field {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// JSON pointer of the field.
        at: String,
        /// The current value.
        has: String,
        /// The accepted values.
        one_of: Vec<String>,
    },
    /// An object that is created once in the job's life was deleted, and pods to be created need it.
    Deleted {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The installed CRD prunes `status.troupe`, and something has to be written there first.
    StatusPruned {
        /// The CRD's name.
        crd: String,
    },
    /// The namespace is being deleted: nothing can be created in it.
    NamespaceTerminating {
        /// Name of the namespace.
        namespace: String,
    },
    /// No block of host ports is available for the job.
    HostPorts {
        /// How many ports the job needs.
        count: u32,
        /// Why the job gets none.
        #[serde(default)]
        why: NoPorts,
    },
    /// An object that removes itself after its end is gone, and nobody observed how it ended.
    Lost {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The API server refuses a write: quota, a webhook, permissions. The write is retried and may be accepted later.
    Refused {
        /// The attempted write: `create pod/x`.
        attempt: String,
        /// The API server's message.
        why: String,
    },
    /// A write failed. It is retried.
    WriteFailed {
        /// The attempted write: `create pod/x`.
        attempt: String,
        /// The message of the error.
        why: String,
    },
}

impl Waiting {
    /// Returns the reason of the condition. A condition is rewritten only when its reason changes.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Pods { reached: Reached::Exists, .. } => Reason::Pods,
            Self::Pods { reached: Reached::Ip, .. } => Reason::PodAddresses,
            Self::Pods { reached: Reached::Running, .. } => Reason::PodsRunning,
            Self::Pods { reached: Reached::Ready, .. } => Reason::PodsReady,
            Self::NameTaken { .. } => Reason::NameTaken,
            Self::Terminating { .. } => Reason::Terminating,
            Self::Field { .. } => Reason::Field,
            Self::Deleted { .. } => Reason::Deleted,
            Self::StatusPruned { .. } => Reason::StatusPruned,
            Self::NamespaceTerminating { .. } => Reason::NamespaceTerminating,
            Self::HostPorts { .. } => Reason::HostPorts,
            Self::Lost { .. } => Reason::Lost,
            Self::Refused { .. } => Reason::Refused,
            Self::WriteFailed { .. } => Reason::WriteFailed,
        }
    }
}

impl Waiting {
    /// Returns whether a person may have to act: then the reason is published at once, with an event.
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

/// Returns `pod/name`, as kubectl prints it.
#[must_use]
pub fn object(kind: &str, name: &str) -> String {
    format!("{}/{name}", kind.to_lowercase())
}
