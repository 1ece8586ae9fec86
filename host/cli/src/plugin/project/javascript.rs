//! A project of JavaScript: componentize-qjs of npm puts it into a component with QuickJS.

use super::{COMPONENT, WIT, installed, run};
use std::path::Path;

/// What says that a folder is such a project.
pub(super) const SOURCE: &str = "plugin.js";

const TO_INSTALL: &str = "run `npm install`";

/// Builds the component of the project in this folder.
pub(super) fn build(folder: &Path) -> anyhow::Result<()> {
    let tool = installed(folder, "node_modules/.bin/componentize-qjs", TO_INSTALL)?;
    // --sync: the host has no asynchronous calls.
    run(folder, &tool, &["--wit", WIT, "--js", SOURCE, "--sync", "--output", COMPONENT], TO_INSTALL)
}
