//! A Plugin as the API server has it, read by itself: one that cannot be read costs itself a condition and nobody else
//! anything.

use crate::{
    api::answer,
    observe::decode::{self, Decoded, LeftOut},
    plugin_resource::{Plugin, PluginSpec, PluginStatus},
};
use k8s_openapi::{
    api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, PostParams},
    core::{ObjectList, Request},
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A Plugin as an answer of the API server has it. Whatever its spec and status hold, however deep, it can be decoded, so
/// that it does not spoil the list or the watch that others are in.
#[derive(Debug, Clone, Deserialize, Resource)]
#[resource(inherit = "Plugin")]
pub(super) struct Object {
    #[serde(deserialize_with = "identity")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Decoded,
    #[serde(default, deserialize_with = "decode::of_any_depth")]
    status: Value,
}

/// The metadata that identify an object. `managedFields` are as deep as the spec and are not decoded.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
}

fn identity<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let Identity { name, uid, resource_version, generation } = Identity::deserialize(from)?;
    Ok(ObjectMeta { name, uid, resource_version, generation, ..ObjectMeta::default() })
}

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

/// All Plugins, of which not one has a spec that was read.
pub(super) fn plugins(client: &Client) -> Api<Object> {
    Api::all(client.clone())
}

/// Lists all Plugins.
///
/// # Errors
/// The API server refuses, or does not answer.
pub(super) async fn list(client: &Client) -> Result<Vec<Seen>, kube::Error> {
    let request = Request::new(Plugin::url_path(&(), None)).list(&ListParams::default());
    let list: ObjectList<Object> = answer::decoded(client, request).await?;
    Ok(list.items.into_iter().map(Seen::from).collect())
}

/// Returns whether the host has the right to list Plugins, if the API server says so. One that starts does not: it forbids
/// this question, too, until it has read its roles.
pub(super) async fn may_list(client: &Client) -> Option<bool> {
    let resource = ResourceAttributes {
        group: Some(Plugin::group(&()).into_owned()),
        resource: Some(Plugin::plural(&()).into_owned()),
        verb: Some("list".into()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(resource), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await.ok()?;
    Some(answer.status?.allowed)
}

impl From<Object> for Seen {
    fn from(object: Object) -> Self {
        Self {
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
            version: object.resource_version().unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or_default(),
            spec: spec(object.spec),
            status: status(&object.status),
        }
    }
}

fn spec(decoded: Decoded) -> Result<PluginSpec, SpecError> {
    if let Some(left_out) = decoded.left_out {
        let why = left_out.to_string();
        let field = match left_out {
            LeftOut::TooDeep(path) | LeftOut::Reserved(path) => path,
            LeftOut::TooMuch(_) => "config".to_owned(),
        };
        return Err(SpecError { field, why });
    }
    let read = serde_path_to_error::deserialize(decoded.value);
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
        serde_json::from_value::<Object>(object).unwrap().into()
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

    #[test]
    fn a_plugin_that_is_nested_too_deeply_does_not_spoil_the_list_that_it_is_in() {
        let nested = |open: &str| format!("{}7{}", open.repeat(1000), "}".repeat(1000));
        let config = nested(r#"{"x":"#);
        let fields = nested(r#"{"f:x":"#);
        let deep = format!(
            r#"{{"metadata":{{"name":"deep","managedFields":[{{"fieldsV1":{fields}}}]}},
                "spec":{{"source":{{"builtIn":{{}}}},"config":{config}}},"status":{{"digest":"one","more":{config}}}}}"#
        );
        let flat = r#"{"metadata":{"name":"flat"},"spec":{"source":{"builtIn":{}}}}"#;
        let list = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{deep},{flat}]}}"#);
        let list: ObjectList<Object> = serde_json::from_str(&list).unwrap();
        let [deep, flat] = <[Object; 2]>::try_from(list.items).unwrap().map(Seen::from);
        let why = deep.spec.unwrap_err().to_string();
        assert_eq!(why, "spec.config.x.x.x.x.x: is nested deeper than 100 levels");
        assert_eq!(deep.status.digest.as_deref(), Some("one"));
        assert!(flat.spec.is_ok());
    }
}
