//! A project of Python: componentize-py of PyPI puts it into a component with CPython.

use super::{COMPONENT, WIT, installed, run};
use std::path::Path;

/// What says that a folder is such a project.
pub(super) const SOURCE: &str = "src/plugin.py";

const TO_INSTALL: &str = "run `python3 -m venv .venv && .venv/bin/pip install --requirement requirements.txt`";

/// Builds the component of the project in this folder.
pub(super) fn build(folder: &Path) -> anyhow::Result<()> {
    let tool = installed(folder, ".venv/bin/componentize-py", TO_INSTALL)?;
    // --stub-wasi: Python's library imports sockets, which no host offers.
    let built = ["componentize", "--stub-wasi", "--python-path", "src", "--output", COMPONENT, "plugin"];
    run(folder, &tool, &[&["--wit-path", WIT, "--world", "plugin", "--quiet"], &built[..]].concat(), TO_INSTALL)
}
