//! Creations, patches and replacements that depend on the kind.

use serde_json::{Value, json};

use super::step::*;

pub(super) fn sequences() -> Vec<Sequence> {
    [creations(), refusals(), patches(), statuses(), specs()].concat()
}

fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": true})
}

fn creations() -> Vec<Sequence> {
    let generated = |base: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": base}});
    vec![
        sequence(
            "generated names",
            [
                post(CONFIG_MAPS, generated("some-")),
                post(CONFIG_MAPS, generated("some-")),
                post(CONFIG_MAPS, generated(&"long".repeat(20))),
                post(CONFIG_MAPS, with(generated("some-"), json!({"metadata": {"name": "given"}}))),
                get(CONFIG_MAPS, "{{0.name}}"),
                post(PODS, with(pod("a"), json!({"metadata": {"name": null, "generateName": "a-"}}))),
                post(PADDLE_JOBS, with(paddle_job("a"), json!({"metadata": {"name": null, "generateName": "a-"}}))),
            ],
        ),
        sequence(
            "unknown fields",
            [
                post(PODS, with(pod("a"), json!({"spec": {"hostnamee": "x"}}))).query("fieldValidation=Strict"),
                post(JOBS, with(job("a"), json!({"spec": {"template": {"spec": {"hostnamee": "x"}}}})))
                    .query("fieldValidation=Strict"),
                post(PODS, pod("a")).query("fieldValidation=Strict"),
            ],
        ),
        sequence(
            "owner references",
            [
                post(CONFIG_MAPS, config_map("owner")),
                post(
                    CONFIG_MAPS,
                    with(config_map("a"), json!({"metadata": {"ownerReferences": [owner("owner", "{{0.uid}}")]}})),
                ),
                post(PODS, with(pod("a"), json!({"metadata": {"ownerReferences": [owner("owner", "{{0.uid}}")]}}))),
                merge(PODS, "a", json!({"metadata": {"ownerReferences": null}})),
                post(
                    SECRETS,
                    with(
                        secret("a"),
                        json!({"metadata": {"ownerReferences":
                [owner("owner", "{{0.uid}}"), owner("other", "{{1.uid}}")]}}),
                    ),
                ),
                post(
                    PADDLE_JOBS,
                    with(
                        paddle_job("a"),
                        json!({"metadata": {"ownerReferences":
                [owner("owner", "{{0.uid}}"), owner("other", "{{1.uid}}")]}}),
                    ),
                ),
                post(
                    CONFIG_MAPS,
                    with(
                        config_map("b"),
                        json!({"metadata": {"ownerReferences":
                [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}}),
                    ),
                ),
            ],
        ),
        sequence(
            "fields that are the server's",
            [
                post(
                    PODS,
                    with(
                        pod("a"),
                        json!({"metadata": {"uid": "00000000-0000-0000-0000-00000000000a",
                "creationTimestamp": "2020-02-02T02:02:02Z", "deletionTimestamp": "2020-02-02T02:02:02Z",
                "deletionGracePeriodSeconds": 3, "generation": 9, "selfLink": "/x"},
                "status": {"phase": "Running"}}),
                    ),
                ),
                post(
                    PADDLE_JOBS,
                    with(
                        paddle_job("a"),
                        json!({"metadata": {"uid": "00000000-0000-0000-0000-00000000000a",
                "creationTimestamp": "2020-02-02T02:02:02Z", "deletionTimestamp": "2020-02-02T02:02:02Z", "generation": 9},
                "status": {"phase": "Running"}}),
                    ),
                ),
                post(CONFIG_MAPS, with(config_map("a"), json!({"metadata": {"resourceVersion": "7"}}))),
                post(PADDLE_JOBS, with(paddle_job("b"), json!({"metadata": {"resourceVersion": "7"}}))),
                post(JOBS, with(job("a"), json!({"status": {"succeeded": 1}, "metadata": {"generation": 4}}))),
            ],
        ),
        sequence(
            "dry runs",
            [
                post(CONFIG_MAPS, config_map("a")).query("dryRun=All"),
                get(CONFIG_MAPS, "a"),
                post(CONFIG_MAPS, config_map("a")),
                post(CONFIG_MAPS, config_map("a")).query("dryRun=All"),
                merge(CONFIG_MAPS, "a", json!({"data": {"b": "2"}})).query("dryRun=All"),
                delete(CONFIG_MAPS, "a", Value::Null).query("dryRun=All"),
                get(CONFIG_MAPS, "a"),
            ],
        ),
        sequence(
            "secrets with and without plain text",
            [
                post(SECRETS, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})),
                post(
                    SECRETS,
                    with(
                        secret("b"),
                        json!({"stringData": {"a": "overrides", "c": ""}, "type": "kubernetes.io/ssh-auth2"}),
                    ),
                ),
                merge(SECRETS, "b", json!({"stringData": {"d": "four"}})),
                merge(SECRETS, "b", json!({"data": {"a": null}})),
                merge(SECRETS, "b", json!({"data": null})),
                merge(SECRETS, "b", json!({"type": "Opaque"})),
            ],
        ),
        sequence(
            "config maps without data",
            [
                post(CONFIG_MAPS, with(config_map("a"), json!({"data": null}))),
                post(CONFIG_MAPS, with(config_map("b"), json!({"data": {"a": ""}}))),
                merge(CONFIG_MAPS, "b", json!({"data": {"a": null}})),
                merge(CONFIG_MAPS, "b", json!({"data": {"hosts": "one\ntwo\n"}})),
                put(CONFIG_MAPS, "b", json!({"data": {"hosts": "one\n", "more": "x"}})).onto(3),
            ],
        ),
        sequence(
            "services with and without an address",
            [
                post(SERVICES, service("a")),
                post(SERVICES, with(service("b"), json!({"spec": {"clusterIP": null}}))),
                post(
                    SERVICES,
                    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "c"},
                "spec": {"clusterIP": "None", "publishNotReadyAddresses": true, "ports": [
                    {"name": "x", "port": 1, "targetPort": "y"}, {"name": "z", "port": 2, "protocol": "UDP", "targetPort": 3}]}}),
                ),
                merge(SERVICES, "a", json!({"spec": {"selector": {"app": "z"}}})),
                merge(SERVICES, "a", json!({"spec": {"clusterIP": "10.96.7.7"}})),
                merge(SERVICES, "b", json!({"spec": {"ports": [{"name": "x", "port": 80}]}})),
                list(SERVICES, ""),
            ],
        ),
        sequence(
            "a pod as the operator makes it",
            [
                post(
                    PODS,
                    with(
                        pod("a-worker-0"),
                        json!({
                "metadata": {"labels": {"troupe.dev/role": "worker"}, "annotations": {"troupe.dev/index": "0"}},
                "spec": {
                    "hostname": "a-worker-0", "subdomain": "a", "terminationGracePeriodSeconds": 5,
                    "initContainers": [{"name": "wait", "image": "busybox", "command": ["sh"], "env": [{"name": "A", "value": ""}]}],
                    "containers": [{"name": "main", "image": "example.com/paddle/paddle:2", "command": ["python"],
                        "ports": [{"containerPort": 2379}],
                        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                        "envFrom": [{"configMapRef": {"name": "a"}}],
                        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
                        "volumeMounts": [{"name": "ssh", "mountPath": "/root/.ssh"}]}],
                    "volumes": [{"name": "ssh", "secret": {"secretName": "a"}}, {"name": "hosts", "configMap": {"name": "a"}},
                        {"name": "tmp", "emptyDir": {}}]}}),
                    ),
                ),
                get(PODS, "a-worker-0"),
                merge(PODS, "a-worker-0", json!({"metadata": {"labels": {"troupe.dev/role": "ps"}}})),
            ],
        ),
        sequence(
            "an event counted up",
            [
                post(EVENTS, event("a.1")),
                merge(EVENTS, "a.1", json!({"count": 2, "lastTimestamp": "2020-02-02T02:02:03Z"})),
                post(
                    EVENTS,
                    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a.2"},
                "involvedObject": {"kind": "PaddleJob", "namespace": "{{namespace}}", "name": "x"}}),
                ),
                list(EVENTS, "fieldSelector=involvedObject.kind=PaddleJob"),
            ],
        ),
        sequence(
            "a lease taken over",
            [
                post(LEASES, lease("a")),
                put(LEASES, "a", json!({"spec": {"holderIdentity": "b", "leaseTransitions": 1}})).onto(0),
                put(LEASES, "a", json!({"spec": {"holderIdentity": "c", "leaseTransitions": 2}})).onto(0),
                merge(LEASES, "a", json!({"spec": {"renewTime": "2020-02-02T02:02:09.000000Z"}})),
                put(LEASES, "made", lease("made")),
            ],
        ),
    ]
}

fn refusals() -> Vec<Sequence> {
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
        "completionTime": "2020-02-02T02:02:02Z", "conditions": [], "troupe": {"a": [1, {"b": "c"}]},
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
