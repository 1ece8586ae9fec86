//! A cluster in which nothing happens by itself, and the direct access that changes it.

use parking_lot::Mutex;
use std::sync::Arc;

use super::*;
use crate::Uids;

fn still() -> Sim {
    Sim::new(Options { life: Life::still(), uids: Uids::Counted, ..options() })
}

fn job_json() -> Value {
    let pod = pod_json("x")["spec"].clone();
    json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "a" }, "spec": { "template": { "spec": pod } } })
}

#[tokio::test(start_paused = true)]
async fn no_pod_starts_or_ends_and_no_job_makes_pods_by_itself() {
    let sim = still();
    let _running = sim.start();
    sim.create(job_json());
    sim.create(pod_json("p"));
    after(600_000).await;
    assert_eq!(sim.list("v1", "Pod", "").len(), 1);
    assert_eq!(sim.get("v1", "Pod", "default", "p").unwrap()["status"]["phase"], "Pending");
    sim.set_running("default", "p");
    sim.delete("v1", "Pod", "default", "p").unwrap();
    after(600_000).await;
    let pod = sim.get("v1", "Pod", "default", "p").unwrap();
    assert_eq!((&pod["status"]["phase"], pod["metadata"]["deletionTimestamp"].is_string()), (&json!("Running"), true));
}

#[tokio::test(start_paused = true)]
async fn garbage_is_collected_in_no_time() {
    let sim = still();
    let _running = sim.start();
    let owner = sim.create(job_json());
    let mut pod = pod_json("p");
    pod["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": owner["metadata"]["uid"] }]);
    sim.create(pod);
    let before = sim.now();
    sim.delete("batch/v1", "Job", "default", "a").unwrap();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(sim.get("v1", "Pod", "default", "p").is_none());
    assert_eq!(sim.now(), before);
}

#[tokio::test(start_paused = true)]
async fn counted_uids_leave_out_what_was_refused_and_events() {
    let sim = still();
    let event = json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e" }, "involvedObject": {} });
    assert_eq!(sim.create(pod_json("a"))["metadata"]["uid"], "uid-1");
    sim.try_create(pod_json("a")).unwrap_err();
    assert_eq!(sim.create(event)["metadata"]["uid"].as_str().map(str::len), Some(36));
    assert_eq!(sim.create(pod_json("b"))["metadata"]["uid"], "uid-2");
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_passed_what_was_sent_where_an_object_was_made() {
    let sim = still();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&reported);
    sim.on_write(move |write, _| keep.lock().push(write.sent.clone()));
    sim.create(job_json());
    sim.patch("batch/v1", "Job", "default", "a", json!({ "spec": { "suspend": true } })).unwrap();
    let reported = reported.lock();
    let spec = reported[0].as_ref().map(|sent| sent["spec"].clone());
    assert_eq!((spec, reported[1].is_none()), (Some(job_json()["spec"].clone()), true));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_served_anew_drops_what_its_new_definition_does_not_know() {
    let sim = still();
    sim.create(json(&a_tale("a")));
    let write =
        || sim.patch_status("example.com/v1", "Tale", "default", "a", json!({ "status": { "reported": 1, "new": 2 } }));
    sim.serve(tale().pruning("new"));
    assert_eq!(write().unwrap()["status"], json!({ "reported": 1 }));
    sim.serve(tale());
    assert_eq!(write().unwrap()["status"], json!({ "reported": 1, "new": 2 }));
    assert_eq!(sim.kind("example.com", "tales"), Some(tale()));
}

#[tokio::test(start_paused = true)]
async fn a_controller_with_every_right_writes_what_no_request_may() {
    let sim = still();
    sim.create(job_json());
    let at = "2026-01-01T00:00:10Z";
    sim.alter("batch/v1", "Job", "default", "a", |job| job["metadata"]["deletionTimestamp"] = json!(at)).unwrap();
    assert_eq!(sim.get("batch/v1", "Job", "default", "a").unwrap()["metadata"]["deletionTimestamp"], at);
}
