//! Neighbours that do everything wrong: jobs that cannot be read, or not be run, in a namespace of their own.

use super::{draw::Draw, jobs};
use serde_json::{Value, json};

/// Where they are.
pub(super) const ODD: &str = "odd";

/// What such a neighbour submits.
pub(super) fn drawn(draw: &mut Draw) -> Vec<Value> {
    (0..2 + draw.below(4)).map(|number| odd(draw, number)).collect()
}

fn odd(draw: &mut Draw, number: u32) -> Value {
    let mut job = jobs::bare(draw, ODD, number);
    match draw.below(6) {
        0 => job["spec"] = json!(7),
        1 => job["spec"] = json!({ "worker": "three", "parallelism": {}, "mpiReplicaSpecs": [1] }),
        2 => job["status"] = json!({ "conditions": "none", "troupe": [1], "phase": {} }),
        3 => job["status"] = json!({ "troupe": { "finished": { "outcome": "perhaps" }, "hostPorts": -1 } }),
        4 => {
            job["metadata"]["annotations"] =
                json!({ "troupe.dev/plugin-digest": "../../etc", "big": "x".repeat(100_000) });
        }
        _ => job["metadata"]["finalizers"] = json!(["example.com/never"]),
    }
    job
}
