//! Compiled code of the built-in plugins for the image, so that its hosts compile nothing when they start.

use crate::{run::output, troupe::PRECOMPILED};
use anyhow::{Context, Result};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Lets a program, which has to be for this machine, compile its plugins into a folder. Returns each file as its path in
/// the image and the file.
///
/// # Errors
/// The folder cannot be emptied, or the program does not succeed.
pub fn files(program: &Path, folder: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to empty {}", folder.display()))?;
    }
    let written = output(Command::new(program).args(["plugin", "precompile"]).arg(folder))?;
    let placed = written.lines().map(|file| {
        let name = Path::new(file).file_name().context("the program printed no file")?;
        Ok((Path::new(PRECOMPILED.1).join(name), file.into()))
    });
    placed.collect()
}
