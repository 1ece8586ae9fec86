//! Creations of each kind.

use serde_json::{Value, json};

use super::step::*;

fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": true})
}

pub(super) fn sequences() -> Vec<Sequence> {
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
