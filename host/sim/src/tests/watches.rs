//! Tests of watches.

use futures::StreamExt;
use kube::api::{Patch, PatchParams, WatchEvent, WatchParams};

use super::*;

/// Returns up to `count` events of a watch in the form `ADDED a`.
async fn events(sim: &Sim, params: WatchParams, from: &str, count: usize) -> Vec<String> {
    let stream = tales(sim).watch(&params, from).await.unwrap();
    stream.take(count).map(|event| reported(&event.unwrap())).collect().await
}

fn reported(event: &WatchEvent<DynamicObject>) -> String {
    let name = |tale: &DynamicObject| tale.metadata.name.clone().unwrap_or_default();
    match event {
        WatchEvent::Added(tale) => format!("ADDED {}", name(tale)),
        WatchEvent::Modified(tale) => format!("MODIFIED {}", name(tale)),
        WatchEvent::Deleted(tale) => format!("DELETED {}", name(tale)),
        WatchEvent::Bookmark(mark) => format!("BOOKMARK {}", mark.metadata.resource_version),
        WatchEvent::Error(status) => format!("ERROR {} {}", status.code, status.message),
    }
}

async fn label(sim: &Sim, name: &str, class: &str) {
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "class": class } } }));
    tales(sim).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_watch_replays_from_its_version_and_goes_on() {
    let sim = sim();
    let from = sim.version().to_string();
    tales(&sim).create(&post(), &a_tale("a")).await.unwrap();
    label(&sim, "a", "x").await;
    let later = sim.clone();
    tokio::spawn(async move {
        after(1000).await;
        later.delete("example.com/v1", "Tale", "default", "a").unwrap();
    });
    assert_eq!(events(&sim, WatchParams::default(), &from, 3).await, ["ADDED a", "MODIFIED a", "DELETED a"]);
}

#[tokio::test(start_paused = true)]
async fn leaving_and_entering_the_selector_looks_like_deletion_and_creation() {
    let sim = sim();
    tales(&sim).create(&post(), &a_tale("a")).await.unwrap();
    let from = sim.version().to_string();
    for class in ["x", "y", "x"] {
        label(&sim, "a", class).await;
    }
    let params = WatchParams::default().labels("class=x");
    assert_eq!(events(&sim, params, &from, 3).await, ["ADDED a", "DELETED a", "ADDED a"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_older_than_the_window_is_gone() {
    let sim = sim();
    tales(&sim).create(&post(), &a_tale("a")).await.unwrap();
    sim.compact();
    let reported = events(&sim, WatchParams::default(), "1", 2).await;
    assert_eq!(reported.len(), 1);
    assert!(reported[0].starts_with("ERROR 410 too old resource version: 1 ("), "{reported:?}");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_with_the_newest_version() {
    let sim = sim();
    let from = sim.version().to_string();
    sim.create(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "unrelated" } }));
    let start = tokio::time::Instant::now();
    let newest = format!("BOOKMARK {}", sim.version());
    assert_eq!(events(&sim, WatchParams::default(), &from, 2).await, [newest.clone(), newest]);
    assert_eq!(start.elapsed(), Duration::from_secs(120));
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_cleanly_at_its_timeout() {
    let sim = sim();
    let start = tokio::time::Instant::now();
    let from = sim.version().to_string();
    let params = WatchParams::default().timeout(30).disable_bookmarks();
    assert_eq!(events(&sim, params, &from, 5).await, Vec::<String>::new());
    assert_eq!(start.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_begins_with_what_is_there() {
    let sim = sim();
    tales(&sim).create(&post(), &a_tale("a")).await.unwrap();
    assert_eq!(events(&sim, WatchParams::default(), "0", 1).await, ["ADDED a"]);
    let initial = events(&sim, WatchParams::streaming_lists(), "0", 2).await;
    assert_eq!(initial, ["ADDED a".to_owned(), format!("BOOKMARK {}", sim.version())]);
}

#[tokio::test(start_paused = true)]
async fn the_type_of_a_watch_event_comes_before_its_object() {
    let sim = sim();
    tales(&sim).create(&post(), &a_tale("a")).await.unwrap();
    let request =
        http::Request::get("/apis/example.com/v1/tales?watch=true&timeoutSeconds=1").body(Vec::new()).unwrap();
    let text = sim.client("me").request_text(request).await.unwrap();
    assert!(text.starts_with(r#"{"type":"ADDED","object":{"#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_watched_on_request() {
    let sim = sim();
    tales(&sim).create(&post(), &a_tale("a")).await.unwrap();
    let mut stream = Box::pin(tales(&sim).watch_metadata(&WatchParams::default(), "0").await.unwrap());
    let Some(Ok(WatchEvent::Added(partial))) = stream.next().await else { panic!("expected an object") };
    assert_eq!(partial.metadata.name.as_deref(), Some("a"));
}
