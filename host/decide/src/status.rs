//! What is written to a job's status, and when: headlines at once, counts batched, the host's own conditions first.

pub use crate::published::Published;

use crate::{
    Snapshot,
    condition::{Condition, Reason},
    contest,
    decision::{Applied, Decision, HostCondition, Report, Wake},
    ledger::Ledger,
    plan::Event,
    time::rfc3339,
    waiting::Waiting,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, iter};

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
    let warned = warned(ledger.warned.message(snapshot.job.generation), decision.misplaced.as_deref());
    let idle = idle(snapshot, &ledger, condition);
    let own = Own {
        waiting,
        idle,
        verdict: condition,
        contested: contested.as_ref(),
        warned: warned.as_ref(),
        outdated: decision.outdated.as_deref(),
    };
    set_conditions(&mut wanted, own.conditions(snapshot));
    ledger.step = step_of_column(&ledger.headline, &wanted);
    wanted["troupe"] = serde_json::to_value(&ledger).unwrap_or_default();

    let current = &snapshot.job.status;
    let again = matches!(waiting, Some(Waiting::StatusPruned { .. }));
    let pruned_but_written = |before: &Published| {
        before.was_wanted(&wanted)
            && before.was_stored(current)
            && !(again && snapshot.now.duration_since(before.at) >= PRUNED_AGAIN)
    };
    if *current == wanted || before.is_some_and(pruned_but_written) || lacks_idle_waiting_alone(current, &wanted) {
        return Publication::Nothing(contest::ends(overwritten, before));
    }
    let headlined = match (headline, condition) {
        (Some(headline), _) => *headline != snapshot.ledger.headline || snapshot.ledger.headline.is_empty(),
        (None, condition) => condition.is_some_and(|condition| !is_reported(current, condition)),
    };
    let alarm = waiting.filter(|waiting| waiting.is_alarm() && !is_alarmed(current, waiting));
    let is_new = |message: &str| self::current(current, Condition::Warned).is_none_or(|old| old["message"] != message);
    let warning = warned.filter(|(_, message)| is_new(message));
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

/// Returns what the column of a kind without a phase shows: a headline of one word, else the framework's last condition that is
/// True, else a condition of the host, such as Rejected. "" where the phase is shown.
fn step_of_column(headline: &str, status: &Value) -> String {
    if status["phase"].is_string() {
        return String::new();
    }
    let framework = &of_framework(status);
    let word = Some(headline).filter(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let own = || status["conditions"].as_array()?.iter().find(|it| it["status"] == "True")?["type"].as_str();
    word.or_else(|| step(framework)).or_else(own).unwrap_or_default().to_owned()
}

/// What the host's own conditions say.
struct Own<'a> {
    waiting: Option<&'a Waiting>,
    /// What Waiting says if the job waits for nothing.
    idle: Reason,
    /// What stands in place of the framework's verdict.
    verdict: Option<&'a HostCondition>,
    contested: Option<&'a HostCondition>,
    warned: Option<&'a (Reason, String)>,
    outdated: Option<&'a str>,
}

impl Own<'_> {
    /// Returns the conditions in their order.
    fn conditions(&self, snapshot: &Snapshot) -> Vec<Value> {
        let host = |it: &HostCondition| condition(snapshot, it.kind, "True", it.reason, &it.message);
        let waiting = self.waiting.map_or_else(|| waits_for_nothing(snapshot, self.idle), |it| waits(snapshot, it));
        let warned = self.warned.map(|(why, it)| condition(snapshot, Condition::Warned, "True", *why, it));
        let outdated = (Condition::PodsOutdated, Reason::TemplateChanged);
        let outdated = self.outdated.map(|it| condition(snapshot, outdated.0, "True", outdated.1, it));
        let others = self.verdict.into_iter().chain(self.contested).map(host);
        iter::once(waiting).chain(others).chain(warned).chain(outdated).collect()
    }
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

/// Returns Waiting of a job that waits for nothing; Unknown where no plugin says so. The message is empty, since columns
/// of the job show it.
fn waits_for_nothing(snapshot: &Snapshot, why: Reason) -> Value {
    let status = if why == Reason::NoVerdict { "Unknown" } else { "False" };
    condition(snapshot, Condition::Waiting, status, why, "")
}

