//! Fields of built-in kinds that the API server does not know: it drops them with a warning, or refuses the object, as
//! the request's `fieldValidation` says.

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use serde::de::DeserializeOwned;
use serde_ignored::Path;
use serde_json::Value;

use crate::api_request::ApiRequest;
use crate::error::ApiError;
use crate::store::Kind;

/// Returns the warnings for a create.
pub(crate) fn warnings(kind: &Kind, request: &ApiRequest, object: &Value) -> Vec<String> {
    if request.verb != "create" || !matches!(request.param("fieldValidation"), "" | "Warn") {
        return vec![];
    }
    unknown_fields(kind, object)
}

/// Refuses unknown fields if the request is strict.
pub(crate) fn check(kind: &Kind, request: &ApiRequest, object: &Value) -> Result<(), ApiError> {
    if request.param("fieldValidation") != "Strict" {
        return Ok(());
    }
    match unknown_fields(kind, object) {
        unknown if unknown.is_empty() => Ok(()),
        unknown => Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
            unknown.join(", "),
            kind = kind.kind,
            version = kind.version,
        ))),
    }
}

fn unknown_fields(kind: &Kind, object: &Value) -> Vec<String> {
    match kind.kind.as_str() {
        "Pod" if kind.builtin() => ignored::<Pod>(object),
        "Job" if kind.builtin() => ignored::<Job>(object),
        _ => vec![],
    }
}

/// Returns the fields that the type does not read.
fn ignored<T: DeserializeOwned>(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let read: Result<T, _> = serde_ignored::deserialize(object, |path| {
        found.push(format!("unknown field {:?}", written(&path)));
    });
    // Objects that do not deserialize are handled elsewhere.
    if read.is_err() {
        found.clear();
    }
    found
}

/// Returns the path in the form `spec.containers[0].imagee`.
fn written(path: &Path<'_>) -> String {
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}[{index}]", written(parent)),
        Path::Map { parent, key } => match written(parent) {
            above if above.is_empty() => key.clone(),
            above => format!("{above}.{key}"),
        },
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => written(parent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(object: &Value) -> Vec<String> {
        ignored::<Pod>(object)
    }

    #[test]
    fn unknown_fields_are_reported_by_their_path() {
        let containers =
            json!([{ "name": "c", "image": "i", "resources": { "limits": { "cpu": 1 } } }, { "imagee": "x" }]);
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "labels": { "any": "x" } },
            "spec": { "containers": containers, "future": {}, "affinity": { "nodeAffinityy": 1 } } });
        let mut found = of(&pod);
        found.sort();
        let expected = [
            "unknown field \"spec.affinity.nodeAffinityy\"",
            "unknown field \"spec.containers[1].imagee\"",
            "unknown field \"spec.future\"",
        ];
        assert_eq!(found, expected);
        assert!(of(&json!({ "spec": { "containers": "x", "future": 1 } })).is_empty());
    }
}
