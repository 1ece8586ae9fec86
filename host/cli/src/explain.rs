//! `troupe explain`: decides a recorded pass from the admin port again offline, and asks a plugin again if one is
//! named.

use super::{input, plugin};
use crate::args::ExplainArgs;
use anyhow::{Context, ensure};
use decide::{Digest, Triage, decide, difference::differences, triage};
use std::{path::Path, process::ExitCode};
use troupe::{out, record::passes::Pass};

pub(super) fn explain(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    let text = input::text(&args.pass)?;
    let pass = Pass::from_json(&text)
        .context("this is no pass from the admin port; `curl http://localhost:8080/jobs` lists the paths of passes")?;
    let decision = match triage(&pass.snapshot) {
        Triage::Settled(decision) => decision,
        Triage::NeedsPlan => decide(&pass.snapshot, &pass.answer),
    };
    let job = &pass.snapshot.job;
    out::line(format_args!("{} {}/{} at {}", pass.snapshot.kind.kind, job.namespace, job.name, pass.snapshot.now));
    out::line(format_args!("seen: {} pods, {} other children", pass.snapshot.pods.len(), pass.snapshot.children.len()));
    let digest = pass.snapshot.digest.as_ref().map_or("", Digest::as_str);
    out::line(format_args!("answered by: plugin {}, digest {digest}", pass.plugin));
    for action in &decision.actions {
        out::line(action);
    }
    for waiting in &decision.waiting {
        out::line(format_args!("waiting: {waiting}"));
    }
    match &decision.report {
        decide::Report::Unchanged => out::line("status: unchanged"),
        decide::Report::Verdict { headline, .. } => out::line(format_args!("status: {headline}")),
        decide::Report::Condition(condition) => {
            out::line(format_args!("{}: {}: {}", condition.kind, condition.reason, condition.message));
        }
    }
    ensure!(decision == pass.decision, "this version decides otherwise than the host that made the pass");
    args.plugin.as_deref().map_or(Ok(ExitCode::SUCCESS), |file| ask_again(&pass, file))
}

/// Prints how the answer of the plugin in this file differs from the recorded one; returns success if it does not.
fn ask_again(pass: &Pass, file: &Path) -> anyhow::Result<ExitCode> {
    let mut plugin = plugin::read(file)?;
    let (name, kind) = (file.display(), &pass.snapshot.kind.kind);
    ensure!(plugin.serves(pass), "the plugin in {name} does not serve {kind}; name one that does");
    let differences = differences(&pass.snapshot, &pass.answer, &plugin.answer(pass)?);
    out::line(format_args!("asked again: plugin {}, digest {}", plugin.descriptor().name, plugin.digest()));
    for difference in &differences {
        out::line(format_args!("  {difference}"));
    }
    if differences.is_empty() {
        out::line("  it answers the same");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}
