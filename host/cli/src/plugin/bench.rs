//! `troupe plugin bench`: how long the calls of a plugin take, and how much fuel, while scenarios or recorded passes are
//! repeated.

use super::{
    project,
    recording::{passes, read},
};
use crate::args::BenchArgs;
use anyhow::{Context, ensure};
use lab::scenario::{self, Shorthand};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};
use troupe::{out, record::replay::Replayer};

pub(super) fn bench(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let file = project::named_or_built(args.file.as_deref())?;
    let began = Instant::now();
    let mut plugin = read(&file)?;
    let loading = began.elapsed().as_millis();
    let of = match &args.recording {
        Some(file) => answer(&mut plugin, file, args.rounds)?,
        None => {
            let usual = || PathBuf::from(project::SCENARIOS);
            play(&plugin, &args.scenarios.clone().unwrap_or_else(usual), args.rounds)?
        }
    };
    let said = plugin.descriptor();
    out::line(format_args!("{} {}, loaded in {loading} ms, {of}, {} times", said.name, said.version, args.rounds));
    out::line(format_args!("{:<12}{:>8}{:>12}{:>16}{:>9}", "FUNCTION", "CALLS", "MEDIAN", "FUEL PER CALL", "FAULTS"));
    for (_, function, calls) in plugin.plugins().calls() {
        let (median, fuel) = (calls.median().as_micros(), calls.fuel / calls.count.max(1));
        out::line(format_args!("{function:<12}{:>8}{median:>9} us{fuel:>16}{:>9}", calls.count, calls.faults));
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(plugin: &mut Replayer, file: &Path, rounds: u32) -> anyhow::Result<String> {
    let (recorded, _) = passes(file, plugin)?;
    for _ in 0..rounds {
        for pass in &recorded {
            plugin.answer(pass)?;
        }
    }
    Ok(format!("{} recorded passes", recorded.len()))
}

fn play(plugin: &Replayer, folder: &Path, rounds: u32) -> anyhow::Result<String> {
    let (files, shorthand) = (scenario::files(folder)?, Shorthand::of_folder(folder)?);
    ensure!(!files.is_empty(), "no scenario in {}: looked for *.txt", folder.display());
    for file in &files {
        let text = scenario::text(file)?;
        for _ in 0..rounds {
            let played = scenario::replay(&text, plugin.plugins().fork(), &shorthand);
            played.with_context(|| file.display().to_string())?;
        }
    }
    Ok(format!("{} scenarios", files.len()))
}
