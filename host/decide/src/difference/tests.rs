//! Differences by field, and when each is dangerous.

use super::*;
use crate::{
    plan::{
        Backing, Body, Clean, Deletion, EnvEntry, Fault, Gate, Moment, Object, OnNewAddress, Policy, Reached,
        Rejection, Role, Success, Ttl, Upkeep,
    },
    ranges::Ranges,
    snapshot::{Pod, PodPhase},
    testkit::{self, child, text},
};
use jiff::Timestamp;
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

fn worker() -> Role {
    Role {
        name: "worker".into(),
        replicas: 2,
        backing: Backing::Pods,
        pod_name: text(&["JOB", "-worker-", "INDEX"]),
        hostname: Some(text(&["POD"])),
        subdomain: None,
        template: json!({ "spec": { "containers": [{ "name": "main", "image": "a" }] } }),
        template_at: None,
        env: vec![EnvEntry { container: String::new(), name: "RANK".into(), value: text(&["INDEX"]) }],
        labels: vec![("replica".into(), text(&["INDEX"]))],
        fill: vec![("/spec/containers/0/image".into(), text(&["a"]))],
        success: Success::Final,
        failures: vec![],
        deletion: Deletion::Uncounted,
        at_once: None,
        template_hash: String::new(),
        failures_per_replica: None,
        left_out: Ranges::default(),
        on_new_address: OnNewAddress::Keep,
        after: vec![],
    }
}

fn launcher() -> Role {
    let backing = Backing::Job(json!({ "spec": { "backoffLimit": 3 } }));
    Role { name: "launcher".into(), replicas: 1, backing, pod_name: text(&["JOB", "-launcher"]), ..worker() }
}

fn config(upkeep: Upkeep) -> Object {
    Object {
        key: "config".into(),
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: text(&["JOB", "-config"]),
        per_pod_of: None,
        body: Body::Fixed(json!({ "data": { "hosts": "one", "other": "x" } }).into(), vec![]),
        upkeep,
        after: vec![],
        remove_when: vec![],
    }
}

/// A plan of two workers, a launcher behind a Job, and a ConfigMap.
pub(crate) fn plan() -> Plan {
    Plan {
        roles: vec![worker(), launcher()],
        objects: vec![config(Upkeep::Follow(vec!["/data/hosts".into()]))],
        secrets: vec![],
        series: vec![],
        success_criteria: vec![],
        host_ports: 0,
        policy: Policy {
            clean_on_success: Clean::Active,
            clean_on_failure: Clean::Active,
            clean_on_suspend: Clean::Active,
            ttl: None,
        },
        warnings: vec![],
    }
}

fn pod(name: &str, phase: PodPhase) -> Arc<Pod> {
    Arc::new(testkit::pod(name, "uid-1", phase))
}

/// A job without any pods.
pub(crate) fn idle() -> Snapshot {
    testkit::snapshot(testkit::job("job", "uid-1"))
}

/// The idle job with both workers running, an unfinished Job, and its ConfigMap.
fn running() -> Snapshot {
    let pods = vec![pod("job-worker-0", PodPhase::Running), pod("job-worker-1", PodPhase::Running)];
    let config = child("ConfigMap", "job-config", &[("/data/hosts", json!("one"))]);
    let job = child("Job", "job-launcher", &[("/spec/suspend", json!(false)), ("/status", json!({}))]);
    Snapshot { pods, children: vec![config, job], ..idle() }
}

fn verdict() -> Verdict {
    let status = json!({ "phase": "Running", "conditions": [{ "type": "Running" }] });
    Verdict::new(status, "Running", Outcome::Open)
}

fn judged(plan: Plan, verdict: Verdict) -> Answer {
    Answer::Judged { plan: Arc::new(plan), bindings: Bindings::default(), verdict }
}

/// Returns the differences that a change of the plan makes.
fn changed(snapshot: &Snapshot, change: impl FnOnce(&mut Plan)) -> Vec<Difference> {
    let mut new = plan();
    change(&mut new);
    differences(snapshot, &judged(plan(), verdict()), &judged(new, verdict()))
}

/// Returns the only difference that the change makes, as text.
fn only(snapshot: &Snapshot, change: impl FnOnce(&mut Plan)) -> String {
    let found = changed(snapshot, change);
    let [difference] = found.as_slice() else { panic!("{found:#?}") };
    difference.to_string()
}

