//! Jobs of which all pods start again when one fails: what their attempts may and may not do.

use super::{history::controller, hosts::is_host, tally::Tally};
use decide::attempts::ATTEMPT_ANNOTATION;
use serde_json::Value;
use sim::{Sim, View, Write};

/// Returns the attempt that a pod was made for.
pub(super) fn attempt(pod: &Value) -> u32 {
    let named = pod["metadata"]["annotations"][ATTEMPT_ANNOTATION].as_str();
    named.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Returns the name of a pod, and the attempt if it is not the first: what succeeded before starts again with the others.
pub(super) fn name_in_attempt(pod: &Value) -> String {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    match attempt(pod) {
        0 => name.to_owned(),
        attempt => format!("{name} of attempt {attempt}"),
    }
}

/// Returns whether the ledger says that another attempt than the pod's has begun.
pub(super) fn is_over(pod: &Value, ledger: &Value) -> bool {
    let attempts = ledger["attempts"].as_object().into_iter().flat_map(|attempts| attempts.values());
    attempts.filter_map(|of| of["count"].as_u64()).any(|count| count > u64::from(attempt(pod)))
}

/// Counts the pods that hosts make for another attempt than the first.
pub(super) fn counted(sim: &Sim, tally: Tally) {
    sim.on_write(move |write, _| {
        let pod = write.after.as_ref().filter(|_| write.kind == "Pod" && write.created() && is_host(&write.actor));
        if pod.is_some_and(|pod| attempt(pod) > 0) {
            tally.count("a pod is made for another attempt");
        }
    });
}

/// S13: no pod of an attempt is made before those of earlier ones are gone.
pub(super) fn attempts_do_not_overlap(write: &Write, view: &View<'_>) -> Option<String> {
    let pod = write.after.as_ref().filter(|_| write.kind == "Pod" && write.created() && is_host(&write.actor))?;
    let (uid, made_for) = (controller(pod)?, attempt(pod));
    let mut others = view.owned_by(uid).into_iter().filter(|other| other["kind"] == "Pod" && attempt(other) < made_for);
    let other = others.next()?;
    Some(format!("S13: {} is made for attempt {made_for} while {} is there", write.name, other["metadata"]["name"]))
}
