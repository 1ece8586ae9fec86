//! The user's job with its spec and config parsed.

use crate::{
    place,
    types::{FieldError, JobView, Refusal},
};
use serde::de::DeserializeOwned;

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
    /// [`Refusal::Invalid`] with the path of the first field that has the wrong type.
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
    serde_json::from_str(json).map_err(|error| {
        let path = match place::of(&error, json).as_str() {
            "" => root.to_owned(),
            inner => format!("{root}.{inner}"),
        };
        invalid(path, error.to_string())
    })
}

/// Returns a refusal for one wrong field. `path` names the field; `message` says what the field must be.
pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Refusal {
    Refusal::Invalid(vec![FieldError { path: path.into(), message: message.into() }])
}

/// Returns a refusal of a valid job that needs something that this plugin does not support.
pub fn unsupported(what: impl Into<String>) -> Refusal {
    Refusal::Unsupported(what.into())
}
