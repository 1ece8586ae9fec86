//! Why a job is refused, and who has to change something: its user, or the author of its plugin.

use crate::pointer::unescaped;
use serde::{Deserialize, Serialize};

/// Why a job is refused: the user has to change something. It never counts against the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Rejection {
    /// Fields are wrong.
    #[error("{}", FieldErrors(.0))]
    Invalid(Vec<FieldError>),
    /// The plugin or the host lacks something.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The job asks for more than one job may have: what, how much, and the limit.
    #[error("{0}")]
    TooMuch(String),
    /// Jobs in this namespace are not served.
    #[error("{0}")]
    NotServed(String),
}

impl Rejection {
    /// One field of the job is wrong; the message says what would be right.
    #[must_use]
    pub fn field(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError { path: path.into(), message: message.into() }])
    }

    /// The reason of a condition: one CamelCase word per kind of rejection.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "ValidationError",
            Self::Unsupported(_) => "Unsupported",
            Self::TooMuch(_) => "LimitExceeded",
            Self::NotServed(_) => "NamespaceNotServed",
        }
    }
}

/// One field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// Which.
    pub path: String,
    /// What would be right.
    pub message: String,
}

struct FieldErrors<'a>(&'a [FieldError]);

impl std::fmt::Display for FieldErrors<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}: {}", error.path, error.message)?;
        }
        Ok(())
    }
}

/// Why a plan is refused, and whose error that is. The table is in the plugin guide, `plugins/README.md`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    /// The user's: the job is rejected.
    #[error(transparent)]
    Job(#[from] Rejection),
    /// The plugin's: no user asks for this. It counts as a fault.
    #[error("{0}")]
    Plugin(String),
}

impl From<String> for Objection {
    fn from(message: String) -> Self {
        Self::Plugin(message)
    }
}

impl Objection {
    /// With these words before those for the plugin's author; the user's stay as they are.
    #[must_use]
    pub fn about(self, what: &str) -> Self {
        match self {
            Self::Plugin(message) => Self::Plugin(format!("{what}: {message}")),
            user @ Self::Job(_) => user,
        }
    }
}

/// The field of the job's spec at these pointers, one after the other, as people write it:
/// `spec.worker.template.spec.containers[0].env`.
#[must_use]
pub fn field_of_spec(pointers: &[&str]) -> String {
    let steps = pointers.iter().flat_map(|pointer| pointer.split('/').skip(1));
    steps.fold("spec".to_owned(), |path, step| {
        let name = unescaped(step);
        let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        let is_index = name.bytes().all(|byte| byte.is_ascii_digit());
        if is_word && !is_index { format!("{path}.{name}") } else { format!("{path}[{name}]") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_written_as_people_write_it() {
        let path = field_of_spec(&["/worker/template", "/spec/containers/0/env"]);
        assert_eq!(path, "spec.worker.template.spec.containers[0].env");
        assert_eq!(field_of_spec(&["/t", "/metadata/labels/a.b~1c"]), "spec.t.metadata.labels[a.b/c]");
        assert_eq!(field_of_spec(&[]), "spec");
    }

    #[test]
    fn words_for_the_author_are_not_put_before_the_users() {
        assert_eq!(Objection::from("no".to_owned()).about("role a"), Objection::Plugin("role a: no".into()));
        let users = Objection::Job(Rejection::field("spec.a", "must be a list"));
        assert_eq!(users.clone().about("role a"), users);
        assert_eq!(users.to_string(), "spec.a: must be a list");
    }
}
