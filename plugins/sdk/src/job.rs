//! The user's job with its spec and config parsed.

use crate::{
    place,
    types::{FieldError, JobView, Refusal},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;

/// The maximum number of wrong types that a refusal names.
const MOST_ERRORS: usize = 16;

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
    serde_json::from_str(json).map_err(|error| Refusal::Invalid(errors::<T>(root, json, error)))
}

/// Returns the first wrong value and those after it. The parser stops at the first, so the text is parsed again with null
/// in its place. Where null is wrong too, it stops at the same place again, and what follows is not known.
fn errors<T: DeserializeOwned>(root: &str, json: &str, first: serde_json::Error) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = vec![];
    let (mut json, mut error) = (Cow::Borrowed(json), first);
    while errors.len() < MOST_ERRORS {
        let place = place::of(&error, &json);
        let path = match place.path().as_str() {
            "" => root.to_owned(),
            inner => format!("{root}.{inner}"),
        };
        if errors.iter().any(|known| known.path == path) {
            break;
        }
        errors.push(FieldError { path, message: without_position(&error) });
        let Ok(mut whole) = serde_json::from_str::<Value>(&json) else { break };
        let Some(wrong) = place.find(&mut whole) else { break };
        *wrong = Value::Null;
        json = whole.to_string().into();
        match serde_json::from_str::<T>(&json) {
            Ok(_) => break,
            Err(next) => error = next,
        }
    }
    errors
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
    fn what_follows_a_required_value_is_not_guessed() {
        let errors = refused(&json!({ "name": 3, "needed": "x", "workers": { "names": [4] } }));
        let paths: Vec<_> = errors.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["spec.name", "spec.needed"]);
        let errors = refused(&json!({ "workers": {} }));
        assert_eq!(errors[0], ("spec.workers".to_owned(), "missing field `names`".to_owned()));
        assert_eq!(errors[1], ("spec".to_owned(), "missing field `needed`".to_owned()));
    }
}
