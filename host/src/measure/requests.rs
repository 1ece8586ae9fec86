//! Requests to the API server, by client-go's names.

use super::Histograms;
use http::{Method, Request, Response};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
};
use std::{
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
};
use tokio::time::Instant;
use tower::{Layer, Service};

/// client-go's buckets of `rest_client_request_duration_seconds`.
const BUCKETS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// What client-go names the code of a request without an answer.
const NO_ANSWER: &str = "<error>";

/// The labels of requests by their answer. The resource is Troupe's own: it says which requests they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Answered {
    code: String,
    method: &'static str,
    host: Arc<String>,
    resource: String,
}

/// The labels of the time that answers took.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfMethod {
    verb: &'static str,
    host: Arc<String>,
}

/// Counters and times of requests. Clones share them.
#[derive(Debug, Clone)]
pub struct Requests {
    /// Requests by answer.
    pub answers: Family<Answered, Counter>,
    /// Time to the head of the answer, in seconds.
    pub seconds: Histograms<OfMethod>,
}

impl Default for Requests {
    fn default() -> Self {
        Self { answers: Family::default(), seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)) }
    }
}

impl Requests {
    /// Returns a layer for the client of this API server (`host:port`) that counts and times each request.
    #[must_use]
    pub fn layer(&self, host: &str) -> MeasureRequests {
        MeasureRequests { requests: self.clone(), host: Arc::new(host.to_owned()) }
    }
}

/// The layer of [`Requests::layer`].
#[derive(Debug, Clone)]
pub struct MeasureRequests {
    requests: Requests,
    host: Arc<String>,
}

impl<S> Layer<S> for MeasureRequests {
    type Service = Measured<S>;

    fn layer(&self, inner: S) -> Measured<S> {
        Measured { measure: self.clone(), inner }
    }
}

/// The service of [`Requests::layer`].
#[derive(Debug, Clone)]
pub struct Measured<S> {
    measure: MeasureRequests,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for Measured<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (method, resource) = (method(request.method()), resource(request.uri().path()));
        let MeasureRequests { requests, host } = self.measure.clone();
        let start = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let code =
                answer.as_ref().map_or_else(|_| NO_ANSWER.to_owned(), |response| response.status().as_str().to_owned());
            let by_method = OfMethod { verb: method, host: host.clone() };
            requests.seconds.get_or_create(&by_method).observe(start.elapsed().as_secs_f64());
            requests.answers.get_or_create(&Answered { code, method, host, resource }).inc();
            answer
        })
    }
}

fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// Returns the plural in a path, with its subresource, and never a name, so that the number of labels stays small.
fn resource(path: &str) -> String {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let skip = if parts.next() == Some("api") { 1 } else { 2 };
    let rest: Vec<_> = parts.skip(skip).collect();
    match rest.as_slice() {
        ["namespaces", _, plural, _, sub] => format!("{plural}/{sub}"),
        ["namespaces", _, plural, ..] | [plural, ..] => (*plural).to_owned(),
        [] => "other".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_the_plural_and_never_a_name() {
        assert_eq!(resource("/api/v1/namespaces/ns/pods/wide-ps-0"), "pods");
        assert_eq!(resource("/api/v1/pods"), "pods");
        assert_eq!(resource("/apis/kubeflow.org/v2beta1/namespaces/ns/mpijobs/pi/status"), "mpijobs/status");
        assert_eq!(resource("/version"), "other");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_an_answer_is_timed_and_counted_as_an_error() {
        let requests = Requests::default();
        let late = tower::service_fn(|_: Request<()>| async {
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            Err::<Response<()>, _>("refused")
        });
        let mut client = requests.layer("api:6443").layer(late);
        assert!(client.call(Request::get("/api/v1/pods").body(()).unwrap()).await.is_err());
        let host = Arc::new("api:6443".to_owned());
        let labels =
            Answered { code: NO_ANSWER.into(), method: "GET", host: host.clone(), resource: "pods".to_owned() };
        assert_eq!(requests.answers.get(&labels).unwrap().get(), 1);
        assert_eq!(requests.seconds.get(&OfMethod { verb: "GET", host }).unwrap().sum().round(), 3.0);
    }
}
