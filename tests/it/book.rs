//! The book in `docs/`, the README and the guides of plugins: what in them is generated, where their links lead, and which
//! test runs each of their commands. `.ci/run` builds the book itself.

mod commands;
mod generated;
mod links;
mod walk;

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages that SUMMARY.md names, in their order, by their paths in `docs`.
fn listed() -> Vec<String> {
    let summary = read(&root().join("docs/SUMMARY.md"));
    let targets = summary.lines().filter_map(|line| line.split_once("](")?.1.strip_suffix(')').map(str::to_owned));
    targets.collect()
}

/// A page of the book as mdBook reads it: with the files that it includes.
fn page(path: &Path) -> String {
    let text = read(path);
    let line = |line: &str| match line.strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}")) {
        Some(file) => read(&path.parent().expect("it is in a folder").join(file)).trim_end().to_owned(),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A fenced block: its language, or nothing, and its lines without the indentation of the fence.
#[derive(Debug)]
struct Block {
    language: String,
    lines: Vec<String>,
}

/// The fenced blocks of a page.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match (line.trim_start().strip_prefix("```"), open.take()) {
            (Some(language), None) => {
                open = Some((indent, Block { language: language.trim().to_owned(), lines: Vec::new() }));
            }
            (Some(_), Some((_, block))) => blocks.push(block),
            (None, Some((fence, mut block))) => {
                block.lines.push(line.get(fence.min(indent)..).unwrap_or_default().to_owned());
                open = Some((fence, block));
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed: {open:?}");
    blocks
}

/// Compares a generated page with the file, or writes it where `UPDATE_EXPECT` is set.
pub(crate) fn is_generated(path: &str, expected: &str) {
    let file = root().join(path);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&file, expected).unwrap();
    }
    let there = fs::read_to_string(&file).unwrap_or_default();
    assert!(there == expected, "{path} is out of date; run the tests with UPDATE_EXPECT=1");
}
