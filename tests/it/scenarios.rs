//! Scenarios: what should happen, as text, decided by the real plugins on a small world without I/O.
//!
//! A file `tests/scenarios/<framework>/<what-should-happen>.txt` is replayed line by line:
//!
//! ```text
//! # A1: a comment; one that begins with case numbers says which acceptance cases the file shows
//! > job paddle wide-and-deep ps=1 worker=2
//! > reconcile
//! create pod/wide-and-deep-ps-0 · create pod/wide-and-deep-worker-0 · create pod/wide-and-deep-worker-1
//! waiting: pod addresses (0 of 3)
//! ```
//!
//! Lines that begin with `>` are commands ([`command`] lists them), the lines after one are what it prints.
//! `UPDATE_EXPECT=1 cargo test -p tests scenarios` rewrites what they print: read the difference before it is kept.

mod command;
pub(crate) mod diff;
mod manifest;
mod pass;
mod pods;
mod script;
mod seen;
mod show;
mod words;
mod world;

use std::{
    fs,
    path::{Path, PathBuf},
};
use troupe::plugin::{Plugins, Seam};

/// The folder of all scenario files.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Every scenario file, in order.
pub(crate) fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = entries(&folder()).iter().flat_map(|framework| entries(framework)).collect();
    files.sort();
    files
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// What is wrong with a scenario, or None. With `update` the file is rewritten instead.
fn wrong(path: &Path, plugins: &Plugins, update: bool) -> Option<String> {
    let replayed = fs::read_to_string(path).map_err(anyhow::Error::from).and_then(|text| {
        let replayed = script::replay(&text, world::World::new(plugins.fork()))?;
        Ok((text, replayed))
    });
    match replayed {
        Err(error) => Some(format!("{error:#}\n")),
        Ok((text, replayed)) if text == replayed => None,
        Ok((_, replayed)) if update => fs::write(path, replayed).err().map(|error| format!("{error}\n")),
        Ok((text, replayed)) => Some(diff::lines(&text, &replayed)),
    }
}

#[test]
fn every_scenario_says_what_happens() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let plugins = Plugins::builtin(Seam::Inline).unwrap();
    let files = files();
    assert!(!files.is_empty(), "no scenario in {}", folder().display());
    let mut failed = Vec::new();
    for path in &files {
        let name = path.strip_prefix(folder()).unwrap_or(path).display().to_string();
        if let Some(wrong) = wrong(path, &plugins, update) {
            eprintln!("--- tests/scenarios/{name}\n{wrong}");
            failed.push(name);
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} scenarios went otherwise (UPDATE_EXPECT=1 rewrites them): {}",
        failed.len(),
        files.len(),
        failed.join(", ")
    );
}
