//! `troupe plugin test`: asks a plugin recorded passes again, and replays scenarios with it. The answers have to be the
//! recorded ones, and the outcomes those in the scenarios.

use super::{
    changes::Changes,
    project,
    recording::{passes, read},
    watch::Files,
};
use crate::args::TestArgs;
use decide::{Digest, difference::differences};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
};
use troupe::{out, record::replay::Replayer};

pub(super) fn test(args: &TestArgs) -> anyhow::Result<ExitCode> {
    if !args.watch {
        return Ok(if is_well(args)? { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let places = watched(args);
    let places: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
    loop {
        // What is saved while the plugin is tested has it tested once more.
        let files = Files::of(&places);
        if let Err(error) = is_well(args) {
            out::line(format_args!("error: {error:#}"));
        }
        out::line("watching; interrupt to end");
        let file = files.changed(&places);
        out::line(format_args!("again: {} is not as it was", file.display()));
    }
}

/// Returns the files and folders that a test depends on.
fn watched(args: &TestArgs) -> Vec<PathBuf> {
    let mut places = vec![args.file.clone().unwrap_or_else(|| PathBuf::from("."))];
    places.extend(args.recording.clone());
    #[cfg(feature = "lab")]
    {
        let usual = args.recording.is_none().then(|| PathBuf::from(project::SCENARIOS));
        places.extend(args.scenarios.clone().or(usual));
    }
    places
}

/// Tests the plugin once, and returns whether nothing differs.
fn is_well(args: &TestArgs) -> anyhow::Result<bool> {
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
    Ok(well)
}

/// Prints how the plugin's answers differ from the recorded ones. Returns whether there is no difference.
fn answers_as_recorded(plugin: &mut Replayer, file: &Path) -> anyhow::Result<bool> {
    let (recorded, others) = passes(file, plugin)?;
    let mut changes = Changes::default();
    for pass in &recorded {
        let answer = plugin.answer(pass)?;
        changes.note_recorded(pass, differences(&pass.snapshot, &pass.answer, &answer));
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
