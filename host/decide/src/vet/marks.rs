//! Labels and annotations that mean something to Kubernetes or to the host.

use serde_json::Value;

/// Owners of keys, before the `/`, that no plugin speaks for.
const OWNERS: [&str; 9] = [
    "troupe.dev",
    "kubernetes.io",
    "apps.kubernetes.io",
    "batch.kubernetes.io",
    "endpointslice.kubernetes.io",
    "pod-security.kubernetes.io",
    "rbac.authorization.k8s.io",
    "statefulset.kubernetes.io",
    "node.kubernetes.io",
];

/// The same of annotations: what container runtimes and networks obey.
const OBEYED: [&str; 4] =
    ["cni.projectcalico.org", "io.kubernetes.cri-o", "k8s.v1.cni.cncf.io", "seccomp.security.alpha.kubernetes.io"];

/// By these, and older names of them, controllers know their pods.
const KEYS: [&str; 6] = [
    "controller-revision-hash",
    "controller-uid",
    "job-completion-index",
    "job-name",
    "pod-template-generation",
    "pod-template-hash",
];

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Only the host, or the user whose pod it is, may set this label.
pub(super) fn is_reserved_label(key: &str) -> bool {
    KEYS.contains(&key) || key.split_once('/').is_some_and(|(owner, _)| OWNERS.contains(&owner))
}

/// The same of an annotation.
pub(super) fn is_reserved_annotation(key: &str) -> bool {
    let obeyed = |owner: &str| OBEYED.contains(&owner) || owner.starts_with("io.kubernetes.cri");
    is_reserved_label(key) || key.split('/').next().is_some_and(obeyed)
}

/// It says which AppArmor profile a container has.
pub(super) fn app_armor(key: &str) -> bool {
    key.starts_with(APP_ARMOR)
}

/// The profile that such an annotation says, in the words of the field that came after it.
pub(super) fn profile(value: &Value) -> String {
    match value.as_str().unwrap_or("?") {
        "unconfined" => "Unconfined".to_owned(),
        other => other.replace("localhost/", "Localhost/"),
    }
}
