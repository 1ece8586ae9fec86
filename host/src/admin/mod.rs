//! The admin port: health, metrics, the snapshot and decision of each job, and the latest passes for replay.
//!
//! `/healthz` and `/readyz` are open, as probes need them. On a loopback address everything is open. On any other
//! address the other paths require TLS, a bearer token that the API server accepts, and the right to read (see
//! `access`).

mod access;
mod connections;
pub mod metrics;
mod redact;
pub mod telemetry;
mod tls;

pub use access::{Access, Reviewer};
pub use tls::{Tls, TlsError};

use crate::{admin::metrics::Metrics, control::reconcile::Context, job_key::JobKey, record::passes::Pass};
use access::{Denied, Right};
use axum::{
    Json, Router,
    body::Body,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use decide::plan::JobKind;
use futures::stream;
use redact::Environment;
use serde::Deserialize;
use serde_json::json;
use std::{collections::BTreeSet, io, sync::Arc};
use tokio::net::TcpListener;

/// The maximum size of a recording in bytes; it is cut at the end of a line.
const MOST_BYTES: usize = 64 << 20;

#[derive(Clone)]
struct Admin {
    context: Arc<Context>,
    metrics: Metrics,
    access: Arc<Access>,
}

/// Serves the admin port for as long as the future is polled.
pub async fn serve(listener: TcpListener, context: Arc<Context>, metrics: Metrics, access: Access) {
    let access = Arc::new(access);
    let routes = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_text))
        .route("/jobs", get(jobs))
        .route("/jobs/{plural}/{namespace}/{name}", get(job))
        .route("/recording", get(recording))
        .with_state(Admin { context, metrics, access: Arc::clone(&access) });
    connections::serve(listener, &access, &routes).await;
}

async fn readyz(State(admin): State<Admin>) -> Response {
    if admin.context.is_ready() {
        return "ok".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, "not every watch has listed yet").into_response()
}

async fn metrics_text(State(admin): State<Admin>, headers: HeaderMap) -> Result<String, Denied> {
    admin.access.check(&headers, &Right::Path("/metrics")).await?;
    Ok(admin.metrics.text(&admin.context))
}

/// The query of `/jobs`.
#[derive(Debug, Deserialize)]
struct Jobs {
    /// Select only jobs in this namespace.
    namespace: Option<String>,
}

/// Returns the paths of all jobs whose kinds the reader may list.
async fn jobs(State(admin): State<Admin>, headers: HeaderMap, Query(of): Query<Jobs>) -> Result<Response, Denied> {
    let layout = admin.context.stores().layout();
    let (mut listed, mut denied) = (BTreeSet::new(), None);
    for (kind, served) in layout.kinds() {
        let right = Right::jobs("list", &served.kind, of.namespace.as_deref(), None);
        let checked = admin.access.check(&headers, &right).await;
        match checked {
            Ok(()) => drop(listed.insert(kind.clone())),
            Err(error) => denied = denied.or(Some(error)),
        }
    }
    if let Some(denied) = denied.filter(|_| listed.is_empty()) {
        return Err(denied);
    }
    let wanted =
        |key: &&JobKey| listed.contains(&key.kind) && of.namespace.as_ref().is_none_or(|only| *only == key.namespace);
    let keys = admin.context.stores().jobs();
    let paths: Vec<_> = keys.iter().filter(wanted).filter_map(|key| path(&admin.context, key)).collect();
    Ok(Json(json!({ "jobs": paths })).into_response())
}

/// Returns the pass over a job as it would run now, if the reader may get the job.
async fn job(
    State(admin): State<Admin>,
    headers: HeaderMap,
    Path((plural, namespace, name)): Path<(String, String, String)>,
    Query(environment): Query<Environment>,
) -> Result<Response, Denied> {
    let layout = admin.context.stores().layout();
    let found = layout.kinds().iter().find(|(_, served)| served.kind.plural == plural);
    let Some((kind, served)) = found else {
        // Do not tell an unauthenticated reader which kinds are served.
        admin.access.check(&headers, &Right::Path("/jobs")).await?;
        return Ok((StatusCode::NOT_FOUND, "no such kind of job is served").into_response());
    };
    admin.access.check(&headers, &Right::jobs("get", &served.kind, Some(&namespace), Some(&name))).await?;
    let pass = admin.context.rehearse(&JobKey::new(kind, &namespace, &name)).await;
    Ok(match pass.map(|pass| environment.apply(pass)) {
        Some(Ok(pass)) => Json(pass).into_response(),
        Some(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        None => (StatusCode::NOT_FOUND, "no such job is seen, or not yet as it is").into_response(),
    })
}

/// The query of `/recording`.
#[derive(Debug, Deserialize)]
struct Which {
    /// Select only passes of the plugin with this name.
    plugin: Option<String>,
}

/// Streams the latest passes, one JSON line each, and encodes them while it sends.
async fn recording(
    State(admin): State<Admin>,
    headers: HeaderMap,
    Query(which): Query<Which>,
    Query(environment): Query<Environment>,
) -> Result<Response, Denied> {
    admin.access.check(&headers, &Right::Path("/recording")).await?;
    let passes = admin.context.passes().latest(which.plugin.as_deref());
    let lines = passes.map(move |pass| line(&environment.apply(pass.decided())?)).scan(0, |sent, line| {
        *sent += line.as_ref().map_or(0, Vec::len);
        (*sent <= MOST_BYTES).then_some(line)
    });
    Ok(([(CONTENT_TYPE, "application/jsonl")], Body::from_stream(stream::iter(lines))).into_response())
}

fn line(pass: &Pass) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(pass)?;
    line.push(b'\n');
    Ok(line)
}

fn path(context: &Context, key: &JobKey) -> Option<String> {
    let layout = context.stores().layout();
    let plural = &layout.kinds().get(&key.kind)?.kind.plural;
    Some(format!("/jobs/{plural}/{}/{}", key.namespace, key.name))
}

impl Right {
    /// Returns the right to use a verb on jobs of a kind: on all, on those in a namespace, or on one.
    fn jobs(verb: &'static str, kind: &JobKind, namespace: Option<&str>, name: Option<&str>) -> Self {
        Self::Jobs {
            verb,
            group: kind.group.clone(),
            plural: kind.plural.clone(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        }
    }
}
