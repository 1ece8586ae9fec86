//! The rights in `deploy/` are those that the host uses, and no more.

use crate::{
    built_in,
    cluster::deploy,
    hostile::guest,
    recording::commands::{file, troupe},
};
use decide::grants::Grants;
use install::rbac::{self, Host, Plugin, Policy};
use lab::campaign;
use serde_json::{Value, json};
use sim::RequestRecord;
use std::{collections::BTreeSet, sync::LazyLock};

/// Rights that no request of a campaign uses: `--install-crds` needs the first two, the admin port of a host in a cluster the
/// next two, suspending a job and resuming it the next two, the finalizer of an original operator the one after, CronJobs the
/// next nine, gang scheduling those of PodGroups, elastic jobs those of HorizontalPodAutoscalers, jobs that campaigns do not
/// have their status, owner references that block deletion those of finalizers, and queues the last.
const UNUSED: [&str; 42] = [
    "create customresourcedefinitions",
    "patch customresourcedefinitions",
    "create tokenreviews",
    "create subjectaccessreviews",
    "patch jobs",
    "patch jobs/status",
    "patch paddlejobs",
    "create indexedjobs",
    "create jaxjobs",
    "create mpijobs",
    "create paddlejobs",
    "create pytorchjobs",
    "create rhinojobs",
    "create tfjobs",
    "create xgboostjobs",
    "patch cronjobs/status",
    "update cronjobs/finalizers",
    "create podgroups",
    "patch podgroups",
    "create horizontalpodautoscalers",
    "patch horizontalpodautoscalers",
    "watch horizontalpodautoscalers",
    "patch jaxjobs/status",
    "patch pytorchjobs/status",
    "patch rhinojobs/status",
    "patch tfjobs/status",
    "patch xgboostjobs/status",
    "update indexedjobs/finalizers",
    "update jaxjobs/finalizers",
    "update mpijobs/finalizers",
    "update paddlejobs/finalizers",
    "update pytorchjobs/finalizers",
    "update rhinojobs/finalizers",
    "update tfjobs/finalizers",
    "update xgboostjobs/finalizers",
    "create workloads",
    "patch workloads",
    "patch workloads/status",
    "watch workloads",
    "watch priorityclasses",
    "watch resourceflavors",
    "watch workloadpriorityclasses",
];

/// `verb resource` for everything that the roles of this kind in `documents` allow.
fn allowed(documents: &[Value], kind: &str) -> BTreeSet<String> {
    let words = |rule: &Value, field: &str| -> Vec<String> { serde_json::from_value(rule[field].clone()).unwrap() };
    let mut allowed = BTreeSet::new();
    for role in documents.iter().filter(|document| document["kind"] == kind) {
        for rule in role["rules"].as_array().into_iter().flatten() {
            for verb in words(rule, "verbs") {
                allowed.extend(words(rule, "resources").into_iter().map(|resource| format!("{verb} {resource}")));
            }
        }
    }
    allowed
}

/// The built-in plugins with what they are granted.
pub(crate) fn plugins() -> Vec<Plugin> {
    let frameworks = built_in::of_campaigns().frameworks().into_iter();
    frameworks
        .map(|(descriptor, _)| Plugin { grants: descriptor.wanted_grants(), descriptor: (*descriptor).clone() })
        .collect()
}

#[test]
fn the_file_is_what_the_plugins_descriptions_generate() {
    let documents = rbac::documents(&Host::default(), &plugins(), &rbac::users_by_default()).unwrap();
    is_generated("rbac.yaml", &rbac::yaml(&documents).unwrap());
}

#[test]
fn the_policies_are_about_every_kind_that_the_plugins_describe() {
    for (file, policy) in
        [("fence.yaml", Policy::Fence), ("ledger.yaml", Policy::Ledger), ("authors.yaml", Policy::Authors)]
    {
        is_generated(file, &policy.yaml(&Host::default(), &plugins()).unwrap());
    }
}

