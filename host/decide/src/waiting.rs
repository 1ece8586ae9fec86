//! Why a pass did nothing, or nothing more.

use crate::{condition::Reason, ledger::NoPorts, plan::Reached, snapshot::Hold, time::rfc3339};
use jiff::Timestamp;
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
    /// Pods of the job exist and cannot run.
    Blocked {
        /// The name of the first of them.
        pod: String,
        /// What is in its way.
        by: Blocker,
        /// How many other pods are blocked.
        others: u32,
    },
    /// Pods of a role have failed, and the next ones are created after a delay.
    BackOff {
        /// The role.
        role: String,
        /// How many of its pods have failed so far.
        failures: u32,
    },
    /// Runs are made later, since jobs of the namespace have had as many made as the host makes in this time.
    Paced {
        /// How many the host makes in a second for all jobs of a namespace.
        a_second: u32,
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
        /// What the other controller says of it; "" if it says nothing.
        #[serde(default)]
        says: String,
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
    /// The job's queue holds it back.
    Queue {
        /// The name of its Workload.
        workload: String,
        /// Why.
        hold: Hold,
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

/// What keeps a pod from running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Blocker {
    /// No node can take it.
    Unschedulable {
        /// The scheduler's message.
        message: String,
    },
    /// It has scheduling gates.
    SchedulingGated {
        /// Their names.
        gates: String,
    },
    /// The image of a container cannot be pulled.
    Image {
        /// The container.
        container: String,
        /// The kubelet's reason and message.
        why: String,
    },
    /// A container cannot be created or started.
    Container {
        /// The container.
        container: String,
        /// The kubelet's reason and message.
        why: String,
    },
    /// A container ends again and again.
    CrashLoop {
        /// The container.
        container: String,
        /// How often it was started again.
        restarts: u32,
    },
    /// An init container runs, and the others are started after its end.
    Init {
        /// The container.
        container: String,
        /// When it started.
        since: Timestamp,
    },
    /// It is on its node, and none of its containers has started for long.
    Starting {
        /// The node.
        node: String,
        /// When the node's kubelet took it.
        since: Timestamp,
    },
    /// Its node is not ready.
    NodeLost {
        /// The node.
        node: String,
        /// Since when.
        since: Timestamp,
        /// Whether the pod is being deleted.
        terminating: bool,
    },
}

impl Blocker {
    /// Returns whether the pod is on its way, as far as its status says.
    #[must_use]
    pub fn is_preparation(&self) -> bool {
        matches!(self, Self::Init { .. })
    }

    fn reason(&self) -> Reason {
        match self {
            Self::Unschedulable { .. } => Reason::Unschedulable,
            Self::SchedulingGated { .. } => Reason::SchedulingGated,
            Self::Image { .. } => Reason::ImagePull,
            Self::Container { .. } | Self::Starting { .. } => Reason::ContainerNotStarted,
            Self::CrashLoop { .. } => Reason::CrashLoop,
            Self::Init { .. } => Reason::InitContainer,
            Self::NodeLost { .. } => Reason::NodeLost,
        }
    }

    fn write(&self, pod: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable { message } => write!(f, "pod/{pod} to be scheduled: {message}"),
            Self::SchedulingGated { gates } => {
                write!(f, "pod/{pod} to be scheduled: its scheduling gates have to be removed: {gates}")
            }
            Self::Image { container, why } | Self::Container { container, why } => {
                write!(f, "container {container} of pod/{pod} to start: {why}")
            }
            Self::CrashLoop { container, restarts } => write!(
                f,
                "container {container} of pod/{pod} to stay up: it was started again {restarts} times so far, and is again after a delay"
            ),
            Self::Init { container, since } => {
                write!(f, "init container {container} of pod/{pod} to end, which has run since {}", rfc3339(*since))
            }
            Self::Starting { node, since } => write!(
                f,
                "pod/{pod} to start on node {node}, which has had it since {}: the pod's events say what is missing, such as \
                 a volume that cannot be mounted",
                rfc3339(*since)
            ),
            Self::NodeLost { node, since, terminating } => {
                write!(
                    f,
                    "node {node} of pod/{pod} to be ready again, which it has not been since {}",
                    rfc3339(*since)
                )?;
                let rest = "; the pod is being deleted and is replaced when the node is back, or its Node is deleted";
                if *terminating { f.write_str(rest) } else { Ok(()) }
            }
        }
    }
}

