//! The rights in `deploy/` are those that the host uses, and no more.

use crate::cluster::deploy;
use decide::{grants::Grants, plan::JobKind};
use lab::campaign;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use troupe::install::rbac::{self, Plugin};

/// Rights that no request of a campaign uses: `--install-crds` needs the first two, the admin port of a host in a cluster the
/// next two, suspending a job and resuming it the next two, the finalizer of an original operator the one after, gang
/// scheduling those of PodGroups, RhinoJobs their status, and owner references that block deletion the last.
const UNUSED: [&str; 13] = [
    "create customresourcedefinitions",
    "patch customresourcedefinitions",
    "create tokenreviews",
    "create subjectaccessreviews",
    "patch jobs",
    "patch jobs/status",
    "patch paddlejobs",
    "create podgroups",
    "patch podgroups",
    "patch rhinojobs/status",
    "update mpijobs/finalizers",
    "update paddlejobs/finalizers",
    "update rhinojobs/finalizers",
];

/// `verb resource` for everything that the roles of this kind allow.
fn allowed(kind: &str) -> BTreeSet<String> {
    let words = |rule: &Value, field: &str| -> Vec<String> { serde_json::from_value(rule[field].clone()).unwrap() };
    let mut allowed = BTreeSet::new();
    for role in deploy::documents("rbac.yaml").iter().filter(|document| document["kind"] == kind) {
        for rule in role["rules"].as_array().into_iter().flatten() {
            for verb in words(rule, "verbs") {
                allowed.extend(words(rule, "resources").into_iter().map(|resource| format!("{verb} {resource}")));
            }
        }
    }
    allowed
}

/// The built-in plugins with what they are granted.
fn plugins() -> Vec<Plugin> {
    let frameworks = campaign::plugins().unwrap().frameworks().into_iter();
    frameworks
        .map(|(descriptor, _)| Plugin { grants: descriptor.wanted_grants(), descriptor: (*descriptor).clone() })
        .collect()
}

#[test]
fn the_file_is_what_the_plugins_descriptions_generate() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/rbac.yaml");
    let text = rbac::yaml(&rbac::documents(&plugins(), &Grants::default()).unwrap()).unwrap();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let there = std::fs::read_to_string(path).unwrap();
    assert!(there == text, "deploy/rbac.yaml is out of date; run the tests with UPDATE_EXPECT=1");
}

#[test]
fn what_users_jobs_may_have_comes_on_top_of_the_grants_in_the_fences_parameters() {
    let of = |users: Grants| {
        let documents = rbac::documents(&plugins(), &users).unwrap();
        documents.into_iter().find(|it| it["metadata"]["name"] == "troupe-fence").unwrap()["data"].clone()
    };
    let users = Grants::asked(&json!({ "capabilities": ["IPC_LOCK", "SYS_PTRACE"], "hostPID": true })).unwrap();
    let (before, after) = (of(Grants::default()), of(users));
    assert_eq!(
        (&before["hostNetwork"], &before["hostPID"], &before["capabilities"]),
        (&"true".into(), &"false".into(), &"".into())
    );
    assert_eq!((&after["hostPID"], &after["capabilities"]), (&"true".into(), &"IPC_LOCK\nSYS_PTRACE".into()));
    assert_eq!(before["jobKinds"], "MPIJob.kubeflow.org\nPaddleJob.batch.paddlepaddle.org\nRhinoJob.openrhino.org");
}

#[test]
fn no_rights_are_made_for_a_plugin_that_calls_secrets_by_another_kind() {
    let mut plugins = plugins();
    let child = plugins[0].descriptor.children.iter_mut().find(|child| child.kind == "ConfigMap").unwrap();
    child.plural = "secrets".into();
    let refused = rbac::documents(&plugins, &Grants::default()).unwrap_err();
    assert!(refused.contains("the plural of ConfigMap of v1 is configmaps, not secrets"), "{refused}");
}

#[test]
fn who_may_make_jobs_is_asked_for_every_kind() {
    covers_every_kind("authors.yaml", |kind| json!([kind.plural]));
}

#[test]
fn what_the_host_remembers_of_a_job_is_its_own_for_every_kind() {
    covers_every_kind("ledger.yaml", |kind| json!([kind.plural, format!("{}/status", kind.plural)]));
}

/// The policy in this file of `deploy/` is about these resources of each kind of job.
fn covers_every_kind(file: &str, resources: impl Fn(&JobKind) -> Value) {
    let policy = &deploy::documents(file)[0];
    let rules = policy["spec"]["matchConstraints"]["resourceRules"].as_array().unwrap();
    for kind in plugins().iter().flat_map(|plugin| &plugin.descriptor.kinds) {
        let is_asked = |rule: &&Value| rule["apiGroups"][0] == *kind.group && rule["resources"] == resources(kind);
        assert!(rules.iter().any(|rule| is_asked(&rule)), "deploy/{file} lacks {}", kind.plural);
    }
}

/// `verb resource` for everything that hosts ask for in campaigns, faults and strangers in the way included.
fn used() -> BTreeSet<String> {
    let plugins = campaign::plugins().unwrap();
    let mut used = BTreeSet::new();
    for seed in 0..60 {
        for line in campaign::run(seed, &plugins).unwrap().trace {
            let words: Vec<_> = line.split(' ').collect();
            // Which kinds there are may be read by everybody who is authenticated (`system:discovery`).
            if !words[3].starts_with('/') {
                used.insert(format!("{} {}", words[2], words[3]));
            }
        }
    }
    used
}

#[test]
fn the_host_may_do_what_it_does_and_nothing_more() {
    let (allowed, in_its_namespace, used) = (allowed("ClusterRole"), allowed("Role"), used());
    let missing: Vec<_> = used.iter().filter(|right| !allowed.contains(*right)).collect();
    let missing: Vec<_> = missing.into_iter().filter(|right| !in_its_namespace.contains(*right)).collect();
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
