//! The kinds of PodGroup: each gang scheduler has one, in a group of its own.

/// Their kind.
pub(crate) const KIND: &str = "PodGroup";

/// Whose PodGroup it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PodGroup {
    Volcano,
    SchedulerPlugins,
    /// The cluster's own scheduler.
    Kubernetes,
}

impl PodGroup {
    pub(crate) const ALL: [Self; 3] = [Self::Volcano, Self::SchedulerPlugins, Self::Kubernetes];

    /// Returns the PodGroup that the scheduler of this name reads.
    pub(crate) fn of(scheduler: &str) -> Self {
        match scheduler {
            "volcano" => Self::Volcano,
            // Not `default-scheduler`: users of an original operator call so a scheduler with the scheduler-plugins that
            // runs in the place of the cluster's own.
            "kubernetes" => Self::Kubernetes,
            _ => Self::SchedulerPlugins,
        }
    }

    /// Returns the API group.
    pub(crate) fn group(self) -> &'static str {
        match self {
            Self::Volcano => "scheduling.volcano.sh",
            Self::SchedulerPlugins => "scheduling.x-k8s.io",
            Self::Kubernetes => "scheduling.k8s.io",
        }
    }
}

/// Returns whether a kind, named as in a grant, is a scheduler's PodGroup.
pub(crate) fn is_pod_group(kind: &str) -> bool {
    let group = kind.strip_prefix(KIND).and_then(|rest| rest.strip_prefix('.'));
    group.is_some_and(|group| PodGroup::ALL.iter().any(|one| one.group() == group))
}
