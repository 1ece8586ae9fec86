//! Tests of faults.

use futures::StreamExt;
use kube::api::WatchParams;

use super::*;
use crate::{ApiError, Matching, When};

#[tokio::test(start_paused = true)]
async fn a_refusal_aimed_at_a_name_holds_until_it_is_lifted() {
    let sim = sim();
    let quota = ApiError::quota("pods", "a-0", "compute");
    let refusal = sim.refuse(Matching::create("pods").named("a-*"), quota);
    let status = refused(pods(&sim).create(&post(), &a_pod("a-0")).await);
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    assert!(status.message.starts_with("pods \"a-0\" is forbidden: exceeded quota: compute"), "{}", status.message);
    pods(&sim).create(&post(), &a_pod("b-0")).await.unwrap();
    sim.lift(refusal);
    pods(&sim).create(&post(), &a_pod("a-0")).await.unwrap();
    sim.refuse(Matching::create("pods").named("*-1"), ApiError::quota("pods", "b-1", "compute"));
    refused(pods(&sim).create(&post(), &a_pod("b-1")).await);
    pods(&sim).create(&post(), &a_pod("b-10")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_quota_has_room_again_when_a_pod_is_gone_or_has_ended() {
    let sim = sim();
    sim.create(json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "compute" },
        "spec": { "hard": { "pods": "2" } },
    }));
    for name in ["a", "b"] {
        pods(&sim).create(&post(), &a_pod(name)).await.unwrap();
    }
    let status = refused(pods(&sim).create(&post(), &a_pod("c")).await);
    assert_eq!(
        (status.code, status.message.as_str()),
        (403, "pods \"c\" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2")
    );
    sim.remove_pod("default", "a").unwrap();
    pods(&sim).create(&post(), &a_pod("c")).await.unwrap();
    refused(pods(&sim).create(&post(), &a_pod("d")).await);
    sim.set_succeeded("default", "b");
    pods(&sim).create(&post(), &a_pod("d")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_a_number_of_times_lifts_itself() {
    let sim = sim();
    sim.refuse_times(Matching::create("tales"), ApiError::webhook("check.example.com", "no"), 2);
    for _ in 0..2 {
        assert_eq!(refused(tales(&sim).create(&post(), &a_tale("a")).await).code, 400);
    }
    tales(&sim).create(&post(), &a_tale("a")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_an_error_although_the_request_was_applied() {
    let sim = with(Life::manual(), Faults { reply_lost: 1.0, ..Faults::none() });
    assert!(matches!(tales(&sim).create(&post(), &a_tale("a")).await, Err(kube::Error::Service(_))));
    assert!(sim.get("example.com/v1", "Tale", "default", "a").is_some());
    assert!(sim.requests()[0].reply_lost);
}

#[tokio::test(start_paused = true)]
async fn an_error_before_is_an_error_and_nothing_was_applied() {
    let sim = with(Life::manual(), Faults { error: 1.0, ..Faults::none() });
    let code = refused(tales(&sim).create(&post(), &a_tale("a")).await).code;
    assert!([500, 503, 429].contains(&code), "{code}");
    assert!(sim.list("example.com/v1", "Tale", "").is_empty());
}

#[tokio::test(start_paused = true)]
async fn faults_spare_the_user_and_end_when_asked() {
    let sim = with(Life::manual(), Faults { error: 1.0, ..Faults::none() }.until(Duration::from_secs(60)));
    let api: kube::Api<ConfigMap> = kube::Api::namespaced(sim.client("user"), "default");
    api.create(&post(), &from(json!({ "metadata": { "name": "a" } }))).await.unwrap();
    refused(maps(&sim).get("a").await);
    after(60_000).await;
    maps(&sim).get("a").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_or_after_a_request_leaves_it_unanswered() {
    for (when, applied) in [(When::Before, false), (When::After, true)] {
        let sim = sim();
        let mut crashes = sim.crashes();
        let api = tales(&sim);
        sim.crash_at("me", 2, when);
        api.create(&post(), &a_tale("a")).await.unwrap();
        let name = a_tale("b");
        let post = post();
        let doomed = tokio::time::timeout(Duration::from_secs(3600), api.create(&post, &name));
        assert!(doomed.await.is_err());
        let crash = crashes.recv().await.unwrap();
        assert_eq!((crash.actor.as_str(), crash.when), ("me", when));
        assert_eq!(sim.get("example.com/v1", "Tale", "default", "b").is_some(), applied);
        // The process stays dead; its successor works.
        assert!(tokio::time::timeout(Duration::from_secs(1), api.get("a")).await.is_err());
        tales(&sim).get("a").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_actor_goes_on_when_thawed() {
    let sim = sim();
    sim.freeze("me");
    let api = tales(&sim);
    let write = tokio::spawn(async move { api.create(&post(), &a_tale("a")).await.unwrap() });
    after(20_000).await;
    assert!(sim.get("example.com/v1", "Tale", "default", "a").is_none());
    sim.thaw("me");
    write.await.unwrap();
    assert!(sim.get("example.com/v1", "Tale", "default", "a").is_some());
}

#[tokio::test(start_paused = true)]
async fn watches_of_two_kinds_may_overtake_each_other_but_not_themselves() {
    let lag = Duration::from_secs(2);
    let sim = Sim::new(Options { seed: 3, faults: Faults { watch_lag: lag, ..Faults::none() }, ..options() });
    let from = sim.version().to_string();
    let params = WatchParams::default();
    let mut first = Box::pin(tales(&sim).watch(&params, &from).await.unwrap());
    let mut second = Box::pin(maps(&sim).watch(&params, &from).await.unwrap());
    for name in ["a", "b", "c"] {
        sim.create(json!({ "apiVersion": "example.com/v1", "kind": "Tale", "metadata": { "name": name } }));
        sim.create(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } }));
    }
    let mut order = Vec::new();
    for _ in 0..6 {
        let event = tokio::select! {
            Some(Ok(kube::api::WatchEvent::Added(tale))) = first.next() => format!("tale {}", tale.metadata.name.unwrap()),
            Some(Ok(kube::api::WatchEvent::Added(map))) = second.next() => format!("map {}", map.metadata.name.unwrap()),
        };
        order.push(event);
    }
    let of = |kind: &str| order.iter().filter(|told| told.starts_with(kind)).cloned().collect::<Vec<_>>();
    assert_eq!(of("tale"), ["tale a", "tale b", "tale c"]);
    assert_eq!(of("map"), ["map a", "map b", "map c"]);
    assert_ne!(order[..2], ["tale a", "map a"], "with this seed one kind lags behind the other: {order:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_watch_ends_and_a_reopened_one_may_be_gone() {
    let faults = Faults { watch_drop: 1.0, reopen_gone: 1.0, ..Faults::none() };
    let sim = with(Life::manual(), Faults { reopen_gone: 0.0, ..faults.clone() });
    let from = sim.version().to_string();
    let stream = tales(&sim).watch(&WatchParams::default(), &from).await.unwrap();
    sim.create(json!({ "apiVersion": "example.com/v1", "kind": "Tale", "metadata": { "name": "a" } }));
    let events: Vec<_> = stream.collect().await;
    assert!(events.iter().all(Result::is_err), "{events:?}");
    sim.set_faults(faults);
    let stream = tales(&sim).watch(&WatchParams::default(), &from).await.unwrap();
    let events: Vec<_> = stream.collect().await;
    assert!(matches!(&events[..], [Ok(kube::api::WatchEvent::Error(status))] if status.code == 410), "{events:?}");
}
