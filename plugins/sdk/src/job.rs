//! The user's job, parsed once.

use crate::{
    place,
    types::{FieldError, JobView, Refusal},
};
use serde::de::DeserializeOwned;

/// A job with its spec and the plugin's config in this framework's own types.
#[derive(Debug, Clone)]
pub struct Job<S, C> {
    /// The job as the host shows it: names, labels, annotations.
    pub view: JobView,
    /// The parsed spec.
    pub spec: S,
    /// The parsed config of the plugin.
    pub config: C,
}

impl<S: DeserializeOwned, C: DeserializeOwned> Job<S, C> {
    /// Parses spec and config.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] with the path of the field that has the wrong type.
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

/// A refusal for one field that is wrong. `path` is the field, `message` what would be right.
pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Refusal {
    Refusal::Invalid(vec![FieldError { path: path.into(), message: message.into() }])
}

/// A refusal of something that is right but that this plugin cannot do.
pub fn unsupported(what: impl Into<String>) -> Refusal {
    Refusal::Unsupported(what.into())
}
