//! One pass of the real loop over the job of a scenario, in words: the requests to the API server and their outcomes.

use super::{
    host,
    world::{World, text},
};
use decide::{
    Action, Report, Snapshot, Wake, Write,
    status::{self, merge_patch},
    waiting::object,
};
use jiff::Timestamp;
use serde_json::Value;
use sim::RequestRecord;
use std::collections::BTreeSet;
use troupe::control::reconcile::{Passed, Reconciled};

/// The maximum width of a line of actions; longer lines are broken.
const WIDTH: usize = 110;

/// The maximum number of passes of `settle`.
const MOST_PASSES: usize = 20;

/// Printed if nothing happened.
const SETTLED: &str = "settled";

/// The outcome of a pass.
pub(super) struct Pass {
    /// What happened, in words.
    pub(super) lines: Vec<String>,
    /// Whether nothing was written and no other pass is due at once.
    quiet: bool,
    /// When the deferred status is due.
    later: Option<Timestamp>,
}

/// Runs one pass.
pub(super) async fn reconcile(world: &World) -> anyhow::Result<Pass> {
    let quiet = |line: &str| Pass { lines: vec![line.to_owned()], quiet: true, later: None };
    let (before, version) = (host::requests(&world.sim).len(), world.sim.version());
    let passed = match world.host()?.run_pass(&world.submitted()?.key).await {
        Reconciled::Gone => return Ok(quiet("there is no job")),
        Reconciled::Unlisted => return Ok(quiet("no job of the kind is known yet")),
        Reconciled::NotYet => return Ok(quiet("not decided before something changes")),
        Reconciled::Failed(error) => return Ok(quiet(&format!("failed: {error}"))),
        Reconciled::Passed(passed) => passed,
    };
    world.come_to_rest().await?;
    let asked = host::requests(&world.sim).split_off(before);
    let now = passed.snapshot.now;
    let mut lines = actions(world, &passed, &asked);
    lines.extend(status::waiting(&passed.decision, &passed.applied).map(|waiting| format!("waiting: {waiting}")));
    let later = later(&passed);
    lines.extend(status(world, &passed, &asked, later));
    lines.extend(events(world, version).iter().map(|event| format!("event: {}", worded(event))));
    if let Wake::At(at) = passed.decision.wake {
        lines.push(format!("again in {}", after(now, at)));
    }
    if lines.is_empty() {
        lines.push(SETTLED.into());
    }
    let wrote = asked.iter().any(|request| request.is_write() && request.code < 300);
    let again = matches!(passed.next, Ok(Wake::At(at)) if at <= now);
    Ok(Pass { lines, quiet: !wrote && !again, later })
}

/// Runs passes until one does nothing, and waits for deferred statuses. Omits repeated waiting lines.
pub(super) async fn settle(world: &World) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for _ in 0..MOST_PASSES {
        let mut pass = reconcile(world).await?;
        pass.lines.retain(|line| !said(&lines, line));
        match pass.later {
            None if pass.quiet => {
                lines.append(&mut pass.lines);
                return Ok(lines);
            }
            Some(at) if pass.quiet => {
                lines.push(format!("({} later)", after(world.sim.now(), at)));
                world.host()?.wait_until(at).await;
                world.come_to_rest().await?;
            }
            _ => lines.extend(pass.lines.into_iter().filter(|line| line != SETTLED)),
        }
    }
    anyhow::bail!("it does not settle:\n{}", lines.join("\n"))
}

/// Whether the line repeats the last line of its kind.
fn said(lines: &[String], line: &String) -> bool {
    ["waiting: ", "again in "]
        .iter()
        .any(|kind| line.starts_with(kind) && lines.iter().rfind(|before| before.starts_with(kind)) == Some(line))
}

/// Returns the requests of the host, in words, except those for the job's status and events.
fn actions(world: &World, passed: &Passed, asked: &[RequestRecord]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for request in asked {
        let kind = world.sim.kind(&request.group, &request.resource).map(|kind| kind.kind).unwrap_or_default();
        if kind == "Event" || is_of_status(&passed.snapshot, &kind, request) {
            continue;
        }
        let of_request = |action: &&Action| action.kind == kind && action.name == request.name;
        let mut actions = passed.decision.actions.iter().filter(of_request);
        let words = match actions.find(|action| verb(action) == (&request.verb, &request.subresource)) {
            Some(action) => action.to_string(),
            // A read after a name conflict only finds out whose object has the name.
            None if request.verb == "get" => continue,
            None => format!("{} {}", request.verb, object(&kind, &request.name)),
        };
        let made = passed.applied.created.contains(&object(&kind, &request.name));
        let refused = request.code >= 300 && !(request.verb == "create" && made);
        said.push(if refused { format!("{words} (refused)") } else { words });
    }
    wrapped(&said)
}

