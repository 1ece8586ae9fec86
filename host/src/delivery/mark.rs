//! The host's mark on a plugin that it keeps: it may plan jobs of these kinds, with these settings. A digest without one
//! plans nothing, whatever a job says.

use super::{
    Delivery,
    fetch::Fetched,
    kept::KeptError,
    report::{Stage, Trouble},
    short,
};
use crate::{
    plugin::{Prepared, Settings},
    plugin_resource::{Plugin, PluginLimits},
    watch::chain,
};
use decide::{grants::Grants, plan::JobKind};
use kube::ResourceExt;
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
    /// The component serves its kinds with these settings, and is granted no more than `grants`.
    pub(super) fn new(by: String, prepared: &Prepared, settings: &Settings, grants: Grants) -> Self {
        let kinds = prepared.descriptor.kinds.iter().map(JobKind::id).collect();
        let Settings { config, limits, .. } = settings.clone();
        Self { by, kinds, config, grants, limits }
    }

    /// The mark among the annotations of a ConfigMap.
    pub(super) fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        serde_json::from_str(annotations.get(ANNOTATION)?).ok()
    }

    /// The annotation.
    pub(super) fn annotation(&self) -> (String, String) {
        (ANNOTATION.to_owned(), serde_json::to_string(self).unwrap_or_default())
    }

    /// What the plugin gets when it is loaded again.
    pub(super) fn settings(&self) -> Settings {
        Settings { config: self.config.clone(), grants: Some(self.grants.clone()), limits: self.limits.clone() }
    }
}

impl Delivery {
    /// Keeps the bytes, and that they were accepted, before any job is planned by them.
    pub(super) async fn keep(
        &self,
        digest: &str,
        fetched: Option<&Fetched>,
        mark: Option<&Mark>,
    ) -> Result<(), Trouble> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let failed = |error: KeptError| Trouble { at: Stage::Accepted, reason: "NotKept", message: chain(&error) };
        match fetched {
            Some(Fetched { wasm, artifact, .. }) => {
                kept.keep(digest, wasm, artifact.as_ref(), mark).await.map_err(failed)
            }
            None if mark.is_none_or(|mark| self.marks.get(digest) == Some(mark)) => Ok(()),
            None => match kept.mark(digest, mark).await.map_err(failed)? {
                true => Ok(()),
                false => Err(failed(KeptError::NotKept(short(digest).to_owned()))),
            },
        }
    }

    /// What is written down of a component that this Plugin has plan jobs.
    pub(super) fn mark_of(&self, plugin: &Plugin, prepared: &Prepared, settings: &Settings) -> Mark {
        let generation = plugin.metadata.generation.unwrap_or_default();
        let by = format!("Plugin {}, generation {generation}", plugin.name_any());
        let grants = settings.grants.clone().or_else(|| self.context.plugins.grants(&prepared.digest));
        Mark::new(by, prepared, settings, grants.unwrap_or_default())
    }
}
