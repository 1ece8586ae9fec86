//! A digest that is tried before it serves all: approved by hand, as a shadow, as a canary that goes well or has to stop.

use super::{Stage, condition, digest_of, grants, marked, troupe, version};
use crate::{
    cluster::{
        jobs::paddle,
        objects::{PADDLE_JOBS, text},
    },
    hostile::guest,
};

use futures::future::join_all;
use sandbox::source;
use serde_json::{Value, json};
use troupe::plugin_resource::{CandidateState, PluginStatus};

impl Stage {
    /// Why the component was stopped, which was a canary when these jobs were submitted.
    async fn stopped(&self, component: Vec<u8>, jobs: &[Value]) -> String {
        let digest = digest_of(&component);
        let is = |status: &PluginStatus, state| {
            status.candidate.as_ref().is_some_and(|candidate| candidate.digest == digest && candidate.state == state)
        };
        self.apply(component).await;
        self.is("a canary", |status| is(status, CandidateState::Canary)).await;
        join_all(jobs.iter().map(|job| self.world.create(&PADDLE_JOBS, job))).await;
        let status = self.is("stopped", |status| is(status, CandidateState::Stopped)).await;
        assert_eq!(condition(&status, "Degraded"), ("True".into(), "CanaryStopped".into()));
        status.candidate.unwrap().message.unwrap()
    }

    /// Deletes every job, until none is left.
    async fn clear(&self) {
        for job in self.world.names(&PADDLE_JOBS).await.unwrap() {
            self.world.delete(&PADDLE_JOBS, &job).await;
        }
        self.world.are(&PADDLE_JOBS, &[]).await;
    }
}

/// A job that the canary plans; the component that poses as paddle does there what it is told.
fn of_team(name: &str, told: &[(&str, &str)]) -> Value {
    let mut job = paddle(name).worker(1).manifest;
    job["metadata"]["labels"] = json!({ "team": "a" });
    job["metadata"]["annotations"] =
        told.iter().map(|(function, what)| (format!("hostile/{function}"), *what)).collect();
    job
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_digest_serves_by_hand_as_a_shadow_or_to_some_as_the_plugin_says() {
    let stage = Stage::of("candidates").await;
    let (one, two, three) = (version("one"), version("two"), version("three"));
    stage.apply(one.clone()).await;
    stage.create(json!({ "strategy": "Manual" })).await;
    // The one that comes with the host serves until a person says otherwise.
    let waits = |status: &PluginStatus| status.candidate.as_ref().is_some_and(|it| it.state == CandidateState::Waiting);
    stage.is("waiting", waits).await;
    let output = troupe(&stage.world, &["plugin", "approve", "paddle"]);
    assert!(output.contains("may serve"), "{output}");
    stage.serves(&one).await;
    stage.submit("first").await;
    stage.running(1).await;

    stage.patch(json!({ "spec": { "upgrade": { "strategy": "NewJobs", "shadow": true } } })).await;
    stage.apply(two.clone()).await;
    let shadow = |status: &PluginStatus| status.candidate.as_ref().is_some_and(|it| it.state == CandidateState::Shadow);
    let status = stage.is("a shadow", shadow).await;
    assert_eq!(status.candidate.unwrap().preflight.passes, 1);
    stage.submit("second").await;
    assert_eq!(stage.planner_of("second").await, digest_of(&one));
    let compared = |status: &PluginStatus| status.candidate.as_ref().is_some_and(|it| it.live.passes > 0);
    let live = stage.is("compared", compared).await.candidate.unwrap().live;
    assert_eq!((live.different, live.failed), (0, 0));
    let metrics = stage.host.metrics().await.unwrap();
    let of_class = |class: &str| -> u32 {
        let name = format!("troupe_plugin_trial_passes{{plugin=\"paddle\",class=\"{class}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
        line.unwrap_or_else(|| panic!("no {name}in\n{metrics}")).parse().unwrap()
    };
    assert!(of_class("all") >= live.passes, "{metrics}");
    assert_eq!(["different", "dangerous", "failed"].map(of_class), [0; 3]);

    stage.patch(json!({ "spec": { "upgrade": { "shadow": false, "canary": { "percent": 100, "matchLabels": { "team": "a" } } } } })).await;
    let canary = |status: &PluginStatus| status.candidate.as_ref().is_some_and(|it| it.state == CandidateState::Canary);
    stage.is("a canary", canary).await;
    stage.world.create(&PADDLE_JOBS, &of_team("of-team", &[])).await;
    assert_eq!(stage.planner_of("of-team").await, digest_of(&two));
    stage.submit("of-others").await;
    assert_eq!(stage.planner_of("of-others").await, digest_of(&one));
    stage.patch(json!({ "spec": { "upgrade": { "canary": null } } })).await;
    stage.serves(&two).await;

    // Jobs move, since the new plans differ in nothing.
    stage.patch(json!({ "spec": { "upgrade": { "strategy": "Migrate" } } })).await;
    let compressed = source::compress(&three, source::Ratio::Small).unwrap();
    stage.apply_as(source::COMPRESSED_KEY, compressed).await;
    stage.serves(&three).await;
    let moved = |job: &Value| text(job, "/status/troupe/digest") == digest_of(&three);
    stage.world.is(&PADDLE_JOBS, "first", "moved", moved).await;
    stage.end().await;
}

// A trap, a budget that is used up, jobs that fail and a live pod that would be touched each stop a canary.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_canary_that_fails_stops_by_itself_and_its_jobs_are_planned_by_what_serves() {
    let stage = Stage::of("canary").await;
    let one = version("one");
    stage.apply(one.clone()).await;
    stage.create(json!({})).await;
    stage.serves(&one).await;
    let canary = json!({ "canary": { "percent": 100, "matchLabels": { "team": "a" } } });
    let mut granted = grants();
    granted.images.extend(["one", "two"].map(str::to_owned));
    stage.patch(json!({ "spec": { "grants": granted, "upgrade": canary } })).await;
    let poses = guest("poses-as-paddle");

    let why = stage.stopped(marked(&poses, "traps"), &[of_team("traps", &[("plan", "trap")])]).await;
    assert!(why.contains("/traps: plugin paddle trapped in plan: ") && why.contains("as I was told"), "{why}");
    assert_eq!(stage.planner_of("traps").await, digest_of(&one));
    stage.running(1).await;
    // It stays stopped for whoever comes later, until a person says otherwise.
    stage.world.create(&PADDLE_JOBS, &of_team("later", &[])).await;
    assert_eq!(stage.planner_of("later").await, digest_of(&one));
    stage.clear().await;

    let why = stage.stopped(marked(&poses, "loops"), &[of_team("loops", &[("plan", "loop")])]).await;
    assert!(why.ends_with("/loops: plugin paddle ran out of fuel in plan"), "{why}");
    assert_eq!(stage.planner_of("loops").await, digest_of(&one));
    stage.clear().await;

    let failing: Vec<_> = (0..5).map(|number| of_team(&format!("fails-{number}"), &[("judge", "fail")])).collect();
    let why = stage.stopped(marked(&poses, "fails"), &failing).await;
    assert_eq!(why, "5 of its 5 jobs failed, but only 0 % of the active digest's");
    stage.clear().await;

    // A job of another team, which the canary is shown once its pod is there.
    let why = stage.stopped(marked(&poses, "touches"), &[paddle("of-others").worker(1).manifest]).await;
    assert!(why.contains("/of-others: a live pod would be changed: role worker "), "{why}");
    assert_eq!(stage.planner_of("of-others").await, digest_of(&one));
    stage.running(1).await;
    stage.end().await;
}