impl Waiting {
    /// Returns the reason of the condition. `status` says which messages are written again while it stays the same.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Pods { reached: Reached::Exists, .. } => Reason::Pods,
            Self::Pods { reached: Reached::Ip, .. } => Reason::PodAddresses,
            Self::Pods { reached: Reached::Running, .. } => Reason::PodsRunning,
            Self::Pods { reached: Reached::Ready, .. } => Reason::PodsReady,
            Self::Pods { reached: Reached::Succeeded, .. } => Reason::PodsSucceeded,
            Self::NameTaken { .. } => Reason::NameTaken,
            Self::Terminating { .. } => Reason::Terminating,
            Self::Blocked { by, .. } => by.reason(),
            Self::BackOff { .. } => Reason::BackOff,
            Self::Paced { .. } => Reason::Paced,
            Self::Field { .. } => Reason::Field,
            Self::Deleted { .. } => Reason::Deleted,
            Self::StatusPruned { .. } => Reason::StatusPruned,
            Self::NamespaceTerminating { .. } => Reason::NamespaceTerminating,
            Self::Queue { hold: Hold::Unseen, .. } => Reason::Queued,
            Self::Queue { hold: Hold::NotAdmitted { .. }, .. } => Reason::NotAdmitted,
            Self::Queue { hold: Hold::Evicted { .. }, .. } => Reason::Evicted,
            Self::Queue { hold: Hold::Inactive { .. }, .. } => Reason::Deactivated,
            Self::Queue { hold: Hold::ClassMissing { .. }, .. } => Reason::ClassMissing,
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
            | Self::Blocked { .. }
            | Self::BackOff { .. }
            | Self::Paced { .. }
            | Self::Field { .. }
            | Self::NamespaceTerminating { .. }
            | Self::Queue { .. }
            | Self::HostPorts { .. }
            | Self::WriteFailed { .. } => false,
        }
    }

    /// Returns what has happened, for an event: what the job waits for, where nothing has.
    #[must_use]
    pub fn happened(&self) -> String {
        match self {
            Self::NameTaken { kind, name } => {
                format!("{} exists and is not this job's; delete or rename it", object(kind, name))
            }
            Self::Refused { attempt, why } | Self::WriteFailed { attempt, why } => {
                format!("failed to {attempt}: {why}")
            }
            other => other.to_string(),
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
                    Reached::Succeeded => "succeeded pods",
                };
                write!(f, "{what} ({have} of {want})")
            }
            Self::NameTaken { kind, name } => {
                let what = object(kind, name);
                write!(
                    f,
                    "the name of {what}, which is not this job's; delete that, or create the job under another name"
                )
            }
            Self::Terminating { kind, name } => write!(f, "an earlier {} to be gone", object(kind, name)),
            Self::Blocked { pod, by, others } => {
                by.write(pod, f)?;
                match others {
                    0 => Ok(()),
                    1 => f.write_str(" (and 1 more pod)"),
                    more => write!(f, " (and {more} more pods)"),
                }
            }
            Self::Paced { a_second } => write!(
                f,
                "the turn of its runs: for all jobs of a namespace together, at most {a_second} runs a second are made for long"
            ),
            Self::BackOff { role, failures } => {
                f.write_str("the end of a back-off: ")?;
                match failures {
                    0 => write!(f, "a pod of role {role} has failed, which does not count"),
                    1 => write!(f, "1 pod of role {role} has failed so far"),
                    more => write!(f, "{more} pods of role {role} have failed so far"),
                }
            }
            Self::Field { kind, name, at, has, one_of, says } => {
                let (what, has) = (object(kind, name), if has.is_empty() { "nothing" } else { has });
                write!(f, "{what} to have {} at {at}, it has {has}", one_of.join(" or "))?;
                if says.is_empty() { Ok(()) } else { write!(f, ": {says}") }
            }
            Self::Deleted { kind, name } => write!(
                f,
                "{}, which was deleted and is not created again, since running pods may hold its content; restore it, \
                 or create the job again",
                object(kind, name)
            ),
            Self::StatusPruned { crd } => write!(
                f,
                "the CRD {crd} to keep status.troupe, which it prunes: the host has to write there before it creates pods; \
                 apply the CRD that `troupe crds` prints"
            ),
            Self::NamespaceTerminating { namespace } => {
                write!(f, "nothing: the namespace {namespace} is being deleted, and nothing can be created in it")
            }
            Self::Queue { workload, hold } => {
                let workload = object("Workload", workload);
                match hold {
                    Hold::Unseen => write!(f, "{workload} to be admitted by its queue"),
                    Hold::NotAdmitted { why } => write!(f, "{workload} to be admitted by its queue: {why}"),
                    Hold::Evicted { reason, why } => {
                        write!(f, "the pods to end, since {workload} was evicted ({reason}): {why}")
                    }
                    Hold::Inactive { why } => {
                        write!(
                            f,
                            "{workload} to be activated: its spec.active is false; set it to true to have the job queued again"
                        )?;
                        if why.is_empty() { Ok(()) } else { write!(f, " ({why})") }
                    }
                    Hold::ClassMissing { kind, name } => write!(
                        f,
                        "{}, which {workload} needs; it does not exist, or the host may not read it",
                        object(kind, name)
                    ),
                }
            }
            Self::HostPorts { count, why } => write!(f, "{count} consecutive ports of the nodes; {why}"),
            Self::Lost { kind, name } => write!(
                f,
                "{} was removed by its time to live before the host saw how it ended; it is not run again",
                object(kind, name)
            ),
            Self::Refused { attempt, why } => write!(f, "the API server to let the host {attempt}: {why}"),
            Self::WriteFailed { attempt, why } => {
                write!(f, "the host to {attempt}, which has failed and is tried again: {why}")
            }
        }
    }
}

/// Returns `pod/name`, as kubectl prints it.
#[must_use]
pub fn object(kind: &str, name: &str) -> String {
    format!("{}/{name}", kind.to_lowercase())
}
