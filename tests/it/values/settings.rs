//! The same of what the cluster operator writes: the settings of the built-in plugins, the values of the chart, and the options
//! of the host. What is refused names the setting, and the rest is in a table with the reason why it is harmless.

use crate::built_in;
use clap::CommandFactory;
use sandbox::configured;
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, fs, path::Path};
use troupe_cli::args::Args;

/// A setting with a value that means nothing, and what is said of it.
pub(crate) struct Tried {
    /// The plugin, the chart or the command.
    pub(crate) of: String,
    /// `policies.fence.users.capabilities`, `--namespace`.
    pub(crate) name: String,
    pub(crate) value: Value,
    /// Why it is refused, or None.
    pub(crate) refused: Option<String>,
}

/// What is accepted without a word: the end of a name, the values, and why.
const HARMLESS: &[(&[&str], &[&str], &str)] = &[
    (&["maxObjects", "maxReplicas"], &["0"], "the plugin may make none"),
    (&["logLines"], &["0"], "the plugin may log nothing"),
    (&["memoryBytes"], &["2147483647"], "memory can only be lowered: the host's own limit counts"),
    (
        &[
            "maxObjects",
            "maxReplicas",
            "answerBytes",
            "concurrency",
            "fuel",
            "fuelPerMinute",
            "logLines",
            "wallMilliseconds",
        ],
        &["2147483647"],
        "the cluster operator allows as much",
    ),
    (&["percent"], &["0"], "the candidate serves no new job, and is compared alone"),
    (&["approve"], &["\"\""], "no digest is approved"),
    (&["matchLabels[a]"], &["\"\""], "the label without a value"),
    (
        &[
            "cluster-domain",
            "gang-scheduler-name",
            "gang-scheduling",
            "scheduling",
            "pytorch-init-container-image",
            "initImage",
            "etcdServer",
            "tag",
            "digest",
            "watchNamespace",
            "endpoint",
            "priorityClassName",
        ],
        &["\"\""],
        "empty is the default: nothing of this",
    ),
    (&["etcdServer"], &["\"no-such-word\""], "accepted and ignored, as in the original"),
    (
        &["--admin-tls-certificate", "--admin-tls-key"],
        &["\" \"", "\"no such word\"", "\"-1\"", "\"0\""],
        "a file of this name is read at the start, which fails with the name where there is none",
    ),
    (
        &["--precompiled"],
        &["\" \"", "\"no such word\"", "\"-1\"", "\"0\""],
        "a folder of this name is looked at; where it has no code of the plugins, they are compiled",
    ),
    (
        &["--namespace", "--lease-namespace", "--plugin-namespace", "--plugin-source-namespace"],
        &["\"0\""],
        "the name of a namespace",
    ),
    (&["--otlp-sample"], &["\"0\""], "no pass is traced"),
];

/// Returns all values that were tried, and those that are accepted without a word and without a reason.
pub(crate) fn tried() -> (Vec<Tried>, Vec<String>) {
    let mut tried = of_plugins();
    tried.extend(of_the_chart());
    tried.extend(of_options());
    let silent = tried.iter().filter(|it| {
        let is_named =
            it.refused.as_ref().is_some_and(|words| words.contains(it.name.rsplit('.').next().unwrap_or_default()));
        !is_named && why(it).is_none()
    });
    let silent = silent.map(|it| format!("{} {} = {}: {:?}", it.of, it.name, it.value, it.refused)).collect();
    (tried, silent)
}

/// Returns why a value that is accepted does no harm.
pub(crate) fn why(tried: &Tried) -> Option<&'static str> {
    if tried.value == json!({}) {
        return Some("says nothing: what it could have has its default");
    }
    if tried.refused.is_none() && tried.name.starts_with("spec.grants.") && tried.value.is_array() {
        let is_empty = tried.value == json!([]);
        return Some(if is_empty { "nothing is granted" } else { "a set: granted, once or twice said" });
    }
    let (last, value) = (tried.name.rsplit('.').next().unwrap_or_default(), tried.value.to_string());
    let row = HARMLESS.iter().find(|(names, values, _)| {
        tried.refused.is_none() && names.contains(&last) && values.contains(&value.as_str())
    });
    row.map(|(.., why)| *why)
}

