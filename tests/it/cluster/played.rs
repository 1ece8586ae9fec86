//! What a kubelet says of a pod, said by the test, for pods that nobody schedules.

use super::objects::{BATCH_JOBS, Namespace, PODS, at, text};
use serde_json::{Value, json};

/// It has an address.
pub(crate) fn addressed(ip: &str) -> Value {
    json!({ "podIP": ip, "podIPs": [{ "ip": ip }] })
}

/// It waits in Paddle's init container.
pub(crate) fn coordinating() -> Value {
    let state = json!({ "running": { "startedAt": "2026-01-02T03:04:05Z" } });
    json!({ "phase": "Pending", "initContainerStatuses": [container("coord-paddle", false, &state)] })
}

/// It runs and is ready.
pub(crate) fn running(name: &str) -> Value {
    up(name, true)
}

/// It runs and is not ready.
pub(crate) fn unready(name: &str) -> Value {
    up(name, false)
}

/// It has ended well.
pub(crate) fn succeeded() -> Value {
    json!({ "phase": "Succeeded" })
}

/// It has ended badly.
pub(crate) fn failed() -> Value {
    json!({ "phase": "Failed" })
}

/// The pods of a launcher's Job, the oldest first, once there are this many.
pub(crate) async fn launcher_pods(namespace: &Namespace, job: &str, count: usize) -> Vec<String> {
    namespace.is(&BATCH_JOBS, &format!("{job}-launcher"), "there", |_| true).await;
    let found = harness::until(super::objects::SOON, format!("{count} launcher pods of {job}"), || async {
        let mut pods = namespace.list(&PODS).await?;
        pods.retain(|pod| {
            at(pod, "/metadata/labels/training.kubeflow.org~1job-role") == "launcher"
                && at(pod, "/metadata/labels/training.kubeflow.org~1job-name") == job
        });
        pods.sort_by_key(|pod| text(pod, "/metadata/creationTimestamp").to_owned());
        let names = pods.iter().map(|pod| text(pod, "/metadata/name").to_owned());
        Ok((pods.len() == count).then(|| names.collect()))
    });
    found.await.unwrap()
}

fn up(name: &str, ready: bool) -> Value {
    let state = json!({ "running": { "startedAt": "2026-01-02T03:04:05Z" } });
    let ended = json!({ "terminated": { "exitCode": 0, "finishedAt": "2026-01-02T03:04:05Z" } });
    let word = if ready { "True" } else { "False" };
    json!({
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": word }],
        "initContainerStatuses": [container("coord-paddle", true, &ended)],
        "containerStatuses": [container(name, ready, &state)],
    })
}

fn container(name: &str, ready: bool, state: &Value) -> Value {
    json!({ "name": name, "image": "", "imageID": "", "ready": ready, "restartCount": 0, "state": state })
}
