//! Loaded plugins with other settings than those with which they came into service: never with more grants.

use super::{
    super::settings::{ConfigError, Settings, wanted},
    Loaded, Plugins,
};
use decide::{
    Digest,
    grants::{self, Grants},
    plan::Descriptor,
};
use std::sync::Arc;

impl Plugins {
    /// Gives the plugin with this digest the limits of these settings, and of the grants with which it came into service those
    /// that they have: all of them if the settings name none. Its config stays.
    pub fn restrict(&self, digest: &Digest, settings: &Settings) {
        if let Some(plugin) = self.by_digest(digest) {
            self.put(self.restricted(&plugin, settings));
        }
    }

    /// Does the same as [`restrict`](Self::restrict), and gives the plugin the config of these settings as well. Returns what
    /// it describes with them; `None` if it is not loaded.
    ///
    /// # Errors
    /// Returns an error if the plugin's schema does not allow the config, or if the config asks for more than the plugin is
    /// granted then. Nothing has changed in that case.
    pub fn adapt(&self, digest: &Digest, settings: &Settings) -> Result<Option<Arc<Descriptor>>, ConfigError> {
        let Some(plugin) = self.by_digest(digest) else { return Ok(None) };
        let (config, restricted) = (settings.config(), self.restricted(&plugin, settings));
        let descriptor = Arc::new(self.configured(digest, &plugin.described, &config)?);
        let lacking = |asked: &Grants| grants::missing(asked, &restricted.grants);
        let lacks = lacking(&wanted(&descriptor, &config));
        // What it lacks whatever its config is does not speak against this one.
        if lacks != lacking(&plugin.described.wanted_grants()) {
            let message = format!("it would need grants that it does not have:\n{lacks}");
            return Err(ConfigError::Refused { plugin: plugin.descriptor.name.clone(), message });
        }
        self.put(Loaded { config: config.to_string(), descriptor: Arc::clone(&descriptor), ..restricted });
        Ok(Some(descriptor))
    }

    /// Returns the plugin with the limits of these settings, and with no grant that they lack or that it did not come into
    /// service with.
    fn restricted(&self, plugin: &Loaded, settings: &Settings) -> Loaded {
        let (accepted, limits) = (&plugin.accepted, self.limits_of(settings));
        let grants = settings.grants.as_ref().map_or_else(|| accepted.clone(), |now| accepted.within(now));
        let share = self.runner.share(&plugin.descriptor.name, limits.concurrency);
        Loaded { grants, share, limits, ..plugin.clone() }
    }

    /// Takes from the plugin with this digest what these grants lack, until it comes into service anew. Its other settings
    /// stay. Returns whether its plans may contain less than before.
    pub fn withdraw(&self, digest: &Digest, granted: &Grants) -> bool {
        let Some(plugin) = self.by_digest(digest) else { return false };
        let (grants, accepted) = (plugin.grants.within(granted), plugin.accepted.within(granted));
        let is_less = grants != plugin.grants;
        self.put(Loaded { grants, accepted, ..Loaded::clone(&plugin) });
        is_less
    }
}
