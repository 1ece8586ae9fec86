//! The plugins that a host starts with, with the settings that they have then: what serves where no Plugin says otherwise.

use decide::Digest;
use sandbox::{Plugins, Settings};
use std::collections::BTreeMap;

/// The plugins that a host starts with, by framework.
#[derive(Debug, Default)]
pub(crate) struct Bundled(BTreeMap<String, (Digest, Settings)>);

impl Bundled {
    /// Those that are loaded now.
    pub(crate) fn of(plugins: &Plugins) -> Self {
        let bundled = plugins.frameworks().into_iter().map(|(framework, digest)| {
            let (_, config) = plugins.identity(&digest).unwrap_or_default();
            let (config, grants) = (serde_json::from_str(&config).ok(), plugins.grants(&digest));
            (framework.name.clone(), (digest, Settings { config, grants, limits: None }))
        });
        Self(bundled.collect())
    }

    /// The digest for a framework, and its settings.
    pub(crate) fn get(&self, framework: &str) -> Option<&(Digest, Settings)> {
        self.0.get(framework)
    }

    /// Every digest.
    pub(crate) fn digests(&self) -> impl Iterator<Item = &Digest> {
        self.0.values().map(|(digest, _)| digest)
    }
}
