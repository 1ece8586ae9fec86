//! The log of a run for people: each request of a host, each object that it is shown, and each change that anybody else
//! made.

use super::hosts::is_host;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use sim::{Delivery, RequestRecord, Sim, Write};
use std::sync::Arc;

/// Collects the changes of users, the kubelet, the garbage collector and the like from now on; clones share them.
#[derive(Clone, Default)]
pub(super) struct Trace(Arc<Mutex<Vec<(Timestamp, String)>>>);

impl Trace {
    /// The trace of a simulation.
    pub(super) fn of(sim: &Sim) -> Self {
        let trace = Self::default();
        let lines = trace.0.clone();
        sim.on_write(move |write, _| {
            if !is_host(&write.actor) {
                lines.lock().push((write.at, change(write)));
            }
        });
        let lines = trace.0.clone();
        sim.on_delivery(move |delivery| {
            if is_host(delivery.actor) {
                lines.lock().push((delivery.at, shown(delivery)));
            }
        });
        trace
    }

    /// One line for each request of a host, each object that it is shown and each change of anybody else, by time.
    pub(super) fn lines(&self, requests: &[RequestRecord]) -> Vec<String> {
        let mut lines = std::mem::take(&mut *self.0.lock());
        lines.extend(requests.iter().map(|made| (made.at, request(made))));
        lines.sort_by_key(|(at, _)| *at);
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

fn request(made: &RequestRecord) -> String {
    let lost = if made.reply_lost { " (answer lost)" } else { "" };
    format!("{} {} {} {}/{} {}{lost}", made.at, made.actor, made.what(), made.namespace, made.name, made.code)
}

/// `AT ACTOR is shown KIND NAMESPACE/NAME`, with the version and the phase.
fn shown(delivery: &Delivery<'_>) -> String {
    let Delivery { at, actor, kind, object } = delivery;
    let metadata = &object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let [namespace, name, version] = ["namespace", "name", "resourceVersion"].map(|field| text(&metadata[field]));
    format!("{at} {actor} is shown {kind} {namespace}/{name} @{version} {}", text(&object["status"]["phase"]))
}

/// `AT ACTOR created|changed|removed KIND NAMESPACE/NAME`, and what decisions depend on: phase, generation, deletion.
fn change(write: &Write) -> String {
    let verb = match (&write.before, &write.after) {
        (None, _) => "created",
        (_, None) => "removed",
        _ => "changed",
    };
    let object = write.after.as_ref().or(write.before.as_ref());
    let fields = ["/status/phase", "/metadata/generation", "/metadata/deletionTimestamp"];
    let values = fields.iter().filter_map(|field| object?.pointer(field)).map(ToString::to_string);
    let values: Vec<_> = values.collect();
    let Write { at, actor, kind, namespace, name, version, .. } = write;
    format!("{at} {actor} {verb} {kind} {namespace}/{name} @{version} {}", values.join(" "))
}
