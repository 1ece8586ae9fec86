//! Requests to a collector: one batch of spans as protobuf over HTTP.

use super::{Endpoint, TracesError};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry_proto::{
    tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    transform::{common::tonic::ResourceAttributesWithSchema, trace::tonic::group_spans_by_resource_and_scope},
};
use opentelemetry_sdk::{Resource, trace::SpanData};
use percent_encoding::percent_decode_str;
use prost::Message;
use std::{error::Error, time::Duration};
use tokio::time::timeout;

/// The deadline of a request, which is the standard's `OTEL_EXPORTER_OTLP_TIMEOUT` by default.
const DEADLINE: Duration = Duration::from_secs(10);

/// The maximum size of an answer that is read, in bytes.
const ANSWER: usize = 64 << 10;

/// Why a batch was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error("no answer within {} s", DEADLINE.as_secs())]
    NoAnswer,
    #[error("no connection")]
    Unreachable(#[source] legacy::Error),
    #[error("the collector answered {0}")]
    Refused(StatusCode),
    #[error("the answer broke off or is too large")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

/// HTTP with TLS or without: plain HTTP works on a machine without certificate authorities.
#[derive(Debug)]
enum Client {
    Plain(legacy::Client<HttpConnector, Full<Bytes>>),
    Tls(legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

/// A collector of traces.
#[derive(Debug)]
pub(super) struct Collector {
    endpoint: Endpoint,
    headers: HeaderMap,
    client: Client,
    resource: ResourceAttributesWithSchema,
}

impl Collector {
    /// Returns a collector that is told of spans of this resource. Connects to nothing.
    ///
    /// # Errors
    /// If TLS is needed and the certificate authorities of this machine cannot be read.
    pub(super) fn new(endpoint: Endpoint, headers: HeaderMap, resource: &Resource) -> Result<Self, TracesError> {
        let builder = legacy::Client::builder(TokioExecutor::new());
        let client = if endpoint.is_tls() {
            let provider = rustls::crypto::ring::default_provider();
            let tls = HttpsConnectorBuilder::new().with_provider_and_platform_verifier(provider);
            Client::Tls(builder.build(tls.map_err(TracesError::Tls)?.https_only().enable_http1().build()))
        } else {
            Client::Plain(builder.build_http())
        };
        Ok(Self { endpoint, headers, client, resource: resource.into() })
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends one batch, and returns how many of its spans the collector has rejected.
    ///
    /// # Errors
    /// If it is not known that the collector has taken the batch.
    pub(super) async fn send(&self, spans: Vec<SpanData>) -> Result<u64, SendError> {
        let resource_spans = group_spans_by_resource_and_scope(spans, &self.resource);
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        timeout(DEADLINE, self.post(body.into())).await.map_err(|_| SendError::NoAnswer)?
    }

    async fn post(&self, body: Bytes) -> Result<u64, SendError> {
        let mut request = Request::post(self.endpoint.url()).body(Full::new(body)).expect("a URL is valid");
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let answer = match &self.client {
            Client::Plain(client) => client.request(request),
            Client::Tls(client) => client.request(request),
        };
        let (head, body) = answer.await.map_err(SendError::Unreachable)?.into_parts();
        if !head.status.is_success() {
            return Err(SendError::Refused(head.status));
        }
        let body = Limited::new(body, ANSWER).collect().await.map_err(SendError::Broken)?.to_bytes();
        // An answer that is not OTLP's rejects nothing.
        let rejected = ExportTraceServiceResponse::decode(body).ok().and_then(|answer| answer.partial_success);
        Ok(rejected.and_then(|it| u64::try_from(it.rejected_spans).ok()).unwrap_or_default())
    }
}

/// Returns the headers in a list such as `authorization=Bearer%20token,tenant=1`, the form of
/// `OTEL_EXPORTER_OTLP_HEADERS`.
///
/// # Errors
/// If one of them is no header; the error does not show its value.
pub(super) fn headers(list: &str) -> Result<HeaderMap, TracesError> {
    let all = list.split(',').map(str::trim).filter(|one| !one.is_empty()).map(|one| {
        let (name, value) = one.split_once('=').ok_or(TracesError::Header)?;
        let value: Vec<u8> = percent_decode_str(value.trim()).collect();
        let name: HeaderName = name.trim().parse().map_err(|_| TracesError::Header)?;
        let mut value = HeaderValue::from_bytes(&value).map_err(|_| TracesError::Header)?;
        value.set_sensitive(true);
        Ok((name, value))
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_decoded_and_their_values_are_not_shown() {
        let read = headers("authorization=Bearer%20a%3Db, tenant = 1,").unwrap();
        assert_eq!(["authorization", "tenant"].map(|name| &read[name]), ["Bearer a=b", "1"]);
        assert!(!format!("{read:?}").contains("Bearer"), "{read:?}");
        for wrong in ["token", "a b=1", "name=%0A"] {
            assert!(matches!(headers(wrong), Err(TracesError::Header)), "{wrong}");
        }
    }
}
