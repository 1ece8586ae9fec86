//! Gang scheduling: the PodGroup that makes a scheduler start a job's pods together, and how pods refer to it.

use crate::{
    PodTemplate, job_name,
    types::{Body, ChildKind, Moment, Object, Upkeep},
};
use serde_json::{Value, json};

/// The key of a job's PodGroup in its plan.
pub const KEY: &str = "pod-group";

/// The value of a setting that selects Volcano. Any other value is the name of a scheduler that uses the PodGroup of the
/// scheduler-plugins.
const VOLCANO: &str = "volcano";

/// Whose PodGroup it is, which also decides how pods refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodGroup {
    /// Volcano's, `scheduling.volcano.sh/v1beta1`.
    Volcano,
    /// The scheduler-plugins', `scheduling.x-k8s.io/v1alpha1`.
    SchedulerPlugins,
}

impl PodGroup {
    /// Returns the PodGroup that a scheduler of this name reads; None for an empty name, which is no gang scheduling.
    #[must_use]
    pub fn of(scheduler: &str) -> Option<Self> {
        match scheduler {
            "" => None,
            VOLCANO => Some(Self::Volcano),
            _ => Some(Self::SchedulerPlugins),
        }
    }

    /// Returns the kinds of PodGroup for a description; the host keeps these pointers of each. Each kind is optional,
    /// since a cluster has it only with its scheduler.
    pub fn children(keep: &[&str]) -> impl Iterator<Item = ChildKind> {
        [Self::Volcano, Self::SchedulerPlugins].into_iter().map(move |group| ChildKind {
            api_version: group.api_version().into(),
            kind: "PodGroup".into(),
            plural: "podgroups".into(),
            selector: None,
            keep: keep.iter().map(|pointer| (*pointer).to_owned()).collect(),
            optional: true,
        })
    }

    /// Adds the reference to the job's PodGroup to a template.
    pub fn mark(self, template: &mut PodTemplate<'_>, job: &str) {
        match self {
            Self::Volcano => template.annotation("scheduling.k8s.io/group-name", job),
            Self::SchedulerPlugins => template.label("scheduling.x-k8s.io/pod-group", job),
        }
    }

    /// Returns the PodGroup of a job, which has the job's name and follows each field of this spec.
    #[must_use]
    pub fn object(self, spec: &Value, remove_when: Vec<Moment>) -> Object {
        let fields = spec.as_object().into_iter().flat_map(|fields| fields.keys());
        Object {
            key: KEY.into(),
            api_version: self.api_version().into(),
            kind: "PodGroup".into(),
            name: vec![job_name()],
            per_pod_of: None,
            upkeep: Upkeep::Follow(fields.map(|field| format!("/spec/{field}")).collect()),
            body: Body::Fixed((json!({ "spec": spec }).to_string(), vec![])),
            after: vec![],
            remove_when,
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::Volcano => "scheduling.volcano.sh/v1beta1",
            Self::SchedulerPlugins => "scheduling.x-k8s.io/v1alpha1",
        }
    }
}
