//! A client for libraries that know nothing of `Retry-After`, such as kube-runtime's watches.

use super::answer;
use kube::{Client, client::Body};
use tower::service_fn;

/// Returns a client whose refusals come once the time is over that the API server asks to wait, so that whoever asks again
/// does so no sooner.
pub(crate) fn patient(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move {
            let answer = client.send(request).await?;
            if let Some(wait) = answer::asked_to_wait(&answer) {
                tokio::time::sleep(wait).await;
            }
            Ok::<_, kube::Error>(answer)
        }
    });
    Client::new(service, namespace)
}
