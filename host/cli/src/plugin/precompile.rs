//! `troupe plugin precompile`: compiled code of the built-in plugins, for hosts that should be ready at once.

use std::{path::Path, process::ExitCode};
use troupe::out;

pub(super) fn precompile(folder: &Path) -> anyhow::Result<ExitCode> {
    for file in sandbox::precompile(folder)? {
        out::line(file.display());
    }
    Ok(ExitCode::SUCCESS)
}
