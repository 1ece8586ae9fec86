//! What a cluster operator says about a plugin, and whether the plugin takes it.

use crate::PluginLimits;
use decide::{grants::Grants, plan::Descriptor};
use serde_json::Value;

/// What a cluster operator says about a plugin.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Its settings; None is `{}`.
    pub config: Option<Value>,
    /// What its plans may contain beyond what a job's user asks for; None is what it asks for.
    pub grants: Option<Grants>,
    /// What one call may use up.
    pub limits: Option<PluginLimits>,
}

/// Settings that a plugin cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No plugin of this name is loaded.
    #[error("there is no plugin {name}, there are: {there_are}")]
    NoSuchPlugin {
        /// The name that was given.
        name: String,
        /// The names of those that are loaded.
        there_are: String,
    },
    /// The plugin's own schema makes no sense.
    #[error("the schema of plugin {plugin} for its settings is wrong: {message}")]
    Schema {
        /// Which plugin.
        plugin: String,
        /// What is wrong.
        message: String,
    },
    /// The schema does not allow them.
    #[error("plugin {plugin} does not allow these settings: {message}")]
    Refused {
        /// Which plugin.
        plugin: String,
        /// Where they are wrong, and how.
        message: String,
    },
}

/// The plugin's own schema allows these settings.
pub(super) fn allowed(descriptor: &Descriptor, config: &Value) -> Result<(), ConfigError> {
    let plugin = descriptor.name.clone();
    let schema = match jsonschema::validator_for(&descriptor.config_schema) {
        Ok(schema) => schema,
        Err(error) => return Err(ConfigError::Schema { plugin, message: error.to_string() }),
    };
    let wrong: Vec<_> = schema.iter_errors(config).map(|error| format!("{}: {error}", error.instance_path())).collect();
    if wrong.is_empty() { Ok(()) } else { Err(ConfigError::Refused { plugin, message: wrong.join("; ") }) }
}

/// Everything that a plugin asks for, and what its settings ask for by themselves.
pub fn wanted(descriptor: &Descriptor, config: &Value) -> Grants {
    descriptor.wanted_grants().with(&Grants::by_settings(&descriptor.config_schema, config))
}
