//! Converts responses of a registry: success, or an error with the registry's message.

use super::{
    error::{RegistryError, tame},
    transport::read,
};
use http::{Response, StatusCode, Uri};
use hyper::body::Incoming;
use serde::Deserialize;
use std::fmt;

/// Maximum bytes read of a response that is not content: a token or an error.
pub(super) const ANSWER_LIMIT: u64 = 64 << 10;

/// Returns the response if it is a success. `unauthorized` makes the error for status 401.
///
/// # Errors
/// Returns an error for every other status.
pub(super) async fn success(
    url: &Uri,
    response: Response<Incoming>,
    unauthorized: impl FnOnce() -> RegistryError,
) -> Result<Response<Incoming>, RegistryError> {
    match response.status() {
        status if status.is_success() => Ok(response),
        StatusCode::NOT_FOUND => Err(RegistryError::Missing { url: url.into() }),
        StatusCode::UNAUTHORIZED => Err(unauthorized()),
        status => {
            let body = read(url, response, ANSWER_LIMIT, "the most that an error may have").await;
            let body = body.ok().and_then(|body| serde_json::from_slice(&body).ok());
            let message = body.as_ref().map(ErrorBody::to_string).unwrap_or_default();
            Err(RegistryError::Status { url: url.into(), status, message })
        }
    }
}

/// The body of a registry's error response.
#[derive(Deserialize)]
struct ErrorBody {
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.errors.iter().take(1).try_for_each(|entry| write!(f, ": {} {}", tame(&entry.code), tame(&entry.message)))
    }
}