fn judges(change: impl FnOnce(&mut Verdict)) -> Vec<String> {
    let mut new = verdict();
    change(&mut new);
    let found = differences(&running(), &judged(plan(), verdict()), &judged(plan(), new));
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn equal_answers_do_not_differ_whether_shared_or_not() {
    let (one, other) = (judged(plan(), verdict()), judged(plan(), verdict()));
    assert_eq!(differences(&running(), &one, &one.clone()), vec![]);
    assert_eq!(differences(&running(), &one, &other), vec![]);
    assert_eq!(touches_live(&running(), &Arc::new(plan()), &Arc::new(plan())), None);
}

#[test]
fn a_change_of_a_roles_pods_is_dangerous_while_some_are_live() {
    type Change = fn(&mut Role);
    let changes: [(Change, &str); 8] = [
        (|role| role.pod_name = text(&["JOB", "-w-", "INDEX"]), "/pod_name: {job}-worker-{index} -> {job}-w-{index}"),
        (|role| role.hostname = None, "/hostname: {pod} -> none"),
        (|role| role.subdomain = Some(text(&["JOB"])), "/subdomain: none -> {job}"),
        (
            |role| role.template["spec"]["containers"][0]["image"] = json!("b"),
            r#"/template/spec/containers/0/image: "a" -> "b""#,
        ),
        (|role| role.env[0].value = text(&["1"]), "/env/RANK: {index} -> 1"),
        (|role| role.env.clear(), "/env/RANK: {index} -> none"),
        (|role| role.labels[0].1 = text(&["POD"]), "/labels/replica: {index} -> {pod}"),
        (|role| role.fill[0].1 = text(&["b"]), "/fill/spec/containers/0/image: a -> b"),
    ];
    for (change, words) in changes {
        let dead = Snapshot { pods: vec![pod("job-worker-0", PodPhase::Failed)], ..idle() };
        for snapshot in [idle(), dead] {
            assert_eq!(only(&snapshot, |plan| change(&mut plan.roles[0])), format!("role worker {words}"));
        }
        let found = only(&running(), |plan| change(&mut plan.roles[0]));
        assert_eq!(found, format!("role worker {words} (dangerous)"));
    }
}

#[test]
fn another_job_behind_a_role_is_dangerous_until_the_job_is_over() {
    let change = |plan: &mut Plan| plan.roles[1].backing = Backing::Job(json!({ "spec": { "backoffLimit": 4 } }));
    let words = "role launcher /backing/spec/backoffLimit: 3 -> 4";
    assert_eq!(only(&running(), change), format!("{words} (dangerous)"));
    assert_eq!(only(&idle(), change), words);
    let complete = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
    let over = Snapshot { children: vec![child("Job", "job-launcher", &[("/status", complete)])], ..idle() };
    assert_eq!(only(&over, change), words);
    let pods = |plan: &mut Plan| plan.roles[1].backing = Backing::Pods;
    assert_eq!(only(&running(), pods), "role launcher /backing: a Job -> pods (dangerous)");
}

#[test]
fn a_removed_or_renamed_role_is_dangerous_while_its_pods_live() {
    let removed = |plan: &mut Plan| drop(plan.roles.remove(0));
    assert_eq!(only(&running(), removed), "role worker: 2 replicas -> none (dangerous)");
    assert_eq!(only(&idle(), removed), "role worker: 2 replicas -> none");
    let renamed = changed(&running(), |plan| plan.roles[0].name = "trainer".into());
    let words: Vec<_> = renamed.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["role worker: 2 replicas -> none (dangerous)", "role trainer: none -> 2 replicas"]);
}

#[test]
fn fewer_replicas_are_dangerous_only_if_a_pod_is_deleted() {
    let fewer = |plan: &mut Plan| plan.roles[0].replicas = 1;
    assert_eq!(only(&running(), fewer), "role worker /replicas: 2 -> 1 (dangerous)");
    let first = Snapshot { pods: vec![pod("job-worker-0", PodPhase::Running)], ..idle() };
    assert_eq!(only(&first, fewer), "role worker /replicas: 2 -> 1");
    assert_eq!(only(&running(), |plan| plan.roles[0].replicas = 3), "role worker /replicas: 2 -> 3");
}

#[test]
fn gates_and_warnings_and_the_order_of_roles_are_harmless() {
    let gate = Gate::Pods { role: "worker".into(), reached: Reached::Ip };
    assert!(!only(&running(), |plan| plan.roles[1].after.push(gate)).contains("dangerous"));
    let event = Event { warning: true, reason: "Old".into(), message: "x".into() };
    assert_eq!(only(&running(), |plan| plan.warnings.push(event)), "plan /warnings: none -> Old: x");
    assert_eq!(only(&running(), |plan| plan.roles.reverse()), "answer order: as it was -> another");
}

