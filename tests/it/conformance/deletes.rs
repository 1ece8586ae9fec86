//! Deletions: grace, propagation, collections.

use serde_json::{Value, json};

use super::step::*;

pub(super) fn sequences() -> Vec<Sequence> {
    let held = |object: Value| with(object, json!({"metadata": {"finalizers": ["troupe.dev/hold"]}}));
    let grace = |seconds: i64| json!({"gracePeriodSeconds": seconds});
    let now = || json!({"gracePeriodSeconds": 0});
    vec![
        sequence(
            "a pod without a node goes at once",
            [
                post(PODS, pod("a")),
                delete(PODS, "a", Value::Null),
                get(PODS, "a"),
                post(PODS, pod("a")),
                delete(PODS, "a", grace(100)),
                watch(PODS, "resourceVersion={{0.version}}"),
            ],
        ),
        sequence(
            "a pod on a node has its grace period",
            [
                post(PODS, bound_pod("a")),
                delete(PODS, "a", Value::Null),
                get(PODS, "a"),
                delete(PODS, "a", Value::Null),
                merge(PODS, "a", json!({"metadata": {"labels": {"a": "x"}}})),
                delete(PODS, "a", now()),
                get(PODS, "a"),
                watch(PODS, "resourceVersion={{0.version}}"),
            ],
        ),
        sequence(
            "a pod's grace period is shortened but not lengthened",
            [
                post(PODS, with(bound_pod("a"), json!({"spec": {"terminationGracePeriodSeconds": 300}}))),
                delete(PODS, "a", Value::Null),
                delete(PODS, "a", grace(400)),
                delete(PODS, "a", grace(100)),
                delete(PODS, "a", json!({"gracePeriodSeconds": 50, "preconditions": {"uid": "{{0.uid}}"}})),
                get(PODS, "a"),
                delete(PODS, "a", grace(0)),
                watch(PODS, "resourceVersion={{0.version}}").metadata(),
            ],
        ),
        sequence("a negative grace period", [post(PODS, bound_pod("a")), delete(PODS, "a", grace(-1)), get(PODS, "a")]),
        sequence(
            "a pod that has ended goes at once",
            [
                post(PODS, bound_pod("a")),
                merge(PODS, "a", json!({"status": {"phase": "Succeeded"}})).status(),
                delete(PODS, "a", Value::Null),
                get(PODS, "a"),
            ],
        ),
        sequence(
            "a pod that ends while it terminates",
            [
                post(PODS, bound_pod("a")),
                delete(PODS, "a", Value::Null),
                merge(PODS, "a", json!({"status": {"phase": "Failed"}})).status(),
                delete(PODS, "a", json!({"gracePeriodSeconds": 0, "preconditions": {"uid": "{{0.uid}}"}})),
                get(PODS, "a"),
            ],
        ),
        sequence(
            "a pod on a node with a finalizer",
            [
                post(PODS, held(bound_pod("a"))),
                delete(PODS, "a", Value::Null),
                delete(PODS, "a", now()),
                get(PODS, "a"),
                delete(PODS, "a", now()),
                merge(PODS, "a", json!({"metadata": {"finalizers": null}})),
                get(PODS, "a"),
                watch(PODS, "resourceVersion={{0.version}}"),
            ],
        ),
        sequence(
            "a finalizer removed within the grace period",
            [
                post(PODS, held(bound_pod("a"))),
                delete(PODS, "a", Value::Null),
                merge(PODS, "a", json!({"metadata": {"finalizers": []}})),
                get(PODS, "a"),
                delete(PODS, "a", now()),
                get(PODS, "a"),
            ],
        ),
        sequence(
            "a finalizer removed by a replacement",
            [
                post(PADDLE_JOBS, held(paddle_job("a"))),
                delete(PADDLE_JOBS, "a", Value::Null),
                put(PADDLE_JOBS, "a", json!({"metadata": {"finalizers": null}})).onto(0),
                put(PADDLE_JOBS, "a", json!({"metadata": {"finalizers": null}})).onto(1),
                get(PADDLE_JOBS, "a"),
            ],
        ),
        sequence(
            "a status written while a deletion is held",
            [
                post(MPI_JOBS, held(mpi_job("a"))),
                delete(MPI_JOBS, "a", json!({"propagationPolicy": "Background"})),
                merge(MPI_JOBS, "a", json!({"status": {"startTime": "2020-02-02T02:02:02Z"}})).status(),
                merge(MPI_JOBS, "a", json!({"spec": {"slotsPerWorker": 2}})),
                get(MPI_JOBS, "a"),
            ],
        ),
        sequence(
            "propagation policies",
            [
                post(CONFIG_MAPS, config_map("a")),
                delete(CONFIG_MAPS, "a", json!({"propagationPolicy": "Sideways"})),
                delete(CONFIG_MAPS, "a", json!({"propagationPolicy": "Background", "orphanDependents": false})),
                delete(CONFIG_MAPS, "a", json!({"orphanDependents": false})),
                post(CONFIG_MAPS, held(config_map("b"))),
                delete(CONFIG_MAPS, "b", json!({"propagationPolicy": "Foreground"})),
                post(PADDLE_JOBS, held(paddle_job("c"))),
                delete(PADDLE_JOBS, "c", json!({"propagationPolicy": "Orphan"})),
            ],
        ),
        sequence("a Job deleted without a policy", [post(JOBS, held(job("a"))), delete(JOBS, "a", Value::Null)]),
        sequence(
            "options in the query",
            [
                post(PODS, bound_pod("a")),
                delete(PODS, "a", Value::Null).query("gracePeriodSeconds=7"),
                delete(PODS, "a", Value::Null).query("gracePeriodSeconds=0&propagationPolicy=Background"),
                get(PODS, "a"),
            ],
        ),
        sequence(
            "options with their kind",
            [
                post(PODS, bound_pod("a")),
                delete(PODS, "a", json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})),
                get(PODS, "a"),
            ],
        ),
        sequence(
            "collections of pods",
            [
                post(PODS, with(bound_pod("a"), json!({"metadata": {"labels": {"set": "x"}}}))),
                post(PODS, with(pod("b"), json!({"metadata": {"labels": {"set": "x"}}}))),
                post(PODS, pod("c")),
                delete_all(PODS, "labelSelector=set=x"),
                list(PODS, ""),
                delete_all(PODS, "fieldSelector=metadata.name=c"),
                delete(PODS, "", now()),
                list(PODS, ""),
                watch(PODS, "resourceVersion={{2.version}}").metadata(),
            ],
        ),
        sequence(
            "collections with finalizers",
            [
                post(PADDLE_JOBS, held(paddle_job("a"))),
                post(PADDLE_JOBS, paddle_job("b")),
                delete_all(PADDLE_JOBS, ""),
                list(PADDLE_JOBS, "").metadata(),
            ],
        ),
    ]
}
