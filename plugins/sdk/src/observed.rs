//! Queries on the host's observation.

use crate::types::{ChildView, ContainerState, Observation, PodPhase, PodRow};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Queries on the whole observation.
pub trait ObservationExt {
    /// Returns the pods of a role that are not being deleted, in order of index.
    fn live<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a PodRow>;
    /// Returns all pods of a role, in order of index.
    fn pods_of<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a PodRow>;
    /// Returns the number of replicas of a role that have succeeded and whose pod no longer exists.
    fn succeeded_without_pod(&self, role: &str) -> u32;
    /// Returns whether the Job behind the role was deleted before the host saw how it ended. The host does not create
    /// it again.
    fn is_lost(&self, role: &str) -> bool;
    /// Returns the child with this key in the plan, if it exists.
    fn child(&self, key: &str) -> Option<&ChildView>;
    /// Parses the last published status as `T`, which may name a part of the fields. Returns the default if the types
    /// do not match.
    fn previous<T: DeserializeOwned + Default>(&self) -> T;
}

impl ObservationExt for Observation {
    fn live<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a PodRow> {
        self.pods_of(role).filter(|pod| !pod.terminating)
    }

    fn pods_of<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a PodRow> {
        self.pods.iter().filter(move |pod| pod.role == role)
    }

    fn succeeded_without_pod(&self, role: &str) -> u32 {
        let facts = self.roles.iter().filter(|facts| facts.role == role);
        facts.flat_map(|facts| &facts.succeeded).map(|(first, last)| last - first + 1).sum()
    }

    fn is_lost(&self, role: &str) -> bool {
        self.roles.iter().any(|facts| facts.role == role && facts.lost)
    }

    fn child(&self, key: &str) -> Option<&ChildView> {
        self.children.iter().find(|child| child.key.as_deref() == Some(key))
    }

    fn previous<T: DeserializeOwned + Default>(&self) -> T {
        serde_json::from_str(&self.previous_status).unwrap_or_default()
    }
}

/// Queries on one pod.
pub trait PodExt {
    /// Returns whether the pod's phase is Running, each container is ready, and each container that is not an init
    /// container is running. Returns false if no container is known.
    fn is_running_and_ready(&self) -> bool;
    /// Returns whether the init container of this name is running.
    fn in_init(&self, name: &str) -> bool;
    /// Returns the exit code of the container of this name, which is no init container, if it has ended.
    fn exit_code(&self, container: &str) -> Option<i32>;
    /// Returns whether the pod failed for a reason from outside: it was evicted, preempted, or stopped with its node. Its
    /// containers may have ended with 0 then, since they were told to, and have done nothing by that.
    fn is_disrupted(&self) -> bool;
    /// Returns the pod's first IP address, if it has one.
    fn ip(&self) -> Option<&str>;
}

impl PodExt for PodRow {
    fn is_running_and_ready(&self) -> bool {
        self.phase == PodPhase::Running
            && !self.containers.is_empty()
            && self.containers.iter().all(|c| c.ready && (c.init || matches!(c.state, ContainerState::Running(_))))
    }

    fn in_init(&self, name: &str) -> bool {
        self.containers.iter().any(|c| c.init && c.name == name && matches!(c.state, ContainerState::Running(_)))
    }

    fn exit_code(&self, container: &str) -> Option<i32> {
        let container = self.containers.iter().find(|row| !row.init && row.name == container)?;
        match &container.state {
            ContainerState::Terminated(ended) => Some(ended.exit_code),
            ContainerState::Unknown | ContainerState::Waiting(_) | ContainerState::Running(_) => None,
        }
    }

    fn is_disrupted(&self) -> bool {
        let is_told = |(kind, is): &(String, String)| kind == DISRUPTION_TARGET && is == "True";
        self.phase == PodPhase::Failed && (!self.reason.is_empty() || self.conditions.iter().any(is_told))
    }

    fn ip(&self) -> Option<&str> {
        self.ips.first().map(String::as_str)
    }
}

/// The condition of a pod that was ended from outside.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// Returns whether no kubelet starts a container again that has ended with this exit code, in a pod with this restart policy.
#[must_use]
pub fn ends_for_good(exit_code: i32, restart_policy: &str) -> bool {
    restart_policy == "Never" || restart_policy == "OnFailure" && exit_code == 0
}

/// Queries on one child.
pub trait ChildExt {
    /// Returns the value at this pointer of the object, if the descriptor keeps the pointer and the object has a value.
    fn field(&self, pointer: &str) -> Option<Value>;
}

impl ChildExt for ChildView {
    fn field(&self, pointer: &str) -> Option<Value> {
        let (_, json) = self.fields.iter().find(|(at, _)| at == pointer)?;
        serde_json::from_str(json).ok()
    }
}
