//! Every scenario of this repository goes as it says: what should happen, decided by the real plugins.
//!
//! They are files `tests/scenarios/<framework>/<what-should-happen>.txt`, replayed by `troupe::scenario`; a comment that
//! begins with case numbers (`# A1: ...`) says which acceptance cases the file shows.
//! `UPDATE_EXPECT=1 cargo test -p tests scenarios` rewrites what they print: read the difference before it is kept.

mod corrections;
mod plugin_test;
mod tools;

use crate::built_in;
use lab::scenario::{self, Outcome, Shorthand, Written};
use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// The folder of all scenario files.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

/// Every scenario file, in order.
pub(crate) fn files() -> Vec<PathBuf> {
    scenario::files(&folder()).unwrap()
}

/// What the host writes in each scenario, which is replayed once for all tests that look at it.
fn written() -> &'static [(PathBuf, Written)] {
    static ALL: LazyLock<Vec<(PathBuf, Written)>> = LazyLock::new(|| {
        let plugins = built_in::plugins();
        let shorthand = Shorthand::of_folder(&folder()).unwrap();
        let of_file = |file: PathBuf| {
            let text = scenario::text(&file).unwrap();
            let written = scenario::written(&text, plugins.fork(), &shorthand).unwrap();
            (file, written)
        };
        files().into_iter().map(of_file).collect()
    });
    &ALL
}

#[test]
fn every_scenario_says_what_happens() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let plugins = built_in::plugins();
    let shorthand = Shorthand::of_folder(&folder()).unwrap();
    let files = files();
    assert!(!files.is_empty(), "no scenario in {}", folder().display());
    let mut failed = Vec::new();
    for path in &files {
        let name = path.strip_prefix(folder()).unwrap_or(path).display().to_string();
        let wrong = match scenario::check(path, &plugins, &shorthand, update) {
            Outcome::AsItSays | Outcome::Rewritten => continue,
            Outcome::Otherwise(difference) => difference,
            Outcome::Stuck { error, before } => format!("{before}{error:#}\n"),
        };
        eprintln!("--- tests/scenarios/{name}\n{wrong}");
        failed.push(name);
    }
    assert!(
        failed.is_empty(),
        "{} of {} scenarios went otherwise (UPDATE_EXPECT=1 rewrites them): {}",
        failed.len(),
        files.len(),
        failed.join(", ")
    );
}
