//! The tool of the Bytecode Alliance by which plugin authors may build a component: `cargo component`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::output;
use crate::run_dir::{locked, workspace};

const VERSION: &str = "0.21.1";

/// Returns the folder of `cargo-component`, which is built into `target/tools` if this version is not there. Cargo finds a
/// subcommand in a folder of PATH.
///
/// # Errors
/// The build fails.
pub fn cargo_component() -> Result<PathBuf> {
    let tools = workspace().join("target/tools");
    let bin = tools.join("bin");
    fs::create_dir_all(&tools)?;
    let _lock = locked(&tools.join(".cargo-component.lock"))?;
    let there = Command::new(bin.join("cargo-component")).args(["component", "--version"]).output();
    let is_there = there.is_ok_and(|there| String::from_utf8_lossy(&there.stdout).contains(VERSION));
    if !is_there {
        eprintln!("author: building cargo-component {VERSION}, which takes up to ten minutes the first time");
        let mut install = Command::new("cargo");
        // Without optimising: it runs for seconds.
        install.args(["install", "--quiet", "--debug", "--locked", "--root"]).arg(&tools);
        output(install.arg(format!("cargo-component@{VERSION}"))).context("failed to build cargo-component")?;
    }
    Ok(bin)
}
