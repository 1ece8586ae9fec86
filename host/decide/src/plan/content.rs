//! Objects that a job's user names and whose content plans depend on.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A place in the spec where a job's user names such an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The kind of the object.
    pub kind: Referred,
    /// JSON pointer into the spec.
    pub at: String,
}

/// The kind of an object that a job's user names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Referred {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret, of which plans see hashes alone.
    Secret,
}

impl Referred {
    /// Returns the kind, as in `spec.grants.reads`.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// Returns the plural, as in a URL.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }
}

/// The content of an object that a job's user names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The reference's JSON pointer.
    pub at: String,
    /// The object's name.
    pub name: String,
    /// The values of its `data` by key, of a Secret their hashes; `None` if there is no such object.
    pub data: Option<BTreeMap<String, String>>,
}

impl Reference {
    /// Returns the name that stands in the spec, if a text does.
    #[must_use]
    pub fn name<'a>(&self, spec: &'a Value) -> Option<&'a str> {
        spec.pointer(&self.at).and_then(Value::as_str).filter(|name| !name.is_empty())
    }
}
