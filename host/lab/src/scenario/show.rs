//! The output of `> show`.

use super::{
    pass, words,
    world::{World, text},
};
use anyhow::Context;
use base64::{Engine, prelude::BASE64_STANDARD};
use decide::{own_conditions, ownership::PLUGIN_DIGEST_ANNOTATION, status::of_framework, waiting::object};
use serde_json::{Map, Value, json};
use wildmatch::WildMatch;

/// The maximum number of characters of a value that is printed in one line.
const INLINE: usize = 100;

/// - `show objects [pattern]`: every object, with the state of its pod
/// - `show status [path ...]`: the framework's status; `show conditions`: the host's conditions, then the framework's
/// - `show ledger`, `show events`
/// - `show kind/name [section ...]`: an object, or parts of it: a path, or `env`, `env:<container>`, `labels`,
///   `annotations`, `owner`
pub(super) fn show(world: &World, what: &str, sections: &[&str]) -> anyhow::Result<Vec<String>> {
    match what {
        "objects" => Ok(objects(world, sections.first().copied().unwrap_or("*"))),
        "events" => Ok(events(world)),
        "conditions" => Ok(conditions(&status(world))),
        "ledger" => Ok(printed(&ledger(world))),
        "status" => parts(&of_framework(&status(world)), sections),
        "job" => parts(&world.job().context("there is no job")?, sections),
        name => {
            let stored = world.object(name)?;
            let written = world.sent.as_written(&stored);
            parts_of(&without_identity(written), &without_identity(stored), sections)
        }
    }
}

fn objects(world: &World, pattern: &str) -> Vec<String> {
    let (pattern, there) = (WildMatch::new(pattern), world.objects());
    let there = there.iter().map(|it| (object(&text(it, "/kind"), &text(it, "/metadata/name")), it));
    let lines: Vec<_> = there
        .filter(|(name, _)| pattern.matches(name))
        .map(|(name, it)| {
            let going = it.pointer("/metadata/deletionTimestamp").map(|_| "terminating".to_owned());
            let about = [text(it, "/status/phase"), text(it, "/status/podIP"), going.unwrap_or_default()];
            let about = about.into_iter().filter(|word| !word.is_empty() && !name.starts_with("job/"));
            [name.clone()].into_iter().chain(about).collect::<Vec<_>>().join(" ")
        })
        .collect();
    if lines.is_empty() { vec!["none".into()] } else { lines }
}

fn events(world: &World) -> Vec<String> {
    let line = |event: &Value| format!("{} {}", text(event, "/firstTimestamp"), pass::worded(event));
    let lines: Vec<_> = pass::events(world, 0).iter().map(line).collect();
    if lines.is_empty() { vec!["none".into()] } else { lines }
}

fn conditions(status: &Value) -> Vec<String> {
    let lines: Vec<_> = own_conditions::all(status)
        .map(|condition| {
            let field = |name: &str| text(condition, &format!("/{name}"));
            let since = field("lastTransitionTime");
            format!("{}={} {} since {since}: {}", field("type"), field("status"), field("reason"), field("message"))
        })
        .collect();
    if lines.is_empty() { vec!["none".into()] } else { lines }
}

fn status(world: &World) -> Value {
    world.job().and_then(|job| job.get("status").cloned()).unwrap_or_default()
}

/// Returns the ledger without the digest, which changes with every change of a plugin, and without the conditions.
fn ledger(world: &World) -> Value {
    let mut ledger = status(world).get("troupe").cloned().unwrap_or_default();
    if let Some(fields) = ledger.as_object_mut() {
        fields.retain(|name, _| name != "digest" && name != "conditions");
    }
    ledger
}

/// Returns the object without what changes with every build of a plugin, and without secret values.
fn without_identity(mut there: Value) -> Value {
    if let Some(metadata) = there["metadata"].as_object_mut() {
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(PLUGIN_DIGEST_ANNOTATION);
        }
        metadata.retain(|field, value| field != "annotations" || value != &json!({}));
        metadata.retain(|field, _| !["resourceVersion", "creationTimestamp"].contains(&field.as_str()));
    }
    if there["kind"] == "Secret" {
        let data = there.get_mut("data").and_then(Value::as_object_mut);
        data.into_iter().flatten().for_each(|(_, value)| *value = json!(secret(value)));
    }
    there
}

