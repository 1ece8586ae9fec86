//! What the host owes to jobs when parts of it fail.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Panics at the first request that `which` picks.
fn once(which: fn(&Request<Body>) -> bool) -> impl Fn(&Request<Body>) -> Meddling + Clone + Send + Sync {
    let done = Arc::new(AtomicBool::new(false));
    move |request| {
        let panics = which(request) && !done.swap(true, Ordering::Relaxed);
        async move { assert!(!panics, "as the test asks") }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_panics_is_counted_and_started_again() {
    let stage = Stage::meddled(vec![job("hamlet")], once(|request| request.uri().path() == "/api/v1/pods"));
    stage.planner("hamlet").await;
    assert_eq!(stage.restarts(), [("watch", 1)]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_jobs_that_are_deleted() {
    let stage = Stage::with((0..20).map(|number| job(&format!("job-{number}"))).collect());
    for number in 0..20 {
        stage.planner(&format!("job-{number}")).await;
    }
    for number in 0..20 {
        stage.sim.delete(JOBS.0, JOBS.1, "default", &format!("job-{number}")).unwrap();
    }
    stage.until("the queue to be empty", |stage| (stage.context.queue().jobs() == 0).then_some(())).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_of_the_delivery_that_is_never_answered_costs_others_nothing() {
    let hangs = |request: &Request<Body>| match request.uri().path().ends_with("/configmaps/hangs") {
        true => std::future::pending().boxed(),
        false => std::future::ready(()).boxed(),
    };
    let component = another("paddle", "one");
    let objects = vec![
        map("hangs", b"never seen"),
        plugin("hangs", &Grants::default()),
        map("paddle", &component),
        plugin("paddle", &grants("paddle")),
    ];
    let stage = Stage::meddled(objects, hangs);
    stage.serves("paddle", &component).await;
    assert!(stage.sim.elapsed() < Duration::from_secs(5), "{:?}", stage.sim.elapsed());
    let plugin = stage.is("hangs", "Fetched", "FetchFailed").await;
    let error = plugin["status"]["lastError"].as_str().unwrap();
    assert!(error.contains("no answer within 10 s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_panics_is_started_again_and_what_serves_goes_on() {
    let component = another("paddle", "one");
    let objects = vec![map("paddle", &component), plugin("paddle", &grants("paddle")), job("hamlet")];
    let stage = Stage::meddled(objects, once(|request| request.uri().path().ends_with("/plugins/paddle/status")));
    stage.serves("paddle", &component).await;
    stage.planner("hamlet").await;
    assert_eq!(stage.restarts(), [("delivery", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_whose_task_panics_again_and_again_holds_up_no_other() {
    let panics = |request: &Request<Body>| {
        let panics = request.uri().path().ends_with("/plugins/odd/status");
        async move { assert!(!panics, "as the test asks") }.boxed()
    };
    let (one, two) = (another("paddle", "one"), another("paddle", "two"));
    let objects = vec![plugin("odd", &Grants::default()), map("paddle", &one), plugin("paddle", &grants("paddle"))];
    let stage = Stage::meddled(objects, panics);
    stage.serves("paddle", &one).await;
    // By now what panics waits for long until it is started again.
    stage.until("five panics", |stage| matches!(stage.restarts()[..], [("delivery", 5..)]).then_some(())).await;

    let changed = Instant::now();
    let data = json!({ "binaryData": { source::KEY: STANDARD.encode(&two) } });
    stage.sim.patch("v1", "ConfigMap", NAMESPACE, "paddle", data).unwrap();
    stage.serves("paddle", &two).await;
    assert!(changed.elapsed() < Duration::from_secs(5), "{:?}", changed.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_look_at_a_plugin_that_panics_is_counted_reported_and_tried_again() {
    let component = another("paddle", "one");
    let objects = vec![map("paddle", &component), plugin("paddle", &grants("paddle"))];
    let stage = Stage::meddled(objects, once(|request| request.uri().path().ends_with("/configmaps/paddle")));
    stage.is("paddle", "Accepted", "InternalError").await;
    stage.serves("paddle", &component).await;
    assert_eq!(stage.restarts(), [("look", 1)]);
}
