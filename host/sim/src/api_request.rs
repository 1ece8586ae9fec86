//! Parses a request: verb, resource, query and body.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::error::ApiError;

/// A parsed request.
#[derive(Debug)]
pub(crate) struct ApiRequest {
    pub(crate) verb: &'static str,
    pub(crate) path: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) body: Bytes,
}

impl ApiRequest {
    pub(crate) fn new(request: &http::request::Parts, body: Bytes) -> Self {
        let path = request.uri.path().to_owned();
        let query = request.uri.query().unwrap_or_default();
        let query: BTreeMap<String, String> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let header = |name: http::HeaderName| {
            request.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        let (content_type, accept) = (header(http::header::CONTENT_TYPE), header(http::header::ACCEPT));
        let decoded = |step| percent_decode_str(step).decode_utf8_lossy().into_owned();
        let mut steps: Vec<String> = path.split('/').filter(|step| !step.is_empty()).map(decoded).collect();
        let (mut group, mut version) = (String::new(), String::new());
        match steps.first().map(String::as_str) {
            Some("api") if steps.len() > 2 => {
                version = steps[1].clone();
                steps.drain(..2);
            }
            Some("apis") if steps.len() > 3 => {
                (group, version) = (steps[1].clone(), steps[2].clone());
                steps.drain(..3);
            }
            _ => steps.clear(),
        }
        let mut namespace = String::new();
        if steps.len() > 2 && steps[0] == "namespaces" && !matches!(steps[2].as_str(), "status" | "finalize") {
            namespace = steps[1].clone();
            steps.drain(..2);
        }
        let mut steps = steps.into_iter();
        let mut step = || steps.next().unwrap_or_default();
        let (resource, name, subresource) = (step(), step(), step());
        let watching = matches!(query.get("watch").map(String::as_str), Some("true" | "1" | ""));
        let verb = match (&request.method, name.is_empty()) {
            (&Method::GET, true) if watching => "watch",
            (&Method::GET, true) if !resource.is_empty() => "list",
            (&Method::GET, _) => "get",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, true) => "deletecollection",
            (&Method::DELETE, false) => "delete",
            _ => "unknown",
        };
        Self { verb, path, group, version, resource, namespace, name, subresource, query, content_type, accept, body }
    }

    pub(crate) fn param(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    pub(crate) fn dry_run(&self) -> bool {
        self.param("dryRun") == "All"
    }

    pub(crate) fn json(&self) -> Result<Value, ApiError> {
        if self.body.is_empty() {
            return Ok(json!({}));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| ApiError::bad_request(format!("couldn't get version/kind; json parse error: {error}")))
    }

    pub(crate) fn metadata_only(&self) -> bool {
        self.accept.contains("as=PartialObjectMetadata")
    }
}