/// Returns whether `wanted` adds a Waiting that is not True, and nothing else. It is not written by itself: a job that was
/// taken over, or that has ended, costs no write.
fn lacks_idle_waiting_alone(current: &Value, wanted: &Value) -> bool {
    let is_idle = self::current(wanted, Condition::Waiting).is_some_and(|it| it["status"] != "True");
    if !is_idle || self::current(current, Condition::Waiting).is_some() {
        return false;
    }
    let mut without = wanted.clone();
    let conditions =
        without["conditions"].as_array_mut().map(|it| it.retain(|it| it["type"] != Condition::Waiting.as_str()));
    if conditions.is_some() && without["conditions"] == json!([]) {
        without.as_object_mut().map(|fields| fields.remove("conditions"));
    }
    without == *current
}

fn waits(snapshot: &Snapshot, waiting: &Waiting) -> Value {
    let new = condition(snapshot, Condition::Waiting, "True", waiting.reason(), &waiting.to_string());
    match current(&snapshot.job.status, Condition::Waiting) {
        Some(old) if old["reason"] == new["reason"] && !message_matters(waiting) => old.clone(),
        _ => new,
    }
}

/// Returns a condition. Its time is that of the reason's first report.
fn condition(snapshot: &Snapshot, kind: Condition, status: &str, reason: Reason, message: &str) -> Value {
    let old = current(&snapshot.job.status, kind).filter(|old| old["reason"] == reason.as_str());
    let since = old.map_or_else(|| json!(rfc3339(snapshot.now)), |old| old["lastTransitionTime"].clone());
    json!({ "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since })
}

/// Returns whether a change of the message alone is written: it names an object in the way, or a number that a person
/// follows, as a queue does with the quota that is missing. Other messages are the API server's, which may differ from
/// attempt to attempt.
fn message_matters(waiting: &Waiting) -> bool {
    let has_numbers = matches!(
        waiting,
        Waiting::Pods { .. }
            | Waiting::Blocked { .. }
            | Waiting::BackOff { .. }
            | Waiting::Field { .. }
            | Waiting::Queue { .. }
    );
    has_numbers || names_an_object(waiting)
}

/// Returns whether nothing but the message of Waiting is new.
fn is_reworded(current: &Value, wanted: &Value) -> bool {
    let (Some(old), Some(new)) =
        (self::current(current, Condition::Waiting), self::current(wanted, Condition::Waiting))
    else {
        return false;
    };
    if old["reason"] != new["reason"] || old["message"] == new["message"] {
        return false;
    }
    let (old, mut wanted) = (old.clone(), wanted.clone());
    let conditions = wanted["conditions"].as_array_mut().into_iter().flatten();
    conditions.filter(|it| it["type"] == Condition::Waiting.as_str()).for_each(|it| *it = old.clone());
    wanted == *current
}

fn set_conditions(status: &mut Value, own: Vec<Value>) {
    if !status.is_object() {
        *status = json!({});
    }
    let theirs = status["conditions"].as_array().cloned().unwrap_or_default();
    let all: Vec<_> = own.into_iter().chain(theirs).collect();
    if all.is_empty() {
        status.as_object_mut().map(|fields| fields.remove("conditions"));
    } else {
        status["conditions"] = json!(all);
    }
}

fn event(condition: &HostCondition) -> Vec<Event> {
    vec![Event { warning: true, reason: condition.reason.to_string(), message: condition.message.clone() }]
}

/// Returns what the job's user is warned of: by the API server, and of a label that is in the wrong place.
fn warned(told: Option<String>, misplaced: Option<&str>) -> Option<(Reason, String)> {
    match (told, misplaced) {
        (Some(told), Some(misplaced)) => Some((Reason::APIServerWarning, format!("{told}; {misplaced}"))),
        (Some(told), None) => Some((Reason::APIServerWarning, told)),
        (None, misplaced) => Some((Reason::QueueLabelMisplaced, misplaced?.to_owned())),
    }
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

/// Returns whether the message names the object that is in the way, and nothing that changes from pass to pass.
fn names_an_object(waiting: &Waiting) -> bool {
    matches!(waiting, Waiting::NameTaken { .. } | Waiting::Lost { .. } | Waiting::Deleted { .. })
}

fn is_reported(status: &Value, condition: &HostCondition) -> bool {
    current(status, condition.kind)
        .is_some_and(|old| old["reason"] == condition.reason.as_str() && old["message"] == condition.message.as_str())
}

fn current(status: &Value, kind: Condition) -> Option<&Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind.as_str())
}

fn is_own(condition: &Value) -> bool {
    condition["type"].as_str().is_some_and(Condition::is_own)
}

#[cfg(test)]
mod tests;
