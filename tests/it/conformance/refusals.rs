//! Creations that are refused.

use serde_json::{Value, json};

use super::step::*;

pub(super) fn sequences() -> Vec<Sequence> {
    let labels = |labels: Value| with(config_map("a"), json!({"metadata": {"labels": labels}}));
    let spec = |spec: Value| with(pod("a"), json!({"spec": spec}));
    let selector = || json!({"spec": {"selector": {"app": "x"}}});
    vec![
        sequence(
            "a namespace that is not there",
            [
                post(CONFIG_MAPS, config_map("a")).within("nowhere"),
                post(PADDLE_JOBS, paddle_job("a")).within("nowhere"),
                get(PODS, "a").within("nowhere"),
                list(PODS, "").within("nowhere"),
                list(PADDLE_JOBS, "").within("nowhere"),
                delete(PODS, "a", Value::Null).within("nowhere"),
            ],
        ),
        sequence(
            "a namespace other than the path's",
            [
                post(CONFIG_MAPS, with(config_map("a"), json!({"metadata": {"namespace": "default"}}))),
                post(PADDLE_JOBS, with(paddle_job("a"), json!({"metadata": {"namespace": "default"}}))),
                post(CONFIG_MAPS, with(config_map("a"), json!({"metadata": {"namespace": "{{namespace}}"}}))),
            ],
        ),
        sequence(
            "another kind than the path's",
            [
                post(CONFIG_MAPS, secret("a")),
                post(CONFIG_MAPS, with(config_map("a"), json!({"kind": ""}))),
                post(CONFIG_MAPS, with(config_map("a"), json!({"apiVersion": "batch/v1"}))),
                post(PADDLE_JOBS, mpi_job("a")),
                post(PADDLE_JOBS, with(paddle_job("a"), json!({"kind": "Job"}))),
                post(JOBS, pod("a")),
            ],
        ),
        sequence(
            "a body that is no object",
            [
                post(CONFIG_MAPS, Value::String("{".into())),
                post(PADDLE_JOBS, Value::String("{".into())),
                merge(CONFIG_MAPS, "a", json!([])),
            ],
        ),
        sequence(
            "bad labels, annotations and finalizers",
            [
                post(CONFIG_MAPS, labels(json!({"not valid": "x"}))),
                post(CONFIG_MAPS, labels(json!({"a/b/c": "x"}))),
                post(CONFIG_MAPS, labels(json!({"/a": "x"}))),
                post(CONFIG_MAPS, labels(json!({"a": "not valid"}))),
                post(CONFIG_MAPS, labels(json!({"a": "x".repeat(64)}))),
                post(PADDLE_JOBS, with(paddle_job("a"), json!({"metadata": {"labels": {"not valid": "x"}}}))),
                post(CONFIG_MAPS, with(config_map("a"), json!({"metadata": {"annotations": {"not valid": "x"}}}))),
                post(CONFIG_MAPS, with(config_map("a"), json!({"metadata": {"finalizers": ["not valid"]}}))),
                post(CONFIG_MAPS, with(config_map("a"), json!({"metadata": {"finalizers": ["unqualified"]}}))),
                post(PADDLE_JOBS, with(paddle_job("a"), json!({"metadata": {"finalizers": ["unqualified"]}}))),
                merge(PADDLE_JOBS, "a", json!({"metadata": {"labels": {"not valid": "x"}}})),
                merge(PADDLE_JOBS, "a", json!({"metadata": {"finalizers": null}})),
                post(PODS, with(pod("a"), json!({"metadata": {"labels": {"x y": "x"}}}))),
                post(CONFIG_MAPS, config_map("a")),
                merge(CONFIG_MAPS, "a", json!({"metadata": {"labels": {"not valid": "x"}}})),
                merge(CONFIG_MAPS, "a", json!({"metadata": {"labels": {"a": "not valid"}}})),
                post(EVENTS, event("a")),
                merge(EVENTS, "a", json!({"metadata": {"labels": {"not valid": "x"}}})),
            ],
        ),
        sequence(
            "bad pods",
            [
                post(PODS, spec(json!({"containers": []}))),
                post(PODS, spec(json!({"containers": [{"name": "Main", "image": "x"}]}))),
                post(PODS, spec(json!({"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]}))),
                post(PODS, spec(json!({"containers": [{"name": "a"}]}))),
                post(PODS, spec(json!({"containers": [{"image": "a"}]}))),
                post(PODS, spec(json!({"restartPolicy": "Sometimes"}))),
                post(
                    PODS,
                    spec(json!({"containers":
                [{"name": "a", "image": "x", "volumeMounts": [{"name": "none", "mountPath": "/x"}]}]})),
                ),
            ],
        ),
        sequence(
            "bad services",
            [
                post(SERVICES, service("a.b")),
                post(SERVICES, with(service("-a"), selector())),
                post(SERVICES, with(service(&"a".repeat(64)), selector())),
            ],
        ),
        sequence(
            "bad jobs",
            [
                post(JOBS, with(job("a"), json!({"spec": {"template": {"spec": {"restartPolicy": "Always"}}}}))),
                post(JOBS, with(job("a"), json!({"spec": {"completionMode": "Indexed"}}))),
                post(JOBS, with(job("a"), json!({"spec": {"template": {"spec": {"containers": []}}}}))),
            ],
        ),
        sequence(
            "verbs that a path has not",
            [
                Step { method: http::Method::POST, ..get(CONFIG_MAPS, "a") },
                put(CONFIG_MAPS, "", config_map("a")),
                merge(CONFIG_MAPS, "", config_map("a")),
                put(PADDLE_JOBS, "", paddle_job("a")),
            ],
        ),
        sequence(
            "kinds that are not served",
            [
                get(Kind { plural: "things", ..CONFIG_MAPS }, "a"),
                list(Kind { plural: "things", ..CONFIG_MAPS }, ""),
                list(Kind { plural: "things", ..PADDLE_JOBS }, ""),
                list(Kind { api_version: "kubeflow.org/v1", ..MPI_JOBS }, ""),
                list(Kind { api_version: "none.example.com/v1", ..MPI_JOBS }, ""),
                get(Kind { plural: "things", ..JOBS }, "a"),
            ],
        ),
        sequence(
            "content types that are not taken",
            [
                post(PADDLE_JOBS, paddle_job("a")),
                strategic(PADDLE_JOBS, "a", json!({"metadata": {"labels": {"a": "x"}}})),
                merge(PADDLE_JOBS, "a", json!({})).content("application/json"),
                post(CONFIG_MAPS, config_map("a")),
                merge(CONFIG_MAPS, "a", json!({})).content("application/json"),
            ],
        ),
    ]
}
