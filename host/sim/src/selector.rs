//! Label and field selectors: parsing and matching.

use serde_json::Value;

use crate::error::ApiError;
use crate::store::{Kind, text};

#[derive(Debug, Clone, PartialEq)]
enum Demand {
    Is(String, String),
    IsNot(String, String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Has(String),
    HasNot(String),
}

/// What a list, a watch or a deletecollection selects.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selector {
    labels: Vec<Demand>,
    fields: Vec<Demand>,
}

impl Selector {
    /// Parses both query parameters; refuses field labels the kind does not support.
    pub(crate) fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self, ApiError> {
        let labels =
            parse(labels).map_err(|why| ApiError::bad_request(format!("unable to parse requirement: {why}")))?;
        let parsed = parse(fields).map_err(ApiError::bad_request)?;
        for demand in &parsed {
            let (Demand::Is(field, _) | Demand::IsNot(field, _)) = demand else {
                return Err(ApiError::bad_request(format!("invalid selector: '{fields}'; can't understand '{fields}'")));
            };
            if !kind.selectable(field) {
                return Err(ApiError::bad_request(if kind.builtin() {
                    match kind.kind.as_str() {
                        "Pod" | "Event" | "Secret" | "Node" | "Namespace" | "Job" | "Service" => {
                            format!("field label not supported: {field}")
                        }
                        _ => format!(
                            "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                        ),
                    }
                } else {
                    format!("field label not supported: {field}")
                }));
            }
        }
        Ok(Self { labels, fields: parsed })
    }

    /// A selector over labels only, for the simulator's own controllers.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels.iter().all(|demand| demand.holds(|key| labels.get(key).and_then(Value::as_str)))
            && self.fields.iter().all(|demand| demand.holds(|path| Some(field(object, path))))
    }
}

fn field<'a>(object: &'a Value, path: &str) -> &'a str {
    let mut at = object;
    for step in path.split('.') {
        at = &at[step];
    }
    match (path, text(at)) {
        ("spec.schedulerName", "") => "default-scheduler",
        ("spec.restartPolicy", "") => "Always",
        (_, found) => found,
    }
}

impl Demand {
    fn holds<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Demand::Is(key, value) => get(key) == Some(value),
            Demand::IsNot(key, value) => get(key) != Some(value),
            Demand::In(key, values) => get(key).is_some_and(|have| values.iter().any(|value| value == have)),
            Demand::NotIn(key, values) => !get(key).is_some_and(|have| values.iter().any(|value| value == have)),
            Demand::Has(key) => get(key).is_some(),
            Demand::HasNot(key) => get(key).is_none(),
        }
    }
}

fn parse(text: &str) -> Result<Vec<Demand>, String> {
    let mut demands = Vec::new();
    for part in split(text) {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        demands.push(demand(part)?);
    }
    Ok(demands)
}

/// Splits at the commas that stand outside parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, char) in text.char_indices() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

fn demand(part: &str) -> Result<Demand, String> {
    if let Some((key, values)) = set(part, " notin ").or_else(|| set(part, " notin(")) {
        return Ok(Demand::NotIn(key, values));
    }
    if let Some((key, values)) = set(part, " in ").or_else(|| set(part, " in(")) {
        return Ok(Demand::In(key, values));
    }
    for (operator, negative) in [("!=", true), ("==", false), ("=", false)] {
        if let Some((key, value)) = part.split_once(operator) {
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            return Ok(if negative { Demand::IsNot(key, value) } else { Demand::Is(key, value) });
        }
    }
    if let Some(key) = part.strip_prefix('!') {
        return Ok(Demand::HasNot(key.trim().to_owned()));
    }
    if let Some(second) = part.split_whitespace().nth(1) {
        return Err(format!("found '{second}', expected: in, notin, =, ==, !=, gt, lt"));
    }
    Ok(Demand::Has(part.to_owned()))
}

fn set(part: &str, operator: &str) -> Option<(String, Vec<String>)> {
    let (key, values) = part.split_once(operator)?;
    let values = values.trim().trim_start_matches('(').strip_suffix(')')?;
    Some((key.trim().to_owned(), values.split(',').map(|value| value.trim().to_owned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::builtins;
    use serde_json::json;

    fn selects(labels: &str, fields: &str) -> bool {
        let pod = builtins().into_iter().find(|kind| kind.kind == "Pod").unwrap();
        let object = json!({
            "metadata": { "name": "a", "namespace": "default", "labels": { "app": "x", "tier": "back" } },
            "spec": { "nodeName": "node-1" }
        });
        Selector::parse(&pod, labels, fields).unwrap().matches(&object)
    }

    #[test]
    fn label_selectors_match_by_equality_set_and_existence() {
        for yes in ["", "app=x", "app==x,tier", "app in (x, y)", "app notin (z)", "other!=1", "!other", "app in(x)"] {
            assert!(selects(yes, ""), "{yes}");
        }
        for no in ["app=y", "app!=x", "app in (y,z)", "app notin (x)", "!app", "other", "app=x,tier=front"] {
            assert!(!selects(no, ""), "{no}");
        }
    }

    #[test]
    fn field_selectors_match_names_nodes_and_refuse_the_unknown() {
        assert!(selects("", "metadata.name=a,spec.nodeName=node-1"));
        assert!(!selects("", "metadata.namespace!=default"));
        let pod = builtins().into_iter().find(|kind| kind.kind == "Pod").unwrap();
        let error = Selector::parse(&pod, "", "spec.color=red").unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (400, "field label not supported: spec.color"));
    }
}
