//! Answers without what must differ between two servers.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::run::Answer;

/// Names for the values that only have to be the same in the same places: `uid-1` is the first uid a sequence met.
#[derive(Default)]
struct Names {
    uids: Vec<String>,
    versions: Vec<String>,
    generated: BTreeMap<String, String>,
}

/// The answers of a sequence with names in place of uids and versions, without times, addresses and tokens.
pub(super) fn normal(answers: &[Answer]) -> Vec<Answer> {
    let mut names = Names::default();
    answers.iter().map(|answer| Answer { code: answer.code, body: names.value(&answer.body, "") }).collect()
}

impl Names {
    fn value(&mut self, value: &Value, key: &str) -> Value {
        match value {
            Value::Object(object) => self.object(object),
            Value::Array(list) => list.iter().map(|value| self.value(value, "")).collect(),
            Value::String(text) => Value::String(self.text(text, key)),
            other => other.clone(),
        }
    }

    fn object(&mut self, object: &Map<String, Value>) -> Value {
        let mut object = object.clone();
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            self.metadata(metadata, kind.ends_with("List"));
        }
        // In the order of the keys, whatever order a map has.
        let mut keys: Vec<&String> = object.keys().collect();
        // An event's type decides what its object is.
        let bookmark = object.get("type").is_some_and(|kind| kind == "BOOKMARK");
        keys.sort();
        let named = |key: &String| {
            let mut value = object[key].clone();
            if bookmark && key == "object" {
                value["metadata"]["resourceVersion"] = "<version>".into();
            }
            (key.clone(), self.value(&value, key))
        };
        Value::Object(keys.into_iter().map(named).collect())
    }

    fn metadata(&mut self, metadata: &mut Map<String, Value>, list: bool) {
        metadata.remove("managedFields");
        metadata.remove("selfLink");
        let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (name, base, version, more) =
            (text("name"), text("generateName"), text("resourceVersion"), text("continue"));
        let due = until_deletion(&text("creationTimestamp"), &text("deletionTimestamp"));
        if !base.is_empty() && name.len() > 5 && name != base {
            let (stem, _) = name.split_at(name.len() - 5);
            let next = format!("{stem}<{}>", self.generated.len() + 1);
            self.generated.entry(name).or_insert(next);
        }
        if list && !version.is_empty() {
            metadata.insert("resourceVersion".into(), "<version>".into());
        }
        if !more.is_empty() {
            metadata.insert("continue".into(), "<continue>".into());
        }
        if let Some(due) = due {
            metadata.insert("deletionTimestamp".into(), due.into());
        }
    }

    fn text(&mut self, text: &str, key: &str) -> String {
        if key == "resourceVersion" && text.parse::<u64>().is_ok() {
            return format!("version-{}", place(&mut self.versions, text));
        }
        if masked_time(text) {
            return "<time>".into();
        }
        if text.starts_with("10.") && text.parse::<std::net::Ipv4Addr>().is_ok() {
            return "<address>".into();
        }
        let mut text = self.without_uids(text);
        if text.contains("esource version") || text.contains("ResourceVersion") || text.contains("resourceVersion") {
            text = self.without_versions(&text);
        }
        for (name, masked) in &self.generated {
            text = text.replace(name, masked);
        }
        text
    }

    fn without_uids(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match rest.get(..36).filter(|piece| is_uid(piece)) {
                Some(uid) => {
                    out.push_str(&format!("uid-{}", place(&mut self.uids, uid)));
                    rest = &rest[36..];
                }
                None => {
                    out.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        out
    }

    /// Versions that were met are named; the others, which are the whole cluster's, are hidden.
    fn without_versions(&self, text: &str) -> String {
        let mut out = String::new();
        let mut number = String::new();
        for char in text.chars().chain(['\n']) {
            if char.is_ascii_digit() {
                number.push(char);
                continue;
            }
            match self.versions.iter().position(|version| *version == number) {
                _ if number.is_empty() => {}
                Some(at) => out.push_str(&format!("version-{}", at + 1)),
                None => out.push_str(&number),
            }
            number.clear();
            out.push(char);
        }
        out.trim_end_matches('\n').to_owned()
    }
}

fn place(list: &mut Vec<String>, text: &str) -> usize {
    let at = list.iter().position(|have| have == text).unwrap_or_else(|| {
        list.push(text.to_owned());
        list.len() - 1
    });
    at + 1
}

fn is_uid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

/// The times of a sequence are of 2020, all others are the server's.
fn masked_time(text: &str) -> bool {
    text.len() >= 20 && !text.starts_with("2020-") && text.parse::<Timestamp>().is_ok()
}

/// How long after its creation an object is to go, in steps of ten seconds: the grace period.
fn until_deletion(created: &str, deleted: &str) -> Option<String> {
    let (created, deleted): (Timestamp, Timestamp) = (created.parse().ok()?, deleted.parse().ok()?);
    let seconds = deleted.duration_since(created).as_secs();
    Some(format!("<created + {} s>", seconds / 10 * 10))
}
