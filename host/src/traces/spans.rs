//! The spans that a pass consists of. They have names, codes and amounts: no text of a job's spec and no error's
//! message, which may quote one.

use crate::job_key::JobKey;
use decide::Snapshot;
use http::{HeaderValue, Request, StatusCode, header::HeaderName};
use opentelemetry::trace::{SpanContext, TraceContextExt};
use sandbox::trace::{TARGET, current};
use tracing::{Span, field::Empty, trace_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// W3C Trace Context.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Returns the span of a pass over a job, which begins a trace.
pub(crate) fn pass(key: &JobKey) -> Span {
    trace_span!(
        target: TARGET,
        "reconcile",
        otel.status_code = Empty,
        group = key.kind.group(),
        kind = key.kind.kind(),
        namespace = key.namespace,
        name = key.name,
        generation = Empty,
        digest = Empty,
        result = Empty,
    )
}

/// Notes in the span of this pass what it was decided from.
pub(crate) fn decided(snapshot: &Snapshot) {
    let span = current();
    span.record("generation", snapshot.job.generation);
    if let Some(digest) = &snapshot.digest {
        span.record("digest", digest.as_str());
    }
}

/// Notes in the span of a pass how it ended, and returns the id of its trace if that is sent.
pub(crate) fn ended(pass: &Span, result: &'static str, failed: bool) -> Option<String> {
    pass.record("result", result);
    if failed {
        pass.record("otel.status_code", "ERROR");
    }
    Some(sampled(pass)?.trace_id().to_string())
}

/// Returns the span of a request about an object in the pass that runs here, and names it in the request's
/// `traceparent`; a disabled span where no pass runs. It is an error until [`answered`] says otherwise.
pub(crate) fn request(request: &mut Request<Vec<u8>>, kind: &str, name: &str) -> Span {
    if current().is_none() {
        return Span::none();
    }
    let method = request.method().as_str();
    let span = trace_span!(
        target: TARGET,
        "request",
        otel.name = format!("{method} {kind}"),
        otel.kind = "client",
        otel.status_code = "ERROR",
        http.request.method = method,
        http.response.status_code = Empty,
        kind,
        name,
    );
    if let Some(context) = sampled(&span) {
        let parent = format!("00-{}-{}-01", context.trace_id(), context.span_id());
        request.headers_mut().extend(HeaderValue::try_from(parent).ok().map(|parent| (TRACEPARENT, parent)));
    }
    span
}

/// Notes the API server's answer in the span of the request that waits for it here.
pub(crate) fn answered(code: StatusCode) {
    let span = current();
    span.record("http.response.status_code", i64::from(code.as_u16()));
    if !code.is_client_error() && !code.is_server_error() {
        span.record("otel.status_code", "OK");
    }
}

/// Returns the ids of a span that is sent.
fn sampled(span: &Span) -> Option<SpanContext> {
    let context = span.context().span().span_context().clone();
    context.is_sampled().then_some(context)
}
