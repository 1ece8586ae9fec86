//! Which descriptions of plugins are refused whatever is granted: kinds that control the cluster, and names that do not
//! identify one kind.

use super::{
    kinds::{self, KindError},
    selector::is_selector,
};
use crate::{
    condition::Reason,
    plan::{ChildKind, Descriptor, JobKind, OwnedBy},
};
use std::collections::BTreeSet;

/// Groups of Kubernetes whose objects control access or define the API.
const GROUPS: [&str; 10] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "troupe.dev",
];

/// Kinds of the core group with the same power, and those that other pods depend on. A Secret would be shown to the
/// plugin.
const CORE: [&str; 11] = [
    "Binding",
    "Endpoints",
    "Event",
    "LimitRange",
    "Namespace",
    "Node",
    "PersistentVolume",
    "ResourceQuota",
    "Secret",
    "ServiceAccount",
    "PodTemplate",
];

/// Groups whose kinds the host reads and writes for itself, or which a scheduler or a queue owns: a plugin that served one would
/// have the host act on objects of all tenants.
const NO_FRAMEWORKS: [&str; 3] = ["kueue.x-k8s.io", "scheduling.volcano.sh", "scheduling.x-k8s.io"];

/// Maximum number of kinds of job, and of kinds of object. The host watches each.
const MOST_KINDS: usize = 32;
const MOST_CHILDREN: usize = 64;

/// Maximum number of places that are kept of the objects of a kind. Each is looked for in each object.
const MOST_KEPT: usize = 64;

/// Maximum bytes of the JSON pointer to such a place. The longest name of an annotation has 317.
const LONGEST_PLACE: usize = 1024;

/// Maximum number of places in a spec whose objects are read: a pass waits for one after the other.
const MOST_READS: usize = 8;

/// What a plugin describes and no plugin may.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// A kind of job is not a framework's.
    #[error("{kind} of {group:?} is no kind of job of a framework")]
    NoFrameworks {
        /// Kind.
        kind: String,
        /// Its group.
        group: String,
    },
    /// The host has no such event, or the API server does not accept the reason.
    #[error("event-reasons: {host:?} is none of {}, or {own:?} is no word", Reason::RENAMED.map(Reason::as_str).join(", "))]
    EventReason {
        /// The host's reason.
        host: String,
        /// The framework's own.
        own: String,
    },
    /// A kind of child controls the cluster.
    #[error("no job may have a {kind} of {api_version} for a child")]
    ForbiddenChild {
        /// Kind.
        kind: String,
        /// Its API version.
        api_version: String,
    },
    /// More places of names than can be read in a pass, or one twice.
    #[error("reads: at most {MOST_READS} different pointers")]
    Reads,
    /// The objects of pods are those of everybody where nothing selects them.
    #[error("{kind}: objects of pods need a selector")]
    NoSelector {
        /// Kind.
        kind: String,
    },
    /// More than a framework has.
    #[error("{what}: {is}, at most {most}")]
    TooMany {
        /// What there is too much of.
        what: String,
        /// How many there are.
        is: usize,
        /// The maximum.
        most: usize,
    },
    /// No object has such a place.
    #[error("keep of {kind}: {at:?} is no JSON pointer to a field of at most {LONGEST_PLACE} bytes")]
    Place {
        /// Kind.
        kind: String,
        /// The beginning of the pointer.
        at: String,
    },
    /// The API server would refuse every list and watch with the selector.
    #[error("{kind}: {selector:?} is no label selector")]
    Selector {
        /// Kind.
        kind: String,
        /// The selector.
        selector: String,
    },
    /// A finalizer is not of an original operator of the kind.
    #[error(
        "retired-finalizers of {kind}: {finalizer:?} is not of the domain of {group}; the host removes those of its original alone"
    )]
    Finalizer {
        /// Kind.
        kind: String,
        /// Its group.
        group: String,
        /// The finalizer.
        finalizer: String,
    },
    /// The names of a kind identify none.
    #[error(transparent)]
    Kind(#[from] KindError),
}

