//! The watch of the events in which schedulers say what they say nowhere else.

use super::{PADDLE, World, after, in_virtual_time};
use crate::built_in;
use serde_json::json;
use sim::{ApiError, Faults, Matching};
use std::time::Duration;

// Volcano says in an event alone that a queue has no room. `cluster/volcano.rs` has the real one.
#[test]
fn what_a_scheduler_says_in_events_is_shown_and_they_are_listed_once() {
    const GROUP: (&str, &str) = ("scheduling.volcano.sh/v1beta1", "PodGroup");
    let plugins = built_in::of_campaigns();
    plugins.configure("paddle", &json!({ "scheduling": "volcano" })).unwrap();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        let mut job = world.paddle("full");
        job["spec"]["schedulingPolicy"] = json!({ "queue": "small" });
        world.sim.create(job);
        let group = || world.sim.get(GROUP.0, GROUP.1, "default", "full");
        world.until("the PodGroup", 60, |_| group().is_some()).await;
        let uid = group().unwrap()["metadata"]["uid"].take();
        let says = |name: &str, message: &str, kind: &str| {
            world.sim.create(json!({
                "apiVersion": "v1", "kind": "Event", "metadata": { "name": name, "namespace": "default" },
                "involvedObject": { "apiVersion": GROUP.0, "kind": GROUP.1, "namespace": "default", "name": "full",
                    "uid": uid },
                "type": kind, "reason": "Unschedulable", "message": message, "lastTimestamp": world.sim.now(),
            }))
        };
        let waits_for = |it: &World, ends: &str| {
            let waiting = it.condition(PADDLE, "full", "Waiting").unwrap_or_default();
            waiting["message"].as_str().is_some_and(|message| message.ends_with(ends))
        };
        says("a", "queue resource quota insufficient", "Normal");
        says("b", "0/0 tasks in gang unschedulable", "Warning");
        world.until("its words", 60, |it| waits_for(it, "it has nothing: queue resource quota insufficient")).await;

        // A watch of events gets no bookmarks.
        after(Duration::from_secs(3600)).await;
        assert_eq!(world.times("list", "events").len(), 1);
        says("c", "cpu is overused", "Normal");
        world.until("its new words", 60, |it| waits_for(it, "it has nothing: cpu is overused")).await;

        world.sim.set_faults(Faults { reopen_gone: 1.0, ..Faults::none() });
        after(Duration::from_secs(600)).await;
        world.sim.set_faults(Faults::none());
        let lists = world.times("list", "events").len();
        assert!((2..100).contains(&lists), "{lists} lists in ten minutes of expired versions");
        after(Duration::from_secs(20)).await;
        says("d", "memory is overused", "Normal");
        world.until("its last words", 60, |it| waits_for(it, "it has nothing: memory is overused")).await;
    });
}

#[test]
fn events_are_watched_soon_although_an_api_server_that_starts_forbids_them() {
    let plugins = built_in::of_campaigns();
    let forbidden = || ApiError::new(403, "Forbidden", "events is forbidden: not yet synced");
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        world.sim.refuse_times(Matching::verb("list", "events"), forbidden(), 3);
        world.until("the watch of events", 60, |it| !it.times("watch", "events").is_empty()).await;
    });
    // A host without the right does not ask again and again.
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        world.sim.refuse(Matching::verb("list", "events"), forbidden());
        after(Duration::from_secs(60)).await;
        let asked = world.times("list", "events").len();
        after(Duration::from_secs(500)).await;
        assert_eq!(world.times("list", "events").len(), asked);
    });
}

#[test]
fn a_users_huge_events_do_not_hide_what_schedulers_say() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        // Before the host has listed anything: more bytes than one page may have.
        for number in 0..40 {
            world.sim.create(json!({
                "apiVersion": "v1", "kind": "Event", "metadata": { "name": format!("huge-{number}"), "namespace": "default" },
                "involvedObject": { "kind": "PodGroup", "namespace": "default", "name": "nobodys", "uid": "nobodys" },
                "type": "Normal", "reason": "Unschedulable", "message": "x".repeat(1 << 20),
            }));
        }
        world.until("the watch of events", 60, |it| !it.times("watch", "events").is_empty()).await;
    });
}
