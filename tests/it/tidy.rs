//! What holds for the files of this repository and no compiler checks.

use crate::scenarios;
use decide::condition::{Condition, Reason};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Acceptance cases that a scenario must show: prefix, digits, first and last.
const SHOWN: [(&str, usize, u32, u32); 7] = [
    ("A", 1, 1, 26),
    ("C", 2, 6, 14),
    ("J", 2, 1, 17),
    ("M", 2, 1, 20),
    ("R", 2, 1, 5),
    ("AC-", 2, 1, 8),
    ("AC-", 2, 10, 27),
];

/// Words that name a framework. The host is to know none of them.
const FRAMEWORKS: [&str; 5] = ["paddle", "mpi", "kubeflow", "rhino", "pytorch"];

/// Where the host does name frameworks: the list of built-in plugins, and the example workloads.
const NAMED_IN: [&str; 8] = [
    "host/builtin/Cargo.toml",
    "host/builtin/build.rs",
    "host/builtin/src/lib.rs",
    "host/lab/src/manifest.rs",
    "host/lab/src/campaign/components.rs",
    "host/lab/src/campaign/crowd.rs",
    "host/lab/src/campaign/jobs.rs",
    "host/lab/src/campaign/invariants.rs",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Paths and texts of what is, or could be, committed: all but what `.gitignore` names.
fn files() -> Vec<(String, String)> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git is there, since this is a checkout");
    assert!(listed.status.success(), "git: {}", String::from_utf8_lossy(&listed.stderr));
    let paths = String::from_utf8_lossy(&listed.stdout);
    paths.lines().filter_map(|path| Some((path.to_owned(), fs::read_to_string(root().join(path)).ok()?))).collect()
}

/// `path:line: text` of each line that is wrong.
fn lines_of(files: &[(String, String)], wrong: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let lines = files.iter().flat_map(|(path, text)| text.lines().enumerate().map(move |(at, line)| (path, at, line)));
    let wrong = lines.filter(|(path, _, line)| wrong(path, line));
    wrong.map(|(path, at, line)| format!("{path}:{}: {}", at + 1, line.trim())).collect()
}

/// The words of a line of code: `MPIJob` is one, `mpi_job` and `mpi-job` are two.
fn words(line: &str) -> impl Iterator<Item = String> {
    line.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_lowercase)
}

fn names_a_framework(line: &str) -> bool {
    let names = |word: &str| FRAMEWORKS.iter().any(|name| word == *name || word.starts_with(&format!("{name}job")));
    words(line).any(|word| names(&word))
}

/// The part of a file before its unit tests, which may take their examples from anywhere.
fn without_tests(files: Vec<(String, String)>) -> Vec<(String, String)> {
    let cut = |text: String| text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned();
    files.into_iter().map(|(path, text)| (path, cut(text))).collect()
}

fn case(prefix: &str, digits: usize, number: u32) -> String {
    format!("{prefix}{number:0digits$}")
}

