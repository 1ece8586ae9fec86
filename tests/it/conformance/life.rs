//! What the controllers make of objects: garbage collection, and the life of a Job.

use serde_json::{Value, json};

use super::step::*;

pub(super) fn sequences() -> Vec<Sequence> {
    [collections(), jobs()].concat().into_iter().map(Sequence::alive).collect()
}

fn gone(code: u16, _: &Value) -> bool {
    code == 404
}

fn free(_: u16, object: &Value) -> bool {
    object["metadata"]["ownerReferences"].is_null()
}

fn owned(object: Value, owners: &[Value]) -> Value {
    with(object, json!({"metadata": {"ownerReferences": owners}}))
}

fn reference(kind: Kind, name: &str, uid: &str) -> Value {
    json!({"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true})
}

fn plain(kind: Kind, name: &str, uid: &str) -> Value {
    json!({"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": uid})
}

fn collections() -> Vec<Sequence> {
    let policy = |policy: &str| json!({"propagationPolicy": policy});
    vec![
        sequence(
            "everything a custom resource owns goes with it",
            [
                post(PADDLE_JOBS, paddle_job("owner")),
                post(PODS, owned(pod("a"), &[reference(PADDLE_JOBS, "owner", "{{0.uid}}")])),
                post(SERVICES, owned(service("a"), &[reference(PADDLE_JOBS, "owner", "{{0.uid}}")])),
                post(CONFIG_MAPS, owned(config_map("a"), &[reference(PADDLE_JOBS, "owner", "{{0.uid}}")])),
                delete(PADDLE_JOBS, "owner", policy("Background")),
                until(PODS, "a", gone),
                until(SERVICES, "a", gone),
                until(CONFIG_MAPS, "a", gone),
            ],
        ),
        sequence(
            "orphans stay",
            [
                post(MPI_JOBS, mpi_job("owner")),
                post(SECRETS, owned(secret("a"), &[reference(MPI_JOBS, "owner", "{{0.uid}}")])),
                delete(MPI_JOBS, "owner", policy("Orphan")),
                until(MPI_JOBS, "owner", gone),
                until(SECRETS, "a", free),
            ],
        ),
        sequence(
            "an owner deleted in the foreground waits for its dependents",
            [
                post(CONFIG_MAPS, config_map("owner")),
                post(
                    CONFIG_MAPS,
                    with(
                        owned(config_map("a"), &[reference(CONFIG_MAPS, "owner", "{{0.uid}}")]),
                        json!({"metadata": {"finalizers": ["troupe.dev/hold"]}}),
                    ),
                ),
                delete(CONFIG_MAPS, "owner", policy("Foreground")),
                until(CONFIG_MAPS, "a", |_, object| object["metadata"]["deletionTimestamp"].is_string()),
                get(CONFIG_MAPS, "owner"),
                merge(CONFIG_MAPS, "a", json!({"metadata": {"finalizers": null}})),
                until(CONFIG_MAPS, "owner", gone),
                get(CONFIG_MAPS, "a"),
            ],
        ),
        sequence(
            "one of two owners goes",
            [
                post(CONFIG_MAPS, config_map("one")),
                post(CONFIG_MAPS, config_map("two")),
                post(
                    CONFIG_MAPS,
                    owned(
                        config_map("a"),
                        &[plain(CONFIG_MAPS, "one", "{{0.uid}}"), plain(CONFIG_MAPS, "two", "{{1.uid}}")],
                    ),
                ),
                delete(CONFIG_MAPS, "one", policy("Background")),
                until(CONFIG_MAPS, "a", |_, object| {
                    object["metadata"]["ownerReferences"].as_array().is_some_and(|all| all.len() == 1)
                }),
                delete(CONFIG_MAPS, "two", policy("Background")),
                until(CONFIG_MAPS, "a", gone),
            ],
        ),
        sequence(
            "an owner that is not there",
            [
                post(
                    CONFIG_MAPS,
                    owned(config_map("a"), &[plain(PADDLE_JOBS, "none", "00000000-0000-0000-0000-00000000000a")]),
                ),
                until(CONFIG_MAPS, "a", gone),
            ],
        ),
        sequence(
            "an owner that was created again under its name",
            [
                post(CONFIG_MAPS, config_map("owner")),
                delete(CONFIG_MAPS, "owner", Value::Null),
                post(CONFIG_MAPS, config_map("owner")),
                post(PODS, owned(pod("a"), &[reference(CONFIG_MAPS, "owner", "{{0.uid}}")])),
                until(PODS, "a", gone),
                get(CONFIG_MAPS, "owner"),
            ],
        ),
        sequence(
            "what is owned through another goes as well",
            [
                post(PADDLE_JOBS, paddle_job("owner")),
                post(CONFIG_MAPS, owned(config_map("a"), &[reference(PADDLE_JOBS, "owner", "{{0.uid}}")])),
                post(SECRETS, owned(secret("b"), &[reference(CONFIG_MAPS, "a", "{{1.uid}}")])),
                delete(PADDLE_JOBS, "owner", Value::Null),
                until(SECRETS, "b", gone),
                get(CONFIG_MAPS, "a"),
            ],
        ),
    ]
}

/// A Job whose pods run for the time and exit with the code.
fn work(run_for: &str, exit_code: &str, spec: Value) -> Value {
    let pods = json!({"metadata": {"annotations": {"troupe.dev/run-for": run_for, "troupe.dev/exit-code": exit_code}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none:1"}]}});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": with(json!({"template": pods}), spec)})
}

fn is(job: &Value, kind: &str, status: &str) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|have| have["type"] == kind && have["status"] == status)
}

fn complete(_: u16, job: &Value) -> bool {
    is(job, "Complete", "True")
}

fn failed(_: u16, job: &Value) -> bool {
    is(job, "Failed", "True")
}

fn suspended(_: u16, job: &Value) -> bool {
    is(job, "Suspended", "True")
}

fn one_runs(_: u16, job: &Value) -> bool {
    job["status"]["active"] == 1 && job["status"]["ready"] == 1
}

fn jobs() -> Vec<Sequence> {
    vec![
        sequence("a Job completes", [post(JOBS, work("100ms", "0", json!({}))), until(JOBS, "a", complete)]),
        sequence(
            "a Job of three pods, two at a time",
            [post(JOBS, work("100ms", "0", json!({"completions": 3, "parallelism": 2}))), until(JOBS, "a", complete)],
        ),
        sequence(
            "an indexed Job completes",
            [
                post(
                    JOBS,
                    work("100ms", "0", json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"})),
                ),
                until(JOBS, "a", complete),
            ],
        ),
        sequence("a Job fails", [post(JOBS, work("100ms", "3", json!({"backoffLimit": 0}))), until(JOBS, "a", failed)]),
        sequence(
            "a Job takes too long",
            [post(JOBS, work("1h", "0", json!({"activeDeadlineSeconds": 1}))), until(JOBS, "a", failed)],
        ),
        sequence(
            "a Job is suspended from the beginning, then resumed",
            [
                post(JOBS, work("100ms", "0", json!({"suspend": true}))),
                until(JOBS, "a", suspended),
                list(PODS, ""),
                merge(JOBS, "a", json!({"spec": {"suspend": false}})).metadata(),
                until(JOBS, "a", complete),
            ],
        ),
        sequence(
            "a Job is suspended while it runs",
            [
                post(JOBS, work("1h", "0", json!({}))),
                until(JOBS, "a", one_runs),
                merge(JOBS, "a", json!({"spec": {"suspend": true}})).metadata(),
                until(JOBS, "a", |code, job| suspended(code, job) && job["status"]["terminating"] == 0),
            ],
        ),
        sequence(
            "a finished Job goes after its time to live",
            [
                post(JOBS, work("100ms", "0", json!({"ttlSecondsAfterFinished": 0}))),
                until(JOBS, "a", gone),
                until(PODS, "", |_, pods| pods["items"].as_array().is_some_and(Vec::is_empty)),
            ],
        ),
        sequence(
            "a Job's pods go with it",
            [
                post(JOBS, work("1h", "0", json!({}))),
                until(JOBS, "a", one_runs),
                delete(JOBS, "a", json!({"propagationPolicy": "Background"})),
                until(PODS, "", |_, pods| pods["items"].as_array().is_some_and(Vec::is_empty)),
            ],
        ),
    ]
}
