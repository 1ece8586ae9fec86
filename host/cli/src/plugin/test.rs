//! `troupe plugin test`: asks a plugin recorded passes again, and replays scenarios with it. The answers have to be the
//! recorded ones, and the outcomes those in the scenarios.

use super::{
    changes::Changes,
    recording::{candidate, passes},
};
use crate::args::TestArgs;
use decide::difference::differences;
use std::{collections::BTreeSet, path::Path, process::ExitCode};
use troupe::{out, record::replay::Candidate};

pub(super) fn test(args: &TestArgs) -> anyhow::Result<ExitCode> {
    let mut plugin = candidate(&args.file)?;
    let said = plugin.descriptor();
    out::line(format_args!("{} {}, digest {}", said.name, said.version, plugin.digest()));
    let mut well = true;
    if let Some(file) = &args.by.recording {
        well &= answers_as_recorded(&mut plugin, file)?;
    }
    #[cfg(feature = "lab")]
    if let Some(folder) = &args.by.scenarios {
        well &= super::scenarios::scenarios(&plugin, folder, args.update)?;
    }
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints how the plugin's answers differ from the recorded ones. Returns whether there is no difference.
fn answers_as_recorded(plugin: &mut Candidate, file: &Path) -> anyhow::Result<bool> {
    let (recorded, others) = passes(file, plugin)?;
    let mut changes = Changes::default();
    for pass in &recorded {
        let answer = plugin.answer(pass)?;
        changes.note(pass, differences(&pass.snapshot, &pass.answer, &answer));
    }
    let by: BTreeSet<&str> = recorded.iter().map(|pass| pass.snapshot.digest.as_str()).collect();
    out::line(format_args!("answered then by digest {}", by.into_iter().collect::<Vec<_>>().join(", ")));
    if others > 0 {
        out::line(format_args!("{others} passes over jobs of other kinds are left out"));
    }
    out::line(&changes);
    Ok(changes.is_empty())
}
