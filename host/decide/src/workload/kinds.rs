//! The kinds of a queue that the host watches.

use crate::plan::group;

/// The kind of Workloads.
#[derive(Debug)]
pub struct Watched {
    /// API version.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in a URL.
    pub plural: &'static str,
    /// The label of those that the host makes.
    pub label: (&'static str, &'static str),
    /// JSON pointers of the fields kept of each.
    pub keep: [&'static str; 8],
}

/// The Workloads of Kueue.
pub const WORKLOADS: Watched = Watched {
    api_version: "kueue.x-k8s.io/v1beta2",
    kind: "Workload",
    plural: "workloads",
    label: ("troupe.dev/queued", "true"),
    keep: [
        "/metadata/annotations",
        "/spec/active",
        "/spec/queueName",
        "/spec/priority",
        "/spec/priorityClassRef",
        "/status/conditions",
        "/status/admission",
        "/status/admissionChecks",
    ],
};

/// A cluster-scoped kind that Workloads refer to.
#[derive(Debug)]
pub struct Class {
    /// API version.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in a URL.
    pub plural: &'static str,
    /// JSON pointers of the fields kept of each.
    pub keep: &'static [&'static str],
}

impl Class {
    /// Returns the API group.
    #[must_use]
    pub fn group(&self) -> &'static str {
        group(self.api_version)
    }
}

/// Where pods of a flavor run, and the priorities of Workloads and of pods.
pub const CLASSES: [Class; 3] = [
    Class {
        api_version: "kueue.x-k8s.io/v1beta2",
        kind: "ResourceFlavor",
        plural: "resourceflavors",
        keep: &["/spec/nodeLabels", "/spec/tolerations"],
    },
    Class {
        api_version: "kueue.x-k8s.io/v1beta2",
        kind: "WorkloadPriorityClass",
        plural: "workloadpriorityclasses",
        keep: &["/value"],
    },
    Class {
        api_version: "scheduling.k8s.io/v1",
        kind: "PriorityClass",
        plural: "priorityclasses",
        keep: &["/value", "/globalDefault"],
    },
];
