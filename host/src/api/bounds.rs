//! How many bytes of an answer are read. Whatever answers in the API server's place takes no more memory than this: a layer
//! next to the socket, so that it holds for the requests of libraries, too.

use http::{Request, Response, StatusCode, Uri};
use http_body::{Body, Frame, SizeHint};
use std::{
    fmt,
    pin::Pin,
    task::{self, Poll, ready},
};
use tower::{BoxError, Layer, Service};
use tracing::warn;

/// The maximum bytes of a line of a watch or of a container's log. An object has some MiB.
const LINE: usize = 32 << 20;

/// The maximum bytes that are read of a refusal, which may quote an object several times.
const REFUSAL: usize = 4 << 20;

/// The layer.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The maximum bytes that are read of an answer that is no watch and no log.
    whole: usize,
}

impl Bounds {
    /// For a host: it lists in pages.
    #[must_use]
    pub fn of_host() -> Self {
        Self { whole: 64 << 20 }
    }

    /// For a command, which lists all objects at once.
    #[must_use]
    pub fn of_command() -> Self {
        Self { whole: 1 << 30 }
    }
}

/// An answer that has more bytes than are read.
#[derive(Debug, thiserror::Error)]
#[error("{part} to {request} has more than {} MiB, and the rest is not read", .most >> 20)]
struct TooLong {
    part: &'static str,
    request: Asked,
    most: usize,
}

/// A request, without its query.
#[derive(Debug, Clone)]
struct Asked {
    method: http::Method,
    uri: Uri,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.uri.path())
    }
}

impl Asked {
    /// Returns whether the answer is a row of lines without an end of its own.
    fn is_for_lines(&self) -> bool {
        let is_watch = |pair: &str| matches!(pair, "watch=true" | "watch=1");
        self.uri.path().ends_with("/log") || self.uri.query().is_some_and(|query| query.split('&').any(is_watch))
    }
}

impl<S> Layer<S> for Bounds {
    type Service = Bounding<S>;

    fn layer(&self, inner: S) -> Bounding<S> {
        Bounding { bounds: *self, inner }
    }
}

/// The service of [`Bounds`].
#[derive(Debug, Clone)]
pub struct Bounding<S> {
    bounds: Bounds,
    inner: S,
}

impl<S, A, B> Service<Request<A>> for Bounding<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<Bounded<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (bounds, asked) = (self.bounds, Asked { method: request.method().clone(), uri: request.uri().clone() });
        let answer = self.inner.call(request);
        Box::pin(async move { answer.await.map(|answer| bounds.answer(asked, answer)) })
    }
}

impl Bounds {
    fn answer<B>(self, asked: Asked, answer: Response<B>) -> Response<Bounded<B>> {
        let bound = Bound::of(self, &asked, answer.status());
        answer.map(|body| Bounded { body, asked, bound, read: 0, is_over: false })
    }
}

/// What is bounded of an answer.
#[derive(Debug, Clone, Copy)]
enum Bound {
    /// All of it.
    Whole(usize),
    /// Each line.
    Line,
    /// The words of a refusal, which are cut: its status says what it is.
    Refusal,
}

impl Bound {
    fn of(bounds: Bounds, asked: &Asked, status: StatusCode) -> Self {
        match status {
            status if status.is_client_error() || status.is_server_error() => Self::Refusal,
            _ if asked.is_for_lines() => Self::Line,
            _ => Self::Whole(bounds.whole),
        }
    }

    fn most(self) -> usize {
        match self {
            Self::Whole(most) => most,
            Self::Line => LINE,
            Self::Refusal => REFUSAL,
        }
    }
}

/// The body of an answer, up to its bound.
#[derive(Debug)]
pub struct Bounded<B> {
    body: B,
    asked: Asked,
    bound: Bound,
    /// Bytes of the answer so far, or of its last line.
    read: usize,
    is_over: bool,
}

impl<B> Bounded<B> {
    /// Counts the bytes. Returns whether they are within the bound.
    fn count(&mut self, bytes: &[u8]) -> bool {
        let lines = matches!(self.bound, Bound::Line);
        let first = bytes.iter().position(|byte| lines && *byte == b'\n').unwrap_or(bytes.len());
        let longest = self.read.saturating_add(first);
        // A line that is whole in these bytes is in memory already.
        self.read = match bytes.iter().rposition(|byte| lines && *byte == b'\n') {
            Some(last) => bytes.len() - last - 1,
            None => longest,
        };
        longest.max(self.read) <= self.bound.most()
    }

