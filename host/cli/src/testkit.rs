//! What tests of the commands begin with.

use kube::api::ApiResource;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns a kind of job that no built-in plugin serves.
pub(crate) fn echo_jobs() -> ApiResource {
    ApiResource {
        group: "echo.example.com".into(),
        version: "v1".into(),
        api_version: "echo.example.com/v1".into(),
        kind: "EchoJob".into(),
        plural: "echojobs".into(),
    }
}

/// Returns the object that this JSON is.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}