/// Refuses a plugin that serves, watches or creates what no plugin may.
///
/// # Errors
/// The kind or the event reason, and what is wrong with it.
pub fn description(descriptor: &Descriptor) -> Result<(), DescriptionError> {
    if let Some(kind) = descriptor.kinds.iter().find(|kind| is_kubernetes_own(kind)) {
        return Err(DescriptionError::NoFrameworks { kind: kind.kind.clone(), group: kind.group.clone() });
    }
    let most = |what: String, is: usize, most: usize| match is > most {
        true => Err(DescriptionError::TooMany { what, is, most }),
        false => Ok(()),
    };
    most("kinds".into(), descriptor.kinds.len(), MOST_KINDS)?;
    most("children".into(), descriptor.children.len(), MOST_CHILDREN)?;
    for child in &descriptor.children {
        most(format!("keep of {}", child.kind), child.keep.len(), MOST_KEPT)?;
        if let Some(at) = child.keep.iter().find(|at| !is_place(at)) {
            let at = at.chars().take(64).collect();
            return Err(DescriptionError::Place { kind: child.kind.clone(), at });
        }
        if let Some(selector) = child.selector.as_deref().filter(|it| !it.is_empty() && !is_selector(it)) {
            return Err(DescriptionError::Selector { kind: child.kind.clone(), selector: selector.to_owned() });
        }
    }
    for kind in &descriptor.kinds {
        if let Some(finalizer) = kind.retired_finalizers.iter().find(|it| !is_of_domain(it, &kind.group)) {
            let (kind, group) = (kind.kind.clone(), kind.group.clone());
            return Err(DescriptionError::Finalizer { kind, group, finalizer: finalizer.clone() });
        }
    }
    if let Some((host, own)) = descriptor.event_reasons.iter().find(|(host, own)| !is_reason(host, own)) {
        return Err(DescriptionError::EventReason { host: host.clone(), own: own.clone() });
    }
    if let Some(child) = descriptor.children.iter().find(|child| is_never(child.group(), &child.kind)) {
        let (kind, api_version) = (child.kind.clone(), child.api_version.clone());
        return Err(DescriptionError::ForbiddenChild { kind, api_version });
    }
    let of_pods =
        |child: &&ChildKind| child.owned_by == OwnedBy::Pod && child.selector.as_deref().is_none_or(str::is_empty);
    if let Some(child) = descriptor.children.iter().find(of_pods) {
        return Err(DescriptionError::NoSelector { kind: child.kind.clone() });
    }
    let at: BTreeSet<_> = descriptor.reads.iter().map(|reference| &reference.at).collect();
    if descriptor.reads.len() > MOST_READS || at.len() < descriptor.reads.len() {
        return Err(DescriptionError::Reads);
    }
    descriptor.kinds.iter().try_for_each(kinds::job)?;
    Ok(descriptor.children.iter().try_for_each(kinds::child)?)
}

/// Returns whether an object may have a field at this JSON pointer.
fn is_place(at: &str) -> bool {
    let is_escaped = at.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    at.starts_with('/') && is_escaped && at.len() <= LONGEST_PLACE
}

/// Returns whether no plan may have an object of this kind.
pub(super) fn is_never(group: &str, kind: &str) -> bool {
    // A PodGroup of `scheduling.k8s.io` only says which pods of its namespace start together.
    let is_pod_group = (group, kind) == ("scheduling.k8s.io", "PodGroup");
    GROUPS.contains(&group) && !is_pod_group || group.contains('*') || (group.is_empty() && CORE.contains(&kind))
}

/// Returns whether the kind is no framework's: those have a group of their own, with a dot in it.
fn is_kubernetes_own(kind: &JobKind) -> bool {
    !kind.group.contains('.')
        || kind.group.ends_with(".k8s.io")
        || NO_FRAMEWORKS.contains(&kind.group.as_str())
        || is_never(&kind.group, &kind.kind)
}

/// Returns whether the finalizer's domain and the group have their last two labels in common, as
/// `finalizers.example.org` and `batch.example.org` have.
fn is_of_domain(finalizer: &str, group: &str) -> bool {
    let domain = finalizer.split('/').next().unwrap_or_default();
    let last_two = |name: &str| name.rsplitn(3, '.').take(2).map(str::to_owned).collect::<Vec<_>>();
    domain.contains('.') && last_two(domain) == last_two(group)
}

/// Returns whether the host has this event, and the API server accepts the framework's own reason for it.
fn is_reason(host: &str, own: &str) -> bool {
    Reason::RENAMED.iter().any(|reason| reason.as_str() == host)
        && (1..=128).contains(&own.len())
        && own.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