    /// Returns what comes in place of bytes beyond the bound: an error, or the end of a refusal.
    fn beyond(&self) -> Option<Result<Frame<bytes::Bytes>, BoxError>> {
        let (part, most) = match self.bound {
            Bound::Whole(most) => ("the answer", most),
            Bound::Line => ("a line of the answer", LINE),
            Bound::Refusal => {
                warn!(request = %self.asked, "a refusal has more than {} MiB, and the rest is not read", REFUSAL >> 20);
                return None;
            }
        };
        Some(Err(TooLong { part, request: self.asked.clone(), most }.into()))
    }
}

impl<B> Body for Bounded<B>
where
    B: Body<Data = bytes::Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = bytes::Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let is_within = match &frame {
            Some(Ok(frame)) => frame.data_ref().is_none_or(|bytes| self.count(bytes)),
            Some(Err(_)) | None => true,
        };
        if is_within {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        self.is_over = true;
        Poll::Ready(self.beyond())
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.bound {
            // It may be cut.
            Bound::Refusal => SizeHint::default(),
            Bound::Whole(_) | Bound::Line => self.body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::answer, error::chain};
    use axum::body::Body as Streamed;
    use bytes::Bytes;
    use futures::{StreamExt, stream};
    use kube::{Client, client::ClientBuilder};
    use parking_lot::Mutex;
    use std::sync::Arc;
    use tower::service_fn;

    /// A client of an API server that answers with this status and the same mebibyte for ever; the number of those sent.
    fn endless(status: u16, mebibyte: &'static [u8]) -> (Client, Arc<Mutex<usize>>) {
        let sent = Arc::new(Mutex::new(0));
        let counted = sent.clone();
        let server = service_fn(move |_: Request<kube::client::Body>| {
            let counted = counted.clone();
            let pieces = stream::repeat_with(move || {
                *counted.lock() += 1;
                assert!(*counted.lock() < 100, "it is read on and on");
                Ok::<_, std::io::Error>(Bytes::from_static(mebibyte))
            });
            let mut answer = Response::new(Streamed::from_stream(pieces));
            *answer.status_mut() = StatusCode::from_u16(status).unwrap();
            async move { Ok::<_, BoxError>(answer) }
        });
        (ClientBuilder::new(server, "default").with_layer(&Bounds::of_host()).build(), sent)
    }

    fn get(path: &str) -> Request<Vec<u8>> {
        Request::get(path).body(vec![]).unwrap()
    }

    static ONE_LINE: [u8; 1 << 20] = [b'x'; 1 << 20];

    #[tokio::test]
    async fn an_answer_without_end_is_an_error_that_names_the_request() {
        let (client, sent) = endless(200, &ONE_LINE);
        let error = client.request_text(get("/api/v1/pods?limit=500")).await.unwrap_err();
        let words = "the answer to GET /api/v1/pods has more than 64 MiB, and the rest is not read";
        assert!(chain(&error).ends_with(words), "{}", chain(&error));
        assert_eq!(*sent.lock(), 65);
    }

    #[tokio::test]
    async fn a_line_of_a_watch_or_a_log_without_end_is_an_error_for_its_reader() {
        for path in ["/api/v1/pods?limit=1&watch=true", "/api/v1/namespaces/ns/pods/a/log?follow=true"] {
            let (client, sent) = endless(200, &ONE_LINE);
            let mut lines = Box::pin(answer::lines(&client, get(path)).await.unwrap());
            let error = lines.next().await.unwrap().unwrap_err();
            let words = format!("a line of the answer to GET {} has more than 32 MiB", path.split('?').next().unwrap());
            assert!(chain(&error).contains(&words), "{}", chain(&error));
            assert_eq!(*sent.lock(), 33);
        }
    }

    #[tokio::test]
    async fn lines_within_the_bound_are_read_for_as_long_as_they_come() {
        static LINES: [u8; 1 << 20] = {
            let mut lines = [b'x'; 1 << 20];
            lines[1 << 10] = b'\n';
            lines[1 << 19] = b'\n';
            lines
        };
        let (client, _) = endless(200, &LINES);
        let lines = answer::lines(&client, get("/api/v1/pods?watch=1")).await.unwrap();
        let lengths: Vec<_> = lines.take(150).map(|line| line.unwrap().len()).collect().await;
        assert!(lengths.iter().all(|length| *length < 1 << 20), "{lengths:?}");
    }

    #[tokio::test]
    async fn a_refusal_without_end_is_cut_and_keeps_its_code() {
        for code in [404, 429, 500] {
            let (client, sent) = endless(code, &ONE_LINE);
            let own = answer::decoded::<()>(&client, Ok(get("/api/v1/pods?watch=true"))).await.unwrap_err();
            let of_library = client.request_text(get("/api/v1/pods")).await.unwrap_err();
            for error in [own, of_library] {
                let kube::Error::Api(status) = &error else { panic!("{error}") };
                assert_eq!(status.code, code);
            }
            assert_eq!(*sent.lock(), 10, "five of each");
        }
    }
}
