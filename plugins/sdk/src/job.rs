//! The user's job with its spec and config parsed.

use crate::{
    place::{self, Place},
    types::{FieldError, JobView, Refusal},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The maximum number of wrong types that a refusal names.
const MOST_ERRORS: usize = 16;

/// The maximum number of bytes that are parsed to find the errors after the first: it costs fuel.
const MOST_BYTES: usize = 1 << 20;

/// A job with its spec and the plugin's config parsed into the framework's types.
#[derive(Debug, Clone)]
pub struct Job<S, C> {
    /// The job as the host passes it: names, labels, annotations and the unparsed spec.
    pub view: JobView,
    /// The parsed spec.
    pub spec: S,
    /// The parsed config of the plugin.
    pub config: C,
}

impl<S: DeserializeOwned, C: DeserializeOwned> Job<S, C> {
    /// Parses the spec and the config of a job.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] with the path of each field that has the wrong type, as far as they can be known.
    pub fn parse(view: JobView) -> Result<Self, Refusal> {
        let spec = parse("spec", &view.spec)?;
        let config = parse("config", &view.config)?;
        Ok(Self { view, spec, config })
    }
}

impl<S, C> Job<S, C> {
    /// The job's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.view.name
    }

    /// The job's namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.view.namespace
    }
}

fn parse<T: DeserializeOwned>(root: &str, json: &str) -> Result<T, Refusal> {
    serde_json::from_str(json)
        .map_err(|error| Refusal::Invalid(errors(root, json, error, &|text| serde_json::from_str::<T>(text).err())))
}

/// Returns the error of a text. Not a type parameter: this code is in each component once, whatever it parses.
type Check<'a> = &'a dyn Fn(&str) -> Option<serde_json::Error>;

/// Returns the first wrong value and those after it. The parser stops at the first, so the text is parsed again with a value
/// in its place that is not wrong, if there is one; otherwise what follows is not known.
fn errors(root: &str, json: &str, first: serde_json::Error, check: Check<'_>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = vec![];
    let (mut json, mut error, mut left) = (Cow::Borrowed(json), first, MOST_BYTES);
    while errors.len() < MOST_ERRORS {
        let (place, message) = (place::of(&error, &json), without_position(&error));
        let path = match place.path().as_str() {
            "" => root.to_owned(),
            inner => format!("{root}.{inner}"),
        };
        errors.push(FieldError { path, message: message.clone() });
        match beyond(&json, &place, &message, &mut left, check) {
            Some((text, next)) => (json, error) = (text.into(), next),
            None => break,
        }
    }
    errors
}

/// Returns the text with another value at the place of an error, and the error after it. None if no value is right there, or
/// there is no other error.
fn beyond(
    json: &str,
    place: &Place,
    message: &str,
    left: &mut usize,
    check: Check<'_>,
) -> Option<(String, serde_json::Error)> {
    let mut whole: Value = serde_json::from_str(json).ok()?;
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    // Of an enum: the first of the words that would be right.
    let word = message.rsplit_once("expected ").and_then(|(_, words)| words.split('`').nth(1)).unwrap_or_default();
    for value in [Value::Null, 0.into(), word.into(), json!([]), json!({}), false.into()] {
        let wrong = place.find(&mut whole)?;
        match missing {
            Some(field) => drop(wrong.as_object_mut()?.insert(field.to_owned(), value)),
            None => *wrong = value,
        }
        let text = whole.to_string();
        *left = left.checked_sub(text.len())?;
        let next = check(&text)?;
        let (at, inside) = (place::of(&next, &text).path(), place.path());
        let is_here = match missing {
            Some(field) => without_position(&next) == message || at == join(&inside, field),
            None => at == inside,
        };
        if !is_here {
            return Some((text, next));
        }
    }
    None
}

/// Returns the path of a field of the object at a path.
fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { [path, ".", field].concat() }
}

/// Returns the error without its line and column, which are those of the host's text and not of the user's manifest.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Returns a refusal for one wrong field. `path` names the field; `message` says what the field must be.
pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Refusal {
    Refusal::Invalid(vec![FieldError { path: path.into(), message: message.into() }])
}

/// Returns a refusal of a valid job that needs something that this plugin does not support.
pub fn unsupported(what: impl Into<String>) -> Refusal {
    Refusal::Unsupported(what.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Spec {
        workers: Option<Workers>,
        name: Option<String>,
        needed: u32,
        #[serde(default)]
        mode: Mode,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        #[default]
        Plain,
        Careful,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Workers {
        replicas: Option<u32>,
        names: Vec<String>,
    }

    fn refused(spec: &Value) -> Vec<(String, String)> {
        match Job::<Spec, Value>::parse(testkit::job("Echo", "x", spec)) {
            Err(Refusal::Invalid(errors)) => errors.into_iter().map(|error| (error.path, error.message)).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_value_of_another_type_is_named_by_its_path() {
        let errors = refused(&json!({ "workers": { "replicas": "two", "names": [] }, "name": 3, "needed": 1 }));
        let expected = [
            ("spec.name", "invalid type: integer `3`, expected a string"),
            ("spec.workers.replicas", "invalid type: string \"two\", expected u32"),
        ];
        assert_eq!(errors, expected.map(|(path, message)| (path.to_owned(), message.to_owned())));
    }

    #[test]
    fn what_follows_a_required_value_is_named_too() {
        let errors = refused(&json!({ "name": 3, "needed": "x", "workers": { "names": [4, "a", 5] } }));
        let paths: Vec<_> = errors.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["spec.name", "spec.needed", "spec.workers.names[0]", "spec.workers.names[2]"]);
        let errors = refused(&json!({ "mode": "fast", "name": 3, "needed": [], "workers": { "names": {} } }));
        let paths: Vec<_> = errors.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["spec.mode", "spec.name", "spec.needed", "spec.workers.names"]);
        let errors = refused(&json!({ "workers": {} }));
        assert_eq!(errors[0], ("spec.workers".to_owned(), "missing field `names`".to_owned()));
        assert_eq!(errors[1], ("spec".to_owned(), "missing field `needed`".to_owned()));
        assert_eq!(errors.len(), 2);
    }

    #[test]
    fn a_large_spec_with_many_errors_is_not_parsed_without_end() {
        let names: Vec<u32> = vec![7; 60_000];
        let errors = refused(&json!({ "needed": 1, "workers": { "names": names } }));
        assert!((1..=MOST_ERRORS).contains(&errors.len()), "{}", errors.len());
        let left = MOST_BYTES / (2 * 60_000);
        assert!(errors.len() <= left + 1, "{}", errors.len());
    }
}
