//! A project of JavaScript: componentize-qjs of npm makes a component of it and of QuickJS.

use super::{COMPONENT, WIT, installed, run};
use std::{path::Path, process::Command};

/// What says that a folder is such a project.
pub(super) const SOURCE: &str = "job.js";

const TO_INSTALL: &str = "install Node.js 18 or later, with npm";

/// Builds the component of the project in this folder.
pub(super) fn build(folder: &Path) -> anyhow::Result<()> {
    let tool = installed(folder, "node_modules/.bin/componentize-qjs", "package-lock.json", || {
        run(folder, Command::new("npm").args(["ci", "--no-audit", "--no-fund"]), TO_INSTALL)
    })?;
    // --sync: the host has no asynchronous calls. WASI stays: the host serves it, and exceptions are told by it.
    let made = ["--wit", WIT, "--world", "plugin", "--js", SOURCE, "--sync", "--output", COMPONENT];
    run(folder, Command::new(tool).args(made), TO_INSTALL)
}
