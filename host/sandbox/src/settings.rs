//! A cluster operator's settings for a plugin, and their validation against the plugin's schema.

use crate::PluginLimits;
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
}

/// Returns what a plugin describes with this config: what it describes of itself, and the kinds that the config adds.
///
/// # Errors
/// The plugin's own schema does not allow the config, or it adds a kind that no job may own.
pub fn configured(described: &Descriptor, config: &Value) -> Result<Descriptor, ConfigError> {
    let plugin = || described.name.clone();
    let refused = |message| ConfigError::Refused { plugin: plugin(), message };
    let schema = jsonschema::validator_for(&described.config_schema)
        .map_err(|error| ConfigError::Schema { plugin: plugin(), message: error.to_string() })?;
    let wrong: Vec<_> = schema.iter_errors(config).map(|error| format!("{}: {error}", error.instance_path())).collect();
    if !wrong.is_empty() {
        return Err(refused(wrong.join("; ")));
    }
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
