//! A cluster operator's settings for a plugin, and their validation against the plugin's schema.

use crate::PluginLimits;
use decide::{grants::Grants, plan::Descriptor};
use serde_json::Value;

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

/// Validates the config against the plugin's own schema.
pub(super) fn allowed(descriptor: &Descriptor, config: &Value) -> Result<(), ConfigError> {
    let plugin = descriptor.name.clone();
    let schema = match jsonschema::validator_for(&descriptor.config_schema) {
        Ok(schema) => schema,
        Err(error) => return Err(ConfigError::Schema { plugin, message: error.to_string() }),
    };
    let wrong: Vec<_> = schema.iter_errors(config).map(|error| format!("{}: {error}", error.instance_path())).collect();
    if wrong.is_empty() { Ok(()) } else { Err(ConfigError::Refused { plugin, message: wrong.join("; ") }) }
}

/// Returns all grants that a plugin asks for, including those that its config asks for.
pub fn wanted(descriptor: &Descriptor, config: &Value) -> Grants {
    descriptor.wanted_grants().with(&Grants::by_settings(&descriptor.config_schema, config))
}
