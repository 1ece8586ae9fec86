//! The kinds of objects, and what the API server does differently for each.

use serde_json::{Value, json};

use crate::store::table;

/// A kind the simulated API server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind, for example `Pod`.
    pub kind: String,
    /// The plural in URLs, for example `pods`.
    pub plural: String,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
    /// Whether it has the status subresource.
    pub status: bool,
    /// The fields of the status that its CustomResourceDefinition does not know and that are dropped.
    pub pruned: Vec<String>,
}

impl Kind {
    /// Returns a kind; `api_version` is `group/version`, or `v1` for the core group.
    pub fn new(api_version: &str, kind: &str, plural: &str, namespaced: bool, status: bool) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced,
            status,
            pruned: vec![],
        }
    }

    /// Adds a field of the status that the CustomResourceDefinition does not know.
    #[must_use]
    pub fn pruning(mut self, field: &str) -> Self {
        self.pruned.push(field.into());
        self
    }

    /// Returns a namespaced custom resource with a status subresource, as jobs are.
    pub fn custom(api_version: &str, kind: &str, plural: &str) -> Self {
        Self::new(api_version, kind, plural, true, true)
    }

    /// Returns `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns `plural.group`, as error messages name a resource.
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(crate) fn details(&self, kind: &str, name: &str) -> Value {
        let mut details = json!({ "kind": kind });
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !self.group.is_empty() {
            details["group"] = json!(self.group);
        }
        details
    }

    /// Whether it is compiled into kube-apiserver rather than defined by a CustomResourceDefinition.
    pub(crate) fn builtin(&self) -> bool {
        matches!(self.group.as_str(), "" | "batch" | "coordination.k8s.io" | "events.k8s.io" | "apiextensions.k8s.io")
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.builtin() && self.kind == kind
    }

    /// Whether its objects count spec changes in `metadata.generation`.
    pub(crate) fn generations(&self) -> bool {
        !self.builtin() || matches!(self.kind.as_str(), "Pod" | "Job" | "CustomResourceDefinition")
    }

    pub(crate) fn unconditional_update(&self) -> bool {
        self.builtin() && !matches!(self.kind.as_str(), "Lease" | "CustomResourceDefinition")
    }

    pub(crate) fn create_on_update(&self) -> bool {
        self.is("Lease") || self.is("Event") || self.is("Service")
    }

    /// Whether a delete returns the object instead of a `Status`.
    pub(crate) fn delete_returns_object(&self) -> bool {
        self.is("Pod") || self.is("Service") || self.is("Namespace")
    }

    pub(crate) fn selectable(&self, field: &str) -> bool {
        if field == "metadata.name" || (field == "metadata.namespace" && (self.namespaced || !self.builtin())) {
            return true;
        }
        match self.kind.as_str() {
            _ if !self.builtin() => false,
            "Pod" => matches!(
                field,
                "spec.nodeName"
                    | "spec.restartPolicy"
                    | "spec.schedulerName"
                    | "spec.serviceAccountName"
                    | "spec.hostNetwork"
                    | "status.phase"
                    | "status.podIP"
                    | "status.podIPs"
                    | "status.nominatedNodeName"
            ),
            "Event" => {
                field.starts_with("involvedObject.")
                    || field.starts_with("regarding.")
                    || matches!(field, "reason" | "type" | "source" | "reportingComponent" | "reportingController")
            }
            "Secret" => field == "type",
            "Node" => field == "spec.unschedulable",
            "Namespace" => field == "status.phase",
            "Job" => field == "status.successful",
            "Service" => matches!(field, "spec.clusterIP" | "spec.type"),
            _ => false,
        }
    }

    pub(crate) fn table(&self) -> String {
        table(&self.group, &self.plural)
    }

    /// Returns the key in etcd, which messages of failed preconditions show.
    pub(crate) fn etcd_key(&self, key: &str) -> String {
        match self.kind.as_str() {
            "Service" if self.builtin() => format!("/registry/services/specs/{key}"),
            "Lease" if self.builtin() => format!("/registry/leases/{key}"),
            "Node" if self.builtin() => format!("/registry/minions/{key}"),
            _ if self.group.is_empty() || self.group == "batch" => {
                format!("/registry/{}/{key}", self.plural)
            }
            _ => format!("/registry/{}/{}/{key}", self.group, self.plural),
        }
    }
}

/// The kinds that are always served.
pub(crate) fn builtins() -> Vec<Kind> {
    vec![
        Kind::new("v1", "Pod", "pods", true, true),
        Kind::new("v1", "Service", "services", true, true),
        Kind::new("v1", "ConfigMap", "configmaps", true, false),
        Kind::new("v1", "Secret", "secrets", true, false),
        Kind::new("v1", "Event", "events", true, false),
        Kind::new("v1", "Namespace", "namespaces", false, true),
        Kind::new("v1", "Node", "nodes", false, true),
        Kind::new("v1", "ServiceAccount", "serviceaccounts", true, false),
        Kind::new("v1", "ResourceQuota", "resourcequotas", true, true),
        Kind::new("batch/v1", "Job", "jobs", true, true),
        Kind::new("coordination.k8s.io/v1", "Lease", "leases", true, false),
        Kind::new("events.k8s.io/v1", "Event", "events", true, false),
        Kind::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false, true),
        Kind::new("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups", true, true),
        Kind::new("scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups", true, true),
        Kind::new("scheduling.k8s.io/v1beta1", "PodGroup", "podgroups", true, true),
    ]
}
