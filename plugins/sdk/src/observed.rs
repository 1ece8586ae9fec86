//! Questions that judges ask of what the host saw.

use crate::types::{ChildView, ContainerState, Observation, PodPhase, PodRow};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Questions about the whole observation.
pub trait ObservationExt {
    /// The pods of a role that are not being deleted, in order of index.
    fn live<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a PodRow>;
    /// All pods of a role, in order of index.
    fn pods_of<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a PodRow>;
    /// How many replicas of a role have succeeded and lost their pod since.
    fn gone_succeeded(&self, role: &str) -> u32;
    /// The Job behind the role is gone and nobody saw how it ended; it is not made again.
    fn is_lost(&self, role: &str) -> bool;
    /// The child that the plan knows under this key.
    fn child(&self, key: &str) -> Option<&ChildView>;
    /// The status as last published, or what of it is of interest; the default when it does not read so.
    fn previous<T: DeserializeOwned + Default>(&self) -> T;
}

impl ObservationExt for Observation {
    fn live<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a PodRow> {
        self.pods_of(role).filter(|pod| !pod.terminating)
    }

    fn pods_of<'a>(&'a self, role: &'a str) -> impl Iterator<Item = &'a PodRow> {
        self.pods.iter().filter(move |pod| pod.role == role)
    }

    fn gone_succeeded(&self, role: &str) -> u32 {
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

/// Questions about one pod.
pub trait PodExt {
    /// Phase Running, every init container done, every container ready and running.
    fn up(&self) -> bool;
    /// The init container of this name is running.
    fn in_init(&self, name: &str) -> bool;
    /// The pod's first address, if it has one.
    fn ip(&self) -> Option<&str>;
}

impl PodExt for PodRow {
    fn up(&self) -> bool {
        self.phase == PodPhase::Running
            && !self.containers.is_empty()
            && self.containers.iter().all(|c| c.ready && (c.init || matches!(c.state, ContainerState::Running(_))))
    }

    fn in_init(&self, name: &str) -> bool {
        self.containers.iter().any(|c| c.init && c.name == name && matches!(c.state, ContainerState::Running(_)))
    }

    fn ip(&self) -> Option<&str> {
        self.ips.first().map(String::as_str)
    }
}

/// Questions about one child.
pub trait ChildExt {
    /// The part of the object at this pointer, if the descriptor keeps it and the object has it.
    fn field(&self, pointer: &str) -> Option<Value>;
}

impl ChildExt for ChildView {
    fn field(&self, pointer: &str) -> Option<Value> {
        let (_, json) = self.fields.iter().find(|(at, _)| at == pointer)?;
        serde_json::from_str(json).ok()
    }
}
