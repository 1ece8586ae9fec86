//! The admin port: health, metrics, what the host last saw and decided of each job, and the latest
//! passes for replay.

use crate::{metrics::Metrics, reconcile::Context, stores::JobKey};
use axum::{
    Json, Router,
    body::Body,
    extract::{Path, Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use futures::stream;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use tokio::net::TcpListener;

#[derive(Clone)]
struct Admin {
    context: Arc<Context>,
    metrics: Metrics,
}

/// Answers on the admin port until the process ends.
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, context: Arc<Context>, metrics: Metrics) -> std::io::Result<()> {
    let routes = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_text))
        .route("/jobs", get(jobs))
        .route("/jobs/{plural}/{namespace}/{name}", get(job))
        .route("/recording", get(recording))
        .with_state(Admin { context, metrics });
    axum::serve(listener, routes).await
}

async fn readyz(State(admin): State<Admin>) -> Response {
    if admin.context.is_ready() {
        return "ok".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, "not every watch has listed yet").into_response()
}

async fn metrics_text(State(admin): State<Admin>) -> String {
    admin.metrics.text(&admin.context)
}

async fn jobs(State(admin): State<Admin>) -> Response {
    let paths: Vec<_> = admin.context.passes().keys().iter().filter_map(|key| path(&admin.context, key)).collect();
    Json(json!({ "jobs": paths })).into_response()
}

async fn job(State(admin): State<Admin>, Path((plural, namespace, name)): Path<(String, String, String)>) -> Response {
    let layout = admin.context.stores().layout();
    let kind = layout.kinds().iter().position(|served| served.kind.plural == plural);
    let pass = kind.and_then(|kind| admin.context.passes().last(&JobKey { kind, namespace, name }));
    match pass {
        Some(pass) => Json(pass).into_response(),
        None => (StatusCode::NOT_FOUND, "no pass over such a job since this host started").into_response(),
    }
}

/// Which passes.
#[derive(Debug, Deserialize)]
struct Which {
    /// Only those of the plugin of this name.
    plugin: Option<String>,
}

/// The latest passes, a line of JSON each, made while it is sent.
async fn recording(State(admin): State<Admin>, Query(which): Query<Which>) -> Response {
    let passes = admin.context.passes().latest(which.plugin.as_deref());
    let lines = passes.into_iter().map(|pass| {
        let mut line = serde_json::to_vec(&pass.told())?;
        line.push(b'\n');
        Ok::<_, serde_json::Error>(line)
    });
    ([(CONTENT_TYPE, "application/jsonl")], Body::from_stream(stream::iter(lines))).into_response()
}

fn path(context: &Context, key: &JobKey) -> Option<String> {
    let layout = context.stores().layout();
    let plural = &layout.kinds().get(key.kind)?.kind.plural;
    Some(format!("/jobs/{plural}/{}/{}", key.namespace, key.name))
}
