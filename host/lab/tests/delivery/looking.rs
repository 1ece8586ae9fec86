//! A component by which hosts end is not looked at by each host that is started then.

use super::{startup::refusal, *};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// A look at a component asks the API server what its kinds are called, which the hosts of a test do not survive.
fn asks_for_kinds(request: &Request<Body>) -> bool {
    request.uri().path() == format!("/apis/{}", JOBS.0)
}

fn writes_status(request: &Request<Body>) -> bool {
    request.uri().path().ends_with("/plugins/paddle/status")
}

impl Stage {
    /// Waits until the status of the Plugin says that this number of looks has begun.
    async fn looks(&self, times: u32) -> Value {
        self.until(&format!("look {times}"), |stage| {
            let looking = stage.plugin("paddle")["status"]["looking"].clone();
            (looking["times"] == times).then_some(looking)
        })
        .await
    }
}

/// A Plugin with a component of its own, and hosts that do not come to the end of a look for as long as the flag is set. The
/// number is how often a look has gone so far.
fn endless(is_endless: &Arc<AtomicBool>, component: &[u8]) -> (Stage, Arc<AtomicU32>) {
    let (endless, looks) = (is_endless.clone(), Arc::new(AtomicU32::new(0)));
    let count = looks.clone();
    let stage = Stage::meddled(vec![map("paddle", component), plugin("paddle", &grants("paddle"))], move |request| {
        let is_asked = asks_for_kinds(request);
        count.fetch_add(u32::from(is_asked), Relaxed);
        match is_asked && endless.load(Relaxed) {
            true => std::future::pending().boxed(),
            false => std::future::ready(()).boxed(),
        }
    });
    (stage, looks)
}

#[tokio::test(start_paused = true)]
async fn a_component_by_which_two_hosts_have_ended_is_looked_at_again_only_if_somebody_asks_for_it() {
    let (component, is_endless) = (another("paddle", "one"), Arc::new(AtomicBool::new(true)));
    let (mut stage, looks) = endless(&is_endless, &component);
    let looking = stage.looks(1).await;
    assert_eq!((&looking["digest"], &looking["generation"]), (&json!(digest_of(&component)), &json!(1)));
    stage.restart();
    stage.looks(2).await;
    stage.restart();
    let plugin = stage.is("paddle", "Compiled", "CrashedHost").await;
    let message = plugin["status"]["lastError"].as_str().unwrap();
    assert!(message.contains(&digest_of(&component)) && message.contains("troupe plugin approve paddle"), "{message}");

    // Neither time nor another host has it looked at, and what comes with the host serves.
    is_endless.store(false, Relaxed);
    let before = looks.load(Relaxed);
    sleep(Duration::from_secs(3600)).await;
    stage.restart();
    stage.sim.create(job("hamlet"));
    assert_eq!(stage.planner("hamlet").await, digest_of(Plugins::built_in("paddle").unwrap()));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(looks.load(Relaxed), before, "it was looked at");

    let approve = json!({ "spec": { "upgrade": { "approve": digest_of(&component) } } });
    stage.sim.patch(API, "Plugin", "", "paddle", approve).unwrap();
    stage.serves("paddle", &component).await;
    assert_eq!(stage.plugin("paddle")["status"]["looking"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn another_component_is_looked_at_whatever_hosts_have_ended_by() {
    let (component, is_endless) = (another("paddle", "one"), Arc::new(AtomicBool::new(true)));
    let (mut stage, _) = endless(&is_endless, &component);
    stage.looks(1).await;
    stage.restart();
    stage.looks(2).await;
    stage.restart();
    stage.is("paddle", "Compiled", "CrashedHost").await;
    is_endless.store(false, Relaxed);
    let next = another("paddle", "two");
    let data = json!({ "binaryData": { source::KEY: STANDARD.encode(&next) } });
    stage.sim.patch("v1", "ConfigMap", NAMESPACE, "paddle", data).unwrap();
    stage.serves("paddle", &next).await;
    assert_eq!(stage.plugin("paddle")["status"]["looking"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_component_is_not_looked_at_before_that_is_written_down_and_what_serves_goes_on() {
    let (one, two) = (another("paddle", "one"), another("paddle", "two"));
    let (is_refused, looks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (refuses, count) = (is_refused.clone(), looks.clone());
    let stage = Stage::refusing(vec![map("paddle", &one), plugin("paddle", &grants("paddle"))], move |request| {
        count.fetch_add(u32::from(asks_for_kinds(request)), Relaxed);
        (refuses.load(Relaxed) && writes_status(request)).then(|| refusal(500, &json!("unavailable")))
    });
    stage.serves("paddle", &one).await;
    is_refused.store(true, Relaxed);
    let before = looks.load(Relaxed);
    let data = json!({ "binaryData": { source::KEY: STANDARD.encode(&two) } });
    stage.sim.patch("v1", "ConfigMap", NAMESPACE, "paddle", data).unwrap();
    sleep(Duration::from_secs(120)).await;
    assert_eq!(looks.load(Relaxed), before, "it was looked at");
    stage.sim.create(job("hamlet"));
    assert_eq!(stage.planner("hamlet").await, digest_of(&one));
    is_refused.store(false, Relaxed);
    stage.serves("paddle", &two).await;
}

// The mark is a request for each new component, and none for what serves or was refused already.
#[tokio::test(start_paused = true)]
async fn what_serves_or_was_refused_is_not_written_down_again() {
    let component = another("paddle", "one");
    let marks = Arc::new(Mutex::new(vec![]));
    let mut stage = Stage::with(vec![map("paddle", &component), plugin("paddle", &grants("paddle"))]);
    stage.serves("paddle", &component).await;
    let seen = marks.clone();
    stage.sim.on_write(move |write, _| {
        let looking = write.after.as_ref().map(|object| object["status"]["looking"].clone()).unwrap_or_default();
        if write.kind == "Plugin" && !looking.is_null() {
            seen.lock().push(looking);
        }
    });
    stage.restart();
    stage.sim.create(job("hamlet"));
    assert_eq!(stage.planner("hamlet").await, digest_of(&component));
    // Its settings are looked at, and not its bytes.
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": { "limits": { "concurrency": 3 } } })).unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(*marks.lock(), Vec::<Value>::new());

    let broken = json!({ "binaryData": { source::KEY: STANDARD.encode(b"\0asm\x0d\0\x01\0rubbish") } });
    stage.sim.patch("v1", "ConfigMap", NAMESPACE, "paddle", broken).unwrap();
    stage.is("paddle", "Compiled", "NotAPlugin").await;
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(marks.lock().len(), 1, "{:?}", marks.lock());
}
