//! The crate of a plugin in a folder, and its component: built by cargo and checked as a host would.

use super::{inspect, recording::replayer};
use crate::{args::BuildArgs, input};
use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

const TARGET: &str = "wasm32-wasip2";

/// The scenarios of a crate.
#[cfg(feature = "lab")]
pub(super) const SCENARIOS: &str = "scenarios";

/// The CRD of a crate.
const CRD: &str = "crd.yaml";

pub(super) fn build(args: &BuildArgs) -> anyhow::Result<ExitCode> {
    let file = component(&args.folder)?;
    let wasm = input::component(&file)?;
    let plugin = replayer(&file, &wasm)?;
    troupe::out::line(format_args!("{}", file.display()));
    troupe::out::line(inspect::facts_of(&plugin, &wasm)?);
    let crd = if args.folder == Path::new(".") { PathBuf::from(CRD) } else { args.folder.join(CRD) };
    if crd.is_file() {
        super::crd::check(&crd, plugin.descriptor())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the component that is named, else builds that of the crate in the current folder.
pub(super) fn named_or_built(file: Option<&Path>) -> anyhow::Result<PathBuf> {
    file.map_or_else(|| component(Path::new(".")), |file| Ok(file.to_owned()))
}

/// Builds the component of the crate in this folder, and returns its file, relative to the current folder where it is
/// below it.
pub(super) fn component(folder: &Path) -> anyhow::Result<PathBuf> {
    let metadata = Metadata::of(folder)?;
    let manifest = folder.join("Cargo.toml").canonicalize().with_context(|| no_crate(folder))?;
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
    let file = file.join(format!("{}.wasm", library.name.replace('-', "_")));
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    Ok(file.strip_prefix(here).map_or(file.clone(), Path::to_owned))
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
        ensure!(folder.join("Cargo.toml").is_file(), no_crate(folder));
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

fn no_crate(folder: &Path) -> String {
    format!("{} has no Cargo.toml; `troupe plugin new` makes a plugin's crate", folder.display())
}

/// The cargo that started this process, if one did.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
