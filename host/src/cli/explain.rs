//! `troupe explain`: a pass from the admin port, decided again offline.

use crate::passes::Pass;
use anyhow::{Context, ensure};
use decide::{Triage, decide, triage};
use std::{io::Read, path::Path, process::ExitCode};

pub(super) fn explain(path: &Path) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    if path.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).context("standard input")?;
    } else {
        text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    }
    let pass: Pass = serde_json::from_str(&text).context("this is no pass from the admin port")?;
    let decision = match triage(&pass.snapshot) {
        Triage::Settled(decision) => decision,
        Triage::NeedsPlan => decide(&pass.snapshot, &pass.answer),
    };
    let job = &pass.snapshot.job;
    println!("{} {}/{} at {}", pass.snapshot.kind.kind, job.namespace, job.name, pass.snapshot.now);
    println!("seen: {} pods, {} other children", pass.snapshot.pods.len(), pass.snapshot.children.len());
    for action in &decision.actions {
        println!("{action}");
    }
    for waiting in &decision.waiting {
        println!("waiting: {waiting}");
    }
    match &decision.report {
        decide::Report::Unchanged => println!("status: unchanged"),
        decide::Report::Verdict { headline, .. } => println!("status: {headline}"),
        decide::Report::Trouble(trouble) => println!("{}: {}: {}", trouble.condition, trouble.reason, trouble.message),
    }
    ensure!(decision == pass.decision, "this version decides otherwise than the host that made the pass");
    Ok(ExitCode::SUCCESS)
}
