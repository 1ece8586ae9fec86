//! The admin port: health, metrics, what the host sees and decides of each job, and the latest passes for replay.
//!
//! `/healthz` and `/readyz` are open, as probes need them. On a loopback address everything is; on any other, everything
//! else takes TLS, a bearer token that the API server knows, and the right to read (see `access`).

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
use std::{io, sync::Arc};
use tokio::net::TcpListener;

/// A recording ends after so many bytes, at the end of a line.
const MOST_BYTES: usize = 64 << 20;

#[derive(Clone)]
struct Admin {
    context: Arc<Context>,
    metrics: Metrics,
    access: Arc<Access>,
}

/// Answers on the admin port for as long as it is polled.
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

/// Which jobs.
#[derive(Debug, Deserialize)]
struct Jobs {
    /// Only those of this namespace.
    namespace: Option<String>,
}

/// The paths of all jobs of the kinds that the reader may list.
async fn jobs(State(admin): State<Admin>, headers: HeaderMap, Query(of): Query<Jobs>) -> Result<Response, Denied> {
    let layout = admin.context.stores().layout();
    let (mut listed, mut denied) = (Vec::new(), None);
    for served in layout.kinds() {
        let right = Right::jobs("list", &served.kind, of.namespace.as_deref(), None);
        let checked = admin.access.check(&headers, &right).await;
        listed.push(checked.is_ok());
        denied = denied.or(checked.err());
    }
    if let Some(denied) = denied.filter(|_| !listed.contains(&true)) {
        return Err(denied);
    }
    let wanted = |key: &&JobKey| {
        listed.get(key.kind) == Some(&true) && of.namespace.as_ref().is_none_or(|only| *only == key.namespace)
    };
    let keys = admin.context.stores().jobs();
    let paths: Vec<_> = keys.iter().filter(wanted).filter_map(|key| path(&admin.context, key)).collect();
    Ok(Json(json!({ "jobs": paths })).into_response())
}

/// The pass over a job as it would be now, for whoever may read the job.
async fn job(
    State(admin): State<Admin>,
    headers: HeaderMap,
    Path((plural, namespace, name)): Path<(String, String, String)>,
    Query(environment): Query<Environment>,
) -> Result<Response, Denied> {
    let layout = admin.context.stores().layout();
    let found = layout.kinds().iter().position(|served| served.kind.plural == plural);
    let Some((kind, served)) = found.and_then(|kind| Some((kind, layout.kinds().get(kind)?))) else {
        // Whoever is nobody learns nothing, not even which kinds there are.
        admin.access.check(&headers, &Right::Path("/jobs")).await?;
        return Ok((StatusCode::NOT_FOUND, "no such kind of job is served").into_response());
    };
    admin.access.check(&headers, &Right::jobs("get", &served.kind, Some(&namespace), Some(&name))).await?;
    let pass = admin.context.rehearse(&JobKey { kind, namespace, name }).await;
    Ok(match pass.map(|pass| environment.apply(pass)) {
        Some(Ok(pass)) => Json(pass).into_response(),
        Some(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        None => (StatusCode::NOT_FOUND, "no such job is seen, or not yet as it is").into_response(),
    })
}

/// Which passes.
#[derive(Debug, Deserialize)]
struct Which {
    /// Only those of the plugin of this name.
    plugin: Option<String>,
}

/// The latest passes, a line of JSON each, made while it is sent.
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
    let plural = &layout.kinds().get(key.kind)?.kind.plural;
    Some(format!("/jobs/{plural}/{}/{}", key.namespace, key.name))
}

impl Right {
    /// This verb on jobs of a kind: all of them, those of a namespace, or one.
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
