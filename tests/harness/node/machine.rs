//! What a node makes of the machine outside its own namespaces, and its removal.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::output;
use crate::run_dir::locked;

/// Sockets and what the node forgets with the machine. Short, because the paths of sockets may have 107 bytes only.
pub(super) const STATE: &str = "/run/troupe-node";
/// Images, containers and volumes.
pub(super) const DATA: &str = "/var/lib/troupe-node";
/// The pods' network.
pub(super) const BRIDGE: &str = "troupe0";
/// The pods' addresses.
pub(super) const SUBNET: &str = "10.244.0.0/24";
/// The bridge's, which is the node's and the name server's.
pub(super) const ADDRESS: &str = "10.244.0.1";
/// The bridge's hardware address. Without one of its own it takes that of a pod's end, and changes it when the pod goes: for up to a
/// minute the pods that stay would not reach the name server.
const HARDWARE: &str = "02:00:0a:f4:00:01";
/// The cgroup of all pods, the same in each hierarchy.
pub(super) const CGROUP: &str = "troupe-node";

const LOCK: &str = "/run/troupe-node.lock";
const CLEAR: Duration = Duration::from_secs(10);

/// The machine, held for one node; what an earlier one left behind is removed.
#[derive(Debug)]
pub(super) struct Machine {
    _one_node: File,
}

impl Machine {
    /// Waits until no other process has a node.
    pub(super) fn hold() -> Result<Machine> {
        let machine = Machine { _one_node: locked(Path::new(LOCK))? };
        machine.clear()?;
        Ok(machine)
    }

    /// Makes the folders, the cgroups and the bridge.
    pub(super) fn furnish(&self) -> Result<()> {
        let folders = [STATE, DATA].map(PathBuf::from).into_iter().chain(cgroups());
        for folder in folders {
            fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
        }
        for arguments in [
            format!("link add {BRIDGE} address {HARDWARE} type bridge"),
            format!("address add {ADDRESS}/24 dev {BRIDGE}"),
            format!("link set {BRIDGE} up"),
        ] {
            output(Command::new("ip").args(arguments.split(' ')))?;
        }
        Ok(())
    }

    /// Removes all of it, once the node's processes are killed; an error if something stays.
    pub(super) fn clear(&self) -> Result<()> {
        let _ = output(Command::new("ip").args(["link", "delete", BRIDGE]));
        let deadline = Instant::now() + CLEAR;
        loop {
            // The kernel may still be ending the last containers.
            let left = remove();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!("the node left behind {left:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.clear();
    }
}

/// One for each hierarchy of version 1, or the one of version 2.
fn cgroups() -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    if root.join("cgroup.controllers").exists() {
        return vec![root.join(CGROUP)];
    }
    let hierarchies = fs::read_dir(root).into_iter().flatten().flatten();
    hierarchies.filter(|entry| entry.path().is_dir()).map(|entry| entry.path().join(CGROUP)).collect()
}

/// Tries once, and returns the folders and cgroups that are still there.
fn remove() -> Vec<PathBuf> {
    for folder in [STATE, DATA] {
        let _ = fs::remove_dir_all(folder);
    }
    for cgroup in cgroups() {
        let _ = remove_cgroup(&cgroup);
    }
    let all = [STATE, DATA].map(PathBuf::from).into_iter().chain(cgroups());
    all.filter(|path| path.exists()).collect()
}

/// Removes a tree of cgroups without processes.
fn remove_cgroup(cgroup: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(cgroup)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_cgroup(&path)?;
        }
    }
    fs::remove_dir(cgroup)
}
