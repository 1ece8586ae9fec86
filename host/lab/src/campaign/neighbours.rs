//! Neighbours that do everything wrong: jobs that cannot be read, or not be run, in namespaces of their own.

use super::{deeds::Deed, draw::Draw, jobs};
use serde_json::{Value, json};
use std::{ops::RangeInclusive, time::Duration};

/// Where they are.
pub(super) const ODD: &str = "odd";

/// Where those are that a plugin may not serve.
pub(super) const OUTSIDE: &str = "outside";

/// Levels of nesting that serde_json refuses to read: its limit is 128.
const DEEP: usize = 140;

/// So many jobs on ports of the nodes that have pods there is room for, and to spare.
const BLOCKS: u32 = 16;

/// A range with so few blocks, of 20 ports each.
pub(super) const FEW_PORTS: RangeInclusive<u32> = 35_000..=35_000 + 20 * BLOCKS - 1;

/// More bytes than a spec may have.
const HUGE: usize = 300_000;

/// What such a neighbour submits, each with a word for what is odd about it.
pub(super) fn drawn(draw: &mut Draw) -> Vec<(&'static str, Value)> {
    (0..2 + draw.below(4)).map(|number| odd(draw, number)).collect()
}

/// So many jobs at once that want more pods than a job may have, that a plugin to which they were held against would be asked
/// no more.
pub(super) fn oversized(draw: &mut Draw) -> Vec<(&'static str, Value)> {
    (0..6).map(|number| ("more replicas than a job may have", jobs::oversized(draw, ODD, number))).collect()
}

/// So many jobs, which nothing is wrong with, in a namespace that their plugin may not serve once it is delivered, that a
/// plugin to which each refusal were held against would be asked no more, although others of its jobs go on.
pub(super) fn outsiders(draw: &mut Draw) -> Vec<(Duration, Deed)> {
    let what = "not in a namespace that its plugin may serve";
    let job = |number| jobs::of_one_pod(OUTSIDE, &format!("outsider-{number}"), "PodIP");
    let mut jobs: Vec<_> = (0..24).map(|number| (draw.ms(0, 300), Deed::SubmitOdd(what, job(number)))).collect();
    jobs.sort_by_key(|(at, _)| *at);
    jobs
}

/// So many jobs, none of which has a pod, that blocks of ports for all of them would be all that [`FEW_PORTS`] has.
pub(super) fn idle(draw: &mut Draw) -> Vec<(Duration, Deed)> {
    let what = "no pods, on ports of the nodes";
    let job = |number| jobs::of_pods(ODD, &format!("idle-{number}"), "Host", 0);
    let mut jobs: Vec<_> = (0..BLOCKS).map(|number| (draw.ms(0, 1000), Deed::SubmitOdd(what, job(number)))).collect();
    jobs.sort_by_key(|(at, _)| *at);
    jobs
}

fn odd(draw: &mut Draw, number: u32) -> (&'static str, Value) {
    let mut job = jobs::bare(draw, ODD, number);
    let what = match draw.below(8) {
        0 => {
            job["spec"] = json!(7);
            "a number for a spec"
        }
        1 => {
            job["spec"] = json!({ "worker": "three", "parallelism": {}, "mpiReplicaSpecs": [1] });
            "wrong types in the spec"
        }
        2 => {
            job["status"] = json!({ "conditions": "none", "troupe": [1], "phase": {} });
            "wrong types in the status"
        }
        3 => {
            job["status"] = json!({ "troupe": { "finished": { "outcome": "perhaps" }, "hostPorts": -1 } });
            "an end that there is not"
        }
        4 => {
            job["metadata"]["annotations"] =
                json!({ "troupe.dev/plugin-digest": "../../etc", "big": "x".repeat(100_000) });
            "a large annotation"
        }
        5 => {
            job["spec"]["deep"] = (0..DEEP).fold(json!(1), |within, _| json!({ "deeper": within }));
            "a deep spec"
        }
        6 => {
            job["spec"]["huge"] = json!("x".repeat(HUGE));
            "a huge spec"
        }
        _ => {
            job["metadata"]["finalizers"] = json!(["example.com/never"]);
            "a finalizer of nobody"
        }
    };
    (what, job)
}
