//! A client with a deadline for each whole answer; for a watch, the deadline covers only the start of the answer.

use crate::api::DEADLINE;
use http::{Request, Response};
use kube::{Client, client::Body};
use tokio::time::timeout;
use tower::{BoxError, service_fn};

/// The answer did not come in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", DEADLINE.as_secs())]
struct NoAnswer;

/// Returns this client with a deadline for each request.
pub(crate) fn with_deadline(client: &Client) -> Client {
    let (namespace, client) = (client.default_namespace().to_owned(), client.clone());
    let service = service_fn(move |request| {
        let client = client.clone();
        async move { timeout(DEADLINE, answer(client, request)).await.unwrap_or_else(|_| Err(NoAnswer.into())) }
    });
    Client::new(service, namespace)
}

async fn answer(client: Client, request: Request<Body>) -> Result<Response<Body>, BoxError> {
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let response = client.send(request).await?;
    if is_watch {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    Ok(Response::from_parts(parts, Body::from(body.collect_bytes().await?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body as Streamed;
    use bytes::Bytes;
    use futures::{StreamExt, stream};
    use tokio::time::Instant;

    /// Returns the answer to a request through this client with a deadline, and the seconds that it took.
    async fn asked(client: Client, query: &str) -> (Result<Response<Body>, kube::Error>, u64) {
        let began = Instant::now();
        let request = Request::get(format!("http://api/api/v1/pods{query}")).body(Body::empty()).unwrap();
        (with_deadline(&client).send(request).await, began.elapsed().as_secs())
    }

    /// Returns a client of an API server that sends some bytes, then nothing more, and no end.
    fn endless() -> Client {
        let begun = || stream::iter([Ok::<_, std::io::Error>(Bytes::from("{"))]).chain(stream::pending());
        let service = service_fn(move |_: Request<Body>| async move {
            Ok::<_, BoxError>(Response::new(Streamed::from_stream(begun())))
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_an_answer_fails_after_the_deadline() {
        let silent = service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Streamed>, BoxError>>());
        let (answer, seconds) = asked(Client::new(silent, "default"), "").await;
        assert_eq!(crate::error::chain(&answer.unwrap_err()), "ServiceError: no answer within 10 s");
        assert_eq!(seconds, DEADLINE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_end_fails_after_the_deadline_unless_it_is_a_watch() {
        let (answer, seconds) = asked(endless(), "").await;
        assert!(answer.is_err());
        assert_eq!(seconds, DEADLINE.as_secs());
        let (answer, seconds) = asked(endless(), "?watch=true").await;
        assert!(answer.is_ok());
        assert_eq!(seconds, 0);
    }
}
