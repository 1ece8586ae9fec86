//! Candidates beside what serves.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

#[tokio::test(start_paused = true)]
async fn a_shadow_is_shown_a_pass_after_its_writes() {
    let (one, two) = (another("paddle", "one"), another("paddle", "two"));
    let stage = Stage::with(vec![map("paddle", &one), plugin("paddle", &grants("paddle"))]);
    stage.serves("paddle", &one).await;
    let shadow = json!({ "spec": { "upgrade": { "shadow": true } } });
    stage.sim.patch(API, "Plugin", "", "paddle", shadow).unwrap();
    let data = json!({ "binaryData": { source::KEY: STANDARD.encode(&two) } });
    stage.sim.patch("v1", "ConfigMap", NAMESPACE, "paddle", data).unwrap();
    stage.until("a shadow", |stage| stage.context.candidate("paddle")).await;

    let (shown, context) = (Arc::new(AtomicU32::new(u32::MAX)), stage.context.clone());
    let at_first_pod = shown.clone();
    stage.sim.on_write(move |write, _| {
        if write.after.as_ref().is_some_and(|object| object["kind"] == "Pod") {
            let passes = context.candidate("paddle").map_or(0, |(_, passes)| passes);
            at_first_pod.fetch_min(passes, Ordering::Relaxed);
        }
    });
    stage.sim.create(job("hamlet"));
    assert_eq!(stage.planner("hamlet").await, digest_of(&one));
    assert_eq!(shown.load(Ordering::Relaxed), 0, "passes that the shadow was shown before their pods were made");
    stage.until("passes shown", |stage| stage.context.candidate("paddle").filter(|(_, passes)| *passes > 1)).await;
}

fn state(stage: &Stage) -> Value {
    stage.plugin("paddle")["status"]["candidate"]["state"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_is_stopped_during_a_look_stays_stopped() {
    let (one, two) = (another("paddle", "one"), another("paddle", "two"));
    let is_slow = Arc::new(AtomicBool::new(false));
    let slow = is_slow.clone();
    let stage = Stage::meddled(vec![map("paddle", &one), plugin("paddle", &grants("paddle"))], move |request| {
        let is_late = slow.load(Ordering::Relaxed) && request.uri().path().ends_with("/configmaps/paddle");
        async move { sleep(Duration::from_secs(if is_late { 8 } else { 0 })).await }.boxed()
    });
    stage.serves("paddle", &one).await;
    let canary = |percent: u32| json!({ "spec": { "upgrade": { "canary": { "percent": percent } } } });
    stage.sim.patch(API, "Plugin", "", "paddle", canary(100)).unwrap();
    let data = json!({ "binaryData": { source::KEY: STANDARD.encode(&two) } });
    stage.sim.patch("v1", "ConfigMap", NAMESPACE, "paddle", data).unwrap();
    stage.until("a canary", |stage| (state(stage) == "Canary").then_some(())).await;
    let jobs: Vec<_> = (0..5).map(|number| format!("hamlet-{number}")).collect();
    for name in &jobs {
        stage.sim.create(job(name));
        assert_eq!(stage.planner(name).await, digest_of(&two));
    }

    is_slow.store(true, Ordering::Relaxed);
    stage.sim.patch(API, "Plugin", "", "paddle", canary(99)).unwrap();
    sleep(Duration::from_secs(1)).await;
    jobs.iter().for_each(|name| stage.sim.set_failed("default", &format!("{name}-worker-0"), 1));
    stage.until("the canary to be stopped", |stage| (state(stage) == "Stopped").then_some(())).await;
    assert_ne!(stage.plugin("paddle")["status"]["observedGeneration"], 3, "the look has ended already");
    let seen = Arc::new(AtomicBool::new(false));
    let alive = seen.clone();
    stage.sim.on_write(move |write, _| {
        let candidate = write.after.as_ref().map(|object| &object["status"]["candidate"]["state"]);
        alive.fetch_or(candidate.is_some_and(|state| state == "Canary"), Ordering::Relaxed);
    });
    stage
        .until("the third generation", |stage| {
            (stage.plugin("paddle")["status"]["observedGeneration"] == 3).then_some(())
        })
        .await;
    assert!(state(&stage) == "Stopped" && !seen.load(Ordering::Relaxed), "{:#?}", stage.plugin("paddle"));
}
