//! The table of `docs/why-jobs-wait.md`.

use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../docs/why-jobs-wait.md");

/// In a message: some text that differs from cluster to cluster.
const VARIES: &str = "\u{2026}";

/// A way in which a job can hang, and what it says then.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    way: String,
    pub(super) condition: String,
    pub(super) reason: String,
    pub(super) message: String,
    helps: String,
}

impl Row {
    /// Whether a message is that of the row.
    pub(super) fn fits(&self, message: &str) -> bool {
        let mut parts = self.message.split(VARIES);
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = message.strip_prefix(first) else { return false };
        let mut last = None;
        for part in parts {
            if let Some(at) = last.replace(part).map(|part| place(rest, part)) {
                let Some(after) = at else { return false };
                rest = &rest[after..];
            }
        }
        match last {
            None => rest.is_empty(),
            Some(part) => rest.len() > part.len() && rest.ends_with(part),
        }
    }
}

/// Where the text goes on after the first such part of it that something stands before.
fn place(text: &str, part: &str) -> Option<usize> {
    let from = text.chars().next()?.len_utf8();
    Some(from + text[from..].find(part)? + part.len())
}

/// The row of this way.
pub(super) fn row(way: &str) -> Row {
    let all = rows();
    all.into_iter().find(|row| row.way == way).unwrap_or_else(|| panic!("docs/why-jobs-wait.md has no row {way:?}"))
}

fn rows() -> Vec<Row> {
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_start_matches('|').trim_end_matches('|').split(" | ");
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let lines = PAGE.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let row = |line: &str| {
        let cells: [String; 4] = cells(line).try_into().unwrap_or_else(|cells| panic!("not four cells: {cells:?}"));
        let [way, condition, message, helps] = cells;
        let (condition, reason) = condition.split_once(' ').unwrap_or_else(|| panic!("{way}: {condition}"));
        let code = |text: &str| text.trim_matches('`').trim().to_owned();
        Row { way, condition: code(condition), reason: code(reason), message: code(&message), helps }
    };
    lines.map(row).collect()
}

#[test]
fn the_page_has_each_way_once_with_what_helps() {
    let rows = rows();
    let ways: BTreeSet<_> = rows.iter().map(|row| row.way.as_str()).collect();
    assert_eq!(ways.len(), rows.len(), "{rows:#?}");
    assert!(rows.len() >= 20, "{} ways", rows.len());
    let incomplete = |row: &&Row| [&row.reason, &row.message, &row.helps].iter().any(|cell| cell.is_empty());
    let incomplete: Vec<_> = rows.iter().filter(incomplete).collect();
    assert!(incomplete.is_empty(), "{incomplete:#?}");
}

/// A row that no test shows would be no more than a claim.
#[test]
fn each_way_has_a_test() {
    let tests = [
        include_str!("cluster.rs"),
        include_str!("queues.rs"),
        include_str!("../cluster/plugins/ways.rs"),
        include_str!("../node/waits.rs"),
    ];
    let shown = |row: &Row| tests.iter().any(|test| test.contains(&format!("\"{}\"", row.way)));
    let rows = rows();
    let missing: Vec<_> = rows.iter().filter(|row| !shown(row)).map(|row| &row.way).collect();
    assert!(missing.is_empty(), "no test shows {missing:#?}");
}

#[test]
fn a_message_fits_where_nothing_but_the_placeholders_differs() {
    let row = |message: &str| Row { message: message.into(), ..rows().remove(0) };
    for (pattern, message, fits) in [
        ("pod/x", "pod/x", true),
        ("pod/x", "pod/xy", false),
        ("0/\u{2026} nodes: full", "0/4 nodes: full", true),
        ("0/\u{2026} nodes: full", "0/ nodes: full", false),
        ("0/\u{2026} nodes: full", "0/4 nodes: full now", false),
        ("since \u{2026}", "since 2026", true),
        ("since \u{2026}", "since ", false),
        ("a \u{2026} b \u{2026} c", "a 1 b 2 c", true),
        ("a \u{2026} b \u{2026} c", "a 1 2 c", false),
    ] {
        assert_eq!(row(pattern).fits(message), fits, "{pattern} {message}");
    }
}
