//! Scenarios: expected behaviour as text, replayed by the real host with real plugins on a simulated cluster in virtual
//! time.
//!
//! A file is replayed line by line:
//!
//! ```text
//! # a comment
//! > job example wide-and-deep ps=1 worker=2
//! > reconcile
//! create pod/wide-and-deep-ps-0 · create pod/wide-and-deep-worker-0 · create pod/wide-and-deep-worker-1
//! waiting: pod addresses (0 of 3)
//! ```
//!
//! Lines that begin with `>` are commands (`command.rs` lists them). The lines after a command are its output. The file
//! `shorthand.json` in the folder defines the paths of the roles in the line of a job.

mod command;
mod host;
mod manifest;
mod pass;
mod pods;
mod script;
mod sent;
mod shorthand;
mod show;
mod words;
mod world;
mod written;

pub use shorthand::Shorthand;
pub use written::{Written, written};

use crate::virtual_time;
use anyhow::Context;
use sandbox::Plugins;
use script::{Replayed, Stuck};
use similar::{Algorithm, udiff::unified_diff};
use std::{
    fs,
    path::{Path, PathBuf},
};
use troupe::files;

/// The largest file of a scenario or of its shorthand, in bytes.
const LARGEST: usize = 1 << 20;

/// The outcome of replaying a scenario's file.
#[derive(Debug)]
pub enum Outcome {
    /// The output is as in the file.
    AsItSays,
    /// The output differs, and the file was rewritten with the new output.
    Rewritten,
    /// The output differs: a unified diff from the file (`-`) to what happened (`+`).
    Otherwise(String),
    /// The scenario cannot be replayed to its end.
    Stuck {
        /// The reason, with the command.
        error: anyhow::Error,
        /// A unified diff of what the commands before printed, empty if that is as in the file.
        before: String,
    },
}

/// Returns the scenarios of a folder in order: `*.txt` in it and in its direct subfolders.
///
/// # Errors
/// The folder that cannot be read.
pub fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = entries(folder)?;
    for inner in files.iter().filter(|path| path.is_dir()).cloned().collect::<Vec<_>>() {
        files.extend(entries(&inner)?);
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt") && path.is_file());
    files.sort();
    Ok(files)
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let unreadable = || format!("{} cannot be read", folder.display());
    let entries = fs::read_dir(folder).with_context(unreadable)?;
    entries.map(|entry| entry.map(|entry| entry.path()).with_context(unreadable)).collect()
}

/// Returns the text of a scenario's file.
///
/// # Errors
/// If it cannot be read, or is too large for a scenario.
pub fn text(file: &Path) -> anyhow::Result<String> {
    Ok(files::text(file, LARGEST)?)
}

/// Replays the scenario in a file. With `update`, rewrites the file with the new output: review the diff before you
/// keep it.
#[must_use]
pub fn check(file: &Path, plugins: &Plugins, shorthand: &Shorthand, update: bool) -> Outcome {
    outcome(file, plugins, shorthand, update).unwrap_or_else(|error| Outcome::Stuck { error, before: String::new() })
}

fn outcome(file: &Path, plugins: &Plugins, shorthand: &Shorthand, update: bool) -> anyhow::Result<Outcome> {
    let says = text(file)?;
    let Replayed { text: goes, stuck } = replayed(&says, plugins.fork(), shorthand)?;
    if let Some(Stuck { lines, error }) = stuck {
        let says: String = says.lines().take(lines).flat_map(|line| [line, "\n"]).collect();
        return Ok(Outcome::Stuck { error, before: difference(&says, &goes) });
    }
    let difference = difference(&says, &goes);
    if difference.is_empty() {
        return Ok(Outcome::AsItSays);
    }
    if !update {
        return Ok(Outcome::Otherwise(difference));
    }
    fs::write(file, goes).context("the file cannot be written")?;
    Ok(Outcome::Rewritten)
}

/// Returns a scenario's text with the new output of its commands. Takes the plugins, since it may change their
/// settings.
///
/// # Errors
/// The command that cannot be run, and the reason.
pub fn replay(text: &str, plugins: Plugins, shorthand: &Shorthand) -> anyhow::Result<String> {
    let Replayed { text, stuck } = replayed(text, plugins, shorthand)?;
    stuck.map_or(Ok(text), |stuck| Err(stuck.error))
}

fn replayed(text: &str, plugins: Plugins, shorthand: &Shorthand) -> anyhow::Result<Replayed> {
    let replayed = async { Ok(script::replay(text, world::World::new(plugins).await?, shorthand).await) };
    virtual_time::run("a scenario", replayed).context("no runtime")?
}

/// Returns the unified diff of two texts. Differences in line endings are none.
fn difference(says: &str, goes: &str) -> String {
    if says.lines().eq(goes.lines()) { String::new() } else { unified_diff(Algorithm::Myers, says, goes, 3, None) }
}
