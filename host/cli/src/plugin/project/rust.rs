//! A crate: its component is built by cargo.

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What says that a folder is a crate.
pub(super) const MANIFEST: &str = "Cargo.toml";

const TARGET: &str = "wasm32-wasip2";

/// Builds the component of the crate in this folder, and returns its file.
pub(super) fn component(folder: &Path) -> anyhow::Result<PathBuf> {
    let metadata = Metadata::of(folder)?;
    let manifest =
        folder.join(MANIFEST).canonicalize().with_context(|| format!("{} cannot be read", folder.display()))?;
    let of_folder = metadata.packages.iter().find(|package| Path::new(&package.manifest_path) == manifest);
    let package = of_folder.with_context(|| format!("{} is the manifest of no package", manifest.display()))?;
    let library = package.targets.iter().find(|target| target.crate_types.iter().any(|kind| kind == "cdylib"));
    let library = library.with_context(|| {
        format!("{} builds no component: its [lib] needs crate-type = [\"cdylib\", \"rlib\"]", manifest.display())
    })?;
    let built = Command::new(cargo())
        .args(["build", "--release", "--lib", "--target", TARGET, "--package", &package.name])
        .current_dir(folder)
        .status()
        .context("cargo does not start")?;
    ensure!(built.success(), "cargo build ended with {built}");
    let file = PathBuf::from(metadata.target_directory).join(TARGET).join("release");
    Ok(file.join(format!("{}.wasm", library.name.replace('-', "_"))))
}

/// The part of `cargo metadata` that is needed.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: String,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    crate_types: Vec<String>,
}

impl Metadata {
    fn of(folder: &Path) -> anyhow::Result<Self> {
        let asked = Command::new(cargo())
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(folder)
            .stderr(Stdio::inherit())
            .output()
            .context("cargo does not start; install Rust from https://rustup.rs")?;
        if !asked.status.success() {
            bail!("cargo metadata ended with {}", asked.status);
        }
        serde_json::from_slice(&asked.stdout).context("the answer of cargo metadata")
    }
}

/// The cargo that started this process, if one did.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
