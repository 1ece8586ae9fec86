//! Every acceptance case that a comment cites is in docs/specs, and what docs/specs names is there.
//!
//! A case is defined by a heading that begins with it (`### A7: ...`), or by a row of a table whose first cell it is.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// How cases are called: a prefix, and the least and the greatest number of digits. `I1` to `I6` are Paddle's rules.
const CASES: [(&str, usize, usize); 7] =
    [("A", 1, 2), ("C", 2, 2), ("J", 2, 2), ("M", 2, 2), ("R", 2, 2), ("AC-", 2, 2), ("I", 1, 1)];

/// Folders whose comments cite cases.
const CITED_IN: [&str; 4] = ["host", "plugins", "tests", "wit"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files below a folder, but for those that are built or hidden.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == "target" || name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files
}

/// Code, the contract, and scenarios: other texts have comments of other kinds.
fn has_citations(path: &Path) -> bool {
    let is = |extension: &str| path.extension().is_some_and(|it| it == extension);
    let is_scenario = is("txt") && path.components().any(|part| part.as_os_str() == "scenarios");
    is("rs") || is("wit") || is_scenario
}

fn is_case(word: &str) -> bool {
    CASES.iter().any(|(prefix, least, most)| {
        let digits = word.strip_prefix(prefix).unwrap_or_default();
        (*least..=*most).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The cases that a line cites, if it is a comment.
fn cited(is_scenario: bool, line: &str) -> Vec<&str> {
    let mark = if is_scenario { "# " } else { "//" };
    let comment = line.trim_start().strip_prefix(mark).unwrap_or_default();
    let words = comment.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    words.filter(|word| is_case(word)).collect()
}

/// Each case that a comment cites, with the comment's `path:line`.
fn citations() -> Vec<(String, String)> {
    let root = root();
    let files = CITED_IN.iter().flat_map(|folder| files_below(&root.join(folder)));
    let mut citations = vec![];
    for path in files.filter(|path| has_citations(path)) {
        let text = fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        let is_scenario = path.extension().is_some_and(|it| it == "txt");
        for (at, line) in text.lines().enumerate() {
            let place = || format!("{shown}:{}", at + 1);
            citations.extend(cited(is_scenario, line).into_iter().map(|case| (case.to_owned(), place())));
        }
    }
    citations
}

/// The pages of docs/specs, with their names.
fn pages() -> Vec<(String, String)> {
    let files = files_below(&root().join("docs/specs")).into_iter();
    let pages = files.filter(|path| path.extension().is_some_and(|it| it == "md"));
    pages
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// The case that a line of a page defines.
fn definition(line: &str) -> Option<&str> {
    let word = match line.strip_prefix('|') {
        Some(row) => row.split('|').next()?.trim(),
        // A single `#` is a page's title, or a comment in an example.
        None => line.strip_prefix("##")?.trim_start_matches('#').trim_start().split([':', ' ']).next()?,
    };
    is_case(word).then_some(word)
}

/// The scenario files that a line names.
fn scenarios_in(line: &str) -> impl Iterator<Item = &str> {
    let paths = line.split(|c: char| !c.is_ascii_alphanumeric() && !"/_-.".contains(c));
    let paths = paths.map(|path| path.trim_end_matches('.'));
    paths.filter(|path| path.starts_with("tests/scenarios/") && path.ends_with(".txt"))
}

#[test]
fn every_cited_case_is_in_docs_specs() {
    let pages = pages();
    let defined: BTreeSet<&str> = pages.iter().flat_map(|(_, page)| page.lines().filter_map(definition)).collect();
    let citations = citations();
    assert!(!citations.is_empty(), "no comment cites a case: is there no code below {CITED_IN:?}?");
    let unknown = citations.iter().filter(|(case, _)| !defined.contains(case.as_str()));
    let unknown: Vec<_> = unknown.map(|(case, place)| format!("{place}: {case}")).collect();
    assert!(unknown.is_empty(), "no page of docs/specs has a heading or a row for what is cited at {unknown:#?}");
}

#[test]
fn every_scenario_that_a_spec_names_exists() {
    let mut missing = vec![];
    let mut named = BTreeSet::new();
    for (page, text) in &pages() {
        for (at, line) in text.lines().enumerate() {
            for path in scenarios_in(line) {
                named.insert(path.to_owned());
                if !root().join(path).is_file() {
                    missing.push(format!("docs/specs/{page}:{}: {path}", at + 1));
                }
            }
        }
    }
    assert!(!named.is_empty(), "no page of docs/specs names a scenario");
    assert!(missing.is_empty(), "there is no {missing:#?}");
}

#[test]
fn a_citation_is_distinguished_from_a_part_of_another_word_and_from_code() {
    assert_eq!(cited(false, "    /// M16 (f) and its Better: A1, AC-07 to A26."), ["M16", "A1", "AC-07", "A26"]);
    assert_eq!(cited(true, "# R05 (Better): I6"), ["R05", "I6"]);
    for line in ["let A1 = M01;", "// is_A1, A1x, xA1, 0xA1, A100, M1, R1, AC-1, RFC-A1, I10, A-1"] {
        assert!(cited(false, line).is_empty(), "{line}");
    }
    assert!(cited(true, "A1: no comment").is_empty() && cited(true, "> job paddle A1 worker=1").is_empty());
}

#[test]
fn a_definition_is_a_heading_or_the_first_cell_of_a_row() {
    assert_eq!(definition("### A7: failure is final"), Some("A7"));
    assert_eq!(definition("| I1 | what a server finds |"), Some("I1"));
    for line in ["A7: prose", "- **A7**", "| A7 to A9 | three |", "| page | A7 |", "### A270: none", "# A7: no case"] {
        assert_eq!(definition(line), None, "{line}");
    }
    let named: Vec<_> = scenarios_in("- **Shown by**: `tests/scenarios/mpi/x-y.txt`, tests/scenarios/z.txt.").collect();
    assert_eq!(named, ["tests/scenarios/mpi/x-y.txt", "tests/scenarios/z.txt"]);
}
