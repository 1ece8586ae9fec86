//! Which series, and which runs of them, are refused.

use super::{descriptor, granted, job, object, plan, role};
use crate::{
    plan::{Plan, Run, Runs, Series},
    rejection::Objection,
    snapshot::Job,
    vet::{series::runs, vet},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn series() -> Series {
    Series {
        key: "runs".into(),
        api_version: "batch/v1".into(),
        kind: "Job".into(),
        template_at: "/template".into(),
        labels: BTreeMap::new(),
    }
}

fn with(series: Vec<Series>) -> Plan {
    Plan { series, ..plan(vec![], vec![]) }
}

fn nightly() -> Job {
    job(json!({ "template": { "spec": {} } }))
}

/// Returns whose error the plan is, and what is said of it.
fn refused(job: &Job, plan: &Plan) -> String {
    let grants = granted(&json!({ "deletes": ["Job.batch"] }));
    match vet(&descriptor(), job, &grants, plan) {
        Ok(()) => "accepted".to_owned(),
        Err(Objection::Plugin(error)) => format!("plugin: {error}"),
        Err(Objection::Job(rejection)) => format!("user: {rejection}"),
    }
}

#[test]
fn a_series_is_of_a_kind_that_is_described_granted_and_nothing_elses() {
    let of = |api_version: &str, kind: &str| {
        refused(&nightly(), &with(vec![Series { api_version: api_version.into(), kind: kind.into(), ..series() }]))
    };
    assert_eq!(of("batch/v1", "Job"), "accepted");
    assert!(of("v1", "Secret").starts_with("plugin: series runs: a Secret is asked for as"));
    assert!(of("v1", "Pod").starts_with("plugin: series runs: a Pod is asked for as"));
    assert!(of("v1", "Namespace").contains("describe does not name v1 Namespace"));
    assert!(of("v1", "ConfigMap").contains("spec.grants.deletes"), "{}", of("v1", "ConfigMap"));

    let twice = with(vec![series(), Series { key: "more".into(), ..series() }]);
    assert_eq!(refused(&nightly(), &twice), "plugin: series runs: series more is of the same kind");
    let keys = with(vec![series(), series()]);
    assert!(refused(&nightly(), &keys).contains("key runs appears twice"));
    let behind_roles = Plan { series: vec![series()], ..plan(vec![role(json!({}))], vec![]) };
    assert!(refused(&nightly(), &behind_roles).starts_with("plugin: "));
    let objects = vec![object("v1", "ConfigMap", json!({}))];
    let config_maps = Series { api_version: "v1".into(), kind: "ConfigMap".into(), ..series() };
    assert!(refused(&nightly(), &Plan { series: vec![config_maps], ..plan(vec![], objects) }).starts_with("plugin: "));
    let labelled = Series { labels: BTreeMap::from([("job-name".into(), "x".into())]), ..series() };
    assert!(refused(&nightly(), &with(vec![labelled])).contains("the label job-name is not a plugin's to set"));
}

#[test]
fn a_template_that_cannot_be_an_object_is_the_users_error() {
    for (template, field) in [
        (json!("x"), "spec.template: "),
        (json!({}), "spec.template.spec: "),
        (json!({ "spec": [] }), "spec.template.spec: "),
        (json!({ "spec": {}, "metadata": 1 }), "spec.template.metadata: "),
        (json!({ "spec": {}, "metadata": { "labels": [] } }), "spec.template.metadata.labels: "),
        (json!({ "spec": {}, "metadata": { "annotations": "x" } }), "spec.template.metadata.annotations: "),
    ] {
        let said = refused(&job(json!({ "template": template })), &with(vec![series()]));
        assert!(said.starts_with("user: ") && said.contains(&format!("{field}must be an object")), "{said}");
    }
    assert!(refused(&job(json!({})), &with(vec![series()])).contains("the job's spec has no object at /template"));
}

#[test]
fn a_run_has_a_series_a_name_of_the_jobs_and_no_mark_of_the_hosts() {
    let job = nightly();
    let run = |series: &str, name: &str, annotation: &str| {
        let annotations = BTreeMap::from([(annotation.to_owned(), String::new())]);
        let run = Run { series: series.into(), name: name.into(), annotations };
        match runs(&job, &with(vec![self::series()]), &Runs { make: vec![run], ..Runs::default() }) {
            Ok(()) => "accepted".to_owned(),
            Err(Objection::Plugin(error)) => format!("plugin: {error}"),
            Err(Objection::Job(rejection)) => format!("user: {rejection}"),
        }
    };
    let name = |suffix: &str| format!("{}{suffix}", job.name);
    assert_eq!(run("runs", &name("-1"), "at"), "accepted");
    assert_eq!(run("other", &name("-1"), "at"), "plugin: series other: the plan has no such series");
    assert!(run("runs", "another", "at").contains("does not begin with the job's name"));
    assert!(run("runs", &name("-X"), "at").starts_with("plugin: series runs: the name"));
    assert!(run("runs", &name("-1"), "troupe.dev/plugin-digest").contains("annotation troupe.dev/plugin-digest"));
    let long = "x".repeat(62);
    assert!(run("runs", &name(&long), "at").starts_with("user: "), "a shorter name of the job would do");
}

#[test]
fn an_answer_may_ask_for_a_hundred_runs() {
    let run =
        |at: u32| Run { series: "runs".into(), name: format!("{}-{at}", nightly().name), annotations: BTreeMap::new() };
    let ask = |count| {
        runs(&nightly(), &with(vec![series()]), &Runs { make: (0..count).map(run).collect(), ..Runs::default() })
    };
    assert_eq!(ask(100), Ok(()));
    let Err(Objection::Plugin(error)) = ask(101) else { panic!("it is the plugin's error") };
    assert_eq!(error.to_string(), "bind asks for 101 runs, more than 100");
}

#[test]
fn nothing_of_a_series_comes_from_the_plugin_but_labels_and_annotations() {
    let template = json!({ "spec": { "template": { "spec": { "hostNetwork": true, "containers": [] } } } });
    let spec: Value = json!({ "template": template });
    assert_eq!(refused(&job(spec), &with(vec![series()])), "accepted", "what the user writes is the user's own");
}