/// Returns the verb and the subresource of the action's request.
fn verb(action: &Action) -> (&str, &str) {
    match action.write() {
        Write::Create(_) | Write::CreateSecret { .. } => ("create", ""),
        Write::Require => ("get", ""),
        Write::Patch(_) => ("patch", ""),
        Write::PatchStatus(_) => ("patch", "status"),
        Write::Delete { .. } => ("delete", ""),
    }
}

fn is_of_status(snapshot: &Snapshot, kind: &str, request: &RequestRecord) -> bool {
    kind == snapshot.kind.kind && request.name == snapshot.job.name && request.subresource == "status"
}

fn wrapped(said: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for action in said {
        match lines.last_mut() {
            Some(line) if line.len() + action.len() < WIDTH => {
                line.push_str(" · ");
                line.push_str(action);
            }
            _ => lines.push(action.clone()),
        }
    }
    lines
}

/// Returns when the deferred status will be written.
fn later(passed: &Passed) -> Option<Timestamp> {
    match passed.status {
        Some(status) if !status.is_complete => match status.wake {
            Wake::At(at) => Some(at),
            Wake::OnChange => None,
        },
        _ => None,
    }
}

/// Returns what was written to the status, or will be.
fn status(world: &World, passed: &Passed, asked: &[RequestRecord], later: Option<Timestamp>) -> Option<String> {
    let Passed { snapshot, decision, .. } = passed;
    let headline = headline(&decision.report);
    if let Some(at) = later {
        return Some(format!("status: {headline} (folded until +{})", after(snapshot.now, at)));
    }
    let patched = asked.iter().find(|request| is_of_status(snapshot, &snapshot.kind.kind, request))?;
    if patched.code >= 300 {
        return Some(format!("status: {headline} (refused)"));
    }
    let known = matches!(decision.report, Report::Verdict { .. }) && snapshot.ledger.headline == headline;
    if !known {
        return Some(format!("status: {headline}"));
    }
    let stored = world.job().and_then(|job| job.get("status").cloned()).unwrap_or_default();
    let patch = merge_patch(&snapshot.job.status, &stored);
    Some(format!("status: {headline} ({})", changed(&patch).into_iter().collect::<Vec<_>>().join(", ")))
}

/// Returns the fields that a patch of a status changes: below `troupe`, `conditions` are the host's, and the rest is its ledger.
fn changed(patch: &Value) -> BTreeSet<&str> {
    let of_host = fields(&patch["troupe"]).map(|field| if field == "conditions" { field } else { "ledger" });
    fields(patch).filter(|field| *field != "troupe").chain(of_host).collect()
}

fn fields(of: &Value) -> impl Iterator<Item = &str> {
    of.as_object().into_iter().flatten().map(|(field, _)| field.as_str())
}

fn headline(report: &Report) -> String {
    match report {
        Report::Unchanged => "unchanged".into(),
        Report::Verdict { headline, .. } => headline.clone(),
        Report::Condition(condition) => format!("{}, {}: {}", condition.kind, condition.reason, condition.message),
    }
}

/// Returns the events published after this version, in order.
pub(super) fn events(world: &World, after: u64) -> Vec<Value> {
    let version = |event: &Value| text(event, "/metadata/resourceVersion").parse().unwrap_or(0);
    let mut events = world.sim.list("v1", "Event", "");
    events.retain(|event| version(event) > after);
    events.sort_by_key(version);
    events
}

/// Returns an event as one line.
pub(super) fn worded(event: &Value) -> String {
    ["/type", "/reason", "/message"].map(|pointer| text(event, pointer)).join(" ")
}

fn after(now: Timestamp, at: Timestamp) -> String {
    let time = at.duration_since(now);
    if time.as_millis() % 1000 == 0 { format!("{}s", time.as_secs()) } else { format!("{}ms", time.as_millis()) }
}
