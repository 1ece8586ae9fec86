//! `troupe plugin diff`: the differences that a new version of a plugin would make for the jobs of a recording.

use super::{
    changes::Changes,
    recording::{passes, read},
};
use crate::args::DiffArgs;
use anyhow::{Context, bail};
use decide::difference::differences;
use serde_json::{Value, json};
use std::process::ExitCode;
use troupe::{out, record::replay::Replayer};

/// Told where two components of one version answer differently.
const OF_ONE_VERSION: &str = "both say that they are of one version: if they are two builds of one source, the source leaves \
    an answer to what its tool puts into each build, such as the order of a set of Python or the numbers of a generator; sort \
    the one, do without the other (plugins/README.md, \"Languages\")";

pub(super) fn diff(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let (mut old, mut new) = (read(&args.old)?, read(&args.new)?);
    let (recorded, others) = passes(&args.recording, &old)?;
    if let Some(lost) = recorded.iter().find(|pass| !new.serves(pass)) {
        let (file, kind) = (args.new.display(), &lost.snapshot.kind.kind);
        bail!(
            "{file} does not serve {kind}, which {} does: jobs of that kind would have no plugin",
            args.old.display()
        );
    }
    let mut changes = Changes::default();
    for pass in &recorded {
        let (was, is) = (old.answer(pass)?, new.answer(pass)?);
        changes.note(pass, differences(&pass.snapshot, &was, &is));
    }
    let note = (!changes.is_empty() && is_of_one_version(&old, &new)).then_some(OF_ONE_VERSION);
    if args.json {
        let mut report = serde_json::to_value(&changes).context("the report as JSON")?;
        report["old"] = identity(&old);
        report["new"] = identity(&new);
        report["dangerous"] = json!(changes.is_dangerous());
        report["note"] = json!(note);
        out::line(serde_json::to_string_pretty(&report).context("the report as JSON")?);
    } else {
        out::line(format_args!("old: {}\nnew: {}", line(&old), line(&new)));
        if others > 0 {
            out::line(format_args!("{others} passes over jobs of other kinds are left out"));
        }
        out::line(&changes);
        note.into_iter().for_each(out::diagnostic);
    }
    Ok(if changes.is_dangerous() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether both are other bytes of one version of one plugin.
fn is_of_one_version(old: &Replayer, new: &Replayer) -> bool {
    let said = |plugin: &Replayer| (plugin.descriptor().name.clone(), plugin.descriptor().version.clone());
    said(old) == said(new) && old.digest() != new.digest()
}

fn identity(plugin: &Replayer) -> Value {
    let said = plugin.descriptor();
    json!({ "name": said.name, "version": said.version, "digest": plugin.digest() })
}

fn line(plugin: &Replayer) -> String {
    let said = plugin.descriptor();
    format!("{} {}, digest {}", said.name, said.version, plugin.digest())
}
