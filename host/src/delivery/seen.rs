//! A Plugin as the API server has it, read by itself: one that cannot be read costs itself a condition and nobody else
//! anything.

use crate::plugin_resource::{Plugin, PluginSpec, PluginStatus};
use kube::{
    Api, Client, ResourceExt,
    core::{ApiResource, DynamicObject},
};
use serde_json::Value;

/// What is read of a Plugin.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) name: String,
    pub(super) uid: String,
    /// The resource version, for writes of the status: one that is on its way while the Plugin is deleted and made again
    /// must not reach the new one.
    pub(super) version: String,
    pub(super) generation: i64,
    pub(super) spec: Result<PluginSpec, SpecError>,
    pub(super) status: PluginStatus,
}

/// A spec that cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("spec.{field}: {why}")]
pub(super) struct SpecError {
    field: String,
    why: String,
}

/// All Plugins, of which not one is decoded.
pub(super) fn plugins(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<Plugin>(&()))
}

impl From<DynamicObject> for Seen {
    fn from(object: DynamicObject) -> Self {
        let part = |name: &str| object.data.get(name).cloned().unwrap_or_default();
        Self {
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
            version: object.resource_version().unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or_default(),
            spec: spec(part("spec")),
            status: status(&part("status")),
        }
    }
}

fn spec(value: Value) -> Result<PluginSpec, SpecError> {
    let read = serde_path_to_error::deserialize(value);
    read.map_err(|error| SpecError { field: error.path().to_string(), why: error.inner().to_string() })
}

/// Of a status that cannot be read as a whole only what serves counts.
fn status(value: &Value) -> PluginStatus {
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let serves = || PluginStatus { digest: text("digest"), previous: text("previous"), ..PluginStatus::default() };
    serde_json::from_value(value.clone()).unwrap_or_else(|_| serves())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(spec: &Value, status: &Value) -> Seen {
        let metadata = json!({ "name": "plays", "generation": 3 });
        let object = json!({ "metadata": metadata, "spec": spec, "status": status });
        serde_json::from_value::<DynamicObject>(object).unwrap().into()
    }

    #[test]
    fn what_is_wrong_with_a_spec_is_reported_with_its_field() {
        let limits = json!({ "concurrency": 5_000_000_000_u64 });
        let seen = seen(&json!({ "source": { "builtIn": {} }, "limits": limits }), &Value::Null);
        assert_eq!((seen.name.as_str(), seen.generation), ("plays", 3));
        let why = seen.spec.unwrap_err().to_string();
        assert_eq!(why, "spec.limits.concurrency: invalid value: integer `5000000000`, expected u32");
    }

    #[test]
    fn what_serves_is_read_of_a_status_that_somebody_has_spoilt() {
        let seen = seen(&json!({ "source": { "builtIn": {} } }), &json!({ "digest": "one", "jobs": -1 }));
        assert!(seen.spec.is_ok());
        assert_eq!(seen.status, PluginStatus { digest: Some("one".into()), ..PluginStatus::default() });
    }
}
