//! Roles of a plan: replicas that share a template, what they wait for, and what becomes of their failed pods.

use super::Text;
use crate::ranges::Ranges;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// Indices without a replica.
    #[serde(default, skip_serializing_if = "Ranges::is_empty")]
    pub left_out: Ranges,
    /// What becomes of a pod once an address that it holds is another.
    #[serde(default)]
    pub on_new_address: OnNewAddress,
    /// Gates to open before the pods are created.
    pub after: Vec<Gate>,
    /// Hash of the template that it is made from; "" in a plan that an earlier host recorded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template_hash: String,
}

impl Role {
    /// Returns the indices of its replicas: the first of those that are not left out.
    #[must_use]
    pub fn indices(&self) -> Ranges {
        self.left_out.first_outside(self.replicas)
    }

    /// Returns whether the role has a replica of this index.
    #[must_use]
    pub fn wants(&self, index: u32) -> bool {
        let before = u64::from(index) - self.left_out.count_below(index);
        !self.left_out.contains(index) && before < u64::from(self.replicas)
    }

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
    /// It is counted, and all pods of its role are deleted and created again.
    RestartRole,
    /// It is counted, and all pods of all roles are deleted and created again.
    RestartJob,
    /// It is counted, and its replica has no other pod.
    GiveUp,
    /// It stays.
    Keep,
}

impl Remedy {
    /// Returns whether more than the pod starts again.
    #[must_use]
    pub fn restarts(self) -> bool {
        matches!(self, Self::RestartRole | Self::RestartJob)
    }
}

/// What becomes of a pod once an address that it holds is another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnNewAddress {
    /// It stays.
    #[default]
    Keep,
    /// It is deleted and created again.
    Replace,
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
