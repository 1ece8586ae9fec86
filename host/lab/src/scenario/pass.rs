//! One pass of the loop over the world, and its words: the same steps as the host's own, without its I/O.

use super::world::World;
use decide::{
    Action, Applied, Decision, Report, Snapshot, Triage, Wake, Write, decide,
    decision::in_order,
    ledger::HostPorts,
    plan::{Answer, Event},
    status::{self, Publication, Published, publication},
    triage,
    waiting::object,
};
use futures::executor::block_on;
use jiff::Timestamp;
use serde_json::Value;

/// Longer lines of actions are broken.
const WIDTH: usize = 110;

/// The first port of the nodes that jobs are given.
const FIRST_PORT: u32 = 35_000;

/// A settling world needs fewer passes than this.
const MOST_PASSES: usize = 20;

/// What a pass came to.
pub(super) struct Pass {
    /// What happened, in words; `settled` if nothing did.
    pub(super) lines: Vec<String>,
    /// Nothing was written.
    quiet: bool,
    /// The status waits for this time.
    later: Option<Timestamp>,
}

/// One pass.
pub(super) fn reconcile(world: &mut World) -> anyhow::Result<Pass> {
    let Some(mut snapshot) = world.snapshot() else {
        return Ok(Pass { lines: vec!["there is no job".into()], quiet: true, later: None });
    };
    let (answer, decision) = match triage(&snapshot) {
        Triage::Settled(decision) => (None, decision),
        Triage::NeedsPlan => {
            let answer = answer(world, &mut snapshot);
            let decision = decide(&snapshot, &answer);
            (Some(answer), decision)
        }
    };
    let (mut lines, applied, quiet) = apply(world, &snapshot, answer.as_ref(), &decision.actions)?;
    let mut pass = publish(world, &snapshot, &decision, &applied)?;
    pass.quiet &= quiet;
    lines.append(&mut pass.lines);
    if let Wake::At(at) = decision.wake {
        lines.push(format!("again in {}", after(world, at)));
    }
    if lines.is_empty() {
        lines.push("settled".into());
    }
    Ok(Pass { lines, ..pass })
}

/// Passes until one does nothing; a status that was put off is waited for. What is waited for is said once.
pub(super) fn settle(world: &mut World) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for _ in 0..MOST_PASSES {
        let mut pass = reconcile(world)?;
        pass.lines.retain(|line| !said(&lines, line));
        match pass.later {
            None if pass.quiet => {
                lines.append(&mut pass.lines);
                return Ok(lines);
            }
            Some(at) if pass.quiet => {
                lines.push(format!("({} later)", after(world, at)));
                world.now = at;
            }
            _ => lines.append(&mut pass.lines),
        }
    }
    anyhow::bail!("it does not settle:\n{}", lines.join("\n"))
}

/// The line says what the last of its kind said.
fn said(lines: &[String], line: &String) -> bool {
    ["waiting: ", "again in "]
        .iter()
        .any(|kind| line.starts_with(kind) && lines.iter().rfind(|before| before.starts_with(kind)) == Some(line))
}

fn answer(world: &World, snapshot: &mut Snapshot) -> Answer {
    if let Some(fault) = &world.fault {
        return Answer::Faulted(fault.clone());
    }
    // The host finds ports that no other job has; here there is no other.
    let ports = |count| Ok(HostPorts { first: FIRST_PORT, count });
    block_on(world.plugins.ask(snapshot, ports)).answer
}

/// What was done in words, what came of it, and whether nothing was written.
fn apply(
    world: &mut World,
    snapshot: &Snapshot,
    answer: Option<&Answer>,
    actions: &[Action],
) -> anyhow::Result<(Vec<String>, Applied, bool)> {
    let mut quiet = true;
    let mut applied = Applied::default();
    let mut said = Vec::new();
    for actions in in_order(actions) {
        for action in actions {
            match world.apply(snapshot, answer, action)? {
                Ok(()) => {
                    applied.made.extend(action.noted.clone());
                    applied.created.extend(action.creates().then(|| object(&action.kind, &action.name)));
                    said.push(action.to_string());
                    quiet &= *action.write() == Write::Require;
                }
                Err(failure) => {
                    said.push(format!("{action} (refused)"));
                    applied.failures.push(failure);
                }
            }
        }
        if applied.lacks_something() {
            break;
        }
    }
    Ok((wrapped(&said), applied, quiet))
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

fn publish(world: &mut World, snapshot: &Snapshot, decision: &Decision, applied: &Applied) -> anyhow::Result<Pass> {
    let waiting = status::waiting(decision, applied);
    let reasons = world.served.as_ref().map(|served| served.framework.event_reasons.clone()).unwrap_or_default();
    let created = status::creation(applied, &reasons);
    let mut lines: Vec<String> = waiting.map(|waiting| format!("waiting: {waiting}")).into_iter().collect();
    let before = world.published.clone();
    let mut pass = match publication(snapshot, decision, applied, before.as_ref(), &reasons) {
        Publication::Nothing(_) => Pass { lines, quiet: true, later: None },
        Publication::Later(at) => {
            lines.push(format!("status: {} (folded until +{})", headline(&decision.report), after(world, at)));
            Pass { lines, quiet: true, later: Some(at) }
        }
        Publication::Now { patch, wanted, overwritten, events } => {
            lines.push(format!("status: {}", written(snapshot, &decision.report, &patch)));
            let stored = world.patch_status(&patch)?;
            world.published = Some(Published { at: world.now, wanted, stored, overwritten });
            lines.extend(tell(world, events));
            Pass { lines, quiet: false, later: None }
        }
    };
    pass.lines.extend(tell(world, created));
    Ok(pass)
}

fn tell(world: &mut World, events: impl IntoIterator<Item = Event>) -> Vec<String> {
    let mut lines = Vec::new();
    for event in events {
        lines.push(format!("event: {}", told(&event)));
        world.told.push((world.now, event));
    }
    lines
}

fn headline(report: &Report) -> String {
    match report {
        Report::Unchanged => "unchanged".into(),
        Report::Verdict { headline, .. } => headline.clone(),
        Report::Trouble(trouble) => format!("{}, {}: {}", trouble.condition, trouble.reason, trouble.message),
    }
}

/// The headline; when it stays, what else is written.
fn written(snapshot: &Snapshot, report: &Report, patch: &Value) -> String {
    let headline = headline(report);
    let known = matches!(report, Report::Verdict { .. }) && snapshot.ledger.headline == headline;
    if !known {
        return headline;
    }
    let fields = patch["status"].as_object().into_iter().flatten().map(|(field, _)| field.as_str());
    let mut fields: Vec<_> = fields.map(|field| if field == "troupe" { "ledger" } else { field }).collect();
    fields.sort_unstable();
    format!("{headline} ({})", fields.join(", "))
}

/// An event in a line.
pub(super) fn told(event: &Event) -> String {
    format!("{} {} {}", if event.warning { "Warning" } else { "Normal" }, event.reason, event.message)
}

fn after(world: &World, at: Timestamp) -> String {
    let time = at.duration_since(world.now);
    if time.as_millis() % 1000 == 0 { format!("{}s", time.as_secs()) } else { format!("{}ms", time.as_millis()) }
}
