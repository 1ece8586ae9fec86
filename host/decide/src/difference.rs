//! How two answers to the same snapshot differ, field by field, and whether a difference affects what is live.

mod found;
mod live;
mod plans;
#[cfg(test)]
pub(crate) mod tests;

use crate::{
    Action, Snapshot, Write, decide,
    plan::{Answer, Bindings, Event, Outcome, Plan, Run, Runs, Verdict},
    waiting::object,
};
use found::Found;
use live::Live;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fmt, sync::Arc};

/// Whether a difference affects live pods and Jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Danger {
    /// No live pod or Job is affected.
    Harmless,
    /// A live pod or Job would be deleted or no longer match the plan, or the job would end differently.
    Dangerous,
}

/// One field in which two answers differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The owner of the field: `role worker`, `object config`, `verdict`, `policy`, `answer`; `pod/x` for a write.
    pub what: String,
    /// JSON pointer or name of the field; empty where the whole differs.
    pub field: String,
    /// The old answer's value, shortened; `none` where it has none.
    pub old: String,
    /// The new answer's value, shortened.
    pub new: String,
    /// Whether the difference affects live pods and Jobs.
    pub danger: Danger,
}

/// What precedes a patch among the values of a difference.
const PATCHED: &str = "is patched: ";

/// Fields whose values are counts, names, or words of the host and the plugin. What is in templates, variables, bodies and
/// statuses is the job's user's, who may keep secrets there.
const PLAIN: [&str; 27] = [
    "/after",
    "/at_once",
    "/clean_on_failure",
    "/clean_on_success",
    "/clean_on_suspend",
    "/deletion",
    "/failures",
    "/failures_per_replica",
    "/headline",
    "/host_ports",
    "/hostname",
    "/kind",
    "/leftOut",
    "/name",
    "/on_new_address",
    "/outcome",
    "/per_pod_of",
    "/pod_name",
    "/remove_when",
    "/replicas",
    "/runs",
    "/series",
    "/subdomain",
    "/success",
    "/success_criteria",
    "/ttl",
    "/upkeep",
];

impl Difference {
    /// Returns the text for people who may not read the job: as `Display` formats it, but without values that the job's user
    /// may keep secret, as in `role worker /env/PASSWORD: differs (dangerous)`.
    #[must_use]
    pub fn without_secrets(&self) -> String {
        let values = self.has_plain_values().then(|| self.values());
        self.with(values.as_deref().unwrap_or("differs"))
    }

    fn has_plain_values(&self) -> bool {
        match self.field.as_str() {
            // A role, an object or an answer as a whole, the recipe of a Secret, or a write.
            "" => !self.what.starts_with("secret ") && !self.new.starts_with(PATCHED),
            field => PLAIN.contains(&field),
        }
    }

    fn values(&self) -> String {
        format!("{} -> {}", self.old, self.new)
    }

    fn with(&self, values: &str) -> String {
        let space = if self.field.is_empty() { "" } else { " " };
        let danger = if self.danger == Danger::Dangerous { " (dangerous)" } else { "" };
        format!("{}{space}{}: {values}{danger}", self.what, self.field)
    }
}

impl fmt::Display for Difference {
    /// Formats as `role worker /replicas: 3 -> 2 (dangerous)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with(&self.values()))
    }
}

/// Returns how the new answer differs from the old one for the same snapshot: at most two hundred differences of each
/// danger. The result is empty exactly if the answers are equal, which is cheap to find.
#[must_use]
pub fn differences(snapshot: &Snapshot, old: &Answer, new: &Answer) -> Vec<Difference> {
    if same(old, new) {
        return vec![];
    }
    let mut found = Found::default();
    match (old, new) {
        (
            Answer::Judged { plan: old_plan, bindings: old_bindings, verdict: old_verdict },
            Answer::Judged { plan, bindings, verdict },
        ) => {
            if !Arc::ptr_eq(old_plan, plan) {
                plans::compare(&mut found, snapshot, old_plan, plan);
            }
            plans::compare_bodies(&mut found, &Live::of(snapshot), plan, (&old_bindings.bodies, &bindings.bodies));
            made(&mut found, &old_bindings.runs, &bindings.runs);
            verdicts(&mut found, old_verdict, verdict);
            if !found.is_dangerous() && (old_plan != plan || old_bindings != bindings) {
                let before = touched(snapshot, old_plan, old_bindings);
                writes(&mut found, snapshot, &before, &touched(snapshot, plan, bindings));
            }
        }
        (Answer::Judged { .. }, _) => found.record(Danger::Dangerous, "answer", "", headline(old), headline(new)),
        (_, Answer::Judged { plan, bindings, verdict }) => {
            let ends = verdict.outcome != Outcome::Open && Live::of(snapshot).any();
            found.record(danger_if(ends), "answer", "", headline(old), headline(new));
            writes(&mut found, snapshot, &[], &touched(snapshot, plan, bindings));
        }
        (_, Answer::Faulted(_)) => {
            let worse = matches!(old, Answer::Rejected(_));
            found.record(danger_if(worse), "answer", "", headline(old), headline(new));
        }
        (_, Answer::Rejected(_)) => found.record(Danger::Harmless, "answer", "", headline(old), headline(new)),
    }
    if found.is_empty() {
        found.record(Danger::Harmless, "answer", "order", "as it was", "another");
    }
    found.into_differences()
}

