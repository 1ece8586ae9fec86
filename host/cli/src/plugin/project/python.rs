//! A project of Python: componentize-py of PyPI makes a component of it and of CPython.

use super::{COMPONENT, WIT, installed, run};
use std::{fs, path::Path};

/// What says that a folder is such a project.
pub(super) const SOURCE: &str = "job.py";

/// The packages of the project.
const PACKAGES: &str = "requirements.txt";

/// Where they are installed.
const VENV: &str = "target/venv";

/// Where the types of the contract are, for an editor.
const BINDINGS: &str = "bindings";

const TO_INSTALL: &str = "install Python 3.10 or later, with venv (python3-venv of Debian and Ubuntu)";

/// Builds the component of the project in this folder.
pub(super) fn build(folder: &Path) -> anyhow::Result<()> {
    let in_venv = |tool: &str| format!("{VENV}/bin/{tool}");
    let tool = installed(folder, &in_venv("componentize-py"), PACKAGES, || {
        // A virtual environment knows its path: one of a folder that has moved is made anew.
        run(folder, Path::new("python3"), &["-m", "venv", "--clear", VENV], TO_INSTALL)?;
        let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--requirement", PACKAGES];
        run(folder, &std::path::absolute(folder.join(in_venv("python")))?, &pip, TO_INSTALL)
    })?;
    let contract = ["--wit-path", WIT, "--world", "plugin", "--quiet"];
    let with = |what: &[&str]| run(folder, &tool, &[&contract[..], what].concat(), TO_INSTALL);
    // It makes them in a new folder only.
    let _ = fs::remove_dir_all(folder.join(BINDINGS));
    with(&["bindings", BINDINGS])?;
    // --stub-wasi: Python's library imports sockets, which no host offers.
    with(&["componentize", "--stub-wasi", "--output", COMPONENT, "job"])
}
