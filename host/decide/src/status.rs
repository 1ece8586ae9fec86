//! What is written to a job's status, and when: headlines at once, counts batched, the host's own words below `troupe`.

pub use crate::published::Published;

use crate::{
    Snapshot,
    condition::{Condition, Reason},
    contest,
    decision::{Applied, Decision, HostCondition, Report, Wake},
    ledger::Ledger,
    own_conditions::{self, Own, current, last_true_of_framework, names_an_object},
    plan::Event,
    waiting::Waiting,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A change of counts alone is written no sooner than this after the last write, while the host has little to do.
const FOLD: SignedDuration = SignedDuration::from_secs(1);

/// The same however much the host has to do.
const MOST_FOLD: SignedDuration = SignedDuration::from_secs(5);

/// So many jobs that are looked at, or wait for it, let changes of counts wait for a second more.
const BUSY: usize = 20;

/// A change of the words alone in which Waiting names one reason, such as a count, is written no sooner than this after
/// the last write.
const REWORDED: SignedDuration = SignedDuration::from_secs(5);

/// Delay before a pruned status is written again, where something waits for the ledger to be kept.
pub(crate) const PRUNED_AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// Returns how long a change of counts alone waits after the last write, while the host looks at so many jobs, has just
/// looked at them or has them wait for it: what everybody needs then is pods, not numbers.
#[must_use]
pub fn fold(busy: usize) -> SignedDuration {
    let more = i64::try_from(busy / BUSY).unwrap_or(i64::MAX);
    FOLD.saturating_add(SignedDuration::from_secs(more)).min(MOST_FOLD)
}

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
        /// The whole status, for [`Published::new`].
        wanted: Value,
        /// How many times in a row another writer has overwritten the status.
        overwritten: u32,
        /// Events to emit after the write.
        events: Vec<Event>,
    },
}

