//! `troupe plugin test FILE --scenarios DIR`, run as the built binary.

use super::{files, folder};
use crate::recording::{self, commands};
use sandbox::Plugins;
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
};

const SHORTHAND: (&str, &str) = ("shorthand.json", r#"{"paddle": {"roles": {"worker": "worker"}}}"#);
const RIGHT: (&str, &str) = ("right.txt", "# before any job\n> show objects\nnone\n");
const WRONG: (&str, &str) = ("wrong.txt", "# with a job\n> job paddle six worker=1\n> settle\nnothing happens\n");

/// A new folder of this test run with these files.
fn new_folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    for (file, text) in files {
        fs::write(folder.join(file), text).unwrap();
    }
    folder
}

/// Whether the built-in plugin of Paddle goes through the scenarios of a folder, and what is said of it.
fn test(folder: &Path, more: &[&str]) -> (bool, String) {
    let folder = folder.to_str().unwrap();
    commands::troupe(&[&["plugin", "test", "paddle", "--scenarios", folder][..], more].concat())
}

#[test]
fn a_plugin_alone_goes_through_the_scenarios_of_its_folder() {
    let wasm = new_folder("component", &[]).join("paddle.wasm");
    fs::write(&wasm, Plugins::built_in("paddle").unwrap()).unwrap();
    let paddle = folder().join("paddle");
    let count = files().iter().filter(|file| file.starts_with(&paddle)).count();
    let (wasm, paddle) = (wasm.to_str().unwrap(), paddle.to_str().unwrap());
    let (well, text) = commands::troupe(&["plugin", "test", wasm, "--scenarios", paddle]);
    assert!(well && text.starts_with("paddle ") && text.contains("\nok failure-is-final.txt\n"), "{text}");
    assert!(text.ends_with(&format!("\n{count} of {count} scenarios went as they say\n")), "{text}");
}

#[test]
fn a_scenario_that_goes_otherwise_is_reported_and_rewritten_only_if_asked() {
    let folder = new_folder("otherwise", &[SHORTHAND, RIGHT, WRONG]);
    let wrong = folder.join(WRONG.0);
    let (well, text) = test(&folder, &[]);
    assert!(!well && text.contains("\nok right.txt\nFAILED wrong.txt\n"), "{text}");
    assert!(text.contains("\n-nothing happens\n+create pod/six-worker-0 · create service/six-worker-0\n"), "{text}");
    assert!(text.ends_with("\n1 of 2 scenarios went as they say; --update rewrites what the others print\n"), "{text}");
    assert_eq!(fs::read_to_string(&wrong).unwrap(), WRONG.1);

    let (well, text) = test(&folder, &["--update"]);
    assert!(well && text.contains("\nok right.txt\nrewritten wrong.txt\n"), "{text}");
    assert!(text.ends_with("\n1 of 2 scenarios went as they say, 1 rewritten\n"), "{text}");
    let kept = WRONG.1.replace("nothing happens\n", "");
    let rewritten = fs::read_to_string(&wrong).unwrap();
    assert!(rewritten.starts_with(&format!("{kept}create pod/six-worker-0 ")), "{rewritten}");

    let (well, text) = test(&folder, &[]);
    assert!(well && text.ends_with("\n2 of 2 scenarios went as they say\n"), "{text}");
}

#[test]
fn a_scenario_that_cannot_be_replayed_is_reported_and_never_rewritten() {
    let line = "> job strange x worker=1\n> settle\nsettled\n";
    let manifest = "> job\n  {apiVersion: strange.dev/v1, kind: StrangeJob, metadata: {name: x}}\n> settle\nsettled\n";
    let folder = new_folder("stuck", &[("line.txt", line), ("manifest.txt", manifest)]);
    for more in [vec![], vec!["--update"]] {
        let (well, text) = test(&folder, &more);
        assert!(!well && text.contains("\nFAILED line.txt\n  line 1: > job strange x worker=1: "), "{text}");
        assert!(text.contains(": there is no plugin strange here\n"), "{text}");
        assert!(text.contains(": no plugin serves strange.dev/v1 StrangeJob\n"), "{text}");
        assert!(text.ends_with("\n0 of 2 scenarios went as they say\n"), "{text}");
    }
    assert_eq!(fs::read_to_string(folder.join("line.txt")).unwrap(), line);
}

#[test]
fn recorded_passes_and_scenarios_are_both_asked_about() {
    let recorded = recording::lines(&json!({ "lean": true }));
    let passes = new_folder("passes", &[("passes.jsonl", recorded.as_str())]).join("passes.jsonl");
    let more = ["--recording", passes.to_str().unwrap()];
    let (well, text) = test(&new_folder("both", &[RIGHT]), &more);
    assert!(well && text.contains("over 1 job: no difference\nok right.txt\n"), "{text}");
    let (well, text) = test(&new_folder("one", &[SHORTHAND, WRONG]), &more);
    assert!(!well && text.contains("over 1 job: no difference\nFAILED wrong.txt\n"), "{text}");
}

#[test]
fn a_folder_without_scenarios_is_reported_with_what_is_looked_for() {
    let folder = new_folder("empty", &[SHORTHAND, ("README.md", "> show objects\nnone\n")]);
    let (well, text) = test(&folder, &[]);
    assert!(!well && text.contains("/empty: looked for *.txt there and in the folders in it; "), "{text}");
    let (well, text) = test(&folder.join("nowhere"), &[]);
    assert!(!well && text.contains("/nowhere cannot be read: "), "{text}");
}

#[test]
fn a_shorthand_that_makes_no_sense_is_reported_with_its_file_here_or_above() {
    let bad = (SHORTHAND.0, r#"{"paddle": {"rolls": {}}}"#);
    let folder = new_folder("bad", &[bad, RIGHT]);
    let (well, text) = test(&folder, &[]);
    assert!(
        !well && text.contains("/bad/shorthand.json is no shorthand of scenarios: unknown field `rolls`"),
        "{text}"
    );

    let below = new_folder("bad/below", &[RIGHT]);
    let (well, text) = test(&below, &[]);
    assert!(!well && text.contains("/below/../shorthand.json is no shorthand of scenarios: "), "{text}");
    fs::write(below.join(SHORTHAND.0), SHORTHAND.1).unwrap();
    let (well, text) = test(&below, &[]);
    assert!(well && text.ends_with("\n1 of 1 scenarios went as they say\n"), "{text}");
}

#[test]
fn a_test_by_nothing_is_no_test() {
    let (well, text) = commands::troupe_in(&new_folder("nothing", &[]), &["plugin", "test", "paddle"]);
    assert!(!well && text.contains("scenarios cannot be read"), "{text}");
}

#[test]
fn a_command_that_cannot_be_run_hides_nothing_that_came_before_it() {
    let text = [WRONG.1, "> pods nobody-* running\n> settle\nsettled\n"].concat();
    let folder = new_folder("before", &[SHORTHAND, ("both.txt", &text)]);
    let (well, text) = test(&folder, &["--update"]);
    assert!(!well && text.contains("\nFAILED both.txt\n@@ "), "{text}");
    assert!(text.contains("\n-nothing happens\n+create pod/six-worker-0 · create service/six-worker-0\n"), "{text}");
    assert!(text.contains("\n  line 5: > pods nobody-* running: no pod is called nobody-*\n"), "{text}");
}
