//! Where things are: the folder of all clusters under `target/`, and one folder of its own for each run.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

/// The workspace's folder.
pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is a folder of the workspace")
}

/// `target/cluster`, whatever `CARGO_TARGET_DIR` says: what is kept there takes minutes to build.
pub(crate) fn cluster_dir() -> PathBuf {
    workspace().join("target/cluster")
}

/// Where programs are kept that take minutes to build, each in a folder named by what it is built from: `troupe-tests` of
/// the user's caches, as what Go compiles is, so that `cargo clean` and another clone leave them; `target/cluster/bin` for a
/// user without a home.
pub(crate) fn programs_dir() -> PathBuf {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    caches.map_or_else(|| cluster_dir().join("bin"), |caches| caches.join("troupe-tests"))
}

/// An open file that no other process has locked at the same time; the lock ends with the value, or with the process.
pub(crate) fn locked(path: &Path) -> Result<File> {
    fs::create_dir_all(path.parent().context("a lock file is in a folder")?)?;
    let file = File::create(path).with_context(|| format!("failed to open {}", path.display()))?;
    file.lock().with_context(|| format!("failed to lock {}", path.display()))?;
    Ok(file)
}

/// A folder of one run, removed with the value unless its test is failing or `TROUPE_KEEP` is set.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
    _lock: File,
}

impl RunDir {
    /// A new folder. What runs that were killed have left behind is removed first.
    pub(crate) fn create(kind: &str) -> Result<RunDir> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let runs = cluster_dir().join("run");
        // One at a time: a folder whose lock is not yet taken looks abandoned.
        let _all = locked(&runs.join(".lock"))?;
        remove_abandoned(&runs);
        let name = format!("{kind}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = runs.join(name);
        if path.exists() {
            // Kept by an earlier process that had this number.
            fs::remove_dir_all(&path).with_context(|| format!("failed to remove {}", path.display()))?;
        }
        fs::create_dir_all(&path).with_context(|| format!("failed to create {}", path.display()))?;
        let lock = locked(&path.join(".lock"))?;
        Ok(RunDir { path, _lock: lock })
    }

    /// The folder's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file or folder in it.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file into it and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.join(name);
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if std::thread::panicking() || std::env::var_os("TROUPE_KEEP").is_some() {
            eprintln!("cluster: logs are kept in {}", self.path.display());
            // Without a lock file it is nobody's run any more, and stays until its name is used again or `cargo clean`.
            let _ = fs::remove_file(self.path.join(".lock"));
        } else {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the folders whose owner is gone. A folder that cannot be removed is left: it is in nobody's way.
fn remove_abandoned(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let Ok(lock) = File::open(entry.path().join(".lock")) else {
            continue;
        };
        if !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
