//! The simulator's own tests, all through a real `kube::Client` in virtual time.

mod deletes;
mod determinism;
mod faults;
mod gc;
mod jobs;
mod life;
mod reads;
mod still;
mod watches;
mod writes;

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::{Faults, Kind, Life, Options, Sim};

pub(super) fn tale() -> Kind {
    Kind::custom("example.com/v1", "Tale", "tales")
}

pub(super) fn options() -> Options {
    Options { kinds: vec![tale()], life: Life::manual(), ..Options::default() }
}

/// Returns a cluster whose pods are driven by the test.
pub(super) fn sim() -> Sim {
    Sim::new(options())
}

pub(super) fn with(life: Life, faults: Faults) -> Sim {
    Sim::new(Options { life, faults, ..options() })
}

pub(super) fn tales(sim: &Sim) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Tale"), "tales");
    Api::namespaced_with(sim.client("me"), "default", &resource)
}

pub(super) fn pods(sim: &Sim) -> Api<Pod> {
    Api::namespaced(sim.client("me"), "default")
}

pub(super) fn maps(sim: &Sim) -> Api<ConfigMap> {
    Api::namespaced(sim.client("me"), "default")
}

pub(super) fn a_tale(name: &str) -> DynamicObject {
    from(json!({ "apiVersion": "example.com/v1", "kind": "Tale", "metadata": { "name": name }, "spec": { "n": 1 } }))
}

pub(super) fn a_pod(name: &str) -> Pod {
    from(pod_json(name))
}

pub(super) fn pod_json(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "labels": { "app": "x" } },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "busybox:1" }] },
    })
}

pub(super) fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub(super) fn json<T: serde::Serialize>(object: &T) -> Value {
    serde_json::to_value(object).unwrap()
}

pub(super) fn post() -> PostParams {
    PostParams::default()
}

pub(super) async fn after(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Returns the `Status` of a refusal.
#[track_caller]
pub(super) fn refused<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> kube::core::Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, got {other:?}"),
    }
}
