//! The plugins that a host starts with, with the settings that they have then: what serves where no Plugin says otherwise.

use decide::Digest;
use sandbox::{Plugins, Prepared, Settings};
use std::{collections::BTreeMap, fmt};

/// The plugins that a host starts with, by framework. They are here while they are not loaded, too.
#[derive(Default)]
pub(crate) struct Bundled(BTreeMap<String, (Prepared, Settings)>);

impl fmt::Debug for Bundled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(name, (prepared, _))| (name, prepared.digest.short()))).finish()
    }
}

impl Bundled {
    /// Those that are loaded now.
    pub(crate) fn of(plugins: &Plugins) -> Self {
        let bundled = plugins.frameworks().into_iter().filter_map(|(framework, digest)| {
            let (_, config) = plugins.identity(&digest).unwrap_or_default();
            let (config, grants) = (serde_json::from_str(&config).ok(), plugins.grants(&digest));
            let settings = Settings { config, grants, limits: None };
            Some((framework.name.clone(), (plugins.prepared(&digest)?, settings)))
        });
        Self(bundled.collect())
    }

    /// The plugin of a framework, and its settings.
    pub(crate) fn get(&self, framework: &str) -> Option<&(Prepared, Settings)> {
        self.0.get(framework)
    }

    /// The plugin with this digest, and its settings.
    pub(crate) fn with(&self, digest: &Digest) -> Option<&(Prepared, Settings)> {
        self.0.values().find(|(prepared, _)| prepared.digest == *digest)
    }

    /// Every digest.
    pub(crate) fn digests(&self) -> impl Iterator<Item = &Digest> {
        self.0.values().map(|(prepared, _)| &prepared.digest)
    }
}
