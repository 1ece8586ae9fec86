//! The shape of every stored object: its kind, namespace, metadata without empty values, and generation.

use serde_json::{Map, Value, json};

use crate::defaults::remove;
use crate::error::{ApiError, Fault};
use crate::store::{Kind, name, text};
use crate::verbs::Target;

pub(crate) fn same_kind(kind: &Kind, object: &mut Value) -> Result<(), ApiError> {
    let raw = object.clone();
    let Value::Object(fields) = object else {
        let message = "couldn't get version/kind; json parse error: json: cannot unmarshal into Go value";
        return Err(ApiError::bad_request(message));
    };
    let said = |field: &str| text(&raw[field]);
    let (expected, version) = (kind.kind.as_str(), kind.api_version());
    let (have, had_version) = (said("kind"), said("apiVersion"));
    if have.is_empty() && !kind.builtin() {
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {expected}): Object 'Kind' is missing in '{raw}' ({raw})"
        )));
    }
    let other_kind = !have.is_empty() && have != expected;
    if !had_version.is_empty() && had_version != version && kind.builtin() && !other_kind {
        return Err(ApiError::bad_request(format!(
            "{expected} in version {:?} cannot be handled as a {expected}: no kind {expected:?} is registered for version \
             {had_version:?} in scheme \"pkg/runtime/scheme.go:111\"",
            kind.version
        )));
    }
    if !had_version.is_empty() && had_version != version && !kind.builtin() {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({had_version}) does not match the expected API version ({version})"
        )));
    }
    if other_kind {
        if !kind.builtin() {
            let fault = Fault::invalid("kind", &json!(have), &format!("must be {expected}"));
            return Err(ApiError::invalid(kind, have, name(&raw), &[fault]));
        }
        let group = if kind.group.is_empty() { "core" } else { &kind.group };
        let package = group.split('.').next().unwrap_or_default();
        let have_version =
            had_version.rsplit('/').next().filter(|version| !version.is_empty()).unwrap_or(&kind.version);
        return Err(ApiError::bad_request(format!(
            "{have} in version {have_version:?} cannot be handled as a {expected}: converting ({have_version}.{have}) to \
             ({package}.{expected}): unknown conversion"
        )));
    }
    fields.insert("apiVersion".into(), json!(version));
    fields.insert("kind".into(), json!(expected));
    Ok(())
}

pub(crate) fn same_namespace(target: &Target, object: &mut Value) -> Result<(), ApiError> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    if !target.kind.namespaced {
        remove(&mut object["metadata"], "namespace");
        return Ok(());
    }
    let namespace = text(&object["metadata"]["namespace"]);
    if namespace.is_empty() {
        object["metadata"]["namespace"] = json!(target.namespace);
    } else if namespace != target.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Removes what encodes as nothing: nulls, and empty maps and lists in the metadata.
pub(crate) fn tidy(object: &mut Value) {
    if let Value::Object(metadata) = &mut object["metadata"] {
        metadata.retain(|_, value| match value {
            Value::Null => false,
            Value::Object(map) => {
                map.retain(|_, value| !value.is_null());
                !map.is_empty()
            }
            Value::Array(list) => !list.is_empty(),
            Value::String(text) => !text.is_empty(),
            _ => true,
        });
    }
    let event = object["kind"] == "Event";
    if let Value::Object(fields) = object {
        // Only events show null times.
        fields.retain(|_, value| event || !value.is_null());
        fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    }
}

pub(crate) fn bump(old: &Value, new: &mut Value) {
    if let Some(generation) = old["metadata"]["generation"].as_i64() {
        new["metadata"]["generation"] = json!(generation + 1);
    }
}
