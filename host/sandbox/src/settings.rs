//! A cluster operator's settings for a plugin, and their validation against the plugin's schema.

use crate::{PluginLimits, child_error::ChildError, verdict::Verdict};
use decide::{
    grants::Grants,
    plan::{Descriptor, SettingsError},
};
use serde_json::{Value, json};

/// A cluster operator's settings for a plugin.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The plugin's config; None means `{}`.
    pub config: Option<Value>,
    /// What the plugin's plans may contain beyond what a job's user asks for; None means all that the plugin asks for.
    pub grants: Option<Grants>,
    /// The plugin's own limits; None means the host's.
    pub limits: Option<PluginLimits>,
}

impl Settings {
    /// Returns the plugin's config.
    #[must_use]
    pub fn config(&self) -> Value {
        self.config.clone().unwrap_or_else(|| json!({}))
    }
}

/// The reason why a plugin does not get its settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No plugin of this name is loaded.
    #[error("there is no plugin {name}, there are: {there_are}")]
    NoSuchPlugin {
        /// The requested name.
        name: String,
        /// The names of the loaded plugins.
        there_are: String,
    },
    /// The plugin's own schema is invalid.
    #[error("the schema of plugin {plugin} for its settings is wrong: {message}")]
    Schema {
        /// The plugin's name.
        plugin: String,
        /// What is wrong.
        message: String,
    },
    /// The schema does not allow the settings.
    #[error("plugin {plugin} does not allow these settings: {message}")]
    Refused {
        /// The plugin's name.
        plugin: String,
        /// Each wrong place, and what is wrong there.
        message: String,
    },
    /// It is unknown whether the schema allows the settings.
    #[error("the settings of plugin {plugin} cannot be checked by its schema: {why}")]
    NotChecked {
        /// The plugin's name.
        plugin: String,
        /// What happened to the child that checked them.
        why: ChildError,
    },
}

impl ConfigError {
    /// Returns whether these settings are known to be wrong for the plugin: others may be right.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::NotChecked { .. })
    }
}

/// # Errors
/// The config is not allowed.
pub(super) fn allowed(verdict: Verdict, plugin: &str) -> Result<(), ConfigError> {
    let plugin = plugin.to_owned();
    match verdict {
        Verdict::Allowed => Ok(()),
        Verdict::NoSchema(message) => Err(ConfigError::Schema { plugin, message }),
        Verdict::Refused(message) => Err(ConfigError::Refused { plugin, message }),
    }
}

/// Returns what a plugin describes with this config: what it describes of itself, and the kinds that the config adds. The
/// plugin's schema is asked in this process, without bounds.
///
/// # Errors
/// The plugin's own schema does not allow the config, or it adds a kind that no job may own.
pub fn configured(described: &Descriptor, config: &Value) -> Result<Descriptor, ConfigError> {
    allowed(Verdict::of(&described.config_schema, config), &described.name)?;
    with_config(described, config)
}

/// Does the same with a config that the plugin's schema allows.
pub(super) fn with_config(described: &Descriptor, config: &Value) -> Result<Descriptor, ConfigError> {
    let plugin = || described.name.clone();
    let refused = |message| ConfigError::Refused { plugin: plugin(), message };
    let whole = described.with_settings(config).map_err(|error| match error {
        SettingsError::Mark { .. } => ConfigError::Schema { plugin: plugin(), message: error.to_string() },
        SettingsError::Value { .. } | SettingsError::Queueing { .. } | SettingsError::OwnKind { .. } => {
            refused(error.to_string())
        }
    })?;
    decide::vet::description(&whole).map_err(|error| refused(error.to_string()))?;
    Ok(whole)
}

/// Returns all grants that a configured plugin asks for, including those that are values of its config.
#[must_use]
pub fn wanted(configured: &Descriptor, config: &Value) -> Grants {
    configured.wanted_grants().with(&Grants::by_settings(&configured.config_schema, config))
}
