//! The host's mark on a plugin that it keeps: it may plan jobs of these kinds, with these settings. A digest without one
//! plans nothing, whatever a job says.

use decide::{
    grants::Grants,
    plan::{Descriptor, JobKind},
};
use sandbox::{PluginLimits, Settings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Where the first ConfigMap of a plugin has it.
const ANNOTATION: &str = "troupe.dev/accepted";

/// What was accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Mark {
    /// Who said so, for people: a Plugin and its generation, or the host itself.
    pub(super) by: String,
    /// Kinds of job: `TaleJob.example.com`.
    pub(super) kinds: BTreeSet<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<Value>,
    grants: Grants,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<PluginLimits>,
}

impl Mark {
    /// What stands in the mark of what comes with the host.
    pub(super) const BY_HOST: &str = "this host";

    /// The component serves its kinds with these settings, and is granted no more than `grants`.
    pub(super) fn new(by: String, descriptor: &Descriptor, settings: &Settings, grants: Grants) -> Self {
        let kinds = descriptor.kinds.iter().map(JobKind::id).collect();
        let Settings { config, limits, .. } = settings.clone();
        Self { by, kinds, config, grants, limits }
    }

    /// What stands in a mark that a Plugin is the reason of.
    pub(super) fn by_plugin(name: &str, generation: i64) -> String {
        format!("Plugin {name}, generation {generation}")
    }

    /// It takes the place of this one: where a Plugin has what comes with the host serve, the mark stays the Plugin's.
    pub(super) fn replaces(&self, kept: &Self) -> bool {
        self.by != Self::BY_HOST || kept.by.is_empty() || kept.by == Self::BY_HOST
    }

    /// The Plugin of this name is the reason of it.
    pub(super) fn is_of(&self, plugin: &str) -> bool {
        self.by.starts_with(&format!("Plugin {plugin},"))
    }

    /// The mark among the annotations of a ConfigMap.
    pub(super) fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        serde_json::from_str(annotations.get(ANNOTATION)?).ok()
    }

    /// The annotation.
    pub(super) fn annotation(&self) -> (String, String) {
        (ANNOTATION.to_owned(), serde_json::to_string(self).unwrap_or_default())
    }

    /// The mark with no more than these grants; `None` if that is the same.
    pub(super) fn within(&self, grants: &Grants) -> Option<Self> {
        let grants = self.grants.within(grants);
        (grants != self.grants).then(|| Self { grants, ..self.clone() })
    }

    /// What the plugin gets when it is loaded again.
    pub(super) fn settings(&self) -> Settings {
        Settings { config: self.config.clone(), grants: Some(self.grants.clone()), limits: self.limits.clone() }
    }
}