/// Returns the first change of the new plan that affects live pods or Jobs. `None` means that the running job can move
/// from one plan to the other.
#[must_use]
pub fn touches_live(snapshot: &Snapshot, old: &Arc<Plan>, new: &Arc<Plan>) -> Option<Difference> {
    if Arc::ptr_eq(old, new) || old == new {
        return None;
    }
    let mut found = Found::default();
    plans::compare(&mut found, snapshot, old, new);
    if !found.is_dangerous() {
        let nothing = Bindings::default();
        writes(&mut found, snapshot, &touched(snapshot, old, &nothing), &touched(snapshot, new, &nothing));
    }
    found.into_differences().into_iter().find(|difference| difference.danger == Danger::Dangerous)
}

fn same(old: &Answer, new: &Answer) -> bool {
    match (old, new) {
        (Answer::Judged { plan: a, bindings: c, verdict: e }, Answer::Judged { plan: b, bindings: d, verdict: f }) => {
            (Arc::ptr_eq(a, b) || a == b) && c == d && e == f
        }
        _ => old == new,
    }
}

fn danger_if(dangerous: bool) -> Danger {
    if dangerous { Danger::Dangerous } else { Danger::Harmless }
}

/// Returns an answer as one line.
fn headline(answer: &Answer) -> String {
    match answer {
        Answer::Judged { verdict, .. } => format!("judged: {}", verdict.headline),
        Answer::Rejected(rejection) => format!("rejected: {rejection}"),
        Answer::Faulted(fault) => format!("faulted: {fault}"),
    }
}

/// Records which objects of series only one of the answers creates.
fn made(found: &mut Found, old: &Runs, new: &Runs) {
    let names = |runs: &[Run]| runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>().join(", ");
    if old.make != new.make {
        found.record(Danger::Harmless, "series", "/runs", names(&old.make), names(&new.make));
    }
}

fn verdicts(found: &mut Found, old: &Verdict, new: &Verdict) {
    let word = |outcome| match outcome {
        Outcome::Open => "open",
        Outcome::Succeeding => "succeeding",
        Outcome::Failing => "failing",
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
    };
    if old.outcome != new.outcome {
        found.record(Danger::Dangerous, "verdict", "/outcome", word(old.outcome), word(new.outcome));
    }
    if old.headline != new.headline {
        found.record(Danger::Harmless, "verdict", "/headline", &old.headline, &new.headline);
    }
    found.json("verdict", "/status", (&old.status, &new.status), |_| Danger::Harmless);
    if old.events != new.events {
        found.record(Danger::Harmless, "verdict", "/events", listed(&old.events), listed(&new.events));
    }
}

fn listed(events: &[Event]) -> String {
    let words = events.iter().map(|event| format!("{}: {}", event.reason, event.message));
    let words: Vec<_> = words.collect();
    if words.is_empty() { "none".to_owned() } else { words.join("; ") }
}

/// Records writes to existing objects that only the new answer causes, whichever field causes them.
fn writes(found: &mut Found, snapshot: &Snapshot, before: &[Action], after: &[Action]) {
    let lives = Live::of(snapshot).any();
    for action in after.iter().filter(|action| !before.contains(action)) {
        let what = object(&action.kind, &action.name);
        match action.write() {
            Write::Delete { .. } => found.record(Danger::Dangerous, &what, "", "stays", "is deleted"),
            Write::Patch(patch) | Write::PatchStatus(patch) => {
                found.record(danger_if(lives), &what, "", "stays as it is", format!("{PATCHED}{patch}"));
            }
            Write::Create(_) | Write::CreateSecret { .. } | Write::Require => {}
        }
    }
}

/// Returns the writes to existing objects that a plan causes while the job goes on.
fn touched(snapshot: &Snapshot, plan: &Arc<Plan>, bindings: &Bindings) -> Vec<Action> {
    let verdict = Verdict::new(Value::Null, "", Outcome::Open);
    let answer = Answer::Judged { plan: Arc::clone(plan), bindings: bindings.clone(), verdict };
    let actions = decide(snapshot, &answer).actions.into_iter();
    actions.filter(|action| !action.creates() && *action.write() != Write::Require).collect()
}
