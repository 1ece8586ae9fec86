//! A kind of object, as URLs name it.

use decide::plan::{ChildKind, JobKind};
use kube::core::Request;

/// Group, version, kind and plural.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// API group; "" is the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural.
    pub plural: String,
}

impl Resource {
    /// Returns the resource with this API version, `batch/v1` or `v1`, this kind and its plural.
    #[must_use]
    pub fn new(api_version: &str, kind: &str, plural: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.into(), version: version.into(), kind: kind.into(), plural: plural.into() }
    }

    /// Returns `group/version`, or `version` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns a builder of requests for objects of this kind in one namespace, or in all.
    #[must_use]
    pub fn requests(&self, namespace: Option<&str>) -> Request {
        let root = if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.group) };
        let place = namespace.map_or(String::new(), |namespace| format!("/namespaces/{namespace}"));
        Request::new(format!("{root}/{}{place}/{}", self.version, self.plural))
    }
}

impl From<&JobKind> for Resource {
    fn from(kind: &JobKind) -> Self {
        Self {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            plural: kind.plural.clone(),
        }
    }
}

impl From<&ChildKind> for Resource {
    fn from(kind: &ChildKind) -> Self {
        Self::new(&kind.api_version, &kind.kind, &kind.plural)
    }
}
