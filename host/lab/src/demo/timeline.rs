//! The events on the embedded cluster as lines for a person to read.

use serde_json::Value;
use sim::Write;
use std::{
    collections::BTreeSet,
    io::IsTerminal,
    sync::mpsc::{Receiver, Sender, channel},
    time::Duration,
};
use troupe::out;

/// The actor name of the host.
pub(super) const HOST: &str = "troupe";

/// The actor name of the user who submits jobs.
pub(super) const USER: &str = "user";

/// One event.
#[derive(Debug, Clone)]
pub(super) struct Happening {
    at: Duration,
    label: &'static str,
    what: String,
}

/// Prints events in their order. Events of one moment with the same label share a line.
pub(super) struct Timeline {
    happenings: Receiver<Happening>,
    sender: Sender<Happening>,
    start: jiff::Timestamp,
    colours: bool,
}

impl Timeline {
    /// Returns a timeline of all writes to this cluster from now on.
    pub(super) fn of(sim: &sim::Sim, kinds: &[String]) -> Self {
        let (sender, happenings) = channel();
        let start = sim.now();
        let (of_writes, jobs) = (sender.clone(), kinds.iter().cloned().collect::<BTreeSet<_>>());
        sim.on_write(move |write, _| {
            if let Some((label, what)) = described(write, &jobs) {
                let at = Duration::try_from(write.at.duration_since(start)).unwrap_or_default();
                // The receiver may be dropped already.
                let _ = of_writes.send(Happening { at, label, what });
            }
        });
        Self { happenings, sender, start, colours: std::io::stdout().is_terminal() }
    }

    /// Adds an event that is not a write.
    pub(super) fn add(&self, now: jiff::Timestamp, label: &'static str, what: String) {
        let at = Duration::try_from(now.duration_since(self.start)).unwrap_or_default();
        let _ = self.sender.send(Happening { at, label, what });
    }

    /// Prints the events since the last call.
    pub(super) fn print(&self) {
        let mut line: Option<(Happening, Vec<String>)> = None;
        for next in self.happenings.try_iter() {
            match &mut line {
                Some((first, more)) if first.label == next.label => {
                    // The deletion of an ended pod takes two writes; show it once.
                    if more.last().unwrap_or(&first.what) != &next.what {
                        more.push(next.what);
                    }
                }
                _ => {
                    if let Some((first, more)) = line.take() {
                        self.line(&first, &more);
                    }
                    line = Some((next, vec![]));
                }
            }
        }
        if let Some((first, more)) = line {
            self.line(&first, &more);
        }
    }

    fn line(&self, first: &Happening, more: &[String]) {
        let what = std::iter::once(&first.what).chain(more).cloned().collect::<Vec<_>>().join(" · ");
        let (on, off) = match (self.colours, first.label) {
            (false, _) => ("", ""),
            (true, "pod") => ("\x1b[2m", "\x1b[0m"),
            (true, "waiting") => ("\x1b[33m", "\x1b[0m"),
            (true, "status") => ("\x1b[1;36m", "\x1b[0m"),
            (true, _) => ("\x1b[32m", "\x1b[0m"),
        };
        let (at, what) = (first.at.as_secs_f64(), out::Shown(what));
        out::raw(format_args!("{at:7.3}s  {on}{:<8}{off}{what}\n", first.label));
    }
}

fn described(write: &Write, jobs: &BTreeSet<String>) -> Option<(&'static str, String)> {
    let name = format!("{}/{}", write.kind.to_lowercase(), write.name);
    match write.actor.as_str() {
        USER => Some((if write.created() { "submit" } else { "change" }, name)),
        HOST if write.kind == "Event" => {
            let event = write.after.as_ref()?;
            Some(("event", format!("{} {}", event["reason"].as_str()?, event["message"].as_str()?)))
        }
        HOST if jobs.contains(&write.kind) => {
            let status = &write.after.as_ref()?["status"];
            Some(("status", format!("{name} {}", phase(status))))
        }
        HOST if write.created() => Some(("create", name)),
        HOST if write.removed() => Some(("delete", name)),
        HOST => {
            let going = !write.after.as_ref()?["metadata"]["deletionTimestamp"].is_null();
            Some((if going { "delete" } else { "patch" }, name))
        }
        _ if write.kind == "Pod" => pod(write, &name),
        _ if write.kind == "Job" && write.after.is_some() => {
            let conditions = |object: &Value| object["status"]["conditions"].as_array().map_or(0, Vec::len);
            let (before, after) = (write.before.as_ref(), write.after.as_ref()?);
            let is_new = before.is_some_and(|before| conditions(before) < conditions(after));
            is_new.then(|| ("job", format!("{name} {}", phase(&after["status"]))))
        }
        _ => None,
    }
}

fn pod(write: &Write, name: &str) -> Option<(&'static str, String)> {
    let (before, after) = (write.before.as_deref(), write.after.as_deref());
    let Some(after) = after else { return Some(("pod", format!("{name} gone"))) };
    let Some(before) = before else { return Some(("pod", format!("{name} created by {}", write.actor))) };
    let ip = &after["status"]["podIP"];
    if before["status"]["podIP"].is_null() && !ip.is_null() {
        return Some(("pod", format!("{name} has {}", ip.as_str()?)));
    }
    let phase = &after["status"]["phase"];
    (before["status"]["phase"] != *phase).then(|| ("pod", format!("{name} {}", phase.as_str().unwrap_or_default())))
}

/// Returns the step in a status, or "-".
pub(super) fn phase(status: &Value) -> &str {
    decide::status::step(status).unwrap_or("-")
}
