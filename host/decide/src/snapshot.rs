//! Everything one decision may depend on, at one instant.

mod queue;

pub use queue::{Hold, QUEUE_LABEL, Queue};
pub(crate) use queue::{any_object, flavors, is_admitted};

use crate::{
    digest::{Digest, or_empty},
    ledger::{HostPorts, Ledger, NoPorts},
    names,
    plan::{Backing, Content, FieldError, JobKind, Role},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Everything one decision may depend on, `now` included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The instant of the snapshot.
    pub now: Timestamp,
    /// The kind of the job.
    pub kind: Arc<JobKind>,
    /// The job.
    pub job: Arc<Job>,
    /// The field of the job or of one of its children that the host cannot read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<FieldError>,
    /// What must outlive a pod or the process.
    pub ledger: Ledger,
    /// Pods whose controller is the job, or a batch/v1 Job of the job, sorted by name.
    pub pods: Vec<Arc<Pod>>,
    /// Other objects whose controller is the job, sorted by kind and name.
    pub children: Vec<Arc<Child>>,
    /// Objects whose controller is a pod of the job, sorted by kind and name. They are shown to the plugin, and go with their
    /// pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<Dependent>,
    /// What the events of another controller say last of a child, by the child's uid.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reports: BTreeMap<String, String>,
    /// The content of the objects that the job's user names, where the plugin's plans depend on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<Content>,
    /// Names, as kind and name, that children of an earlier job of the same name still have until garbage collection
    /// deletes them. The name of a deleted Job is taken until its pods are gone.
    pub taken: BTreeSet<(String, String)>,
    /// For API versions of optional kinds that plans name and the API server does not serve, the version of the kind that it
    /// serves: `scheduling.k8s.io/v1beta1` to `scheduling.k8s.io/v1alpha2`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub served_as: BTreeMap<String, String>,
    /// Digest of the plugin that plans this job; `None` if no plugin does.
    #[serde(with = "or_empty")]
    pub digest: Option<Digest>,
    /// Host ports that the host has set aside for this job and that the ledger does not hold yet.
    #[serde(default)]
    pub set_aside: Option<HostPorts>,
    /// Why the host has set aside no host ports for a job that needs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_ports: Option<NoPorts>,
    /// Whether the installed CRD prunes the ledger: the last written status came back without it.
    #[serde(default)]
    pub pruned: bool,
    /// Whether a create for this job was refused because its namespace is being deleted.
    #[serde(default)]
    pub namespace_terminating: bool,
    /// What the queue says of the job; `None` where there are no queues, or where they know the job's kind themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// A job as stored by the API server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Resource version.
    pub resource_version: String,
    /// Generation.
    pub generation: i64,
    /// When it was created.
    pub created: Timestamp,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// The spec, `{}` when absent.
    pub spec: Value,
    /// The status, `{}` when absent.
    pub status: Value,
}

/// Phase of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodPhase {
    /// Accepted; not all containers have started.
    Pending,
    /// At least one container runs.
    Running,
    /// All containers succeeded.
    Succeeded,
    /// All containers ended; at least one failed.
    Failed,
    /// The phase cannot be determined.
    Unknown,
}

impl PodPhase {
    /// Returns whether the phase is Succeeded or Failed.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The kept fields of a pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pod {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Resource version.
    pub resource_version: String,
    /// Uid of its controller: the job, or a batch/v1 Job of the job.
    pub owner_uid: String,
    /// When it was created.
    pub created: Timestamp,
    /// Whether it has a deletion timestamp.
    pub terminating: bool,
    /// Whether it was deleted before it had ended: its containers are told to stop, and how they end says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Phase.
    pub phase: PodPhase,
    /// `status.reason`.
    pub reason: String,
    /// `status.message`.
    pub message: String,
    /// Whether its condition Ready is True.
    pub ready: bool,
    /// Addresses.
    pub ips: Vec<String>,
    /// Node it is bound to, or "".
    pub node: String,
    /// Why the scheduler has not bound it, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unscheduled: Option<Unscheduled>,
    /// When the kubelet of its node took it, while it is Pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Timestamp>,
    /// Since when its node has not been ready, if the cluster says so of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_lost: Option<Timestamp>,
    /// What the framework keeps of it, by JSON pointer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, Value>,
    /// Hash of the template that it was created from, if that is not the job's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_hash: Option<String>,
    /// The attempt of its role that it was created for; the first is 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub attempt: u32,
    /// Hash of the addresses that it was created with, if its role replaces pods whose addresses are others by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<String>,
    /// Init containers first, then containers.
    pub containers: Vec<ContainerStatus>,
    /// Type and status of each of its conditions, if it has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<(String, String)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_first(attempt: &u32) -> bool {
    *attempt == 0
}

