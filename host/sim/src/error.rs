//! The `Status` bodies of refused requests, with the messages of kube-apiserver.

use serde_json::{Value, json};
use std::fmt;

use crate::store::Kind;

/// A refusal: the error that the API server returns instead of the object.
///
/// Rendered by [`ApiError::body`] as a `v1` `Status`; given to [`crate::Sim::refuse`] by tests.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiError {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, for example `AlreadyExists`; may be empty.
    pub reason: String,
    /// The message.
    pub message: String,
    /// `details`: group, kind (mostly the plural), name, causes.
    pub details: Option<Value>,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.reason, self.message)
    }
}

impl std::error::Error for ApiError {}

impl ApiError {
    /// Returns a refusal without details.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: None }
    }

    /// Returns the 403 of a ResourceQuota that allows none of the resource.
    pub fn quota(resource: &str, name: &str, quota: &str) -> Self {
        Self::used_up((resource, name), quota, (0, 0))
    }

    /// Returns the 403 of a ResourceQuota: `exceeded quota: <quota>, requested: ..., used: ..., limited: ...`.
    pub(crate) fn used_up((resource, name): (&str, &str), quota: &str, (used, limit): (u64, u64)) -> Self {
        let counts = format!("requested: {resource}=1, used: {resource}={used}, limited: {resource}={limit}");
        Self::forbidden(resource, name, &format!("exceeded quota: {quota}, {counts}"))
    }

    /// Returns a 403 for a core resource, with the reason after `is forbidden:`.
    pub fn forbidden(resource: &str, name: &str, why: &str) -> Self {
        Self {
            code: 403,
            reason: "Forbidden".into(),
            message: format!("{resource} {name:?} is forbidden: {why}"),
            details: Some(json!({ "name": name, "kind": resource })),
        }
    }

    /// Returns the error if a validating webhook denies the request.
    pub fn webhook(webhook: &str, why: &str) -> Self {
        Self::new(400, "", format!("admission webhook {webhook:?} denied the request: {why}"))
    }

    /// Returns the error if a webhook with failure policy `Fail` cannot be reached.
    pub fn webhook_down(webhook: &str) -> Self {
        Self {
            code: 500,
            reason: "InternalError".into(),
            message: format!(
                "Internal error occurred: failed calling webhook {webhook:?}: failed to call webhook: connection refused"
            ),
            details: Some(json!({ "causes": [{ "message":
                format!("failed calling webhook {webhook:?}: failed to call webhook: connection refused") }] })),
        }
    }

    pub(crate) fn of(code: u16, reason: &str, kind: &Kind, name: &str, message: String) -> Self {
        Self { code, reason: reason.into(), message, details: Some(kind.details(&kind.plural, name)) }
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::of(404, "NotFound", kind, name, format!("{} {name:?} not found", kind.resource()))
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", kind.resource());
        Self::of(409, "AlreadyExists", kind, name, message)
    }

    pub(crate) fn generated_name_taken(kind: &Kind, name: &str) -> Self {
        let message = format!(
            "{} {name:?} already exists, the server was not able to generate a unique name for the object",
            kind.resource()
        );
        let mut error = Self::of(409, "AlreadyExists", kind, name, message);
        if let Some(Value::Object(details)) = &mut error.details {
            details.insert("retryAfterSeconds".into(), json!(1));
        }
        error
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.resource());
        Self::of(409, "Conflict", kind, name, message)
    }

    pub(crate) fn stale(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// Returns the conflict of a failed precondition of a delete, which names the kind instead of the resource.
    pub(crate) fn precondition(kind: &Kind, name: &str, why: &str) -> Self {
        let named = Kind { plural: kind.kind.clone(), ..kind.clone() };
        Self::conflict(&named, name, why)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// Returns a 422 with one cause per fault; `subject` is the kind, or the plural where kube-apiserver uses it
    /// instead.
    pub(crate) fn invalid(kind: &Kind, subject: &str, name: &str, faults: &[Fault]) -> Self {
        let qualified = if kind.group.is_empty() { subject.to_owned() } else { format!("{subject}.{}", kind.group) };
        let mut lines: Vec<String> = Vec::new();
        for fault in faults {
            let line = format!("{}: {}", fault.field, fault.body);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let message = match lines.len() {
            1 => format!("{qualified} {name:?} is invalid: {}", lines[0]),
            _ => format!("{qualified} {name:?} is invalid: [{}]", lines.join(", ")),
        };
        // Of a built-in kind a fault that is found twice is one cause, from Kubernetes 1.37 on.
        let mut causes: Vec<Value> = vec![];
        for fault in faults {
            let cause = json!({ "reason": fault.reason, "message": fault.body, "field": fault.field });
            if !kind.builtin() || !causes.contains(&cause) {
                causes.push(cause);
            }
        }
        let mut details = kind.details(subject, name);
        details["causes"] = Value::Array(causes);
        Self { code: 422, reason: "Invalid".into(), message, details: Some(details) }
    }

    /// Returns the JSON body: a `v1` `Status`.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            body["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            body["details"] = details.clone();
        }
        body
    }
}

/// One invalid field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    pub(crate) reason: &'static str,
    pub(crate) field: String,
    pub(crate) body: String,
}

impl Fault {
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self { reason: "FieldValueInvalid", field: field.into(), body: format!("Invalid value: {value}: {why}") }
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let body = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", field: field.into(), body }
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", field: field.into(), body: format!("Forbidden: {why}") }
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self { reason: "FieldValueDuplicate", field: field.into(), body: format!("Duplicate value: {value}") }
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, allowed: &[&str]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
        let body = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
        Self { reason: "FieldValueNotSupported", field: field.into(), body }
    }
}
