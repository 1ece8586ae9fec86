//! Checks that group, version, kind and plural name one kind of object. The host requests the plural and has
//! permissions for it; a grant names the kind. If they disagree, the grant is for another kind than the host reads.

use crate::plan::{ChildKind, JobKind};

/// The kinds of Kubernetes that a job may own, with their plurals, by group.
const KUBERNETES: [(&str, &[(&str, &str)]); 8] = [
    (
        "",
        &[
            ("ConfigMap", "configmaps"),
            ("PersistentVolumeClaim", "persistentvolumeclaims"),
            ("Pod", "pods"),
            ("ReplicationController", "replicationcontrollers"),
            ("Service", "services"),
        ],
    ),
    (
        "apps",
        &[
            ("ControllerRevision", "controllerrevisions"),
            ("DaemonSet", "daemonsets"),
            ("Deployment", "deployments"),
            ("ReplicaSet", "replicasets"),
            ("StatefulSet", "statefulsets"),
        ],
    ),
    ("autoscaling", &[("HorizontalPodAutoscaler", "horizontalpodautoscalers")]),
    ("batch", &[("CronJob", "cronjobs"), ("Job", "jobs")]),
    ("coordination.k8s.io", &[("Lease", "leases")]),
    ("networking.k8s.io", &[("Ingress", "ingresses"), ("NetworkPolicy", "networkpolicies")]),
    ("policy", &[("PodDisruptionBudget", "poddisruptionbudgets")]),
    ("resource.k8s.io", &[("ResourceClaim", "resourceclaims"), ("ResourceClaimTemplate", "resourceclaimtemplates")]),
];

/// Why no plugin may have a kind by these names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// A name is not what the API accepts in its place.
    #[error("{name:?} is no {part} of an API (of kind {kind:?})")]
    Name {
        /// `group`, `version`, `kind` or `plural`.
        part: &'static str,
        /// The name.
        name: String,
        /// The kind that it stands with.
        kind: String,
    },
    /// A kind of Kubernetes has another plural.
    #[error("the plural of {kind} of {api_version} is {known}, not {plural}")]
    Plural {
        /// API version.
        api_version: String,
        /// Kind.
        kind: String,
        /// Its plural.
        known: &'static str,
        /// The plural that the plugin names.
        plural: String,
    },
    /// Kubernetes has no such kind that a job may own.
    #[error("this host knows no kind {kind} of {api_version} that a job may have for a child")]
    Unknown {
        /// API version.
        api_version: String,
        /// Kind.
        kind: String,
    },
}

/// Returns whether the group is Kubernetes' own: its kinds are listed here, and the API server need not be asked.
#[must_use]
pub fn is_kubernetes(group: &str) -> bool {
    !group.contains('.') || KUBERNETES.iter().any(|(known, _)| *known == group)
}

/// Checks that the names of a kind of child are valid, and that a kind of Kubernetes is listed here with its plural.
pub(super) fn child(child: &ChildKind) -> Result<(), KindError> {
    let ChildKind { api_version, kind, plural, .. } = child;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    names(group, version, kind, plural)?;
    if !is_kubernetes(group) {
        return Ok(());
    }
    let known = KUBERNETES.iter().find(|(known, _)| *known == group).map_or(&[][..], |(_, kinds)| kinds);
    let (api_version, kind) = (api_version.clone(), kind.clone());
    match known.iter().find(|(known, _)| *known == kind) {
        Some((_, known)) if known == plural => Ok(()),
        Some((_, known)) => Err(KindError::Plural { api_version, kind, known, plural: plural.clone() }),
        None => Err(KindError::Unknown { api_version, kind }),
    }
}

/// Checks that the names of a kind of job are valid.
pub(super) fn job(kind: &JobKind) -> Result<(), KindError> {
    names(&kind.group, &kind.version, &kind.kind, &kind.plural)
}

fn names(group: &str, version: &str, kind: &str, plural: &str) -> Result<(), KindError> {
    let wrong = |part, name: &str| Err(KindError::Name { part, name: name.to_owned(), kind: kind.to_owned() });
    match () {
        () if !group.is_empty() && !group.split('.').all(is_label) => wrong("group", group),
        () if !is_label(version) => wrong("version", version),
        () if !is_kind(kind) => wrong("kind", kind),
        () if !is_label(plural) => wrong("plural", plural),
        () => Ok(()),
    }
}

/// Returns whether this is a DNS label (RFC 1123).
#[must_use]
pub fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= 63 && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// Returns whether this is a DNS subdomain (RFC 1123), the name of an object.
#[must_use]
pub fn is_subdomain(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-');
    name.len() <= 253 && name.split('.').all(is_part)
}

fn is_kind(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::OwnedBy;

    fn child_of(api_version: &str, kind: &str, plural: &str) -> Result<(), KindError> {
        let [api_version, kind, plural] = [api_version, kind, plural].map(str::to_owned);
        child(&ChildKind {
            api_version,
            kind,
            plural,
            selector: None,
            keep: vec![],
            optional: false,
            owned_by: OwnedBy::Job,
        })
    }

    #[test]
    fn kind_and_plural_of_a_kind_of_kubernetes_agree() {
        assert_eq!(child_of("v1", "ConfigMap", "configmaps"), Ok(()));
        assert_eq!(child_of("batch/v1", "Job", "jobs"), Ok(()));
        let secrets = child_of("v1", "ConfigMap", "secrets").unwrap_err();
        assert_eq!(secrets.to_string(), "the plural of ConfigMap of v1 is configmaps, not secrets");
        for (api_version, kind, plural) in [
            ("v1", "Job", "jobs"),
            ("apps/v1", "Secret", "secrets"),
            ("v1", "Widget", "secrets"),
            ("extensions/v1", "Pod", "pods"),
        ] {
            let error = child_of(api_version, kind, plural).unwrap_err().to_string();
            assert!(error.contains("knows no kind"), "{error}");
        }
    }

    // What is no name must not get into a URL.
    #[test]
    fn the_name_of_an_object_is_a_subdomain() {
        assert!(["a", "kube-root-ca.crt", "0.a-b"].iter().all(|name| is_subdomain(name)));
        let long = "a".repeat(254);
        let others = ["", "?watch=true", "../secrets/x", "a/b", "a b", "A", "-a", "a-", "a..b", ".a", "a%2fb", &long];
        assert_eq!(others.iter().find(|name| is_subdomain(name)), None);
    }

    #[test]
    fn invalid_names_are_refused() {
        assert_eq!(child_of("example.org/v1", "Widget", "widgets"), Ok(()));
        for (api_version, kind, plural) in [
            ("v1", "Pod", "pods/log"),
            ("v1", "Pod", "../secrets"),
            ("v1", "Pod", "Pods"),
            ("v1", "Pod", ""),
            ("v1?x=y", "Pod", "pods"),
            ("example.org/../v1", "Widget", "widgets"),
            ("example..org/v1", "Widget", "widgets"),
            ("example.org/v1", "Wid get", "widgets"),
            ("example.org/v1", "", "widgets"),
            ("example.org/v1", "Widget", "*"),
        ] {
            assert!(child_of(api_version, kind, plural).is_err(), "{api_version} {kind} {plural}");
        }
    }
}
