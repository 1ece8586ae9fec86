//! The `Plugin` resource: where a plugin comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `spec` of a Plugin (`troupe.dev/v1alpha1`, cluster-scoped).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, kube::CustomResource)]
#[kube(
    group = "troupe.dev",
    version = "v1alpha1",
    kind = "Plugin",
    plural = "plugins",
    status = "PluginStatus",
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.digest"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PluginSpec {
    /// The component must have this SHA-256, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Settings, valid against the plugin's own schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "troupe_plugin::crd::opaque")]
    pub config: Option<Value>,
}

/// `status` of a Plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// The digest that serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "troupe_plugin::crd::conditions")]
    pub conditions: Option<Vec<Value>>,
}
