//! A Plugin that is deleted and made again under its name is another Plugin: nothing of the first is said of it.

use super::*;
use sim::Faults;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

impl Stage {
    /// The Plugin is deleted and made again; its source has no component any more.
    fn make_again(&self) {
        let broken = json!({ "binaryData": { source::KEY: STANDARD.encode(b"no component") } });
        self.sim.patch("v1", "ConfigMap", NAMESPACE, "paddle", broken).unwrap();
        self.sim.delete(API, "Plugin", "", "paddle").unwrap();
        self.sim.create(plugin("paddle", &grants("paddle")));
    }

    /// Notes whether a Plugin is ever said to be served by this component from now on.
    fn watch_for(&self, component: &[u8]) -> Arc<AtomicBool> {
        let (said, digest) = (Arc::new(AtomicBool::new(false)), digest_of(component));
        let note = said.clone();
        self.sim.on_write(move |write, _| {
            let of_plugin = write.after.as_ref().filter(|_| write.kind == "Plugin");
            if of_plugin.is_some_and(|plugin| plugin["status"]["digest"] == digest.as_str()) {
                note.store(true, Ordering::Relaxed);
            }
        });
        said
    }
}

fn objects(component: &[u8]) -> Vec<Value> {
    vec![map("paddle", component), plugin("paddle", &grants("paddle"))]
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_on_its_way_meanwhile_does_not_reach_the_new_one() {
    let (component, next) = (another("paddle", "one"), another("paddle", "two"));
    let is_status = |request: &Request<Body>| request.uri().path().ends_with("/plugins/paddle/status");
    // The first status says that the component is looked at, the second one that it serves.
    let (statuses, waits) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let (until_slow, note) = (statuses.clone(), waits.clone());
    let stage = Stage::meddled(objects(&component), move |request| {
        let counts_down = |left: u32| left.checked_sub(1);
        let (order, is_status) = (Ordering::Relaxed, is_status(request));
        let late = is_status && until_slow.fetch_update(order, order, counts_down) == Ok(1);
        note.fetch_or(late, Ordering::Relaxed);
        async move { sleep(Duration::from_secs(if late { 5 } else { 0 })).await }.boxed()
    });
    stage.serves("paddle", &component).await;
    statuses.store(2, Ordering::Relaxed);
    let data = json!({ "binaryData": { source::KEY: STANDARD.encode(&next) } });
    stage.sim.patch("v1", "ConfigMap", NAMESPACE, "paddle", data).unwrap();
    stage.until("the status to be on its way", |_| waits.load(Ordering::Relaxed).then_some(())).await;
    let said = stage.watch_for(&next);
    stage.make_again();
    stage.is("paddle", "Compiled", "NotAPlugin").await;
    assert!(!said.load(Ordering::Relaxed), "the new Plugin was said to be served by what the first had accepted");
}

#[tokio::test(start_paused = true)]
async fn one_that_only_a_list_shows_does_not_serve_what_the_first_had_accepted() {
    let component = another("paddle", "one");
    let stage = Stage::with(objects(&component));
    stage.serves("paddle", &component).await;
    // Every watch gets 410 instead of events, and lists again.
    stage.sim.set_faults(Faults { watch_gone: 1.0, ..Faults::none() });
    let said = stage.watch_for(&component);
    stage.make_again();
    sleep(Duration::from_secs(1)).await;
    stage.sim.set_faults(Faults::none());
    stage.is("paddle", "Compiled", "NotAPlugin").await;
    assert!(!said.load(Ordering::Relaxed), "the new Plugin was said to be served by what the first had accepted");
    stage.sim.create(job("hamlet"));
    assert_eq!(stage.planner("hamlet").await, digest_of(Plugins::built_in("paddle").unwrap()));
}