#[test]
fn a_followed_body_is_dangerous_while_a_pod_or_job_lives() {
    let data = |field: &'static str| {
        move |plan: &mut Plan| {
            let Body::Fixed(body, _) = &mut plan.objects[0].body else { panic!() };
            Arc::make_mut(body)["data"][field] = json!("two");
        }
    };
    let hosts = r#"object config /body/data/hosts: "one" -> "two""#;
    assert_eq!(only(&running(), data("hosts")), format!("{hosts} (dangerous)"));
    assert_eq!(only(&idle(), data("hosts")), hosts);
    assert_eq!(only(&running(), data("other")), r#"object config /body/data/other: "x" -> "two""#);
}

#[test]
fn a_bound_body_is_compared_as_a_fixed_one_is() {
    let mut bound = plan();
    bound.objects[0].body = Body::Bound;
    let bound = Arc::new(bound);
    let answer = |hosts: &str| {
        let bodies = BTreeMap::from([("config".to_owned(), json!({ "data": { "hosts": hosts } }))]);
        Answer::Judged {
            plan: Arc::clone(&bound),
            bindings: Bindings { bodies, ..Bindings::default() },
            verdict: verdict(),
        }
    };
    let found = differences(&running(), &answer("one"), &answer("two"));
    let [difference] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(difference.to_string(), r#"object config /body/data/hosts: "one" -> "two" (dangerous)"#);
}

#[test]
fn a_write_that_no_field_shows_is_found() {
    // Only the write shows that the object was not followed before.
    let mut old = plan();
    old.objects = vec![config(Upkeep::CreateOnly)];
    let mut snapshot = running();
    snapshot.children[0] = child("ConfigMap", "job-config", &[("/data/hosts", json!("stale"))]);
    let found = touches_live(&snapshot, &Arc::new(old.clone()), &Arc::new(plan())).unwrap();
    assert!(found.to_string().starts_with("configmap/job-config: stays as it is -> is patched: {"), "{found}");
    // Only the deletion shows that the object moves to a smaller role.
    let service = |role: &str| Object {
        key: "service".into(),
        kind: "Service".into(),
        name: text(&["JOB", "-worker-", "INDEX"]),
        per_pod_of: Some(role.into()),
        remove_when: vec![Moment::ReplicaGone],
        ..config(Upkeep::CreateOnly)
    };
    let (mut wide, mut narrow) = (plan(), plan());
    wide.objects = vec![service("worker")];
    narrow.objects = vec![service("launcher")];
    let snapshot = Snapshot { children: vec![child("Service", "job-worker-1", &[])], ..idle() };
    let found = touches_live(&snapshot, &Arc::new(wide), &Arc::new(narrow)).unwrap();
    assert_eq!(found.to_string(), "service/job-worker-1: stays -> is deleted (dangerous)");
}

#[test]
fn a_job_that_would_itself_be_deleted_is_dangerous() {
    let mut late = running();
    late.now = Timestamp::from_second(1000).unwrap();
    let found = changed(&late, |plan| plan.policy.ttl = Some(Ttl::AfterCreation(10)));
    let words: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["policy /ttl: None -> Some(AfterCreation(10))", "tale/job: stays -> is deleted (dangerous)"]);
}

#[test]
fn a_policy_that_removes_more_live_pods_is_dangerous() {
    let clean = |clean| move |plan: &mut Plan| plan.policy.clean_on_failure = clean;
    assert_eq!(only(&running(), clean(Clean::All)), "policy /clean_on_failure: Active -> All (dangerous)");
    assert_eq!(only(&running(), clean(Clean::Keep)), "policy /clean_on_failure: Active -> Keep");
    assert_eq!(only(&idle(), clean(Clean::All)), "policy /clean_on_failure: Active -> All");
}

#[test]
fn a_change_of_host_ports_is_dangerous_while_pods_live() {
    assert_eq!(only(&running(), |plan| plan.host_ports = 4), "plan /host_ports: 0 -> 4 (dangerous)");
    assert_eq!(only(&idle(), |plan| plan.host_ports = 4), "plan /host_ports: 0 -> 4");
}

#[test]
fn a_change_of_success_is_dangerous_after_a_success() {
    let momentary = |plan: &mut Plan| plan.roles[0].success = Success::Momentary;
    let mut noted = idle();
    noted.ledger.record_success("worker", 1);
    assert_eq!(only(&noted, momentary), "role worker /success: Final -> Momentary (dangerous)");
    assert_eq!(only(&idle(), momentary), "role worker /success: Final -> Momentary");
}

