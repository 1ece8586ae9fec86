//! The Debian packages that tests need. They are installed before the first test, by `set_up` alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process::output;
use crate::run_dir::locked;

const LOCK: &str = "/run/troupe-apt.lock";

/// How long apt waits for another apt on this machine, in seconds.
const PATIENCE: u32 = 900;

/// What a control plane's certificates are made with.
pub(crate) const OPENSSL: &[&str] = &["openssl"];

/// What the commands of the documentation ask the host with.
pub(crate) const CURL: &[&str] = &["curl"];

/// What makes keys for SSH.
pub(crate) const SSH: &[&str] = &["openssh-client"];

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

/// Makes sure that these packages are there, by apt if one is missing, and prints which and for what. Each has the names of
/// the needs that it is for. Of suites that do so at the same time one installs, and the others wait.
pub(crate) fn install(packages: &BTreeMap<&str, BTreeSet<&str>>) -> Result<()> {
    let lacking = || packages.iter().filter(|(package, _)| !is_there(package)).collect::<Vec<_>>();
    if lacking().is_empty() {
        return Ok(());
    }
    let _lock = locked(Path::new(LOCK))?;
    let missing = lacking();
    if missing.is_empty() {
        return Ok(());
    }
    for (package, needs) in &missing {
        let needs: Vec<_> = needs.iter().copied().collect();
        eprintln!("set-up: installing {package} of Debian, for tests that need {}", needs.join(", "));
    }
    let names: Vec<&str> = missing.iter().map(|(package, _)| **package).collect();
    // A list that cannot be refreshed may still be good enough; if not, the installation says what is missing.
    let refreshed = output(apt().arg("update"));
    output(apt().args(["install", "--yes", "--no-install-recommends"]).args(&names))
        .with_context(|| format!("failed to install {} (apt-get update: {:?})", names.join(" "), refreshed.err()))?;
    Ok(())
}

/// Makes sure that packages are there which the set-up has to have installed.
///
/// # Errors
/// One is not there.
pub(crate) fn have(packages: &[&str]) -> Result<()> {
    let missing: Vec<&str> = packages.iter().copied().filter(|package| !is_there(package)).collect();
    ensure!(
        missing.is_empty(),
        "{} of Debian is not installed: the set-up before the first test could not, or `set_up.rs` does not name it",
        missing.join(" ")
    );
    Ok(())
}

fn apt() -> Command {
    let mut command = Command::new("apt-get");
    command.args(["--quiet", "-o", &format!("DPkg::Lock::Timeout={PATIENCE}")]);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Whether the package is installed. Of one whose program alone is used, whether that program is there: it may have come
/// from elsewhere.
fn is_there(package: &str) -> bool {
    if OPENSSL.contains(&package) || CURL.contains(&package) {
        return Command::new(package).arg("--version").output().is_ok();
    }
    let status = output(Command::new("dpkg-query").args(["--show", "--showformat=${db:Status-Status}", package]));
    status.is_ok_and(|status| status == "installed")
}
