//! Names of Workloads, and their priority.

use super::*;
use crate::testkit;

#[test]
fn a_workload_is_named_after_its_job_and_no_other_jobs_is() {
    let of = |name: &str, uid: &str| super::name(&testkit::snapshot(testkit::job(name, uid)));
    assert!(of("hamlet", "u").starts_with("tale-hamlet-"));
    assert_ne!(of("hamlet", "u"), of("hamlet", "v"));
    let long = of(&format!("{}.{}", "a".repeat(194), "b".repeat(50)), "u");
    assert!(long.len() < 253 && !long.contains(".-"), "{long}");
}

#[test]
fn the_class_of_pods_or_the_default_class_gives_a_priority_where_no_label_does() {
    let class = |name: &str, value: i64, default: bool| {
        let fields = [("/value", json!(value)), ("/globalDefault", json!(default))];
        let fields = fields.map(|(at, value)| (at.to_owned(), value)).into();
        let kind = CLASSES[2].kind.to_owned();
        let (uid, resource_version) = (String::new(), String::new());
        let api_version = String::new();
        Child { api_version, kind, name: name.into(), uid, resource_version, terminating: false, fields }.into()
    };
    let queue = Queue { workload: None, classes: vec![class("high", 9, false), class("usual", 3, true)] };
    let of = |template: Value| {
        let plan = testkit::plan(vec![testkit::role("a", 1, testkit::text(&["JOB"]), template)]);
        priority(&testkit::snapshot(testkit::job("a", "u")), &queue, &plan).map(|priority| priority.value)
    };
    assert_eq!(of(json!({ "spec": {} })), Ok(3));
    assert_eq!(of(json!({ "spec": { "priorityClassName": "high" } })), Ok(9));
    let missing = Hold::ClassMissing { kind: "PriorityClass".into(), name: "low".into() };
    assert_eq!(of(json!({ "spec": { "priorityClassName": "low" } })), Err(missing));
}
