//! One step before a suite's first test: puts on this machine what the selected tests need and it lacks, and says what is
//! put there for what, which tests are ignored, and why.
//!
//! Nothing is installed after it: a program that appears while tests run changes what they and cargo see. What is built
//! later goes to `target/cluster`, `target/tools` and the user's caches alone.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::binaries::{Binaries, Release, Tool};
use crate::cargo_component::cargo_component;
use crate::packages::{self, BROWSER, C_PLUGINS, CURL, IMAGES, MUSL, NODE, OPENSSL, PIP, SSH, VENV};
use crate::python::Python;
use crate::require::{ALL, BETWEEN, Need, is_opt_in};
use crate::run_dir::workspace;
use crate::slowest;

/// Set for a test program that is asked for its list of tests.
const LISTING: &str = "TROUPE_LISTING_TESTS";

/// Prepares the machine for the tests of this program that its arguments select, and says at their end which were slow.
/// Called once, before libtest begins.
///
/// `sources` is the folder of the program's tests below `tests`. What cannot be installed is said, and the tests that need
/// it fail.
pub fn before_the_tests(sources: &str) {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if env::var_os(LISTING).is_some() || arguments.iter().any(|argument| argument == "--list" || argument == "--help") {
        return;
    }
    if slowest::is_watched() {
        return;
    }
    if let Err(error) = prepare(sources, &arguments) {
        eprintln!("set-up: {error:#}; tests that need it fail");
    }
    if let Err(error) = slowest::run(&arguments) {
        eprintln!("set-up: which tests are slow is not known: {error:#}");
    }
}

/// The names of a program's tests that have a need: `cfg_attr(lacks_NEED, ignore)` stands above each in `sources`.
///
/// # Errors
/// The folder cannot be read.
pub fn tests_with_needs(sources: &str) -> Result<BTreeSet<String>> {
    Ok(read_needs(sources)?.into_keys().collect())
}

/// The names of all tests of the running program that these arguments select.
///
/// # Errors
/// The program does not start, or refuses the arguments.
pub fn selected_tests(arguments: &[String]) -> Result<BTreeSet<String>> {
    // By this path it is the running program, whatever is at the path that it was started by.
    let listed = Command::new("/proc/self/exe").args(arguments).arg("--list").env(LISTING, "1").output()?;
    ensure!(listed.status.success(), "the list of tests: {}", String::from_utf8_lossy(&listed.stderr).trim());
    let lines = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(lines.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned())).collect())
}

fn prepare(sources: &str, arguments: &[String]) -> Result<()> {
    let needs = read_needs(sources)?;
    let mut selected: BTreeMap<Need, Vec<&str>> = BTreeMap::new();
    let names = selected_tests(arguments)?;
    for (test, need) in needs.iter().filter(|(test, _)| names.contains(*test)) {
        selected.entry(*need).or_default().push(test);
    }
    let with_ignored = arguments.iter().any(|argument| argument == "--ignored" || argument == "--include-ignored");
    let mut wanted = vec![];
    for (need, tests) in selected {
        // As the build script has found, which ignores these tests.
        match lack(env!("TROUPE_LACKS"), need) {
            Some(reason) if !with_ignored => eprintln!("{}", ignored(need.name(), reason, is_opt_in(need), &tests)),
            _ => wanted.push(need),
        }
    }
    install(&wanted)
}

/// The line about tests that are ignored: what is missing, which tests they are, and how many. Of tests that have to be asked
/// for, the number alone.
fn ignored(need: &str, reason: &str, is_opt_in: bool, tests: &[&str]) -> String {
    let names = if is_opt_in { String::new() } else { format!(": {}", tests.join(", ")) };
    let (count, verb) = (tests.len(), if tests.len() == 1 { "test is" } else { "tests are" });
    format!(
        "set-up: no `{need}` here: {reason} (TROUPE_REQUIRE={need} makes this an error){names}; {count} {verb} ignored"
    )
}

/// Installs packages before programs are built, since these may be built with them.
fn install(needs: &[Need]) -> Result<()> {
    let mut wanted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for need in needs {
        for package in debian(*need).iter().copied().flatten() {
            wanted.entry(package).or_default().insert(need.name());
        }
    }
    packages::install(&wanted)?;
    let mut wanted: Vec<Tool> = vec![];
    for tool in needs.iter().flat_map(|need| programs(*need)) {
        if !wanted.contains(&tool) {
            wanted.push(tool);
        }
    }
    Binaries::of(&wanted)?;
    if needs.contains(&Need::Releases) {
        for release in [Release::Previous, Release::Oldest] {
            Binaries::of_release(release, &programs(Need::Releases))?;
        }
    }
    if needs.contains(&Need::Node) {
        Python::kubeflow_training()?;
        Python::cyclonedx()?;
    }
    if needs.contains(&Need::Author) {
        cargo_component()?;
    }
    Ok(())
}

