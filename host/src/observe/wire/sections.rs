//! The sections of an object, each decoded by itself, so that an error in one leaves the others.

use super::Metadata;
use crate::observe::decode::{self, LeftOut};
use decide::plan::FieldError;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

/// The sections of an object, not decoded yet.
#[derive(Default, Deserialize)]
pub(super) struct Parts<'a> {
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) spec: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) status: Option<&'a RawValue>,
}

/// Returns the decoded section, or its default and the error.
pub(super) fn typed<T: DeserializeOwned + Default>(part: Option<&RawValue>) -> (T, Option<serde_json::Error>) {
    match part.map_or_else(|| Ok(T::default()), |part| serde_json::from_str(part.get())) {
        Ok(value) => (value, None),
        Err(error) => (T::default(), Some(error)),
    }
}

pub(super) fn unreadable(path: impl Into<String>, why: &impl ToString) -> FieldError {
    FieldError { path: path.into(), message: why.to_string() }
}

pub(super) fn metadata(parts: &Parts<'_>) -> (Metadata, Option<FieldError>) {
    match typed(parts.metadata) {
        (metadata, None) => (metadata, None),
        (_, Some(error)) => {
            let read = parts.metadata.and_then(|part| decode::value(part.get()).ok());
            let metadata = read.map(|read| Metadata::salvaged(&read.value)).unwrap_or_default();
            (metadata, Some(unreadable("metadata", &error)))
        }
    }
}

/// Puts the child's kind and name in front of the error's path, since users read the error on the job.
pub(super) fn within(error: FieldError, kind: &str, name: &str) -> FieldError {
    FieldError { path: format!("{kind} {name}: {}", error.path), ..error }
}

/// Returns a section of a job, `{}` when absent or too much, and the error if it is too deep, too much or cannot be
/// decoded.
pub(super) fn section(name: &str, part: Option<&RawValue>) -> (Value, Option<FieldError>) {
    let Some(part) = part else { return (json!({}), None) };
    match decode::value(part.get()) {
        Ok(read) => {
            let wrong = read.left_out.as_ref().map(|left_out| wrong(name, left_out));
            let is_kept = read.value.is_object() && !matches!(read.left_out, Some(LeftOut::TooMuch(_)));
            (if is_kept { read.value } else { json!({}) }, wrong)
        }
        Err(error) => (json!({}), Some(unreadable(name, &error))),
    }
}

fn wrong(section: &str, left_out: &LeftOut) -> FieldError {
    let path = match left_out {
        LeftOut::TooDeep(path) | LeftOut::Reserved(path) => format!("{section}.{path}"),
        LeftOut::TooMuch(_) => section.to_owned(),
    };
    unreadable(path, left_out)
}
