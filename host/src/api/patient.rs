//! Clients for libraries that do not know `Retry-After`, such as kube-runtime's watches.

use super::{
    answer::{self, asked_to_wait},
    continued::Lists,
};
use http::{Request, Response, header::RETRY_AFTER};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use std::sync::Arc;
use tower::{BoxError, service_fn};

type Answer = Result<Response<Body>, kube::Error>;

/// Returns a client whose refusals name the seconds of their `Retry-After` in their details, where [`answer::retry_after`]
/// finds them: API Priority and Fairness names them in the header alone, which kube's errors lack.
pub(crate) fn explicit(client: Client) -> Client {
    with_answers(client, name_seconds)
}

/// Returns a client for a library's watches: refusals come once the time is over that the API server asks to wait, so that
/// who asks again does so no sooner, and a list that does not end is an error.
pub(crate) fn patient(client: Client) -> Client {
    let (namespace, client) = (client.default_namespace().to_owned(), with_answers(client, wait_as_asked));
    let lists = Arc::new(Mutex::new(Lists::default()));
    let service = service_fn(move |request: Request<Body>| {
        let (client, followed) = (client.clone(), lists.lock().asks(request.uri()));
        async move {
            followed?;
            Ok::<_, BoxError>(client.send(request).await?)
        }
    });
    Client::new(service, namespace)
}

/// Returns a client that returns what `change` makes of each answer of another.
fn with_answers<F>(client: Client, change: fn(Response<Body>) -> F) -> Client
where
    F: Future<Output = Answer> + Send + 'static,
{
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move { change(client.send(request).await?).await }
    });
    Client::new(service, namespace)
}

async fn name_seconds(answer: Response<Body>) -> Answer {
    let asked = answer.headers().get(RETRY_AFTER).cloned();
    let Some(asked) = asked.filter(|_| asked_to_wait(&answer).is_some()) else { return Ok(answer) };
    let (code, status) = (answer.status(), answer::status_of(answer).await?);
    let mut answer = Response::new(Body::from(serde_json::to_vec(&status).map_err(kube::Error::SerdeError)?));
    *answer.status_mut() = code;
    answer.headers_mut().insert(RETRY_AFTER, asked);
    Ok(answer)
}

async fn wait_as_asked(answer: Response<Body>) -> Answer {
    if let Some(wait) = asked_to_wait(&answer) {
        tokio::time::sleep(wait).await;
    }
    Ok(answer)
}
