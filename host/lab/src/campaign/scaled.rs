//! Jobs whose users change how many pods a role has, when it matters: pods that have room only when others are gone, and
//! an index that has succeeded and is wanted no more.

use super::{
    deeds::Deed,
    draw::Draw,
    jobs::{self, Change, JobParams, bare_role},
    workload::Scripted,
};
use serde_json::json;
use std::time::Duration;

/// In this namespace a quota has room for the pods of one job, and hardly for more.
pub(super) const TIGHT: &str = "tight";

/// So many pods of one role are exchanged for as many of another: more than a host writes at once.
const WIDE: u32 = 40;

/// In some seeds, a job whose user has many pods of one role in the place of many of another. It does not end before.
pub(super) fn swapped(seed: u64) -> Option<Scripted> {
    let mut draw = Draw::new(seed, "swapped");
    if !draw.one_in(24) {
        return None;
    }
    let roles = json!({ "worker": bare_role(1), "heter": bare_role(WIDE) });
    let params = JobParams { namespace: TIGHT, number: 5, sound: true, is_edited: true };
    let lives = [["swapped-5-worker-*", "run-for", "90s"], ["swapped-5-heter-*", "run-for", "forever"]];
    let job = jobs::of_roles("swapped", params, &roles, lives.map(|rule| rule.map(str::to_owned)).to_vec());
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "pods", "namespace": TIGHT },
        "spec": { "hard": { "pods": (WIDE + 2).to_string() } },
    });
    let swap = json!({ "spec": { "worker": { "replicas": WIDE }, "heter": null } });
    let deeds = vec![
        (Duration::ZERO, Deed::Submit(quota)),
        (draw.ms(0, 3000), Deed::Submit(job.manifest.clone())),
        (draw.ms(10_000, 25_000), Deed::Patch(Change::Swap, job.manifest.clone(), swap)),
    ];
    Some((job, deeds))
}

/// In some seeds, a job whose last worker has succeeded when its user wants one worker less. The others run on.
pub(super) fn shrunk(seed: u64, namespace: &str) -> Option<Scripted> {
    let mut draw = Draw::new(seed, "scaled-down");
    if !draw.one_in(8) {
        return None;
    }
    let params = JobParams { namespace, number: 6, sound: true, is_edited: true };
    let lives = [["shrunk-6-worker-2", "run-for", "500ms"], ["shrunk-6-worker-*", "run-for", "20s"]];
    let lives = lives.map(|rule| rule.map(str::to_owned)).to_vec();
    let job = jobs::of_roles("shrunk", params, &json!({ "worker": bare_role(3) }), lives);
    let shrink = json!({ "spec": { "worker": { "replicas": 2 } } });
    let deeds = vec![
        (draw.ms(0, 1000), Deed::Submit(job.manifest.clone())),
        (draw.ms(5000, 15_000), Deed::Patch(Change::Scale, job.manifest.clone(), shrink)),
    ];
    Some((job, deeds))
}
