//! A project of Python: componentize-py of PyPI makes a component of it and of CPython.

use super::{COMPONENT, WIT, installed, run};
use std::{fs, path::Path, process::Command};

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
    let venv = std::path::absolute(folder.join(VENV))?;
    let tool = installed(folder, &format!("{VENV}/bin/componentize-py"), PACKAGES, || {
        // A virtual environment knows its path: one of a folder that has moved is made anew.
        run(folder, Command::new("python3").args(["-m", "venv", "--clear", VENV]), TO_INSTALL)?;
        let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--requirement", PACKAGES];
        run(folder, Command::new(venv.join("bin/python")).args(pip), TO_INSTALL)
    })?;
    let with = |what: &[&str]| {
        let mut tool = Command::new(&tool);
        // The tool looks for the packages of the project there.
        tool.env("VIRTUAL_ENV", &venv).args(["--wit-path", WIT, "--world", "plugin", "--quiet"]).args(what);
        run(folder, &mut tool, TO_INSTALL)
    };
    // It makes them in a new folder only.
    let _ = fs::remove_dir_all(folder.join(BINDINGS));
    with(&["bindings", BINDINGS])?;
    // --stub-wasi: Python's library imports sockets, which no host offers.
    with(&["componentize", "--stub-wasi", "--output", COMPONENT, "job"])
}
