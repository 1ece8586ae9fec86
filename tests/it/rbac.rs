//! The rights in `deploy/` are those that the host uses, and no more.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use troupe::campaign;

/// Rights that no request of a campaign uses: `--install-crds` needs the first two, suspending a job and resuming it the
/// next two, the finalizer of an original operator the two after, gang scheduling those of PodGroups, RhinoJobs their
/// status, and owner references that block deletion the last.
const UNUSED: [&str; 12] = [
    "create customresourcedefinitions",
    "patch customresourcedefinitions",
    "patch jobs",
    "patch jobs/status",
    "patch mpijobs",
    "patch paddlejobs",
    "create podgroups",
    "patch podgroups",
    "patch rhinojobs/status",
    "update mpijobs/finalizers",
    "update paddlejobs/finalizers",
    "update rhinojobs/finalizers",
];

/// `verb resource` for everything that the ClusterRole allows.
fn allowed() -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/rbac.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let documents = serde_norway::Deserializer::from_str(&text).map(|document| Value::deserialize(document).unwrap());
    let role = documents.into_iter().find(|document| document["kind"] == "ClusterRole").unwrap();
    let words = |rule: &Value, field: &str| -> Vec<String> { serde_json::from_value(rule[field].clone()).unwrap() };
    let mut allowed = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for verb in words(rule, "verbs") {
            allowed.extend(words(rule, "resources").into_iter().map(|resource| format!("{verb} {resource}")));
        }
    }
    allowed
}

/// `verb resource` for everything that hosts ask for in campaigns, faults and strangers in the way included.
fn used() -> BTreeSet<String> {
    let plugins = campaign::plugins().unwrap();
    let mut used = BTreeSet::new();
    for seed in 0..60 {
        for line in campaign::run(seed, &plugins).unwrap().trace {
            let words: Vec<_> = line.split(' ').collect();
            used.insert(format!("{} {}", words[1], words[2]));
        }
    }
    used
}

#[test]
fn the_host_may_do_what_it_does_and_nothing_more() {
    let (allowed, used) = (allowed(), used());
    let missing: Vec<_> = used.difference(&allowed).collect();
    assert!(missing.is_empty(), "deploy/rbac.yaml lacks {missing:?}");
    let unused: Vec<_> = allowed.difference(&used).filter(|right| !UNUSED.contains(&right.as_str())).collect();
    assert!(
        unused.iter().all(|right| right.starts_with("get ") || right.starts_with("delete ")),
        "nobody uses {unused:?}"
    );
    assert!(allowed.iter().all(|right| !right.contains('*') && !right.contains("exec")), "{allowed:?}");
    let secrets: Vec<_> = allowed.iter().filter(|right| right.ends_with(" secrets")).collect();
    assert_eq!(secrets, ["create secrets", "get secrets"], "never listed, never watched");
}
