//! The admin port: health, metrics, and what the host last saw and decided of each job.

use crate::{metrics::Metrics, reconcile::Context, stores::JobKey};
use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
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
    let kinds = admin.context.stores().kinds();
    let kind = kinds.iter().position(|served| served.kind.plural == plural);
    let pass = kind.and_then(|kind| admin.context.passes().last(&JobKey { kind, namespace, name }));
    match pass {
        Some(pass) => Json(pass).into_response(),
        None => (StatusCode::NOT_FOUND, "no pass over such a job since this host started").into_response(),
    }
}

fn path(context: &Context, key: &JobKey) -> Option<String> {
    let plural = &context.stores().kinds().get(key.kind)?.kind.plural;
    Some(format!("/jobs/{plural}/{}/{}", key.namespace, key.name))
}
