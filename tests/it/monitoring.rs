//! Alerts and dashboards name metrics and labels that there are; promtool reads them, and each alert fires and is silent.

use admin::metrics::table::{self, Type};
use harness::{Binaries, Tool};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/monitoring")
}

/// What is below `spec` of the PrometheusRule.
fn rules() -> Value {
    let text = fs::read_to_string(folder().join("alerts.yaml")).unwrap();
    let mut object: Value = serde_norway::from_str(&text).unwrap();
    object["spec"].take()
}

fn alerts(rules: &Value) -> Vec<&Value> {
    let groups = rules["groups"].as_array().unwrap().iter();
    groups.flat_map(|group| group["rules"].as_array().unwrap()).collect()
}

/// The queries of a dashboard, by the title of their panel, with an interval that Prometheus knows.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let of = |panel: &Value| -> Vec<_> {
        let title = panel["title"].as_str().unwrap().to_owned();
        let targets = panel["targets"].as_array().unwrap().iter();
        let queries = targets.map(|target| target["expr"].as_str().unwrap().replace("$__rate_interval", "5m"));
        queries.map(|query| (title.clone(), query)).collect()
    };
    panels.flat_map(of).collect()
}

fn dashboards() -> BTreeMap<String, Value> {
    let files = fs::read_dir(folder().join("dashboards")).unwrap().map(|file| file.unwrap().path());
    files
        .map(|file| {
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap())
        })
        .collect()
}

/// The words of a query that are no text in quotes: names of metrics and labels, functions, keywords.
fn words(query: &str) -> BTreeSet<String> {
    let unquoted: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let words = unquoted.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    words.filter(|word| word.contains('_')).map(str::to_owned).collect()
}

/// Panics where a query has a word with `_` that is neither a metric of the table nor a function.
fn is_known(whose: &str, query: &str) {
    let of_histogram = |metric: &table::Metric| ["bucket", "sum", "count"].map(|end| format!("{}_{end}", metric.name));
    let (histograms, others): (Vec<_>, Vec<_>) = table::ALL.iter().partition(|metric| metric.kind == Type::Histogram);
    let known: BTreeSet<String> = histograms
        .into_iter()
        .flat_map(of_histogram)
        .chain(others.iter().map(|metric| metric.name.to_owned()))
        .collect();
    let words: BTreeSet<_> = words(query).into_iter().filter(|word| word != "histogram_quantile").collect();
    assert!(!words.is_empty() && words.is_subset(&known), "{whose}: {query}: {:?}", words.difference(&known));
}

#[test]
fn every_query_of_a_dashboard_and_an_alert_names_metrics_that_there_are() {
    let dashboards = dashboards();
    assert_eq!(dashboards.len(), 2);
    let mut shown = BTreeSet::new();
    for (name, dashboard) in &dashboards {
        for (title, query) in queries(dashboard) {
            is_known(&format!("{name}, {title}"), &query);
            shown.extend(words(&query));
        }
        let variable = &dashboard["templating"]["list"][1]["query"]["query"];
        assert_eq!(variable, "label_values(troupe_ready, job)");
    }
    for alert in alerts(&rules()) {
        is_known(alert["alert"].as_str().unwrap(), alert["expr"].as_str().unwrap());
    }
    // What has no panel is told by another metric.
    let left_out = [
        "process_virtual_memory_bytes",
        "process_start_time_seconds",
        "workqueue_work_duration_seconds",
        "troupe_plugin_breaker_namespaces",
    ];
    for metric in table::ALL.iter().filter(|metric| !left_out.contains(&metric.name)) {
        assert!(shown.iter().any(|word| word.starts_with(metric.name)), "no panel shows {}", metric.name);
    }
}

/// A test of rules, as promtool reads it.
#[derive(Debug, Deserialize)]
struct RuleTests {
    tests: Vec<RuleTest>,
}

#[derive(Debug, Deserialize)]
struct RuleTest {
    alert_rule_test: Vec<AlertTest>,
}

#[derive(Debug, Deserialize)]
struct AlertTest {
    alertname: String,
    #[serde(default)]
    exp_alerts: Vec<Value>,
}

#[test]
fn each_alert_is_tested_to_fire_and_to_be_silent() {
    let tests: RuleTests = serde_norway::from_str(include_str!("monitoring/alerts.test.yaml")).unwrap();
    let all = tests.tests.into_iter().flat_map(|test| test.alert_rule_test);
    let (fires, silent): (Vec<_>, Vec<_>) = all.partition(|test| !test.exp_alerts.is_empty());
    let rules = rules();
    let alerts = alerts(&rules);
    assert!(alerts.len() >= 10, "{} alerts", alerts.len());
    for alert in alerts {
        let name = alert["alert"].as_str().unwrap();
        assert!(fires.iter().any(|test| test.alertname == name), "{name} is not tested to fire");
        assert!(silent.iter().any(|test| test.alertname == name), "{name} is not tested to be silent");
        let annotations = &alert["annotations"];
        assert!(annotations["summary"].is_string() && annotations["description"].is_string(), "{name}");
    }
}

/// Runs promtool in a folder; panics with what it says if it refuses.
fn promtool(folder: &Path, arguments: &[&str]) {
    let binaries = Binaries::of(&[Tool::Promtool]).unwrap();
    let output =
        Command::new(binaries.path(Tool::Promtool).unwrap()).args(arguments).current_dir(folder).output().unwrap();
    let words = [output.stdout, output.stderr].map(|words| String::from_utf8_lossy(&words).into_owned());
    assert!(output.status.success(), "{arguments:?}: {}{}", words[0], words[1]);
}

#[test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
fn promtool_sees_every_alert_fire_and_be_silent_and_reads_every_query() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("monitoring");
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, rules: &Value| fs::write(folder.join(name), rules.to_string()).unwrap();
    let mut rules = rules();
    write("annotated.yaml", &rules);
    promtool(&folder, &["check", "rules", "annotated.yaml"]);
    // Tests of alerts would have to repeat their annotations.
    for group in rules["groups"].as_array_mut().unwrap() {
        for rule in group["rules"].as_array_mut().unwrap() {
            rule.as_object_mut().unwrap().remove("annotations");
        }
    }
    write("rules.yaml", &rules);
    fs::write(folder.join("tests.yaml"), include_str!("monitoring/alerts.test.yaml")).unwrap();
    promtool(&folder, &["test", "rules", "tests.yaml"]);
    let queries = dashboards().into_values().flat_map(|dashboard| self::queries(&dashboard));
    let panels: Vec<_> = queries
        .enumerate()
        .map(|(number, (_, query))| json!({ "record": format!("panel:{number}"), "expr": query }))
        .collect();
    write("panels.yaml", &json!({ "groups": [{ "name": "panels", "rules": panels }] }));
    promtool(&folder, &["check", "rules", "panels.yaml"]);
}