/// The case numbers that a scenario's comments begin with: `# A2, A8 (b): ...`.
fn cases(text: &str) -> BTreeSet<String> {
    let comments = text.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(':'));
    comments
        .flat_map(|(cases, _)| cases.split(", "))
        .filter_map(|case| case.split(' ').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_acceptance_case_has_a_scenario() {
    let shown: BTreeSet<String> =
        scenarios::files().iter().flat_map(|path| cases(&fs::read_to_string(path).unwrap())).collect();
    let wanted = SHOWN
        .iter()
        .flat_map(|(prefix, digits, first, last)| (*first..=*last).map(move |number| case(prefix, *digits, number)));
    let missing: Vec<_> = wanted.filter(|case| !shown.contains(case)).collect();
    assert!(missing.is_empty(), "no scenario says that it shows {missing:?}");
}

#[test]
fn the_host_names_no_framework_but_in_the_list_of_its_plugins() {
    let of_host = |path: &str| path.starts_with("host/") && (path.ends_with(".rs") || path.ends_with(".toml"));
    // Unit tests in a file of their own may, as those in the file that they test.
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
    let named = |path: &str| NAMED_IN.contains(&path) || is_test(path) || path.contains("/examples/");
    let files = without_tests(files());
    let wrong = lines_of(&files, |path, line| of_host(path) && !named(path) && names_a_framework(line));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn generated_bindings_are_named_in_one_file() {
    let generated = |line: &str| line.contains("bindgen!(") || line.contains("troupe::framework::");
    let of_host = |path: &str| path.starts_with("host/") && path.ends_with(".rs");
    let wrong =
        lines_of(&files(), |path, line| of_host(path) && !path.ends_with("sandbox/src/convert.rs") && generated(line));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A packed SDK builds without this repository, and no link survives an archive: the contract is there twice.
#[test]
fn the_sdk_has_the_contract() {
    let (contract, copy) = (root().join("wit/framework.wit"), root().join("plugins/sdk/wit/framework.wit"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::copy(&contract, &copy).unwrap();
    }
    let [contract, copy] = [contract, copy].map(|path| fs::read_to_string(path).unwrap_or_default());
    assert!(contract == copy, "the SDK's framework.wit is out of date; run the tests with UPDATE_EXPECT=1");
}

#[test]
fn the_core_has_no_way_to_do_io() {
    let manifest = fs::read_to_string(root().join("host/decide/Cargo.toml")).unwrap();
    for runtime in ["tokio", "kube", "wasmtime", "reqwest", "hyper"] {
        let named = manifest.lines().any(|line| line.starts_with(runtime));
        assert!(!named, "decide depends on {runtime}");
    }
    let reads_a_clock =
        |line: &str| ["::now()", "std::fs", "std::net", "std::env", "thread_rng"].iter().any(|it| line.contains(it));
    let of_core = |path: &str| path.starts_with("host/decide/src/");
    let wrong = lines_of(&files(), |path, line| of_core(path) && reads_a_clock(line));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A profile's `strip` does not hold for a package that the profile has an override for.
#[test]
fn the_program_is_stripped() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let table = |header: &str| manifest.split("\n[").find(|table| table.starts_with(header));
    let table = table("profile.release.package.troupe-cli]").or_else(|| table("profile.release]")).unwrap();
    assert!(table.lines().any(|line| line == r#"strip = "symbols""#), "[{table}");
}

/// What a path in braces stands for: `src/{a,b}.rs` is `src/a.rs` and `src/b.rs`.
fn expanded(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((names, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    names.split(',').map(|name| format!("{before}{name}{after}")).collect()
}

#[test]
fn every_file_that_the_map_of_the_host_names_exists() {
    let map = fs::read_to_string(root().join("host/ARCHITECTURE.md")).unwrap();
    let rows = map.lines().filter(|line| line.starts_with('|'));
    let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let paths = quoted.filter(|word| word.contains('/') && !word.contains(['<', ' ']));
    let named: Vec<String> = paths.flat_map(expanded).collect();
    assert!(named.len() > 80, "the map names {} files", named.len());
    // Paths are relative to the host; those of other folders of the repository begin with their names.
    let exists = |path: &String| root().join("host").join(path).exists() || root().join(path).exists();
    let missing: Vec<_> = named.iter().filter(|path| !exists(path)).collect();
    assert!(missing.is_empty(), "host/ARCHITECTURE.md names files that do not exist: {missing:#?}");
}

#[test]
fn every_condition_and_reason_is_explained_to_users() {
    let page = fs::read_to_string(root().join("docs/conditions.md")).unwrap();
    let rows: String = page.lines().filter(|line| line.starts_with('|') || line.contains("`Created`")).collect();
    let words = || Condition::ALL.iter().map(|it| it.as_str()).chain(Reason::ALL.iter().map(|it| it.as_str()));
    let missing: Vec<_> = words().filter(|word| !rows.contains(&format!("`{word}`"))).collect();
    assert!(missing.is_empty(), "docs/conditions.md does not explain {missing:?}");
    let first = page.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next());
    let named = first.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let unknown: Vec<_> = named.filter(|word| !words().any(|it| it == *word)).collect();
    assert!(unknown.is_empty(), "docs/conditions.md explains what the host never says: {unknown:?}");
}

#[test]
fn every_rule_of_plans_is_explained_to_authors() {
    let page = fs::read_to_string(root().join("docs/plugins/rules.md")).unwrap();
    let explained: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("| `V")?.split('`').next()).collect();
    let rules: Vec<_> = decide::rejection::RULES.iter().filter_map(|rule| rule.strip_prefix('V')).collect();
    assert_eq!(explained, rules);
}

/// The line names a file under a folder that only the author's machine has. Paths below a variable are others.
fn names_a_place(line: &str) -> bool {
    let of_an_image = ["/root/.ssh", "/home/mpiuser"];
    let line = of_an_image.iter().fold(line.to_owned(), |line, path| line.replace(path, ""));
    let begins = |at: usize| !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || "_.-})*".contains(c));
    ["/root", "/work", "/home"]
        .map(|folder| format!("{folder}/"))
        .iter()
        .any(|folder| line.match_indices(folder.as_str()).any(|(at, _)| begins(at)))
}

#[test]
fn no_file_names_a_path_of_the_machine_it_was_written_on() {
    let wrong = lines_of(&files(), |_, line| names_a_place(line));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_path_of_this_machine_is_distinguished_from_one_of_an_image_or_a_variable() {
    let here = ["/ro", "ot/x"].concat();
    assert!(names_a_place(&here) && names_a_place(&format!("\"{here}\"")) && names_a_place(&format!("cd {here}")));
    assert!(!names_a_place(&format!("$rootfs{here}")) && !names_a_place("mountPath: /root/.ssh"));
}

#[test]
fn the_set_up_knows_every_test_with_a_need_and_nothing_else_installs_or_builds_these_tests() {
    let all = harness::set_up::selected_tests(&[]).unwrap();
    let known = harness::set_up::tests_with_needs("it").unwrap();
    let unknown: Vec<_> = known.difference(&all).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let files = files();
    let attributes = lines_of(&files, |path, line| {
        path.starts_with("tests/it/") && line.trim().starts_with(concat!("#[cfg_attr(", "lacks_"))
    });
    assert_eq!(attributes.len(), known.len(), "the set-up does not see each of {attributes:#?}");
    let tests = |path: &str| path.starts_with("tests/") && path.ends_with(".rs");
    let installs = lines_of(&files, |path, line| tests(path) && line.contains(concat!("packages::", "install(")));
    assert!(installs.iter().all(|line| line.starts_with("tests/harness/set_up.rs:")), "{installs:#?}");
    let builds = lines_of(&files, |path, line| tests(path) && line.contains(concat!("\"--", "no-run\"")));
    assert!(builds.is_empty(), "cargo would link tests that run: {builds:#?}");
}