fn of_plugins() -> Vec<Tried> {
    let plugins = built_in::plugins();
    let mut tried = vec![];
    for (framework, _) in plugins.frameworks() {
        let schema = &framework.config_schema;
        for (name, value, config) in values(schema, schema, &[]) {
            let refused = configured(&framework, &config).err().map(|error| error.to_string());
            tried.push(Tried { of: format!("plugin {}", framework.name), name, value, refused });
        }
    }
    tried
}

fn of_the_chart() -> Vec<Tried> {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/chart");
    let schema: Value = serde_json::from_str(&fs::read_to_string(chart.join("values.schema.json")).unwrap()).unwrap();
    let defaults: Value = serde_norway::from_str(&fs::read_to_string(chart.join("values.yaml")).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let tried = values(&schema, &schema, &[]).into_iter().map(|(name, value, config)| {
        let mut whole = defaults.clone();
        merge(&mut whole, &config);
        let wrong: Vec<_> =
            validator.iter_errors(&whole).map(|error| format!("{}: {error}", error.instance_path())).collect();
        let refused = (!wrong.is_empty()).then(|| wrong.join("; "));
        Tried { of: "the chart".into(), name, value, refused }
    });
    tried.collect()
}

fn merge(target: &mut Value, more: &Value) {
    match more {
        Value::Object(fields) if target.is_object() && !fields.is_empty() => {
            fields.iter().for_each(|(name, value)| merge(&mut target[name], value));
        }
        _ => *target = more.clone(),
    }
}

/// Returns values that mean nothing for each place of a schema: the name of the place, the value, and a config with it alone.
fn values(schema: &Value, root: &Value, at: &[String]) -> Vec<(String, Value, Value)> {
    let schema = match schema["$ref"].as_str().and_then(|to| root.pointer(to.trim_start_matches('#'))) {
        Some(referred) => referred,
        None => schema,
    };
    let types: BTreeSet<&str> = match &schema["type"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let mut nonsense = vec![];
    if types.contains("string") || schema["enum"].is_array() {
        nonsense.extend([json!(""), json!(" "), json!("no such word")]);
    }
    if types.contains("integer") || types.contains("number") {
        nonsense.extend([json!(-1), json!(i64::MAX)]);
    }
    if types.contains("object") && !at.is_empty() {
        nonsense.push(json!({}));
    }
    let mut all: Vec<_> = nonsense.into_iter().map(|value| (at.join("."), value.clone(), nested(at, value))).collect();
    let below = |name: &str| [at, &[name.to_owned()]].concat();
    for (name, inner) in schema["properties"].as_object().unwrap_or(&Map::new()) {
        all.extend(values(inner, root, &below(name)));
    }
    if schema["additionalProperties"] == false {
        let at = below("noSuchSetting");
        all.push((at.join("."), json!(1), nested(&at, json!(1))));
    }
    if types.contains("array") && schema["items"].is_object() {
        let items = values(&schema["items"], root, &["item".to_owned()]);
        let of_item = |(_, value, item): (String, Value, Value)| {
            (at.join("."), json!([value]), nested(at, json!([item["item"]])))
        };
        all.extend(items.into_iter().map(of_item));
    }
    all
}

fn nested(at: &[String], value: Value) -> Value {
    at.iter().rev().fold(value, |inner, name| json!({ name: inner }))
}

fn of_options() -> Vec<Tried> {
    let command = Args::command();
    let operator = command.find_subcommand("operator").unwrap();
    let options = operator.get_arguments().filter(|it| it.get_long().is_some() && it.get_action().takes_values());
    let mut tried = vec![];
    for option in options {
        let name = format!("--{}", option.get_long().unwrap_or_default());
        for value in ["", " ", "no such word", "-1", "0"] {
            let parsed = Args::command().try_get_matches_from(["troupe", "operator", &format!("{name}={value}")]);
            // What another option is missing for is no word about this one's value.
            let refused = parsed.err().filter(|error| error.kind() != clap::error::ErrorKind::MissingRequiredArgument);
            let refused = refused.map(|error| error.to_string());
            tried.push(Tried { of: "troupe operator".into(), name: name.clone(), value: json!(value), refused });
        }
    }
    tried
}
