//! No two modules of a package use each other, directly or by way of others: what one needs lies below it.
//!
//! A module is a file, with the folder of its own name; in a folder of modules (a station of the host) each file is one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Packages that have no cycle, and the folders in them that hold modules instead of being one.
const PACKAGES: [(&str, &[&str]); 8] = [
    ("host", &["api", "control", "measure", "observe", "record", "write"]),
    ("host/admin", &[]),
    ("host/decide", &[]),
    ("host/fairness", &[]),
    ("host/install", &[]),
    ("host/lab", &[]),
    ("host/registry", &[]),
    ("host/sandbox", &[]),
];

/// A path in code: `crate::observe::wire`.
type Segments = Vec<String>;

/// Which modules each module uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Every source file of a package but its tests, by the path of the module in it.
fn sources(package: &Path) -> BTreeMap<Segments, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    let root = package.join("src");
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(folder.join(name));
                continue;
            }
            let Some(stem) = name.strip_suffix(".rs").filter(|stem| *stem != "tests" && *stem != "main") else {
                continue;
            };
            let mut path: Segments = folder.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if stem != "mod" && stem != "lib" {
                path.push(stem.to_owned());
            }
            found.insert(path, code(&fs::read_to_string(entry.path()).unwrap()));
        }
    }
    found
}

/// A file without its comments and its unit tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The paths of a `use` tree: `a::{b, c::d}` are `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<Segments> {
    let (mut depth, mut from, mut parts) = (0, 0, vec![]);
    for (at, char) in tree.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => parts.push(&tree[std::mem::replace(&mut from, at + 1)..at]),
            _ => {}
        }
    }
    parts.push(&tree[from..]);
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    parts
        .flat_map(|part| match part.split_once('{') {
            None => vec![segments(part)],
            Some((before, inner)) => {
                let before = segments(before);
                let inner = paths(inner.strip_suffix('}').unwrap_or(inner));
                inner.into_iter().map(|rest| before.iter().cloned().chain(rest).collect()).collect()
            }
        })
        .collect()
}

fn segments(path: &str) -> Segments {
    let words = path.split("::").map(|word| word.split_whitespace().next().unwrap_or_default());
    words.filter(|word| !word.is_empty() && *word != "self").map(str::to_owned).collect()
}

/// Every path in a file that begins in its own package.
fn mentioned(code: &str) -> Vec<Segments> {
    let statements = code.split(';').filter_map(|statement| statement.rsplit_once("use ").map(|(_, tree)| tree));
    let imported = statements.flat_map(paths);
    let inline = ["crate::", "super::"].into_iter().flat_map(|root| {
        code.match_indices(root).map(|(at, _)| {
            let end = code[at..].find(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c))).unwrap_or(0);
            segments(&code[at..at + end])
        })
    });
    let own = |path: &Segments| path.first().is_some_and(|first| first == "crate" || first == "super");
    imported.chain(inline).filter(own).collect()
}

/// The module that a path of folders and files is, or is in.
fn module(path: &[String], stations: &[&str]) -> Option<String> {
    let first = path.first()?;
    let is_station = stations.contains(&first.as_str());
    if is_station { Some(format!("{first}/{}", path.get(1)?)) } else { Some(first.clone()) }
}

fn uses(sources: &BTreeMap<Segments, String>, stations: &[&str]) -> Uses {
    let mut uses = Uses::new();
    for (own, code) in sources {
        let Some(user) = module(own, stations) else { continue };
        for mut path in mentioned(code) {
            let ups = path.iter().take_while(|segment| *segment == "super").count();
            let base = if ups == 0 { &[] } else { &own[..own.len().saturating_sub(ups)] };
            path.drain(..ups.max(1));
            let whole: Segments = base.iter().cloned().chain(path).collect();
            // The longest part of it that is a file; the rest names something within.
            let file = (0..=whole.len()).rev().map(|most| &whole[..most]).find(|part| sources.contains_key(*part));
            let used = file.and_then(|file| module(file, stations)).filter(|used| *used != user);
            uses.entry(user.clone()).or_default().extend(used);
        }
    }
    uses
}

/// The modules that lie on a cycle.
fn on_a_cycle(uses: &Uses) -> BTreeSet<&String> {
    let reaches_itself = |start: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![start]);
        while let Some(module) = next.pop() {
            for used in uses.get(module).into_iter().flatten() {
                if used == start {
                    return true;
                }
                if seen.insert(used) {
                    next.push(used);
                }
            }
        }
        false
    };
    uses.keys().filter(|module| reaches_itself(module)).collect()
}

#[test]
fn no_modules_use_each_other() {
    for (package, stations) in PACKAGES {
        let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package));
        assert!(!sources.is_empty(), "{package} has sources");
        let uses = uses(&sources, stations);
        let cycle: Vec<_> = on_a_cycle(&uses).into_iter().map(|module| (module, &uses[module])).collect();
        assert!(cycle.is_empty(), "{package}: these modules use each other: {cycle:#?}");
    }
}

#[test]
fn a_cycle_is_seen_by_each_way_to_name_a_module() {
    let is_on_one = |a: &str, b: &str| {
        let sources = [("a", a), ("b", b)].map(|(name, text)| (vec![name.to_owned()], code(text)));
        !on_a_cycle(&uses(&sources.into(), &[])).is_empty()
    };
    assert!(is_on_one("use crate::{b::B, c};", "use super::a::A;"));
    assert!(is_on_one("fn f() { crate::b::g() }", "pub use crate::a;"));
    assert!(!is_on_one("use crate::b::B;", "// use crate::a::A;\nuse std::fmt;"));
    assert!(!is_on_one("use crate::b::B;", "fn f() {}\n#[cfg(test)]\nmod tests { use crate::a::A; }"));
}
