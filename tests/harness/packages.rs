//! Installs the Debian packages a node and its images need.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::output;
use crate::run_dir::locked;

const LOCK: &str = "/run/troupe-apt.lock";

/// What a node runs on.
pub(crate) const NODE: &[&str] =
    &["containerd", "runc", "containernetworking-plugins", "iproute2", "iptables", "conntrack"];

/// What images are made with.
pub(crate) const IMAGES: &[&str] =
    &["debootstrap", "debian-archive-keyring", "busybox-static", "gcc", "libc6-dev", "binutils"];

/// What links a program that needs nothing else.
pub(crate) const MUSL: &[&str] = &["musl-tools", "ca-certificates"];

/// What puts packages of PyPI into images.
pub(crate) const PIP: &[&str] = &["python3-pip"];

/// What shows pages.
pub(crate) const BROWSER: &[&str] = &["chromium", "fonts-dejavu-core"];

/// What builds plugins of C.
pub(crate) const C_PLUGINS: &[&str] = &["clang", "lld", "wasi-libc", "libclang-rt-dev-wasm32"];

/// What makes virtual environments of packages of PyPI.
pub(crate) const VENV: &[&str] = &["python3-venv"];

/// Makes sure that these packages are there, by apt if one is missing. Needs root then.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let _lock = locked(Path::new(LOCK))?;
    let missing: Vec<&str> = packages.iter().copied().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("cluster: installing {}", missing.join(" "));
    // A list that cannot be refreshed may still be good enough; if not, the installation says what is missing.
    let refreshed = output(apt().arg("update"));
    output(apt().args(["install", "--yes", "--no-install-recommends"]).args(&missing))
        .with_context(|| format!("failed to install {} (apt-get update: {:?})", missing.join(" "), refreshed.err()))?;
    Ok(())
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("--quiet").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_installed(package: &str) -> bool {
    let status = output(Command::new("dpkg-query").args(["--show", "--showformat=${db:Status-Status}", package]));
    status.is_ok_and(|status| status == "installed")
}
