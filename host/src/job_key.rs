//! Keys: of kinds of job, and of jobs.

use decide::plan::JobKind;
use std::sync::Arc;

/// The group and the kind of a resource, which identify a kind of job in whatever version it is served. Clones share
/// the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKind(Arc<(String, String)>);

impl GroupKind {
    /// Returns the key of this kind in this API group.
    #[must_use]
    pub fn new(group: &str, kind: &str) -> Self {
        Self(Arc::new((group.to_owned(), kind.to_owned())))
    }

    /// Returns the API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.0.0
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.0.1
    }
}

impl From<&JobKind> for GroupKind {
    fn from(kind: &JobKind) -> Self {
        Self::new(&kind.group, &kind.kind)
    }
}

/// The key of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// The kind.
    pub kind: GroupKind,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl JobKey {
    /// Returns the key of a job of this kind.
    #[must_use]
    pub fn new(kind: &GroupKind, namespace: &str, name: &str) -> Self {
        Self { kind: kind.clone(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}
