//! Why a job is refused, and who has to act: its user, or the author of its plugin.

use crate::{
    condition::Reason,
    flaw::{Flaw, Subject},
    pointer::unescaped,
};
use serde::{Deserialize, Serialize};

pub use crate::flaw::{PlanError, RULES};

/// Why a job is refused. The user has to change something; it never counts against the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Rejection {
    /// Fields of the job are invalid.
    #[error("{}", FieldErrors(.0))]
    Invalid(Vec<FieldError>),
    /// The plugin or the host does not support something.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The job exceeds a limit; the message names what, how much, and the limit.
    #[error("{0}")]
    TooMuch(String),
    /// Jobs of this namespace are not served.
    #[error("{0}")]
    NotServed(String),
}

impl Rejection {
    /// Rejects one field of the job; the message says what would be valid.
    #[must_use]
    pub fn field(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError { path: path.into(), message: message.into() }])
    }

    /// Returns the reason of the condition.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Invalid(_) => Reason::ValidationError,
            Self::Unsupported(_) => Reason::Unsupported,
            Self::TooMuch(_) => Reason::LimitExceeded,
            Self::NotServed(_) => Reason::NamespaceNotServed,
        }
    }
}

/// One invalid field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldError {
    /// Path of the field.
    pub path: String,
    /// What would be valid.
    pub message: String,
}

impl FieldError {
    /// Returns the error of a job whose spec has `bytes` bytes as JSON, more than `most`.
    #[must_use]
    pub fn large_spec(bytes: usize, most: usize) -> Self {
        let message = format!(
            "it has {bytes} bytes as JSON, and no job may have more than {most}; move what is large into a ConfigMap that its \
             templates refer to, or ask whoever runs the operator to raise --max-spec-bytes"
        );
        Self { path: "spec".to_owned(), message }
    }
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

/// Why a plan is refused, and whose error it is. The table is in the plugin guide, `plugins/README.md`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    /// The user's error: the job is rejected.
    #[error(transparent)]
    Job(#[from] Rejection),
    /// The plugin's error, which no user causes. It counts as a fault.
    #[error(transparent)]
    Plugin(#[from] PlanError),
}

impl From<Flaw> for Objection {
    fn from(flaw: Flaw) -> Self {
        Self::Plugin(flaw.into())
    }
}

impl Objection {
    /// Names the part of the plan in a message to the plugin's author. A message to the user stays as it is.
    #[must_use]
    pub(crate) fn about(self, subject: Subject) -> Self {
        match self {
            Self::Plugin(error) => Self::Plugin(error.about(subject)),
            user @ Self::Job(_) => user,
        }
    }
}

/// Returns the field of the job's spec at these pointers, joined in order:
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
    fn a_field_is_written_with_dots_and_brackets() {
        let path = field_of_spec(&["/worker/template", "/spec/containers/0/env"]);
        assert_eq!(path, "spec.worker.template.spec.containers[0].env");
        assert_eq!(field_of_spec(&["/t", "/metadata/labels/a.b~1c"]), "spec.t.metadata.labels[a.b/c]");
        assert_eq!(field_of_spec(&[]), "spec");
    }

    #[test]
    fn only_messages_to_the_author_get_a_prefix() {
        let role = || Subject::Role("a".into());
        let authors = Objection::from(Flaw::NameWithoutIndex).about(role());
        assert_eq!(authors.to_string(), "role a: its pod name has no index");
        assert_eq!(authors.clone().about(Subject::Plan), authors, "the first part that is named");
        let users = Objection::Job(Rejection::field("spec.a", "must be a list"));
        assert_eq!(users.clone().about(role()), users);
        assert_eq!(users.to_string(), "spec.a: must be a list");
    }
}
