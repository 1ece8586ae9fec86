//! Patches and replacements that depend on the kind.

use serde_json::{Value, json};

use super::step::*;

pub(super) fn sequences() -> Vec<Sequence> {
    [patches(), statuses(), specs()].concat()
}

fn patches() -> Vec<Sequence> {
    vec![
        sequence(
            "a custom resource's spec patched: the generation counts",
            [
                post(PADDLE_JOBS, paddle_job("a")),
                merge(PADDLE_JOBS, "a", json!({"spec": {"worker": {"replicas": 3}}})),
                merge(PADDLE_JOBS, "a", json!({"spec": {"worker": {"replicas": 3}}})),
                merge(PADDLE_JOBS, "a", json!({"spec": {"ps": null}})),
                merge(PADDLE_JOBS, "a", json!({"metadata": {"labels": {"a": "x"}}})),
                merge(PADDLE_JOBS, "a", json!({"spec": {"withGloo": 0}, "metadata": {"labels": {"a": null}}})),
                merge(PADDLE_JOBS, "a", json!({"status": {"phase": "Running"}})),
                put(PADDLE_JOBS, "a", json!({"spec": {"intranet": "PodIP"}})).onto(6),
                get(PADDLE_JOBS, "a"),
            ],
        ),
        sequence(
            "a custom resource suspended and resumed",
            [
                post(MPI_JOBS, mpi_job("a")),
                merge(MPI_JOBS, "a", json!({"spec": {"runPolicy": {"suspend": true}}})),
                merge(MPI_JOBS, "a", json!({"spec": {"runPolicy": {"suspend": true}}})),
                merge(
                    MPI_JOBS,
                    "a",
                    json!({"spec": {"runPolicy": {"suspend": false}}, "metadata": {"resourceVersion": "{{0.version}}"}}),
                ),
                json_patch(
                    MPI_JOBS,
                    "a",
                    json!([{"op": "replace", "path": "/spec/mpiReplicaSpecs/Worker/replicas", "value": 4}]),
                ),
                merge(MPI_JOBS, "a", json!({"kind": "PaddleJob"})),
                merge(MPI_JOBS, "a", json!({"apiVersion": "kubeflow.org/v1"})),
            ],
        ),
        sequence(
            "patches that apply to nothing or fail",
            [
                post(CONFIG_MAPS, config_map("a")),
                merge(CONFIG_MAPS, "a", json!({})),
                merge(CONFIG_MAPS, "a", json!({"metadata": null})),
                json_patch(CONFIG_MAPS, "a", json!([])),
                json_patch(
                    CONFIG_MAPS,
                    "a",
                    json!([{"op": "add", "path": "/data/b", "value": "2"},
                {"op": "copy", "from": "/data/b", "path": "/data/c"}, {"op": "move", "from": "/data/a", "path": "/data/d"}]),
                ),
                json_patch(
                    CONFIG_MAPS,
                    "a",
                    json!([{"op": "test", "path": "/metadata/uid", "value": "{{0.uid}}"},
                {"op": "remove", "path": "/data/b"}]),
                ),
                json_patch(
                    CONFIG_MAPS,
                    "a",
                    json!([{"op": "test", "path": "/metadata/uid", "value": "other"},
                {"op": "remove", "path": "/data/c"}]),
                ),
                json_patch(CONFIG_MAPS, "a", json!([{"op": "invent", "path": "/data/c"}])),
                json_patch(CONFIG_MAPS, "a", json!({"op": "remove", "path": "/data/c"})),
                merge(CONFIG_MAPS, "a", json!({"metadata": {"resourceVersion": "0"}, "data": {"e": "5"}})),
                merge(CONFIG_MAPS, "a", json!({"metadata": {"resourceVersion": "seven"}, "data": {"e": "6"}})),
                get(CONFIG_MAPS, "a"),
            ],
        ),
        sequence(
            "labels and annotations patched away",
            [
                post(
                    PODS,
                    with(pod("a"), json!({"metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}}})),
                ),
                merge(PODS, "a", json!({"metadata": {"labels": {"a": null}}})),
                merge(PODS, "a", json!({"metadata": {"labels": {"b": null}}})),
                merge(PODS, "a", json!({"metadata": {"annotations": {"c": ""}}})),
                merge(PODS, "a", json!({"metadata": {"annotations": null, "labels": {"d": "4"}}})),
                get(PODS, "a").metadata(),
            ],
        ),
        sequence(
            "metadata-only answers to writes",
            [
                post(PODS, pod("a")).metadata(),
                merge(PODS, "a", json!({"metadata": {"labels": {"a": "1"}}})).metadata(),
                delete(PODS, "a", Value::Null).metadata(),
                post(PADDLE_JOBS, paddle_job("a")).metadata(),
                merge(PADDLE_JOBS, "a", json!({"spec": {"withGloo": 2}})).metadata(),
            ],
        ),
        sequence(
            "strategic patches of a pod",
            [
                post(PODS, pod("a")),
                strategic(PODS, "a", json!({"metadata": {"labels": {"a": "x"}, "finalizers": ["troupe.dev/hold"]}})),
                strategic(PODS, "a", json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})).status(),
                strategic(
                    PODS,
                    "a",
                    json!({"status": {"phase": "Running", "conditions": [{"type": "Initialized", "status": "True"}]}}),
                )
                .status(),
                strategic(PODS, "a", json!({"spec": {"containers": [{"name": "main", "image": "other:2"}]}})),
                strategic(PODS, "a", json!({"metadata": {"labels": {"a": null}}})),
            ],
        ),
    ]
}

fn statuses() -> Vec<Sequence> {
    let paddle = json!({"status": {"phase": "Running", "mode": "PS", "startTime": "2020-02-02T02:02:02Z",
        "completionTime": "2020-02-02T02:02:02Z", "troupe": {"conditions": [], "a": [1, {"b": "c"}]},
        "worker": {"running": 1, "refs": [{}]}}});
    let mpi = |status: &str| {
        json!({"status": {"conditions": [{"type": "Running", "status": status, "reason": "x", "message": "y"}],
            "replicaStatuses": {"Worker": {"active": 2}}, "startTime": "2020-02-02T02:02:02Z"}})
    };
    vec![
        sequence("a custom resource's status does not count as a generation", [
            post(PADDLE_JOBS, paddle_job("a")),
            merge(PADDLE_JOBS, "a", paddle.clone()).status(),
            merge(PADDLE_JOBS, "a", paddle.clone()).status(),
            merge(PADDLE_JOBS, "a", json!({"status": {"worker": {"running": 2}}, "metadata": {"resourceVersion": "{{0.version}}"}})).status(),
            merge(PADDLE_JOBS, "a", json!({"status": {"worker": {"running": 2}}, "metadata": {"resourceVersion": "{{1.version}}"}})).status(),
            get(PADDLE_JOBS, "a").status(),
            get(PADDLE_JOBS, "a"),
        ]),
        sequence("a status patch touches nothing else", [
            post(MPI_JOBS, mpi_job("a")),
            merge(MPI_JOBS, "a", with(mpi("True"), json!({"spec": {"slotsPerWorker": 5}, "metadata": {"labels": {"a": "x"},
                "finalizers": ["troupe.dev/hold"], "ownerReferences": []}}))).status(),
            merge(MPI_JOBS, "a", json!({"spec": {"slotsPerWorker": 5}})).status(),
            merge(MPI_JOBS, "a", with(mpi("False"), json!({"spec": {"slotsPerWorker": 2}}))),
            merge(MPI_JOBS, "a", json!({"status": null})).status(),
            merge(MPI_JOBS, "a", json!({"metadata": {"uid": "00000000-0000-0000-0000-00000000000a"}, "status": {"startTime": "2020-02-02T02:02:02Z"}})).status(),
        ]),
        sequence("a status replaced", [
            post(MPI_JOBS, mpi_job("a")),
            put(MPI_JOBS, "a", mpi("True")).onto(0).status(),
            put(MPI_JOBS, "a", mpi("False")).onto(0).status(),
            put(MPI_JOBS, "a", with(mpi("False"), json!({"spec": {"slotsPerWorker": 9}}))).onto(1).status(),
            put(MPI_JOBS, "a", json!({"status": null, "spec": {"slotsPerWorker": 7}})).onto(3),
            put(MPI_JOBS, "a", json!({"metadata": {"resourceVersion": null}})).onto(3).status(),
        ]),
        sequence("JSON patches of a status", [
            post(MPI_JOBS, mpi_job("a")),
            json_patch(MPI_JOBS, "a", json!([{"op": "add", "path": "/status", "value": mpi("True")["status"]}])).status(),
            json_patch(MPI_JOBS, "a", json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": "{{1.version}}"},
                {"op": "replace", "path": "/status/conditions/0/status", "value": "False"},
                {"op": "add", "path": "/status/conditions/-", "value": {"type": "Failed", "status": "True"}}])).status(),
            json_patch(MPI_JOBS, "a", json!([{"op": "test", "path": "/metadata/resourceVersion", "value": "{{1.version}}"}])).status(),
            json_patch(MPI_JOBS, "a", json!([{"op": "add", "path": "/spec/slotsPerWorker", "value": 3}])).status(),
        ]),
        sequence("a status of nothing", [
            merge(PADDLE_JOBS, "a", paddle.clone()).status(),
            get(PADDLE_JOBS, "a").status(),
            merge(PODS, "a", json!({"status": {"phase": "Running"}})).status(),
            merge(CONFIG_MAPS, "a", json!({"status": {}})).status(),
            merge(PADDLE_JOBS, "a", paddle).within("nowhere").status(),
        ]),
        sequence("a pod's status", [
            post(PODS, with(pod("a"), json!({"metadata": {"labels": {"a": "x"}}}))),
            merge(PODS, "a", json!({"status": {"phase": "Running", "podIP": "10.1.2.3",
                "containerStatuses": [{"name": "main", "image": "none:1", "imageID": "", "ready": true, "restartCount": 0,
                    "state": {"running": {"startedAt": "2020-02-02T02:02:02Z"}}}],
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2020-02-02T02:02:02Z"}]}})).status(),
            merge(PODS, "a", json!({"status": {"phase": "Failed", "reason": "Evicted"}, "metadata": {"labels": {"a": "y"}},
                "spec": {"containers": [{"name": "main", "image": "other:1"}]}})).status(),
            merge(PODS, "a", json!({"status": {"phase": "Succeeded"}})),
            get(PODS, "a"),
            list(PODS, "fieldSelector=status.phase=Failed").metadata(),
        ]),
        sequence("a service's and a Job's status", [
            post(SERVICES, service("a")),
            merge(SERVICES, "a", json!({"status": {"conditions": [{"type": "Tested", "status": "True", "reason": "X",
                "message": "", "lastTransitionTime": "2020-02-02T02:02:02Z"}]}, "spec": {"selector": {"app": "q"}}})).status(),
            get(SERVICES, "a"),
            post(JOBS, job("a")),
            merge(JOBS, "a", json!({"status": {"active": 1, "startTime": "2020-02-02T02:02:02Z"}, "spec": {"parallelism": 5}})).status(),
            merge(JOBS, "a", json!({"status": {"active": 2}})),
            get(JOBS, "a"),
        ]),
    ]
}

fn specs() -> Vec<Sequence> {
    vec![
        sequence(
            "what may change of a pod's spec",
            [
                post(PODS, bound_pod("a")),
                merge(PODS, "a", json!({"spec": {"containers": [{"name": "main", "image": "other:1"}]}})),
                merge(PODS, "a", json!({"spec": {"activeDeadlineSeconds": 100}})),
                json_patch(
                    PODS,
                    "a",
                    json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "other:2"}]),
                ),
                get(PODS, "a"),
                list(PODS, "fieldSelector=spec.nodeName=nowhere").metadata(),
            ],
        ),
        sequence(
            "what may change of a Job's spec",
            [
                post(JOBS, job("a")),
                merge(JOBS, "a", json!({"spec": {"parallelism": 2}})),
                merge(JOBS, "a", json!({"spec": {"backoffLimit": 1, "activeDeadlineSeconds": 60}})),
                merge(JOBS, "a", json!({"spec": {"completions": 7}})),
                merge(JOBS, "a", json!({"spec": {"completionMode": "Indexed"}})),
                merge(JOBS, "a", json!({"spec": {"suspend": true}})),
                merge(JOBS, "a", json!({"metadata": {"labels": {"a": "x"}}})),
                get(JOBS, "a"),
            ],
        ),
        sequence(
            "a Job without labels of its own",
            [
                post(JOBS, with(job("a"), json!({"metadata": {"labels": null}}))),
                get(JOBS, "a"),
                merge(JOBS, "a", json!({})),
                merge(JOBS, "a", json!({})),
                get(JOBS, "a"),
            ],
        ),
        sequence(
            "a Job patched without a change",
            [
                post(JOBS, job("a")),
                merge(JOBS, "a", json!({})),
                merge(JOBS, "a", json!({"status": {}})).status(),
                get(JOBS, "a"),
            ],
        ),
        sequence(
            "an indexed Job grows and shrinks",
            [
                post(
                    JOBS,
                    with(
                        job("a"),
                        json!({"spec": {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 1}}),
                    ),
                ),
                merge(JOBS, "a", json!({"spec": {"completions": 4, "parallelism": 4}})),
                merge(JOBS, "a", json!({"spec": {"completions": 3}})),
            ],
        ),
    ]
}
