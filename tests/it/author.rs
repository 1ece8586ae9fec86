//! The way of a new author: the commands of the guide and of the new crate's README, run as they stand there.

use crate::{
    cluster::{documented::Shell, world::World},
    operator::Operator,
};
use std::{fs, os::unix::fs::symlink, path::Path};

const GUIDE: &str = include_str!("../../plugins/README.md");

/// The same for the tool that the guide names beside plain cargo.
const WITH_CARGO_COMPONENT: &str = "cargo component build --release";

/// The block of commands that has this line.
pub(crate) fn block<'a>(text: &'a str, line: &str) -> Vec<&'a str> {
    // The first line has the language of the block.
    let mut blocks = text.split("```").skip(1).step_by(2).map(|block| block.lines().skip(1).collect::<Vec<_>>());
    let found = blocks.find(|lines| lines.contains(&line));
    found.unwrap_or_else(|| panic!("no block of commands has {line}"))
}

/// The text of a file.
pub(crate) fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[tokio::test]
#[cfg_attr(lacks_author, ignore = "builds a new crate: TROUPE_REQUIRE=author")]
async fn a_new_crate_is_built_tested_and_served_by_the_commands_of_its_guides() {
    let world = World::alone("author").await;
    let shell = Shell::of(&world, "author");
    // The new crate is formatted as rustfmt does by itself, not as this repository has it.
    fs::write(shell.folder.join("rustfmt.toml"), "").unwrap();
    let first = block(GUIDE, "cd echo");
    shell.runs(first[0]);
    let folder = shell.folder.join("echo");
    let readme = read(&folder.join("README.md"));
    // The versions of this workspace, which this machine has, and what an earlier run has built.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("author");
    fs::create_dir_all(&built).unwrap();
    symlink(built, folder.join("target")).unwrap();

    shell.runs(&[&["export CARGO_NET_OFFLINE=true"], &first[1..]].concat().join(" && "));
    let here = shell.at(folder);
    let offline = |command: &str| here.runs(&format!("export CARGO_NET_OFFLINE=true && {command}"));
    offline("cargo run --quiet --example crd > made.yaml && diff made.yaml crd.yaml");
    offline("cargo fmt --check && cargo test --quiet && troupe plugin bench --rounds 1");
    for command in block(&readme, "troupe plugin test") {
        offline(command);
    }
    here.runs(block(GUIDE, "troupe sim --plugin target/wasm32-wasip2/release/echo.wasm example.yaml")[0]);

    let host = Operator::start(&world.plane, &["--namespace", "default", "--plugin-namespace", "troupe-system"]).await;
    for command in block(&readme, "kubectl apply -f crd.yaml") {
        here.runs(command);
    }
    let phase = |phase: &str| {
        here.runs(&format!("kubectl wait --for=jsonpath='{{.status.phase}}'={phase} echojob/example --timeout=60s"));
    };
    phase("Running");
    here.runs("kubectl annotate pods --selector example.org/job-name=example troupe.dev/run-for=0s");
    phase("Succeeded");
    here.runs("kubectl delete echojob/example plugin/echo crd/echojobs.example.org");
    host.stop().await;
}

// A project as `troupe plugin new` makes it, without any metadata for the tool and with a target that rustup installs.
#[tokio::test]
#[cfg_attr(lacks_author, ignore = "builds a new crate: TROUPE_REQUIRE=author")]
async fn cargo_component_makes_the_same_of_a_new_crate_as_plain_cargo() {
    let world = World::shared("cargo-component").await;
    let shell = Shell::of(&world, "cargo-component");
    shell.runs(block(GUIDE, "cd echo")[0]);
    let folder = shell.folder.join("echo");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let manifest = read(&folder.join("Cargo.toml"));
    assert!(!manifest.contains("package.metadata"), "{manifest}");
    let here = shell.at(folder);
    let tools = harness::cargo_component().unwrap();
    let commands = block(GUIDE, WITH_CARGO_COMPONENT);
    here.runs(&format!("export PATH={}:$PATH && {}", tools.display(), commands[0]));
    let played = here.prints(commands[1]);
    assert!(played.contains("5 of 5 scenarios"), "{played}");
}