/// The file of `deploy/` has this text.
pub(crate) fn is_generated(file: &str, text: &str) {
    let path = format!("{}/../deploy/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let there = std::fs::read_to_string(path).unwrap();
    assert!(there == text, "deploy/{file} is out of date; run the tests with UPDATE_EXPECT=1");
}

#[test]
fn the_policies_are_about_the_kinds_of_a_delivered_plugin_too() {
    let wasm = file("delivered.wasm", guest(""));
    for (policy, resources) in
        [("ledger", json!(["hostilejobs", "hostilejobs/status"])), ("authors", json!(["hostilejobs"]))]
    {
        let made = generated(&["--policy", policy, "--plugin", &wasm]);
        let rules = |of: &[Value]| of[0]["spec"]["matchConstraints"]["resourceRules"].as_array().unwrap().clone();
        let (mut built_in, mut all) = (deploy::documents(&format!("{policy}.yaml")), made);
        let added: Vec<_> = rules(&all).into_iter().filter(|rule| !rules(&built_in).contains(rule)).collect();
        let rule = json!({ "apiGroups": ["example.org"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
            "resources": resources });
        assert_eq!((added, rules(&all).len()), (vec![rule], rules(&built_in).len() + 1));
        for documents in [&mut built_in, &mut all] {
            documents[0]["spec"]["matchConstraints"].take();
        }
        assert_eq!(all, built_in, "it says the same of them");
    }
}

#[test]
fn what_users_jobs_may_have_comes_on_top_of_the_grants_in_the_fences_parameters() {
    let of = |users: Grants| {
        let documents = rbac::documents(&Host::default(), &plugins(), &users).unwrap();
        documents.into_iter().find(|it| it["metadata"]["name"] == "troupe-fence").unwrap()["data"].clone()
    };
    let users = Grants::asked(&json!({ "capabilities": ["IPC_LOCK", "SYS_PTRACE"], "hostPID": true })).unwrap();
    let (before, after) = (of(Grants::default()), of(users));
    assert_eq!(
        (&before["hostNetwork"], &before["hostPID"], &before["capabilities"]),
        (&"true".into(), &"false".into(), &"".into())
    );
    assert_eq!((&after["hostPID"], &after["capabilities"]), (&"true".into(), &"IPC_LOCK\nSYS_PTRACE".into()));
    let kinds = [
        "CronJob.batch.tutorial.kubebuilder.io",
        "IndexedJob.batch.troupe.dev",
        "JAXJob.kubeflow.org",
        "MPIJob.kubeflow.org",
        "PaddleJob.batch.paddlepaddle.org",
        "PaddleJob.kubeflow.org",
        "PyTorchJob.kubeflow.org",
        "RhinoJob.openrhino.org",
        "TFJob.kubeflow.org",
        "XGBoostJob.kubeflow.org",
    ];
    assert_eq!(before["jobKinds"], kinds.join("\n"));
}

#[test]
fn what_users_can_give_their_own_pods_is_allowed_unless_the_operator_of_the_cluster_says_which() {
    let of = |said: Value| {
        let documents = rbac::documents(&Host::default(), &plugins(), &rbac::users(&said).unwrap()).unwrap();
        documents.into_iter().find(|it| it["metadata"]["name"] == "troupe-fence").unwrap()["data"].clone()
    };
    let by_default = of(json!({}));
    for list in ["serviceAccounts", "secrets", "nodeNames", "tolerations", "priorityClasses"] {
        assert!(by_default[list].as_str().unwrap().lines().any(|word| word == "*"), "{list}: {by_default}");
    }
    assert_eq!((&by_default["serviceAccountToken"], &by_default["serviceTypes"]), (&"true".into(), &"".into()));
    let said = of(json!({ "serviceAccounts": ["trainer"], "secrets": [], "serviceAccountToken": false }));
    assert_eq!((&said["serviceAccounts"], &said["secrets"]), (&"trainer".into(), &"".into()));
    assert_eq!((&said["serviceAccountToken"], &said["tolerations"]), (&"false".into(), &by_default["tolerations"]));
    let told = rbac::users(&json!({ "serviceAccount": ["trainer"] })).unwrap_err().to_string();
    assert!(told.contains("serviceAccount"), "{told}");
}

#[test]
fn no_rights_are_made_for_a_plugin_that_calls_secrets_by_another_kind() {
    let mut plugins = plugins();
    let child = plugins[0].descriptor.children.iter_mut().find(|child| child.kind == "ConfigMap").unwrap();
    child.plural = "secrets".into();
    let refused = rbac::documents(&Host::default(), &plugins, &Grants::default()).unwrap_err().to_string();
    assert!(refused.contains("the plural of ConfigMap of v1 is configmaps, not secrets"), "{refused}");
}

/// What `troupe rbac` prints with these arguments.
fn generated(arguments: &[&str]) -> Vec<Value> {
    let (well, text) = troupe(&[&["rbac"], arguments].concat());
    assert!(well, "{text}");
    deploy::parse(&text)
}

/// A right to the kind of the component that campaigns deliver, which `deploy/` does not name.
fn is_of_poodles(right: &str) -> bool {
    right.split([' ', '/']).nth(1) == Some("poodlejobs")
}

#[test]
fn the_rights_made_for_a_delivered_kind_are_for_it_alone_and_enough_for_the_host() {
    let wasm = file("poodles.wasm", campaign::of_poodles("poodla"));
    let (built_in, all) = (deploy::documents("rbac.yaml"), generated(&["--plugin", &wasm]));
    let (built_in, all) = (allowed(&built_in, "ClusterRole"), allowed(&all, "ClusterRole"));
    let added: BTreeSet<_> = all.difference(&built_in).cloned().collect();
    assert!(built_in.is_subset(&all), "it lacks {:?}", built_in.difference(&all));
    assert!(added.iter().all(|right| is_of_poodles(right)), "{added:?}");
    let used: BTreeSet<_> = USED.iter().filter(|right| is_of_poodles(right)).cloned().collect();
    assert!(!used.is_empty(), "no campaign delivers the kind");
    assert!(used.is_subset(&added), "{used:?} of {added:?}");
}

/// `verb resource` for everything that hosts ask for in campaigns, faults and strangers in the way included.
static USED: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let plugins = built_in::of_campaigns();
    let mut used = BTreeSet::new();
    for seed in 0..60 {
        let requests = campaign::run(seed, &plugins).unwrap().requests;
        // Which kinds there are may be read by everybody who is authenticated (`system:discovery`).
        used.extend(requests.iter().filter(|made| !made.resource.starts_with('/')).map(RequestRecord::what));
    }
    used
});

#[test]
fn the_host_may_do_what_it_does_and_nothing_more() {
    let documents = deploy::documents("rbac.yaml");
    let (allowed, in_its_namespace) = (allowed(&documents, "ClusterRole"), allowed(&documents, "Role"));
    let missing = USED.iter().filter(|right| !allowed.contains(*right) && !in_its_namespace.contains(*right));
    let missing: BTreeSet<_> = missing.filter(|right| !is_of_poodles(right)).collect();
    assert!(missing.is_empty(), "deploy/rbac.yaml lacks {missing:?}");
    let unused: Vec<_> = allowed.difference(&USED).filter(|right| !UNUSED.contains(&right.as_str())).collect();
    assert!(
        unused.iter().all(|right| right.starts_with("get ") || right.starts_with("delete ")),
        "nobody uses {unused:?}"
    );
    assert!(allowed.iter().all(|right| !right.contains('*') && !right.contains("exec")), "{allowed:?}");
    let secrets: Vec<_> = allowed.iter().filter(|right| right.ends_with(" secrets")).collect();
    assert_eq!(secrets, ["create secrets", "get secrets"], "never listed, never watched");
}