/// A pod's condition PodScheduled that is False.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unscheduled {
    /// CamelCase reason: `Unschedulable`, `SchedulingGated`.
    pub reason: String,
    /// Human-readable message; the names of the gates of a pod that has scheduling gates.
    pub message: String,
}

/// The kept fields of a container's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContainerStatus {
    /// Name.
    pub name: String,
    /// Whether it is an init container.
    pub init: bool,
    /// Whether it is ready.
    pub ready: bool,
    /// Restart count.
    pub restarts: u32,
    /// State.
    pub state: ContainerState,
}

/// State of a container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ContainerState {
    /// Not reported.
    Unknown,
    /// Not started.
    Waiting {
        /// CamelCase reason.
        reason: String,
        /// Human-readable message.
        message: String,
    },
    /// Running.
    Running {
        /// When it started.
        since: Timestamp,
    },
    /// Ended.
    Terminated {
        /// Exit code.
        exit_code: i32,
        /// CamelCase reason.
        reason: String,
        /// Human-readable message.
        message: String,
        /// When it ended.
        at: Timestamp,
    },
}

/// The kept fields of another object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Child {
    /// API version: `v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Resource version.
    pub resource_version: String,
    /// Whether it has a deletion timestamp.
    pub terminating: bool,
    /// The fields that the framework keeps, by JSON pointer.
    pub fields: BTreeMap<String, Value>,
}

/// An object that a pod of the job has made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dependent {
    /// The name of the pod that is its controller.
    pub pod: String,
    /// The object.
    pub object: Arc<Child>,
}

impl Child {
    /// Returns whether this is a batch/v1 Job whose suspend switch is set.
    #[must_use]
    pub fn job_is_suspended(&self) -> bool {
        self.kind == "Job" && self.fields.get("/spec/suspend").and_then(Value::as_bool) == Some(true)
    }

    /// Returns whether this is a batch/v1 Job that is Complete or Failed.
    #[must_use]
    pub fn job_is_over(&self) -> bool {
        self.job_has("Complete") || self.job_has("Failed")
    }

    /// Returns how many pods of this batch/v1 Job have not ended, as its status says; 0 for any other object.
    #[must_use]
    pub fn job_active_pods(&self) -> u64 {
        let status = self.fields.get("/status").filter(|_| self.kind == "Job");
        status.and_then(|status| status["active"].as_u64()).unwrap_or(0)
    }

    /// Returns whether this is a batch/v1 Job with this condition.
    pub(crate) fn job_has(&self, condition: &str) -> bool {
        let conditions = self.fields.get("/status").and_then(|status| status["conditions"].as_array());
        let mut conditions = conditions.into_iter().flatten();
        self.kind == "Job" && conditions.any(|it| it["type"] == condition && it["status"] == "True")
    }
}

impl Snapshot {
    /// Returns the API version in which an object of a plan is created.
    #[must_use]
    pub fn served<'a>(&'a self, api_version: &'a str) -> &'a str {
        self.served_as.get(api_version).map_or(api_version, String::as_str)
    }

    /// Returns the value of a switch in the job's spec.
    #[must_use]
    pub fn switch(&self, pointer: Option<&String>) -> Option<&Value> {
        self.job.spec.pointer(pointer?)
    }

    /// Returns whether the job has to be without pods: its user has suspended it, or its queue holds it back.
    #[must_use]
    pub fn suspended(&self) -> bool {
        self.suspended_by_user() || self.hold().is_some()
    }

    /// Returns whether the user has suspended the job.
    #[must_use]
    pub fn suspended_by_user(&self) -> bool {
        self.switch(self.kind.suspend.as_ref()).and_then(Value::as_bool) == Some(true)
    }

    /// Returns whether another manager runs the job.
    #[must_use]
    pub fn managed_by_another(&self) -> bool {
        let manager = self.switch(self.kind.managed_by.as_ref()).and_then(Value::as_str);
        manager.is_some_and(|manager| !manager.is_empty() && Some(manager) != self.kind.own_manager.as_deref())
    }

    /// Returns the pods that the job itself controls, without those of a batch/v1 Job.
    pub fn own_pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods.iter().filter(|pod| pod.owner_uid == self.job.uid)
    }

    /// Returns whether the job has a batch/v1 Job that may make pods: one that is neither over nor suspended.
    #[must_use]
    pub fn has_active_job(&self) -> bool {
        self.children.iter().any(|child| child.kind == "Job" && !child.job_is_over() && !child.job_is_suspended())
    }

    /// Returns the Job that backs a role, if it exists; `None` for a role of pods.
    #[must_use]
    pub fn job_behind(&self, role: &Role) -> Option<&Arc<Child>> {
        match role.backing {
            Backing::Job(_) => {
                let name = names::of_replica(role, &self.job.name, 0);
                self.children.iter().find(|child| child.kind == "Job" && child.name == name)
            }
            Backing::Pods => None,
        }
    }
}
