//! Label and field selectors: parsing and matching.

use serde_json::Value;

use crate::error::ApiError;
use crate::labels;
use crate::store::{Kind, text};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Demand {
    Is(String, String),
    IsNot(String, String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Has(String),
    HasNot(String),
    Above(String, i64),
    Below(String, i64),
}

/// The selector of a list, a watch or a deletecollection.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selector {
    labels: Vec<Demand>,
    fields: Vec<Demand>,
}

impl Selector {
    /// Parses both query parameters; refuses field labels that the kind does not support.
    pub(crate) fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self, ApiError> {
        let labels = labels::parse(labels).map_err(|why| ApiError::bad_request(why.to_string()))?;
        let parsed = parse(fields);
        for demand in &parsed {
            let (Demand::Is(field, _) | Demand::IsNot(field, _)) = demand else {
                return Err(ApiError::bad_request(format!(
                    "invalid selector: '{fields}'; can't understand '{fields}'"
                )));
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

    /// Whether the selector selects everything.
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
            Demand::Above(key, than) => number(get(key)).is_some_and(|have| have > *than),
            Demand::Below(key, than) => number(get(key)).is_some_and(|have| have < *than),
        }
    }
}

fn number(text: Option<&str>) -> Option<i64> {
    text?.parse().ok()
}

/// Parses a field selector, which supports only equality. A term without an operator becomes an existence demand.
fn parse(text: &str) -> Vec<Demand> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            for (operator, negative) in [("!=", true), ("==", false), ("=", false)] {
                if let Some((key, value)) = part.split_once(operator) {
                    let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
                    return if negative { Demand::IsNot(key, value) } else { Demand::Is(key, value) };
                }
            }
            Demand::Has(part.to_owned())
        })
        .collect()
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
