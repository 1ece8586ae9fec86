//! README's commands of the section "Try it" on a machine that has nothing of ours, as root and as an ordinary user.

use harness::NewMachine;
use std::{fs, path::Path};

/// What README tells a user of Debian to install beside Rust and Go.
fn packages(readme: &str) -> Vec<&str> {
    let line = readme.lines().find_map(|line| line.strip_prefix("sudo apt-get install ")).expect("README says it");
    line.split('#').next().unwrap_or_default().split_whitespace().collect()
}

/// The commands that begin with `cargo` in the section.
fn commands(readme: &str) -> Vec<&str> {
    let section = readme.split("\n## ").find(|section| section.starts_with("Try it\n")).expect("README has it");
    let lines = section.lines().filter(|line| line.starts_with("cargo "));
    lines.filter_map(|line| Some(line.split('#').next()?.trim())).collect()
}

/// Numbers of tests in the lines that end each suite: passed, failed, ignored.
fn counts(output: &str) -> [usize; 3] {
    let mut sums = [0; 3];
    for line in output.lines().filter(|line| line.starts_with("test result: ")) {
        for (sum, word) in sums.iter_mut().zip(["passed", "failed", "ignored"]) {
            let count =
                line.split([';', '.']).find_map(|part| part.trim().strip_suffix(word)?.trim().parse::<usize>().ok());
            *sum += count.unwrap_or_default();
        }
    }
    sums
}

fn both_commands_pass_for(user: &'static str) {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let machine = NewMachine::make(&packages(&readme), user).unwrap();
    let commands = commands(&readme);
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in commands {
        let ran = machine.run(command).unwrap();
        let [passed, failed, ignored] = counts(&ran.output);
        eprintln!(
            "new machine: `{command}` of {user}: success {}, {} min {} s, {passed} passed, {failed} failed, {ignored} ignored",
            ran.success,
            ran.took.as_secs() / 60,
            ran.took.as_secs() % 60
        );
        ran.output.lines().filter(|line| line.starts_with("set-up: ")).for_each(|line| eprintln!("  {line}"));
        let end: Vec<_> = ran.output.lines().rev().take(40).collect();
        assert!(ran.success && failed == 0, "{}", end.into_iter().rev().collect::<Vec<_>>().join("\n"));
        assert!(!command.contains("test") || passed > 1_000, "{passed} passed");
    }
    machine.remove().unwrap();
}

#[test]
#[cfg_attr(lacks_machine, ignore = "takes hours: TROUPE_REQUIRE=machine")]
fn both_commands_of_the_readme_pass_on_a_new_machine_as_root() {
    both_commands_pass_for("root");
}

#[test]
#[cfg_attr(lacks_machine, ignore = "takes hours: TROUPE_REQUIRE=machine")]
fn both_commands_of_the_readme_pass_on_a_new_machine_as_an_ordinary_user() {
    both_commands_pass_for("user");
}

#[test]
fn the_readme_says_what_a_machine_needs_and_which_two_commands_to_run() {
    let readme = "\n## Try it\n\n```sh\nsudo apt-get install git gcc  # a\ncargo run -- demo   # one\ncargo test\n```\n\n## Go on\ncargo x\n";
    assert_eq!((packages(readme), commands(readme)), (vec!["git", "gcc"], vec!["cargo run -- demo", "cargo test"]));
    let output = "test result: ok. 391 passed; 0 failed; 20 ignored; 0 measured; 3 filtered out\n\
                  test result: FAILED. 9 passed; 2 failed; 1 ignored; 0 measured\n";
    assert_eq!(counts(output), [400, 2, 21]);
}
