//! Candidates beside what serves.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

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
