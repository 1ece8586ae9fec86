//! Indexed jobs, and work queues.

use super::{
    draw::Draw,
    jobs::{Job, JobParams, manifest, outcome, template},
};
use serde_json::json;

/// Pods of which so many run at once, with an index or without, or a work queue. Some fail and do better when they are made
/// again, or started again in place; or one failure too many fails the job.
pub(super) fn indexed(draw: &mut Draw, params: JobParams<'_>) -> Job {
    let fails = !params.sound && draw.one_in(5);
    let is_restarted = !params.sound && !fails && draw.one_in(2);
    let in_place = !is_restarted && !fails && draw.one_in(3);
    let exit = match (fails, is_restarted, in_place) {
        (true, ..) => "1",
        (_, true, _) => *draw.of(&["137,0", "3,143,0"]),
        (.., true) => "1,0",
        (false, false, false) => "0",
    };
    let completions = 1 + draw.below(5);
    let mut template = template(draw, exit);
    template["spec"]["restartPolicy"] = json!(if in_place { "OnFailure" } else { "Never" });
    let mut spec = json!({ "parallelism": 1 + draw.below(3), "completions": completions, "template": template });
    let most = 100;
    match draw.below(3) {
        // One index that fails is enough for the end, and the others run to theirs.
        0 if !in_place => spec["backoffLimitPerIndex"] = json!(if fails { 0 } else { most }),
        _ => spec["backoffLimit"] = json!(if fails { 0 } else { most }),
    }
    if spec["backoffLimitPerIndex"].is_null() && draw.one_in(3) {
        spec["completionMode"] = json!("NonIndexed");
        // After its first success a work queue makes nothing again that fails.
        if !fails && !is_restarted && !params.is_edited && draw.one_in(3) {
            spec.as_object_mut().map(|spec| spec.remove("completions"));
        }
    }
    if draw.one_in(2) {
        spec["podReplacementPolicy"] = json!(draw.of(&["TerminatingOrFailed", "Failed"]));
    }
    if draw.one_in(3) {
        spec["ttlSecondsAfterFinished"] = json!(20 + draw.below(20));
    }
    if draw.one_in(4) {
        spec["activeDeadlineSeconds"] = json!(3600);
    }
    Job {
        manifest: manifest("batch.troupe.dev/v1alpha1", "IndexedJob", params, "e", &spec),
        lives: vec![],
        outcome: outcome(fails),
        is_restarted,
        suspend: None,
    }
}
