//! Builds the program: for release, linked with musl so that it needs nothing else, without paths of this machine.

use crate::{program, run::output};
use anyhow::{Context, Result, bail, ensure};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Builds `troupe` without the simulator for an architecture by Go's name, and returns the file.
///
/// # Errors
/// What is not installed, and how to install it; or that cargo did not succeed.
pub fn program(architecture: &str) -> Result<PathBuf> {
    let root = workspace()?;
    let target = program::target(architecture)?;
    have(architecture, &target)?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // For another architecture ring, zstd and mimalloc take a C compiler with that architecture's musl.
    let is_for_this_machine = architecture == program::architecture();
    let build = if is_for_this_machine { "build" } else { "zigbuild" };
    let mut flags = flags(&root)?;
    if is_for_this_machine {
        // As in `.cargo/config.toml`, which does not hold beside flags of the environment. Not every linker knows it.
        flags.push("-Clink-arg=-Wl,-z,pack-relative-relocs".into());
    }
    let status = Command::new(cargo)
        .current_dir(&root)
        // Separated as cargo requires.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        // Optimised across codegen units too, which a checkout leaves out to be ready sooner: the program is a quarter
        // smaller.
        .env("CARGO_PROFILE_RELEASE_LTO", "false")
        .args([build, "--release", "--locked", "--package", "troupe-cli", "--no-default-features"])
        .args(["--target", &target, "--target-dir"])
        .arg(root.join("target"))
        .args(optimised(&fs::read_to_string(root.join("Cargo.toml"))?)?)
        .status()
        .context("cargo does not start")?;
    ensure!(status.success(), "cargo did not build troupe for {target}: {status}");
    Ok(root.join("target").join(target).join("release/troupe"))
}

/// Returns the folder of the workspace.
///
/// # Errors
/// It is not there any more.
pub fn workspace() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?)
}

/// Makes sure that Rust and C can be compiled for this target.
fn have(architecture: &str, target: &str) -> Result<()> {
    if architecture != program::architecture() {
        if Command::new("cargo-zigbuild").arg("--version").output().is_err() {
            bail!(
                "there is no C compiler for {target}: `pip install cargo-zigbuild ziglang`, and have both found in PATH"
            );
        }
    } else if Command::new("musl-gcc").arg("--version").output().is_err() {
        bail!("there is no C compiler for musl: install musl-tools (Debian, Ubuntu)");
    }
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    if Path::new(sysroot.trim()).join("lib/rustlib").join(target).is_dir() {
        return Ok(());
    }
    let added = output(Command::new("rustup").args(["target", "add", target]));
    added.map(drop).with_context(|| format!("Rust's standard library for {target} is not installed"))
}

/// Returns options of cargo by which packages are optimised that a checkout optimises less, so that it is built sooner:
/// for speed if it optimises them a little, for size if not at all. The program is a quarter smaller, and its hosts hold
/// less memory.
fn optimised(manifest: &str) -> Result<Vec<String>> {
    let manifest: toml_edit::DocumentMut = manifest.parse().context("Cargo.toml")?;
    let release = manifest.get("profile").and_then(|profiles| profiles.get("release"));
    let packages = release.and_then(|release| release.get("package")?.as_table());
    let packages = packages.context("Cargo.toml says nothing of single packages for release")?;
    let option = |(name, profile): (&str, &toml_edit::Item)| {
        let level = match profile.get("opt-level")?.as_integer()? {
            0 => "\"s\"",
            1 => "3",
            _ => return None,
        };
        Some([String::from("--config"), format!("profile.release.package.\"{name}\".opt-level={level}")])
    };
    Ok(packages.iter().filter_map(option).flatten().collect())
}

/// Returns compiler flags that keep the paths of this machine out of the program.
fn flags(root: &Path) -> Result<Vec<String>> {
    let cargo_home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => env::home_dir().context("this user has no home directory")?.join(".cargo"),
    };
    let mut remapped = vec![(cargo_home.clone(), "/cargo"), (root.to_owned(), "/troupe")];
    // The directory of an index is named by a hash of the index's address, which differs with a mirror.
    if let Ok(indexes) = fs::read_dir(cargo_home.join("registry/src")) {
        remapped.extend(indexes.flatten().map(|index| (index.path(), "/crates")));
    }
    let flags = remapped.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
    Ok(flags.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_checkout_optimises_less_is_optimised_in_the_image() {
        let manifest = r#"
            [profile.release.package.cold]
            opt-level = 0
            [profile.release.package."warm@1.2"]
            opt-level = 1
            [profile.release.package.hot]
            codegen-units = 1
        "#;
        let cold = "profile.release.package.\"cold\".opt-level=\"s\"";
        let warm = "profile.release.package.\"warm@1.2\".opt-level=3";
        assert_eq!(optimised(manifest).unwrap(), ["--config", cold, "--config", warm]);
        let ours = optimised(&fs::read_to_string(workspace().unwrap().join("Cargo.toml")).unwrap()).unwrap();
        assert!(
            ours.iter().any(|option| option == "profile.release.package.\"k8s-openapi\".opt-level=\"s\""),
            "{ours:?}"
        );
    }
}