/// Returns what to write now, from the decision, the result of its actions, and the last write. A change of counts alone
/// waits for `fold` after that. Events have the framework's own reasons where it names some.
#[must_use]
pub fn publication(
    snapshot: &Snapshot,
    decision: &Decision,
    applied: &Applied,
    (before, fold): (Option<&Published>, SignedDuration),
    reasons: &BTreeMap<String, String>,
) -> Publication {
    let waiting = waiting(decision, applied);
    let report = &decision.report;
    let (mut wanted, mut ledger, headline, events) = match report {
        Report::Unchanged => return Publication::Nothing(Wake::OnChange),
        Report::Verdict { status, headline, ledger, events } => {
            (status.clone(), Ledger::clone(ledger), Some(headline), events.clone())
        }
        Report::Condition(condition) => {
            (of_framework(&snapshot.job.status), snapshot.ledger.clone(), None, event(condition))
        }
    };
    ledger.made.extend(applied.made.iter().cloned());
    ledger.warned.add(snapshot.job.generation, &applied.warnings);
    let condition = if let Report::Condition(condition) = report { Some(condition) } else { None };
    let overwritten = contest::overwritten(snapshot, before);
    let contested = contest::is_contested(overwritten).then(contest::condition);
    let warned = warned(ledger.warned.message(snapshot.job.generation), decision);
    let idle = idle(snapshot, &ledger, condition);
    let own = Own {
        waiting,
        idle,
        verdict: condition,
        contested: contested.as_ref(),
        warned: warned.as_ref(),
        outdated: decision.outdated.as_deref(),
    };
    let own = own.conditions(snapshot);
    ledger.step = step_of_column(&ledger.headline, &wanted, &own);
    if !wanted.is_object() {
        wanted = json!({});
    }
    wanted["troupe"] = serde_json::to_value(&ledger).unwrap_or_default();
    wanted["troupe"]["conditions"] = own.into();

    let current = &snapshot.job.status;
    let again = matches!(waiting, Some(Waiting::StatusPruned { .. }));
    let pruned_but_written = |before: &Published| {
        before.was_wanted(&wanted)
            && before.was_stored(current)
            && !(again && snapshot.now.duration_since(before.at) >= PRUNED_AGAIN)
    };
    if *current == wanted || before.is_some_and(pruned_but_written) {
        return Publication::Nothing(contest::ends(overwritten, before));
    }
    let headlined = match (headline, condition) {
        (Some(headline), _) => *headline != snapshot.ledger.headline || snapshot.ledger.headline.is_empty(),
        (None, condition) => condition.is_some_and(|condition| !is_reported(current, condition)),
    };
    let alarm = waiting.filter(|waiting| waiting.is_alarm() && !is_alarmed(current, waiting));
    let is_new =
        |message: &str| own_conditions::current(current, Condition::Warned).is_none_or(|old| old["message"] != message);
    // The plan's own warnings are events of their own beside the first verdict.
    let is_told = |why: Reason| why == Reason::PluginWarning && snapshot.ledger.headline.is_empty();
    let warning = warned.filter(|(why, message)| is_new(message) && !is_told(*why));
    // What the ledger lacks would be created, or given to another job, once more.
    // Failed pods that it does not count are not replaced.
    let kept = &snapshot.ledger;
    let owned = ledger.made != kept.made || ledger.host_ports != kept.host_ports || counts(&ledger) != counts(kept);
    let urgent = (headlined || alarm.is_some() || warning.is_some() || owned) && contested.is_none();
    let pace = if is_reworded(current, &wanted) { REWORDED } else { fold };
    let pace = contest::pace(overwritten).unwrap_or(pace);
    let not_before = before.and_then(|before| before.at.checked_add(pace).ok());
    match not_before {
        Some(at) if !urgent && at > snapshot.now => Publication::Later(at),
        _ => {
            let reported = if condition.is_some() && !headlined { vec![] } else { events };
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

/// Returns how many failed pods of each role the ledger counts.
fn counts(ledger: &Ledger) -> Vec<(&String, u32)> {
    ledger.failures.iter().map(|(role, failures)| (role, failures.count)).collect()
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

/// Returns a status without the host's additions, and without those that an earlier version put elsewhere.
#[must_use]
pub fn of_framework(status: &Value) -> Value {
    let Some(fields) = status.as_object() else { return status.clone() };
    // The ledger is not copied: it grows with the job.
    let kept = fields.iter().filter(|(name, _)| *name != "troupe").filter_map(|(name, value)| {
        let value = match value.as_array() {
            Some(all) if name == "conditions" && !all.is_empty() => {
                let theirs: Vec<_> = own_conditions::of_framework(status).cloned().collect();
                (!theirs.is_empty()).then(|| theirs.into())?
            }
            _ => value.clone(),
        };
        Some((name.clone(), value))
    });
    Value::Object(kept.collect())
}

/// Returns the status as one word: its phase, or the framework's last condition that is True, or the headline.
#[must_use]
pub fn step(status: &Value) -> Option<&str> {
    let of_conditions = || last_true_of_framework(status)?["type"].as_str();
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

/// Returns what the column of a kind without a phase shows: a headline of one word, else the framework's last condition that is
/// True, else a condition of the host, such as Rejected. "" where the phase is shown.
fn step_of_column(headline: &str, framework: &Value, own: &[Value]) -> String {
    if framework["phase"].is_string() {
        return String::new();
    }
    let word = Some(headline).filter(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let own = || own.iter().find(|it| it["status"] == "True")?["type"].as_str();
    word.or_else(|| step(framework)).or_else(own).unwrap_or_default().to_owned()
}

/// Returns why a job that waits for nothing does so.
fn idle(snapshot: &Snapshot, ledger: &Ledger, verdict: Option<&HostCondition>) -> Reason {
    match verdict.map(|it| it.kind) {
        Some(Condition::Rejected) => Reason::Rejected,
        Some(_) => Reason::NoVerdict,
        None if ledger.finished.is_some() => Reason::Ended,
        None if snapshot.suspended() => Reason::Suspended,
        None => Reason::Proceeding,
    }
}

/// Returns whether nothing but the message of Waiting is new.
fn is_reworded(now: &Value, wanted: &Value) -> bool {
    let (Some(old), Some(new)) = (current(now, Condition::Waiting), current(wanted, Condition::Waiting)) else {
        return false;
    };
    if old["reason"] != new["reason"] || old["message"] == new["message"] {
        return false;
    }
    let (old, mut wanted) = (old.clone(), wanted.clone());
    let conditions = wanted["troupe"]["conditions"].as_array_mut().into_iter().flatten();
    conditions.filter(|it| it["type"] == Condition::Waiting.as_str()).for_each(|it| *it = old.clone());
    wanted == *now
}

fn event(condition: &HostCondition) -> Vec<Event> {
    vec![Event { warning: true, reason: condition.reason.to_string(), message: condition.message.clone() }]
}

/// Returns what the job's user is warned of: by the API server, of a label that is in the wrong place, and by the plan. The
/// reason is that of the first.
fn warned(told: Option<String>, decision: &Decision) -> Option<(Reason, String)> {
    let told = told.map(|told| (Reason::APIServerWarning, told));
    let misplaced = decision.misplaced.clone().map(|it| (Reason::QueueLabelMisplaced, it));
    let planned = decision.warnings.iter().map(|it| (Reason::PluginWarning, it.clone()));
    told.into_iter().chain(misplaced).chain(planned).reduce(|(why, all), (_, next)| (why, format!("{all}; {next}")))
}

fn warned_of((reason, message): (Reason, String)) -> Event {
    Event { warning: true, reason: reason.to_string(), message }
}

fn alarmed(waiting: &Waiting, reasons: &BTreeMap<String, String>) -> Event {
    let own = waiting.reason().as_str();
    let reason = reasons.get(own).map_or(own, String::as_str);
    Event { warning: true, reason: reason.to_owned(), message: waiting.happened() }
}

fn is_alarmed(status: &Value, waiting: &Waiting) -> bool {
    current(status, Condition::Waiting).is_some_and(|old| {
        let same = old["message"] == waiting.to_string().as_str() || !names_an_object(waiting);
        same && old["reason"] == waiting.reason().as_str()
    })
}

fn is_reported(status: &Value, condition: &HostCondition) -> bool {
    current(status, condition.kind)
        .is_some_and(|old| old["reason"] == condition.reason.as_str() && old["message"] == condition.message.as_str())
}

#[cfg(test)]
mod tests;
