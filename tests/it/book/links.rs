//! Every link of the book and of the pages beside it leads to a file and a heading that there are.

use super::{listed, page, read, root};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

/// Pages outside of the book. Their links may lead anywhere in the repository.
const BESIDE: [&str; 7] = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "host/ARCHITECTURE.md",
    "plugins/README.md",
    "plugins/LIFE.md",
];

/// Every Markdown file below a folder, by its path in the repository.
fn markdown(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(markdown(&path));
        } else if path.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

/// A page without its fenced blocks and code.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose.extend([line, "\n"]);
        }
    }
    prose
}

/// What a heading is called in a link, as mdBook and the pages of repositories have it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|it| it.is_alphanumeric() || "-_".contains(*it)).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let mut seen = BTreeMap::<String, usize>::new();
    let name = |line: &str| {
        let name = anchor(line.trim_start_matches('#'));
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}-{}", *count - 1) }
    };
    headings.map(name).collect()
}

/// Where the links of a page lead, code left out.
fn targets(text: &str) -> Vec<String> {
    let prose = prose(text);
    let plain: String =
        prose.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "code" }).collect();
    let links = plain.split("](").skip(1);
    links.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()).collect()
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
        plain
    })
}

/// What is wrong with the links of a page. Those of the book have to stay in it.
fn wrong(path: &str, text: &str) -> Vec<String> {
    let in_book = path.starts_with("docs/");
    let folder = Path::new(path).parent().unwrap();
    let mut wrong = Vec::new();
    for target in targets(text) {
        if target.starts_with("https://") || target.starts_with("http://") {
            continue;
        }
        let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
        let to = if file.is_empty() { PathBuf::from(path) } else { plain(&folder.join(file)) };
        let name = to.to_str().unwrap().to_owned();
        if in_book && !name.starts_with("docs/") {
            wrong.push(format!("{path}: {target} leads out of the book: name the file instead"));
        } else if !root().join(&to).exists() {
            wrong.push(format!("{path}: {target} is not there"));
        } else if !heading.is_empty() {
            let there = if in_book { page(&root().join(&to)) } else { read(&root().join(&to)) };
            if !anchors(&there).contains(heading) {
                wrong.push(format!("{path}: {target} names no heading of that page"));
            }
        }
    }
    wrong
}

#[test]
fn every_link_leads_to_a_page_and_a_heading() {
    let mut all = Vec::new();
    for path in BESIDE {
        all.extend(wrong(path, &read(&root().join(path))));
    }
    let book = markdown("docs");
    assert!(book.len() > 40, "the book has {} pages", book.len());
    for path in book {
        all.extend(wrong(&path, &page(&root().join(&path))));
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn every_page_is_in_the_summary_once() {
    let mut there = markdown("docs");
    there.retain(|path| path != "docs/SUMMARY.md");
    there.sort();
    let mut named: Vec<_> = listed().iter().map(|path| format!("docs/{path}")).collect();
    named.sort();
    assert_eq!(there, named);
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let text = "[a](nowhere.md) [b](conditions.md#nothing) [c](../README.md) `[d](code.md)` [e](conditions.md)\n";
    let found = wrong("docs/new.md", text);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].contains("is not there") && found[1].contains("no heading") && found[2].contains("out of the book")
    );
}
