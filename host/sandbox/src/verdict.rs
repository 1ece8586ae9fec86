//! What a schema says of a config.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of mistakes in settings that are told at once.
const MOST_MISTAKES: usize = 16;

/// A config, and the schema that has to allow it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Question<V> {
    pub(super) schema: V,
    pub(super) config: V,
}

/// What a schema says of a config. A schema can be made to take any time and memory, so that those of foreign components are
/// asked in a child process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Verdict {
    /// It allows the config.
    Allowed,
    /// It is no schema.
    NoSchema(String),
    /// It does not allow the config: each wrong place, and what is wrong there.
    Refused(String),
}

impl Verdict {
    pub(super) fn of(schema: &Value, config: &Value) -> Self {
        let schema = match jsonschema::validator_for(schema) {
            Ok(schema) => schema,
            Err(error) => return Self::NoSchema(error.to_string()),
        };
        let wrong = schema.iter_errors(config).take(MOST_MISTAKES);
        let wrong: Vec<_> = wrong.map(|error| format!("{}: {error}", error.instance_path())).collect();
        if wrong.is_empty() { Self::Allowed } else { Self::Refused(wrong.join("; ")) }
    }
}
