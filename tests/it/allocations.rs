//! What a pass takes from the host's allocator, counted and not measured: the same build and the same job take the same
//! everywhere. The budgets are somewhat above what it was when they were written down.

use crate::job;
use allocation_counter::{AllocationInfo, measure};
use decide::{
    Outlook, Snapshot, Write, build, decide,
    decision::Action,
    plan::{Answer, Bindings, Body, Gate, Object, Outcome, Plan, Role, Upkeep, Verdict},
    snapshot::Child,
    testkit,
};
use futures::executor::block_on;
use sandbox::{Executor, Plugins};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
    time::Duration,
};
use troupe::{
    job_key::{GroupKind, JobKey},
    write::{
        apply::{DecisionInput, Writer},
        warnings::FieldValidation,
    },
};

/// Plugins that have been asked nothing yet.
fn plugins() -> Plugins {
    static COMPILED: LazyLock<Plugins> = LazyLock::new(|| Plugins::builtin(Executor::Inline).unwrap());
    COMPILED.fork()
}

/// What the second time takes, when what is made once is there.
fn again(mut work: impl FnMut()) -> AllocationInfo {
    work();
    let taken = measure(work);
    eprintln!("{taken:?}");
    taken
}

fn answer(plugins: &Plugins, snapshot: &Snapshot) -> Answer {
    let plan = block_on(plugins.plan(snapshot)).unwrap();
    block_on(plugins.judge(snapshot, &plan, &[], Outlook { suspended: false, waiting: None, criteria_met: None }))
}

/// A job of so many pods that has everything it needs.
fn running(plugins: &Plugins, pods: u32) -> Snapshot {
    let mut snapshot = job::snapshot(plugins, pods);
    let answer = answer(plugins, &snapshot);
    let child = |action: Action| Child {
        api_version: action.api_version,
        kind: action.kind,
        uid: format!("uid-of-{}", action.name),
        name: action.name,
        resource_version: "1".into(),
        terminating: false,
        fields: BTreeMap::new(),
    };
    // No more than some hundred are made in a pass.
    while snapshot.children.len() < pods as usize {
        let actions = decide(&snapshot, &answer).actions;
        assert!(!actions.is_empty(), "{} Services for {pods} pods", snapshot.children.len());
        snapshot.children.extend(actions.into_iter().map(|action| Arc::new(child(action))));
        snapshot.children.sort_by(|one, other| one.name.cmp(&other.name));
    }
    assert_eq!(snapshot.children.len(), pods as usize, "a Service for each pod");
    snapshot
}

/// What the work takes over a job of ten pods, and what each further pod does.
fn taken(work: impl Fn(&Plugins, &Snapshot, &Answer)) -> (AllocationInfo, u64) {
    let [ten, hundred] = [10, 100].map(|pods| {
        let plugins = plugins();
        let snapshot = running(&plugins, pods);
        let answer = answer(&plugins, &snapshot);
        again(|| work(&plugins, &snapshot, &answer))
    });
    assert_eq!((ten.count_current, hundred.count_current), (0, 0), "something is kept");
    (ten, (hundred.count_total - ten.count_total) / 90)
}

#[test]
fn asking_a_plugin_takes_so_much_for_itself_and_so_much_for_each_pod() {
    let (ten, per_pod) = taken(|plugins, snapshot, _| drop(answer(plugins, snapshot)));
    assert!(ten.count_total <= 330 && ten.bytes_max <= 40_000 && per_pod <= 27, "{per_pod} for a pod: {ten:?}");
}

// Nothing is built that is not written: the body of a Service that is there is none of them.
#[test]
fn deciding_to_do_nothing_takes_so_much_for_itself_and_so_much_for_each_pod() {
    let (ten, per_pod) = taken(|_, snapshot, answer| assert_eq!(decide(snapshot, answer).actions, []));
    assert!(ten.count_total <= 230 && ten.bytes_max <= 13_000 && per_pod <= 20, "{per_pod} for a pod: {ten:?}");
}

// What is made of a template is made once: as much as its parts are.
#[test]
fn making_a_pod_takes_what_its_template_has() {
    let plugins = plugins();
    let mut snapshot = running(&plugins, 10);
    let answer = answer(&plugins, &snapshot);
    snapshot.pods.clear();
    let parts = decide(&snapshot, &answer).actions.into_iter().filter_map(|action| match action.write() {
        Write::Create(part) => Some(*part),
        _ => None,
    });
    let parts: Vec<_> = parts.collect();
    assert_eq!(parts.len(), 10);
    let taken = again(|| parts.iter().for_each(|part| drop(build::body(&snapshot, &answer, *part))));
    assert!(taken.count_total / 10 <= 260, "{taken:?}");
}

