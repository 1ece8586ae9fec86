//! Runs a program to its end.

use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};

/// Returns the standard output of a command.
///
/// # Errors
/// The command does not start or does not succeed; the error contains what it printed.
pub fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_owned();
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("failed to run {}", program.display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !done.status.success() {
        bail!("{command:?} ended with {}: {}{}", done.status, text(&done.stdout), text(&done.stderr));
    }
    Ok(text(&done.stdout))
}