#[test]
fn a_verdict_is_dangerous_only_if_its_outcome_differs() {
    assert_eq!(judges(|verdict| verdict.headline = "Up".into()), ["verdict /headline: Running -> Up"]);
    let reworded = judges(|verdict| verdict.status["conditions"][0]["type"] = json!("Up"));
    assert_eq!(reworded, [r#"verdict /status/conditions/0/type: "Running" -> "Up""#]);
    let over = judges(|verdict| verdict.outcome = Outcome::Failed);
    assert_eq!(over, ["verdict /outcome: open -> failed (dangerous)"]);
}

#[test]
fn a_rejection_or_fault_is_dangerous_in_place_of_a_plan() {
    let rejected = |why: &str| Answer::Rejected(Rejection::Unsupported(why.into()));
    let budget = || ("p".to_owned(), "plan".to_owned(), "fuel".to_owned());
    let (plugin, function, message) = budget();
    let faulted = Answer::Faulted(Fault::Trapped { plugin, function, message });
    let one = |old: &Answer, new: &Answer| {
        let found = differences(&running(), old, new);
        let [difference] = found.as_slice() else { panic!("{found:#?}") };
        difference.danger
    };
    let fine = judged(plan(), verdict());
    for (old, new, danger) in [
        (&fine, &faulted, Danger::Dangerous),
        (&fine, &rejected("x"), Danger::Dangerous),
        (&rejected("x"), &faulted, Danger::Dangerous),
        (&rejected("x"), &rejected("y"), Danger::Harmless),
        (&faulted, &rejected("x"), Danger::Harmless),
        (&faulted, &fine, Danger::Harmless),
    ] {
        assert_eq!(one(old, new), danger, "{old:?} -> {new:?}");
    }
    let ends = judged(plan(), Verdict { outcome: Outcome::Failed, ..verdict() });
    assert_eq!(one(&faulted, &ends), Danger::Dangerous);
}

#[test]
fn a_plan_after_a_rejection_is_dangerous_if_it_deletes_pods() {
    let mut none = plan();
    none.roles[0].replicas = 0;
    let rejected = Answer::Rejected(Rejection::Unsupported("x".into()));
    let found = differences(&running(), &rejected, &judged(none, verdict()));
    let words: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(words[1], "pod/job-worker-0: stays -> is deleted (dangerous)");
}

#[test]
fn people_who_may_not_read_the_job_are_shown_no_value_that_its_user_may_keep_secret() {
    let mut found = changed(&running(), |plan| {
        let role = &mut plan.roles[0];
        role.replicas = 3;
        role.template["spec"]["containers"][0]["args"] = json!(["--password=hunter2"]);
        role.env[0].value = text(&["hunter2"]);
        role.labels[0].1 = text(&["hunter2"]);
        role.fill[0].1 = text(&["hunter2"]);
        let Body::Fixed(body, _) = &mut plan.objects[0].body else { panic!() };
        Arc::make_mut(body)["data"]["hosts"] = json!("hunter2");
        plan.warnings.push(Event { warning: true, reason: "Odd".into(), message: "hunter2".into() });
    });
    let mut patched = Found::default();
    let patch = format!("{PATCHED}{}", json!({ "data": { "hosts": "hunter2" } }));
    patched.record(Danger::Dangerous, "configmap/job-config", "", "stays as it is", patch);
    found.extend(patched.into_differences());

    let whole: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(whole.iter().filter(|words| words.contains("hunter2")).count(), 7, "{whole:#?}");
    let shown: Vec<_> = found.iter().map(Difference::without_secrets).collect();
    assert!(shown.iter().all(|words| !words.contains("hunter2")), "{shown:#?}");
    for words in [
        "role worker /replicas: 2 -> 3",
        "role worker /env/RANK: differs (dangerous)",
        "configmap/job-config: differs (dangerous)",
    ] {
        assert!(shown.iter().any(|shown| shown == words), "{words}: {shown:#?}");
    }
}

#[test]
fn the_number_and_length_of_differences_are_bounded() {
    let many = |n: usize| json!((0..n).map(|at| format!("{at}{}", "x".repeat(1000))).collect::<Vec<_>>());
    let found = judges(|verdict| verdict.status["many"] = json!({}));
    assert_eq!(found, ["verdict /status/many: none -> {}"]);
    let (mut one, mut other) = (verdict(), verdict());
    (one.status["many"], other.status["many"]) = (json!([]), many(100_000));
    let found = differences(&running(), &judged(plan(), one), &judged(plan(), other));
    assert_eq!(found.len(), 200);
    assert!(found.iter().all(|difference| difference.new.chars().count() <= 161), "{:?}", found[0]);
}
