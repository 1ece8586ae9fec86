//! An IndexedJob whose containers end with exit codes that a real kubelet sees.

use super::world::{World, built};
use crate::cluster::objects::{Kind, PODS, at, condition_of, text};
use harness::images::Image;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const INDEXED_JOBS: Kind = Kind::new("apis/batch.troupe.dev/v1alpha1", "indexedjobs");

/// Index 1 fails once and is tried again; index 2 says by its exit code that it cannot succeed.
fn parts(image: &Image) -> Value {
    let script = "echo part $JOB_COMPLETION_INDEX
        if [ $JOB_COMPLETION_INDEX = 2 ]; then exit 42; fi
        if [ $JOB_COMPLETION_INDEX = 1 ] && mkdir /tries/once; then exit 1; fi";
    let container = json!({
        "name": "main", "image": image.name(), "imagePullPolicy": "Never", "command": ["sh", "-c", script],
        "volumeMounts": [{ "name": "tries", "mountPath": "/tries" }],
    });
    json!({
        "apiVersion": "batch.troupe.dev/v1alpha1",
        "kind": "IndexedJob",
        "metadata": { "name": "parts" },
        "spec": {
            "completions": 4, "parallelism": 2, "backoffLimitPerIndex": 3,
            "podFailurePolicy": { "rules": [
                { "action": "FailIndex", "onExitCodes": { "operator": "In", "values": [42] } },
            ] },
            "template": { "spec": { "restartPolicy": "Never", "containers": [container] } },
        },
    })
}

// J04, J07, J08
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_node, ignore = "needs Go, openssl, apt and root")]
async fn an_indexed_job_tries_a_part_again_and_gives_one_up_by_its_exit_code() {
    let image = built(Image::busybox).await;
    let world = World::start(vec![image.clone()], None).await;
    let folder = world.gate().parent().unwrap().to_owned();
    let mut job = parts(&image);
    job["spec"]["template"]["spec"]["volumes"] = json!([{ "name": "tries", "hostPath": { "path": folder } }]);
    world.create(&INDEXED_JOBS, &job).await;
    let has_failed = |job: &Value| condition_of(job, "Failed").is_some_and(|it| text(it, "/status") == "True");
    let job = world.becomes(&INDEXED_JOBS, "parts", "at its end", has_failed).await;
    let status = &job["status"];
    assert_eq!((text(status, "/completedIndexes"), text(status, "/failedIndexes")), ("0,1,3", "2"), "{status:#}");
    assert_eq!((at(status, "/succeeded"), at(status, "/failed")), (&json!(3), &json!(2)), "{status:#}");
    let failed = condition_of(&job, "Failed").unwrap();
    assert_eq!(text(failed, "/reason"), "FailedIndexes", "{status:#}");
    let said: BTreeMap<_, _> = world
        .list(&PODS)
        .await
        .unwrap()
        .iter()
        .map(|pod| (text(pod, "/metadata/name").to_owned(), world.said(pod)))
        .collect();
    assert!(said.values().any(|log| log.contains("part 3")), "{said:?}");
    world.stop("an IndexedJob of four parts").await;
}
