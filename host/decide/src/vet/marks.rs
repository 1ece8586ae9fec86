//! Labels and annotations that Kubernetes or the host interprets.

use serde_json::Value;

/// Reserved prefixes of keys, before the `/`: no plugin may set them.
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

/// Prefixes of reserved annotations: container runtimes and networks obey them.
const OBEYED: [&str; 4] =
    ["cni.projectcalico.org", "io.kubernetes.cri-o", "k8s.v1.cni.cncf.io", "seccomp.security.alpha.kubernetes.io"];

/// Labels without prefix by which controllers identify their pods.
const KEYS: [&str; 6] = [
    "controller-revision-hash",
    "controller-uid",
    "job-completion-index",
    "job-name",
    "pod-template-generation",
    "pod-template-hash",
];

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Returns whether only the host, or the user whose pod it is, may set this label.
pub(super) fn is_reserved_label(key: &str) -> bool {
    KEYS.contains(&key) || key.split_once('/').is_some_and(|(owner, _)| OWNERS.contains(&owner))
}

/// Returns whether only the host, or the user whose pod it is, may set this annotation.
pub(super) fn is_reserved_annotation(key: &str) -> bool {
    let obeyed = |owner: &str| OBEYED.contains(&owner) || owner.starts_with("io.kubernetes.cri");
    is_reserved_label(key) || key.split('/').next().is_some_and(obeyed)
}

/// Returns whether the annotation sets the AppArmor profile of a container.
pub(super) fn app_armor(key: &str) -> bool {
    key.starts_with(APP_ARMOR)
}

/// Returns the profile in an AppArmor annotation, in the notation of the field that replaced it.
pub(super) fn profile(value: &Value) -> String {
    match value.as_str().unwrap_or("?") {
        "unconfined" => "Unconfined".to_owned(),
        other => other.replace("localhost/", "Localhost/"),
    }
}