/// A job of so many workers, none of them there yet, whose template has 220 KB of variables.
fn wide_and_large(plugins: &Plugins, workers: u32) -> Snapshot {
    let mut snapshot = job::snapshot(plugins, workers);
    snapshot.pods.clear();
    let env: Vec<_> =
        (0..2_000).map(|number| json!({ "name": format!("V{number}"), "value": "x".repeat(80) })).collect();
    let spec = &mut Arc::make_mut(&mut snapshot.job).spec;
    spec["ps"]["replicas"] = json!(0);
    spec["worker"]["replicas"] = json!(workers);
    spec["worker"]["template"]["spec"]["containers"][0]["env"] = json!(env);
    snapshot
}

// A decision names what is made, and the writer builds it: all bodies at once would be gigabytes.
#[test]
fn deciding_to_make_a_wide_job_of_a_large_template_builds_no_body() {
    let plugins = plugins();
    let snapshot = wide_and_large(&plugins, 2_000);
    let answer = answer(&plugins, &snapshot);
    let taken = again(|| assert!(decide(&snapshot, &answer).actions.len() >= 500));
    assert!(taken.bytes_max <= 2 << 20, "{taken:?}");
}

/// An API server that makes every object, and takes a second to say so.
fn api_server() -> kube::Client {
    let service = tower::service_fn(|request: http::Request<kube::client::Body>| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(request);
        let made = br#"{"metadata":{"resourceVersion":"1"}}"#.to_vec();
        http::Response::builder().status(201).body(kube::client::Body::from(made))
    });
    kube::Client::new(service, "default")
}

#[test]
fn the_bodies_of_all_requests_under_way_have_a_budget() {
    let plugins = plugins();
    let snapshot = wide_and_large(&plugins, 200);
    let answer = answer(&plugins, &snapshot);
    let decision = decide(&snapshot, &answer);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let writer = runtime.block_on(async { Writer::new(api_server(), Arc::default(), [1; 32], FieldValidation::Warn) });
    let (key, input) = (
        JobKey::new(&GroupKind::new("example.com", "Tale"), "default", "wide-and-deep"),
        DecisionInput { snapshot: &snapshot, answer: Some(&answer) },
    );
    let taken = again(|| {
        let applied = runtime.block_on(writer.apply(&key, input, &decision.actions)).applied;
        assert_eq!(applied.failures, []);
    });
    assert!(taken.bytes_max <= 10 << 20, "{taken:?}");
}

// The most that a plan may have.
#[test]
fn a_job_of_ten_thousand_pods_takes_no_more_for_each_of_them() {
    let plugins = plugins();
    let snapshot = running(&plugins, 10_000);
    let said = answer(&plugins, &snapshot);
    let asking = again(|| drop(answer(&plugins, &snapshot)));
    let deciding = again(|| assert_eq!(decide(&snapshot, &said).actions, []));
    assert!(asking.count_total <= 27 * 10_000, "{asking:?}");
    assert!(deciding.count_total <= 20 * 10_000, "{deciding:?}");
}

/// Values of a field that open a gate: who finds it closed allocates each of them.
const PHASES: usize = 100;

/// A job of so many replicas, none of which is there, nor its Service: all wait for the same field of an object.
fn held_back(replicas: u32) -> (Snapshot, Answer) {
    let name = || testkit::text(&["JOB", "-w-", "INDEX"]);
    let one_of = (0..PHASES).map(|phase| format!("Phase{phase}")).collect();
    let after = vec![Gate::Field { key: "group".into(), at: "/status/phase".into(), one_of }];
    let object = |key: &str, kind: &str, name, per_pod_of, after| Object {
        key: key.into(),
        api_version: "v1".into(),
        kind: kind.into(),
        name,
        per_pod_of,
        body: Body::Fixed(Arc::default(), vec![]),
        upkeep: Upkeep::CreateOnly,
        after,
        remove_when: vec![],
    };
    let group = object("group", "Group", testkit::text(&["JOB"]), None, vec![]);
    let service = object("service", "Service", name(), Some("w".into()), after.clone());
    let role = Role { after, ..testkit::role("w", replicas, name(), json!({})) };
    let plan = Arc::new(Plan { objects: vec![group, service], ..testkit::plan(vec![role]) });
    let mut snapshot = testkit::snapshot(testkit::job("wide", "uid"));
    snapshot.children.push(testkit::child("Group", "wide", &[]));
    let verdict = Verdict::new(json!({}), "Starting", Outcome::Open);
    (snapshot, Answer::Judged { plan, bindings: Bindings::default(), verdict })
}

// Section 4: nothing is counted once for each missing replica, which takes their square. Evaluated so often, this gate
// would take a hundred allocations more for each of them.
#[test]
fn a_gate_is_evaluated_once_however_many_replicas_are_missing_behind_it() {
    let [thousand, ten_thousand] = [1_000, 10_000].map(|replicas| {
        let (snapshot, answer) = held_back(replicas);
        again(|| assert_eq!(decide(&snapshot, &answer).actions, []))
    });
    assert!(ten_thousand.count_total <= 20 * 10_000, "{ten_thousand:?}");
    assert!(ten_thousand.count_total <= 11 * thousand.count_total, "{thousand:?}, {ten_thousand:?}");
}