/// Groups of Debian's packages.
fn debian(need: Need) -> &'static [&'static [&'static str]] {
    match need {
        Need::Cluster | Need::Ecosystem | Need::Resilience | Need::Author | Need::Releases => &[OPENSSL],
        Need::Book => &[OPENSSL, CURL],
        Need::Curl => &[CURL],
        Need::Node => &[OPENSSL, NODE, IMAGES, VENV, SSH],
        Need::Frameworks => &[OPENSSL, NODE, IMAGES, PIP],
        Need::Image => &[OPENSSL, NODE, IMAGES, MUSL],
        Need::Languages => &[OPENSSL, C_PLUGINS, VENV],
        Need::Page => &[BROWSER],
        Need::Machine => &[MACHINE],
    }
}

/// What makes the root of another machine.
const MACHINE: &[&str] = &["debootstrap", "debian-archive-keyring"];

/// Programs that are built from Go modules.
fn programs(need: Need) -> Vec<Tool> {
    use Tool::{ApiServer, ControllerManager, CoreDns, Cosign, Etcd, Helm, Kubectl, Kubelet, Kwok, Promtool, Registry};
    let control_plane = [Etcd, ApiServer, ControllerManager, Tool::Scheduler, Kwok];
    let more: &[Tool] = match need {
        Need::Page | Need::Curl | Need::Machine => return vec![],
        Need::Ecosystem | Need::Resilience | Need::Author | Need::Releases => &[],
        Need::Cluster => &[Kubectl, Registry, Helm, Promtool],
        Need::Book => &[Kubectl, Helm],
        Need::Languages => &[Registry],
        Need::Node | Need::Frameworks => &[Kubelet, CoreDns, Helm],
        Need::Image => &[Kubelet, CoreDns, Helm, Registry, Cosign],
    };
    control_plane.iter().chain(more).copied().collect()
}

/// The reason why a need is missing, in `NEED=reason` of all that are.
fn lack(lacks: &str, need: Need) -> Option<&str> {
    let mut lacks = lacks.split(BETWEEN).filter_map(|lack| lack.split_once('='));
    lacks.find(|(name, _)| *name == need.name()).map(|(_, reason)| reason)
}

fn read_needs(sources: &str) -> Result<BTreeMap<String, Need>> {
    let folder = workspace().join("tests").join(sources);
    let mut found = BTreeMap::new();
    for file in rust_files(&folder)? {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let module = module(file.strip_prefix(&folder)?);
        found.extend(needs_in(&text).map(|(test, need)| ([&module[..], &[test.as_str()]].concat().join("::"), need)));
    }
    Ok(found)
}

/// The modules of a file: none for the root of a program.
fn module(file: &Path) -> Vec<&str> {
    let file = file.to_str().unwrap_or_default().trim_end_matches(".rs");
    if ["main", "lib"].contains(&file) { vec![] } else { file.split('/').collect() }
}

fn needs_in(text: &str) -> impl Iterator<Item = (String, Need)> {
    let mut above = None;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("#[cfg_attr(lacks_") {
            above = ALL.into_iter().find(|need| rest.split(',').next() == Some(need.name()));
        }
        let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
        Some((name.split('(').next()?.to_owned(), above.take()?))
    })
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_the_need_above_it() {
        let text = "#[test]\n#[cfg_attr(lacks_node, ignore = \"no\")]\nasync fn one() {}\n\n#[test]\nfn two() {}\n";
        assert_eq!(needs_in(text).collect::<Vec<_>>(), [("one".to_owned(), Need::Node)]);
        assert_eq!(module(Path::new("node/tests.rs")), ["node", "tests"]);
        assert!(module(Path::new("main.rs")).is_empty());
    }

    #[test]
    fn every_test_with_a_need_is_known_by_the_name_that_libtest_gives_it() {
        let all = selected_tests(&[]).unwrap();
        let known = tests_with_needs("harness").unwrap();
        assert!(known.len() >= 4 && known.is_subset(&all), "{known:?}");
    }

    #[test]
    fn a_reason_of_several_parts_is_read_whole() {
        let lacks = "curl=curl does not start: x=1; packages are installed by root, this is user 7\tpage=nobody asked";
        let reason = "curl does not start: x=1; packages are installed by root, this is user 7";
        assert_eq!((lack(lacks, Need::Curl), lack(lacks, Need::Page)), (Some(reason), Some("nobody asked")));
        assert_eq!((lack(lacks, Need::Node), lack("", Need::Curl)), (None, None));
    }

    #[test]
    fn what_is_ignored_is_said_with_its_reason_and_number() {
        let said = ignored("node", "packages are installed by root, this is user 7", false, &["node::a", "node::b"]);
        assert!(said.contains("this is user 7") && said.ends_with("node::a, node::b; 2 tests are ignored"), "{said}");
        assert!(ignored("page", "nobody asked", true, &["page::a"]).ends_with("an error); 1 test is ignored"));
    }

    #[test]
    fn every_need_that_starts_a_control_plane_has_openssl() {
        for need in ALL.into_iter().filter(|need| !programs(*need).is_empty()) {
            assert!(debian(need).contains(&OPENSSL), "{need:?}");
        }
    }
}
