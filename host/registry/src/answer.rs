//! What a registry answers: success, or an error in its own words.

use super::{
    error::{RegistryError, tame},
    transport::read,
};
use http::{Response, StatusCode, Uri};
use hyper::body::Incoming;
use serde::Deserialize;
use std::fmt;

/// The most that is read of an answer that is no content: a token, or an error.
pub(super) const ANSWER_LIMIT: u64 = 64 << 10;

/// The response if it is a success. `unauthorized` says what it means that the registry wants to know who asks.
///
/// # Errors
/// It is none; what it is.
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
            let words = read(url, response, ANSWER_LIMIT, "the most that an error may have").await;
            let words = words.ok().and_then(|words| serde_json::from_slice(&words).ok());
            let message = words.as_ref().map(Words::to_string).unwrap_or_default();
            Err(RegistryError::Status { url: url.into(), status, message })
        }
    }
}

/// How a registry tells an error.
#[derive(Deserialize)]
struct Words {
    errors: Vec<Word>,
}

#[derive(Deserialize)]
struct Word {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.errors.iter().take(1).try_for_each(|word| write!(f, ": {} {}", tame(&word.code), tame(&word.message)))
    }
}
