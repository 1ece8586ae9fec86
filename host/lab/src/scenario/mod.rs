//! Scenarios: what should happen, as text, done by the real host with real plugins on a simulated cluster, in virtual time.
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
//! Lines that begin with `>` are commands (`command.rs` lists them), the lines after one are what it prints. What the
//! roles in the line of a job stand for is said by the folder, in `shorthand.json`.

mod command;
pub mod diff;
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

pub use shorthand::Shorthand;

use crate::campaign;
use anyhow::Context;
use sandbox::Plugins;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// What came of a scenario's file.
#[derive(Debug)]
pub enum Outcome {
    /// It goes as it says.
    AsItSays,
    /// It went otherwise, and the file says now what happens.
    Rewritten,
    /// It goes otherwise: the difference, line by line.
    Otherwise(String),
    /// It cannot be replayed, and why.
    Stuck(anyhow::Error),
}

/// The scenarios of a folder: `*.txt` in it and in the folders in it, in order.
///
/// # Errors
/// Which folder cannot be read.
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

/// Replays the scenario in a file. `update` lets the file say what happens now: read the difference before it is kept.
#[must_use]
pub fn check(file: &Path, plugins: &Plugins, shorthand: &Shorthand, update: bool) -> Outcome {
    outcome(file, plugins, shorthand, update).unwrap_or_else(Outcome::Stuck)
}

fn outcome(file: &Path, plugins: &Plugins, shorthand: &Shorthand, update: bool) -> anyhow::Result<Outcome> {
    let says = fs::read_to_string(file).context("the file cannot be read")?;
    let goes = replay(&says, plugins.fork(), shorthand)?;
    // How lines end is the affair of editors.
    if says.lines().eq(goes.lines()) {
        return Ok(Outcome::AsItSays);
    }
    if !update {
        return Ok(Outcome::Otherwise(diff::lines(&says, &goes)));
    }
    fs::write(file, goes).context("the file cannot be written")?;
    Ok(Outcome::Rewritten)
}

/// A scenario's text with what its commands print now. The plugins are its own: it may change their settings.
///
/// # Errors
/// Which command cannot be run, and why.
pub fn replay(text: &str, plugins: Plugins, shorthand: &Shorthand) -> anyhow::Result<String> {
    let replayed = async { script::replay(text, world::World::new(plugins).await?, shorthand).await };
    campaign::in_virtual_time(replayed).context("no runtime")?
}
