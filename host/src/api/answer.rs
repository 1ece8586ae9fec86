//! Requests to the API server: the answer as text or as lines, and how long a refusal asks to wait.

use crate::{error::cut, traces::spans, write::warnings};
use futures::{AsyncBufReadExt, Stream};
use http::{Request, Response, header::RETRY_AFTER};
use http_body_util::BodyExt;
use kube::{
    Client,
    client::Body,
    core::{Status, request, response::StatusDetails},
};
use serde::de::DeserializeOwned;
use std::{io, time::Duration};

/// Upper limit of the wait that an API server asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// So many bytes are kept of the message of a refusal: the API server may quote a whole template in it, and conditions,
/// logs and events repeat it.
const LONGEST_MESSAGE: usize = 1024;

/// Returns the body of a successful answer, and the warnings of the API server.
///
/// # Errors
/// [`kube::Error::Api`] for a refusal; [`retry_after`] returns how long it asks to wait.
pub(crate) async fn warned(client: &Client, request: Request<Vec<u8>>) -> Result<(String, Vec<String>), kube::Error> {
    let answer = accepted(client.send(request.map(Body::from)).await?).await?;
    let warnings = warnings::of_headers(answer.headers());
    Ok((read(answer).await?, warnings))
}

/// Returns the value that a successful answer holds.
///
/// # Errors
/// As for [`warned`], and if the request cannot be formed or the answer is no such value.
pub(crate) async fn decoded<T: DeserializeOwned>(
    client: &Client,
    request: Result<Request<Vec<u8>>, request::Error>,
) -> Result<T, kube::Error> {
    let (text, _) = warned(client, request.map_err(kube::Error::BuildRequest)?).await?;
    serde_json::from_str(&text).map_err(kube::Error::SerdeError)
}

/// Returns the body of a successful answer, or `None` if it has more than `most` bytes; the rest is not read then.
///
/// # Errors
/// As for [`warned`].
pub(crate) async fn text_within(
    client: &Client,
    request: Request<Vec<u8>>,
    most: usize,
) -> Result<Option<String>, kube::Error> {
    let mut body = accepted(client.send(request.map(Body::from)).await?).await?.into_body();
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if data.len() > most - text.len() {
            return Ok(None);
        }
        match text.is_empty() {
            // Without a copy, if nobody else has it.
            true => text = data.into(),
            false => text.extend_from_slice(&data),
        }
    }
    String::from_utf8(text).map(Some).map_err(kube::Error::FromUtf8)
}

/// Returns the lines of a successful answer, as they come.
///
/// # Errors
/// As for [`warned`].
pub(crate) async fn lines(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<impl Stream<Item = io::Result<String>> + use<>, kube::Error> {
    use futures::TryStreamExt;
    let answer = accepted(client.send(request.map(Body::from)).await?).await?;
    let body = answer.into_body().into_data_stream().map_err(io::Error::other);
    Ok(body.into_async_read().lines())
}

/// Returns how long the API server asks to wait before the next attempt; at most a minute.
pub(crate) fn retry_after(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()).min(LONGEST_WAIT))
}

async fn read(answer: Response<Body>) -> Result<String, kube::Error> {
    let body = answer.into_body().collect().await?.to_bytes();
    String::from_utf8(body.into()).map_err(kube::Error::FromUtf8)
}

/// Returns a successful answer, or the refusal as an error.
async fn accepted(answer: Response<Body>) -> Result<Response<Body>, kube::Error> {
    let code = answer.status();
    spans::answered(code);
    if !code.is_client_error() && !code.is_server_error() {
        return Ok(answer);
    }
    Err(kube::Error::Api(status_of(answer).await?.boxed()))
}

/// Returns the status of a refusal, with the seconds of its header in its details.
pub(crate) async fn status_of(answer: Response<Body>) -> Result<Status, kube::Error> {
    let (code, asked) = (answer.status().as_u16(), seconds(&answer));
    Ok(refusal(code, asked, &read(answer).await?))
}

/// Returns how long the header of a refusal asks to wait before the next attempt; at most a minute.
pub(crate) fn asked_to_wait(answer: &Response<Body>) -> Option<Duration> {
    let is_refusal = answer.status().is_client_error() || answer.status().is_server_error();
    let seconds = seconds(answer).filter(|seconds| is_refusal && *seconds > 0)?;
    Some(Duration::from_secs(seconds.into()).min(LONGEST_WAIT))
}

fn seconds(answer: &Response<Body>) -> Option<u32> {
    answer.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()
}

/// Returns the status of a refusal, with its HTTP code, the seconds of its header in its details, and its message cut.
/// API Priority and Fairness refuses with plain text and gives the seconds in the header alone. The JSON of a proxy may be
/// read as a status, without a code or with one of the proxy's own.
fn refusal(code: u16, seconds: Option<u32>, body: &str) -> Status {
    let mut status = serde_json::from_str::<Status>(body).unwrap_or_else(|_| Status::failure(body.trim(), ""));
    status.code = code;
    status.message = cut(&status.message, LONGEST_MESSAGE);
    if let Some(seconds) = seconds {
        let details = status.details.get_or_insert_with(no_details);
        details.retry_after_seconds = details.retry_after_seconds.max(seconds);
    }
    status
}

fn no_details() -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: vec![],
        retry_after_seconds: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(seconds: Option<u32>, body: &str) -> Option<u64> {
        retry_after(&kube::Error::Api(refusal(429, seconds, body).boxed())).map(|wait| wait.as_secs())
    }

    #[test]
    fn the_longer_of_header_and_details_counts_up_to_a_minute() {
        let details = |seconds| format!(r#"{{"code":429,"details":{{"retryAfterSeconds":{seconds}}}}}"#);
        assert_eq!(wait(None, "Too many requests, please try again later.\n"), None);
        assert_eq!(wait(Some(3), "Too many requests, please try again later.\n"), Some(3));
        assert_eq!(wait(Some(1), &details(5)), Some(5));
        assert_eq!(wait(None, &details(5)), Some(5));
        assert_eq!(wait(Some(86_400), &details(5)), Some(60));
    }

    #[test]
    fn a_refusal_that_is_no_status_has_its_code_and_its_text() {
        let status = refusal(502, None, "Bad Gateway\n");
        assert_eq!((status.code, status.message.as_str()), (502, "Bad Gateway"));
    }

    #[test]
    fn the_code_of_a_refusal_is_that_of_http_whatever_the_json_of_a_proxy_says() {
        for body in [r#"{"message":"upstream timed out"}"#, r#"{"code":17,"message":"upstream timed out"}"#] {
            let status = refusal(504, None, body);
            assert_eq!((status.code, status.message.as_str()), (504, "upstream timed out"));
        }
        assert_eq!(refusal(429, None, r#"{"message":"slow down"}"#).code, 429);
    }

    #[test]
    fn a_message_that_quotes_a_template_is_cut() {
        let quoted = "\u{e4}".repeat(250_000);
        let json = serde_json::json!({ "code": 422, "message": quoted }).to_string();
        for body in [&json, &quoted] {
            let message = refusal(422, None, body).message;
            assert!(message.len() <= LONGEST_MESSAGE && message.ends_with("..."), "{} bytes", message.len());
        }
    }
}
