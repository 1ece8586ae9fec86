//! Jobs that stay with the component that planned them.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn flag() -> Arc<AtomicBool> {
    Arc::default()
}

// A host that crashes between the creates of a job and its status leaves the digest in the annotations of its children
// alone.
#[tokio::test(start_paused = true)]
async fn a_plugin_that_only_children_name_is_sought_until_it_is_found() {
    let (one, two) = (another("paddle", "one"), another("paddle", "two"));
    let (no_status, no_archive) = (flag(), flag());
    let (silent, deaf) = (no_status.clone(), no_archive.clone());
    let archived = format!("/configmaps/troupe-plugin-{}", source::digest(&one).short());
    let meddling = move |request: &Request<Body>| {
        let path = request.uri().path();
        let hangs = silent.load(Relaxed) && path.ends_with("/paddlejobs/hamlet/status")
            || path.contains(&archived) && deaf.swap(false, Relaxed);
        if hangs { std::future::pending().boxed() } else { std::future::ready(()).boxed() }
    };
    let mut stage = Stage::meddled(vec![map("paddle", &one), plugin("paddle", &grants("paddle"))], meddling);
    stage.serves("paddle", &one).await;
    no_status.store(true, Relaxed);
    stage.sim.create(job("hamlet"));
    stage.until("a pod", |stage| (!stage.sim.list("v1", "Pod", "default").is_empty()).then_some(())).await;
    let data = json!({ "binaryData": { source::KEY: STANDARD.encode(&two) } });
    stage.sim.patch("v1", "ConfigMap", NAMESPACE, "paddle", data).unwrap();
    stage.serves("paddle", &two).await;
    assert_eq!(stage.sim.get(JOBS.0, JOBS.1, "default", "hamlet").unwrap()["status"], Value::Null);

    no_status.store(false, Relaxed);
    no_archive.store(true, Relaxed);
    stage.restart();
    assert_eq!(stage.planner("hamlet").await, digest_of(&one));
    assert!(!no_archive.load(Relaxed), "its bytes were read from the archive");
}
