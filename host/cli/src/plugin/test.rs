//! `troupe plugin test`: asks a plugin recorded passes again, and replays scenarios with it. The answers have to be the
//! recorded ones, and the outcomes those in the scenarios.

use super::{
    changes::Changes,
    project,
    recording::{passes, read},
};
use crate::args::TestArgs;
use decide::{Digest, difference::differences};
use std::{collections::BTreeSet, path::Path, process::ExitCode};
use troupe::{out, record::replay::Replayer};

pub(super) fn test(args: &TestArgs) -> anyhow::Result<ExitCode> {
    let mut plugin = read(&project::named_or_built(args.file.as_deref())?)?;
    let said = plugin.descriptor();
    out::line(format_args!("{} {}, digest {}", said.name, said.version, plugin.digest()));
    let mut well = true;
    if let Some(file) = &args.recording {
        well &= answers_as_recorded(&mut plugin, file)?;
    }
    #[cfg(feature = "lab")]
    {
        let usual = args.recording.is_none().then(|| Path::new(project::SCENARIOS));
        if let Some(folder) = args.scenarios.as_deref().or(usual) {
            well &= super::scenarios::scenarios(&plugin, folder, args.update)?;
        }
    }
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints how the plugin's answers differ from the recorded ones. Returns whether there is no difference.
fn answers_as_recorded(plugin: &mut Replayer, file: &Path) -> anyhow::Result<bool> {
    let (recorded, others) = passes(file, plugin)?;
    let mut changes = Changes::default();
    for pass in &recorded {
        let answer = plugin.answer(pass)?;
        changes.note(pass, differences(&pass.snapshot, &pass.answer, &answer));
    }
    let by: BTreeSet<&str> =
        recorded.iter().map(|pass| pass.snapshot.digest.as_ref().map_or("", Digest::as_str)).collect();
    out::line(format_args!("answered then by digest {}", by.into_iter().collect::<Vec<_>>().join(", ")));
    if others > 0 {
        out::line(format_args!("{others} passes over jobs of other kinds are left out"));
    }
    out::line(&changes);
    Ok(changes.is_empty())
}
