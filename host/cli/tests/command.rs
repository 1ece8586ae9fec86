//! The binary as its users call it. That this test is in the host's own package lets `cargo test` build the binary, with
//! the features that all other tests have.
#![expect(clippy::unwrap_used, reason = "a test says by its panic what is wrong")]

use std::process::{Command, Output};

fn troupe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_troupe")).args(arguments).output().unwrap()
}

#[test]
fn a_word_that_is_no_command_is_told_with_those_that_are() {
    let output = troupe(&["operate"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("'operate'") && told.contains("operator"), "{told}");
}

#[test]
fn help_names_every_command_with_what_it_does() {
    let output = troupe(&["--help"]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    for command in ["operator", "demo", "crds", "preflight", "plugin", "rbac", "sim", "explain"] {
        let line = told.lines().find(|line| line.trim_start().starts_with(command));
        assert!(line.is_some_and(|line| line.split_whitespace().count() > 3), "{command}: {told}");
    }
    assert!(!told.contains("compile"), "the host's own child is no command for users: {told}");
}