/// Returns the kind of a secret value.
fn secret(value: &Value) -> String {
    let bytes = BASE64_STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let label = text.strip_prefix("-----BEGIN ").and_then(|rest| rest.split("-----").next());
    label.or_else(|| text.split_whitespace().next()).unwrap_or_default().to_owned()
}

fn parts(whole: &Value, sections: &[&str]) -> anyhow::Result<Vec<String>> {
    parts_of(whole, whole, sections)
}

/// Returns the parts of an object: of the whole as written, of the status as stored.
fn parts_of(whole: &Value, stored: &Value, sections: &[&str]) -> anyhow::Result<Vec<String>> {
    if sections.is_empty() {
        return Ok(printed(whole));
    }
    let mut lines = Vec::new();
    for section in sections {
        match section.split_once(':').unwrap_or((section, "")) {
            ("env", container) => lines.extend(env(whole, container)),
            (path, _) if path.starts_with("status") => lines.extend(printed(&named(section, part(stored, section)))),
            _ => lines.extend(printed(&named(section, part(whole, section)))),
        }
    }
    Ok(lines)
}

fn part<'a>(whole: &'a Value, section: &str) -> Option<&'a Value> {
    match section {
        "labels" | "annotations" => whole.pointer(&format!("/metadata/{section}")),
        "owner" => whole.pointer("/metadata/ownerReferences/0"),
        path => words::at(whole, path),
    }
}

fn named(name: &str, value: Option<&Value>) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value.cloned().unwrap_or_else(|| "absent".into()))]))
}

/// Returns the environment of the named container, or of the first one if the name is empty.
fn env(whole: &Value, name: &str) -> Vec<String> {
    let spec = [whole.pointer("/spec/template/spec"), whole.get("spec")].into_iter().flatten().next();
    let containers = spec.and_then(|spec| spec["containers"].as_array()).into_iter().flatten();
    let Some(container) = containers.into_iter().find(|it| name.is_empty() || it["name"] == name) else {
        return vec!["no such container".into()];
    };
    let list = |field: &str| container.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let own = list("env").iter().map(variable).collect::<Vec<_>>();
    let from = list("envFrom").iter().map(|from| format!("all of {}", inline(from))).collect::<Vec<_>>();
    if own.is_empty() && from.is_empty() {
        vec!["no environment".into()]
    } else {
        own.into_iter().chain(from).collect()
    }
}

fn variable(variable: &Value) -> String {
    let name = text(variable, "/name");
    match variable.get("valueFrom") {
        Some(from) => format!("{name} from {}", inline(from)),
        None => format!("{name}={}", text(variable, "/value")),
    }
}

/// Formats a value as short YAML: a short value in one line, text of several lines as a block.
fn printed(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => fields.iter().flat_map(|(name, value)| field(&format!("{name}:"), value)).collect(),
        Value::Array(items) => items.iter().flat_map(item).collect(),
        scalar => vec![inline(scalar)],
    }
}

fn item(value: &Value) -> Vec<String> {
    let short = inline(value);
    let lines = if short.len() <= INLINE { vec![short] } else { printed(value) };
    lines.iter().enumerate().map(|(at, line)| format!("{} {line}", if at == 0 { "-" } else { " " })).collect()
}

fn field(name: &str, value: &Value) -> Vec<String> {
    if let Some(text) = value.as_str().filter(|text| text.contains('\n')) {
        return [format!("{name} |")].into_iter().chain(text.lines().map(|line| format!("  {line}"))).collect();
    }
    let short = inline(value);
    if short.len() <= INLINE {
        return vec![format!("{name} {short}")];
    }
    let rest = printed(value).into_iter().map(|line| format!("  {line}"));
    [name.to_owned()].into_iter().chain(rest).collect()
}

/// Formats a value in one line, with quotes only around text that would parse as something else.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}: {}", inline(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(['\n', '"']) && words::value(text).is_string()
}
