//! What is written to a job's status, and when: headlines at once, counts batched, the host's own conditions first.

pub use crate::published::Published;

use crate::{
    Snapshot,
    condition::{Condition, Reason},
    contest,
    decision::{Applied, Decision, Report, Trouble, Wake},
    ledger::Ledger,
    plan::Event,
    time::rfc3339,
    waiting::Waiting,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A change of counts alone is written no sooner than this after the last write.
const FOLD: SignedDuration = SignedDuration::from_secs(1);

/// Delay before a pruned status is written again, where something waits for the ledger to be kept.
pub(crate) const PRUNED_AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// Whether and when to write the status.
#[derive(Debug, Clone, PartialEq)]
pub enum Publication {
    /// Do not write: the status is up to date as far as the CRD keeps it. It may change at this time.
    Nothing(Wake),
    /// Write it at this time.
    Later(Timestamp),
    /// Write it now.
    Now {
        /// A merge patch for the status subresource, with its precondition.
        patch: Value,
        /// The whole status, kept as [`Published::wanted`].
        wanted: Value,
        /// How many times in a row another writer has overwritten the status.
        overwritten: u32,
        /// Events to emit after the write.
        events: Vec<Event>,
    },
}

/// Returns what to write now, from the decision, the result of its actions, and the last write. Events have the
/// framework's own reasons where it names some.
#[must_use]
pub fn publication(
    snapshot: &Snapshot,
    decision: &Decision,
    applied: &Applied,
    before: Option<&Published>,
    reasons: &BTreeMap<String, String>,
) -> Publication {
    let waiting = waiting(decision, applied);
    let report = &decision.report;
    let (mut wanted, mut ledger, headline, events) = match report {
        Report::Unchanged => return Publication::Nothing(Wake::OnChange),
        Report::Verdict { status, headline, ledger, events } => {
            (status.clone(), Ledger::clone(ledger), Some(headline), events.clone())
        }
        Report::Trouble(trouble) => (of_framework(&snapshot.job.status), snapshot.ledger.clone(), None, event(trouble)),
    };
    ledger.made.extend(applied.made.iter().cloned());
    ledger.warned.add(snapshot.job.generation, &applied.warnings);
    let trouble = if let Report::Trouble(trouble) = report { Some(trouble) } else { None };
    let overwritten = contest::overwritten(snapshot, before);
    let contested = contest::is_contested(overwritten).then(contest::trouble);
    let warned = ledger.warned.told(snapshot.job.generation);
    let troubles: Vec<&Trouble> = trouble.into_iter().chain(&contested).collect();
    set_conditions(&mut wanted, &own_conditions(snapshot, &troubles, waiting, warned.as_deref()));
    ledger.step = step_beside(&ledger.headline, &wanted);
    wanted["troupe"] = serde_json::to_value(&ledger).unwrap_or_default();

    let current = &snapshot.job.status;
    let again = matches!(waiting, Some(Waiting::StatusPruned { .. }));
    let pruned_but_written = before.is_some_and(|before| before.wanted == wanted && before.stored == *current)
        && !(again && before.is_some_and(|before| snapshot.now.duration_since(before.at) >= PRUNED_AGAIN));
    if *current == wanted || pruned_but_written {
        return Publication::Nothing(contest::ends(overwritten, before));
    }
    let headlined = match (headline, trouble) {
        (Some(headline), _) => *headline != snapshot.ledger.headline || snapshot.ledger.headline.is_empty(),
        (None, trouble) => trouble.is_some_and(|trouble| !is_reported(current, trouble)),
    };
    let alarm = waiting.filter(|waiting| waiting.is_alarm() && !is_alarmed(current, waiting));
    let warning =
        warned.filter(|warned| self::current(current, Condition::Warned).is_none_or(|old| old["message"] != **warned));
    // What the ledger lacks would be created, or given to another job, once more.
    let owned = ledger.made != snapshot.ledger.made || ledger.host_ports != snapshot.ledger.host_ports;
    let urgent = (headlined || alarm.is_some() || warning.is_some() || owned) && contested.is_none();
    let pace = contest::pace(overwritten).unwrap_or(FOLD);
    let not_before = before.and_then(|before| before.at.checked_add(pace).ok());
    match not_before {
        Some(at) if !urgent && at > snapshot.now => Publication::Later(at),
        _ => {
            let reported = if trouble.is_some() && !headlined { vec![] } else { events };
            let alarm = alarm.map(|waiting| alarmed(waiting, reasons));
            let contest =
                contested.filter(|_| contest::begins(overwritten)).iter().flat_map(self::event).collect::<Vec<_>>();
            let events = reported.into_iter().chain(alarm).chain(contest).chain(warning.map(warned_of)).collect();
            let mut patch =
                json!({ "metadata": { "uid": snapshot.job.uid, "resourceVersion": snapshot.job.resource_version } });
            patch["status"] = merge_patch(current, &wanted);
            Publication::Now { patch, wanted, overwritten, events }
        }
    }
}

/// Returns the event of a pass that created pods or Jobs, if the framework names a reason for it.
#[must_use]
pub fn creation(applied: &Applied, reasons: &BTreeMap<String, String>) -> Option<Event> {
    let reason = reasons.get(Reason::Created.as_str())?;
    if !applied.created.iter().any(|made| made.starts_with("pod/") || made.starts_with("job/")) {
        return None;
    }
    Some(Event { warning: false, reason: reason.clone(), message: format!("created {}", applied.created.join(", ")) })
}

/// Returns the first thing that the job waits for, failed writes first.
#[must_use]
pub fn waiting<'a>(decision: &'a Decision, applied: &'a Applied) -> Option<&'a Waiting> {
    applied.failures.first().or(decision.waiting.first())
}

/// Returns a status without the host's additions.
#[must_use]
pub fn of_framework(status: &Value) -> Value {
    let mut status = status.clone();
    if let Some(fields) = status.as_object_mut() {
        fields.remove("troupe");
        if let Some(Value::Array(conditions)) = fields.get_mut("conditions") {
            conditions.retain(|condition| !is_own(condition));
            if conditions.is_empty() {
                fields.remove("conditions");
            }
        }
    }
    status
}

/// Returns the status as one word: its phase, or the framework's last condition that is True, or the headline.
#[must_use]
pub fn step(status: &Value) -> Option<&str> {
    let conditions = status["conditions"].as_array();
    let is_so = |condition: &&Value| condition["status"] == "True" && !is_own(condition);
    let of_conditions = || conditions?.iter().rfind(is_so)?["type"].as_str();
    let headline = || status["troupe"]["headline"].as_str().filter(|headline| !headline.is_empty());
    status["phase"].as_str().or_else(of_conditions).or_else(headline)
}

/// Returns the merge patch (RFC 7386) that turns `from` into `to`.
#[must_use]
pub fn merge_patch(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let mut patch = Map::new();
    for (key, want) in to {
        match from.get(key) {
            Some(have) if have == want => {}
            Some(have) => {
                patch.insert(key.clone(), merge_patch(have, want));
            }
            None => {
                patch.insert(key.clone(), want.clone());
            }
        }
    }
    patch.extend(from.keys().filter(|key| !to.contains_key(*key)).map(|key| (key.clone(), Value::Null)));
    Value::Object(patch)
}

/// Returns what the job's column shows; "" where the phase or a headline of one word shows it.
fn step_beside(headline: &str, status: &Value) -> String {
    let is_word = !headline.is_empty() && headline.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_word || status["phase"].is_string() {
        return String::new();
    }
    let own = || status["conditions"].as_array()?.first()?["type"].as_str();
    step(&of_framework(status)).or_else(own).unwrap_or_default().to_owned()
}

fn own_conditions(
    snapshot: &Snapshot,
    troubles: &[&Trouble],
    waiting: Option<&Waiting>,
    warned: Option<&str>,
) -> Vec<Value> {
    let waiting =
        waiting.map(|waiting| (Condition::Waiting, waiting.reason(), waiting.to_string(), names_an_object(waiting)));
    let troubles = troubles.iter().map(|trouble| (trouble.condition, trouble.reason, trouble.message.clone(), true));
    let warned = warned.map(|warned| (Condition::Warned, Reason::APIServerWarning, warned.to_owned(), true));
    let own = waiting.into_iter().chain(troubles).chain(warned);
    own.map(|(kind, reason, message, exact)| {
        let old = current(&snapshot.job.status, kind).filter(|old| old["reason"] == reason.as_str());
        match old {
            Some(old) if !exact || old["message"] == message.as_str() => old.clone(),
            old => {
                let since = old.map_or_else(|| json!(rfc3339(snapshot.now)), |old| old["lastTransitionTime"].clone());
                json!({ "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since })
            }
        }
    })
    .collect()
}

fn set_conditions(status: &mut Value, own: &[Value]) {
    if !status.is_object() {
        *status = json!({});
    }
    let theirs = status["conditions"].as_array().cloned().unwrap_or_default();
    let all: Vec<_> = own.iter().cloned().chain(theirs).collect();
    if all.is_empty() {
        status.as_object_mut().map(|fields| fields.remove("conditions"));
    } else {
        status["conditions"] = json!(all);
    }
}

fn event(trouble: &Trouble) -> Vec<Event> {
    vec![Event { warning: true, reason: trouble.reason.to_string(), message: trouble.message.clone() }]
}

fn warned_of(message: String) -> Event {
    Event { warning: true, reason: Reason::APIServerWarning.to_string(), message }
}

fn alarmed(waiting: &Waiting, reasons: &BTreeMap<String, String>) -> Event {
    let own = waiting.reason().as_str();
    let reason = reasons.get(own).map_or(own, String::as_str);
    Event { warning: true, reason: reason.to_owned(), message: waiting.to_string() }
}

fn is_alarmed(status: &Value, waiting: &Waiting) -> bool {
    current(status, Condition::Waiting).is_some_and(|old| {
        let same = old["message"] == waiting.to_string().as_str() || !names_an_object(waiting);
        same && old["reason"] == waiting.reason().as_str()
    })
}

/// Returns whether the message names the object that is in the way, and nothing that changes from pass to pass.
fn names_an_object(waiting: &Waiting) -> bool {
    matches!(waiting, Waiting::NameTaken { .. } | Waiting::Lost { .. } | Waiting::Deleted { .. })
}

fn is_reported(status: &Value, trouble: &Trouble) -> bool {
    current(status, trouble.condition)
        .is_some_and(|old| old["reason"] == trouble.reason.as_str() && old["message"] == trouble.message.as_str())
}

fn current(status: &Value, kind: Condition) -> Option<&Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind.as_str())
}

fn is_own(condition: &Value) -> bool {
    condition["type"].as_str().is_some_and(Condition::is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_turns_one_value_into_the_other() {
        let from = json!({ "a": 1, "b": { "c": 2, "d": 3 }, "gone": true });
        let to = json!({ "a": 1, "b": { "c": 4, "d": 3 }, "new": [1] });
        assert_eq!(merge_patch(&from, &to), json!({ "b": { "c": 4 }, "gone": null, "new": [1] }));
    }

    #[test]
    fn the_frameworks_status_excludes_the_hosts_additions() {
        let status = json!({ "phase": "Running", "troupe": {}, "conditions": [{ "type": "Waiting" }] });
        assert_eq!(of_framework(&status), json!({ "phase": "Running" }));
    }
}
