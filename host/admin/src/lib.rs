//! The admin port: health, metrics, the page, the snapshot and decision of each job, and passes for replay.
//!
//! `/healthz` and `/readyz` are open, as probes need them, and so is `/`, the page without its data. On a loopback
//! address everything is open. On any other address the other paths require TLS, a bearer token that the API server
//! accepts, and the right to read (see `access`).

mod access;
mod answers;
mod connections;
pub mod metrics;
mod page;
mod reader;
mod recording;
mod redact;
mod seats;
pub mod telemetry;
mod tls;

pub use access::{Access, Reviewer};
pub use tls::{Tls, TlsError};

use access::{Denied, Right, User};
use answers::{LARGEST, Places, Unanswered};
use axum::{
    Extension, Router,
    body::Body,
    extract::{Path, Query, Request, State},
    http::{
        HeaderMap, StatusCode,
        header::{CONNECTION, CONTENT_TYPE},
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use connections::Routes;
use decide::plan::{Answer, Fault, JobKind};
use futures::future::{BoxFuture, join_all};
use reader::{Peer, Reader};
use redact::Environment;
use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::net::TcpListener;
use troupe::{
    control::{reconcile::Context, supervise::supervise},
    job_key::{GroupKind, JobKey},
    measure::requests::Requests,
    observe::layout::Layout,
};

/// The maximum size of a recording in bytes; it is cut at the end of a line.
const MOST_BYTES: usize = 64 << 20;

/// What to do about a list or a pass that is too large.
const FEWER_JOBS: &str =
    "ask for the jobs of one namespace by ?namespace=, or by /page/jobs, which shows the first of them";
const LESS_OF_A_JOB: &str = "see what matters of the job on the page (/), or by `kubectl troupe explain`";

#[derive(Clone)]
struct Admin {
    context: Arc<Context>,
    requests: Requests,
    access: Arc<Access>,
    page: Arc<page::Page>,
    places: Arc<Places>,
}

/// Serves the admin port for as long as the future is polled. Starts again if that panics.
pub fn serve(
    listener: TcpListener,
    context: Arc<Context>,
    requests: Requests,
    access: Access,
) -> BoxFuture<'static, ()> {
    let (access, restarts) = (Arc::new(access), Arc::clone(context.restarts()));
    let routes = Routes { probes: probes(Arc::clone(&context)), all: routes(context, requests, Arc::clone(&access)) };
    let served = Arc::new((listener, access, routes));
    Box::pin(async move {
        let _accepts = supervise("admin", &restarts, move || {
            let served = Arc::clone(&served);
            async move {
                let (listener, access, routes) = &*served;
                connections::serve(listener, access, routes).await;
            }
        });
        std::future::pending::<()>().await;
    })
}

/// Returns what the admin port answers, without connections.
pub fn routes(context: Arc<Context>, requests: Requests, access: Arc<Access>) -> Router {
    let admin = Admin { context, requests, access, page: Arc::default(), places: Arc::default() };
    let of_jobs = Router::new()
        .route("/jobs", get(jobs))
        .route("/jobs/{resource}/{namespace}/{name}", get(job))
        .route("/recording", get(recording))
        .merge(page::routes())
        .layer(middleware::from_fn_with_state(admin.clone(), own_name));
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics_text))
        .merge(of_jobs)
        .with_state(admin)
}

/// Returns what is answered on a connection of an address that has too many.
fn probes(context: Arc<Context>) -> Router {
    let too_many =
        "this address has too many connections to this host; only probes are answered, close some of the others";
    let refused = (StatusCode::SERVICE_UNAVAILABLE, [(CONNECTION, "close")], too_many);
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(move || async move { ready(&context) }))
        .fallback(move || async move { refused })
}

/// Refuses a request that another page of the browser may have made.
async fn own_name(State(admin): State<Admin>, request: Request, next: Next) -> Response {
    match page::begin(&admin, request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

async fn readyz(State(admin): State<Admin>) -> Response {
    ready(&admin.context)
}

fn ready(context: &Context) -> Response {
    if context.is_ready() {
        return "ok".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, "not every watch has listed yet").into_response()
}

async fn metrics_text(State(admin): State<Admin>, headers: HeaderMap) -> Result<Response, Denied> {
    admin.access.check(&headers, &Right::Path("/metrics")).await?;
    Ok(match metrics::text(&admin.context, &admin.requests) {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    })
}

/// The query of `/jobs`.
#[derive(Debug, Deserialize)]
struct Jobs {
    /// Select only jobs in this namespace.
    namespace: Option<String>,
}

/// Returns the paths of all jobs whose kinds the reader may list.
async fn jobs(
    State(admin): State<Admin>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Query(of): Query<Jobs>,
) -> Result<Response, Denied> {
    let layout = admin.context.stores().layout();
    let (listed, user) = may_list(&admin, &headers, of.namespace.as_deref()).await?;
    let keys = admin.context.stores().jobs();
    let write = move || {
        let is_in = |key: &JobKey| of.namespace.as_ref().is_none_or(|only| *only == key.namespace);
        let wanted = |key: &&JobKey| listed.contains(&key.kind) && is_in(key);
        let paths: Vec<_> = keys.iter().filter(wanted).filter_map(|key| path(&layout, &keys, key)).collect();
        answers::text(&BTreeMap::from([("jobs", paths)]), LARGEST)
    };
    let text = admin.context.plugins().run_beside(write).await;
    let text = text.map_err(|error| Unanswered::without_text(error, FEWER_JOBS));
    Ok(text.and_then(|text| admin.places.answer(text, reader_of(user, peer))).into_response())
}

/// Returns who makes a request.
fn reader_of(user: Option<User>, peer: Option<Extension<Peer>>) -> Reader {
    Reader::of(user, peer.map(|Extension(peer)| peer))
}

/// Returns the kinds of which the reader may list the jobs in this namespace, or in all, and who he is, if that is known.
///
/// # Errors
/// The reason why he may list none; that the API server does not answer, since jobs of a kind must not seem to be gone.
async fn may_list(
    admin: &Admin,
    headers: &HeaderMap,
    namespace: Option<&str>,
) -> Result<(BTreeSet<GroupKind>, Option<User>), Denied> {
    let layout = admin.context.stores().layout();
    let mut checks = layout.kinds().iter().map(|(kind, served)| async move {
        let right = Right::jobs("list", &served.kind, namespace, None);
        admin.access.check(headers, &right).await.map(|user| (kind.clone(), user))
    });
    let (mut kinds, mut user, mut denied) = (BTreeSet::new(), None, None);
    // With the first, it is known whose token this is.
    let mut checked: Vec<_> = match checks.next() {
        Some(first) => vec![first.await],
        None => vec![],
    };
    checked.extend(join_all(checks).await);
    for checked in checked {
        match checked {
            Ok((kind, reads)) => {
                kinds.insert(kind);
                user = reads;
            }
            Err(error @ Denied::Forbidden { .. }) => denied = denied.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    denied.filter(|_| kinds.is_empty()).map_or(Ok((kinds, user)), Err)
}

/// Returns the pass over a job as it would run now, if the reader may get the job. The resource is a plural, or a plural
/// with its group (`tales.example.com`).
async fn job(
    State(admin): State<Admin>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Path((resource, namespace, name)): Path<(String, String, String)>,
    Query(environment): Query<Environment>,
) -> Result<Response, Denied> {
    let layout = admin.context.stores().layout();
    // Two groups may have a kind of the same plural.
    let is_meant = |kind: &JobKind| kind.plural == resource || kind.crd() == resource;
    let found: Vec<_> = layout.kinds().iter().filter(|(_, served)| is_meant(&served.kind)).collect();
    if found.is_empty() {
        // Do not show an unauthenticated reader which kinds are served.
        admin.access.check(&headers, &Right::Path("/jobs")).await?;
        return Ok((StatusCode::NOT_FOUND, "no such kind of job is served").into_response());
    }
    let (mut denied, mut may_read) = (None, false);
    for (kind, served) in found {
        let right = Right::jobs("get", &served.kind, Some(&namespace), Some(&name));
        let user = match admin.access.check(&headers, &right).await {
            Ok(user) => user,
            Err(error) => {
                denied = Some(error);
                continue;
            }
        };
        may_read = true;
        let (key, reader) = (JobKey::new(kind, &namespace, &name), reader_of(user, peer));
        if let Some(answer) = pass(&admin, reader, &key, environment).await.transpose() {
            return Ok(answer.into_response());
        }
    }
    match denied {
        Some(denied) if !may_read => Err(denied),
        _ => Ok((StatusCode::NOT_FOUND, "no such job is seen, or not yet as it is").into_response()),
    }
}

/// Returns the answer for this reader with the pass over this job; `None` if the job cannot be observed.
///
/// # Errors
/// Why there is no answer now, or none at all.
async fn pass(
    admin: &Admin,
    reader: Reader,
    key: &JobKey,
    environment: Environment,
) -> Result<Option<Response>, Unanswered> {
    let _place = admin.places.rehearsal(reader).await?;
    let Some(rehearsal) = admin.context.rehearse(key).await else { return Ok(None) };
    if let Answer::Faulted(Fault::Throttled { plugin, until, .. }) = &rehearsal.pass.answer {
        return Err(Unanswered::throttled(plugin, *until, admin.context.clock().now()));
    }
    let text = admin.context.plugins().run_beside(move || environment.line(rehearsal.pass, LARGEST)).await;
    let text = text.map_err(|error| Unanswered::without_text(error, LESS_OF_A_JOB))?;
    admin.places.answer(text, reader).map(Some)
}

/// The query of `/recording`.
#[derive(Debug, Deserialize)]
struct Which {
    /// Select only passes of the plugin with this name.
    plugin: Option<String>,
}

/// Streams passes, one JSON line each, and makes them while it sends.
async fn recording(
    State(admin): State<Admin>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Query(which): Query<Which>,
    Query(environment): Query<Environment>,
) -> Result<Response, Denied> {
    let user = admin.access.check(&headers, &Right::Path("/recording")).await?;
    let place = match admin.places.recording(reader_of(user, peer)) {
        Ok(place) => place,
        Err(unanswered) => return Ok(unanswered.into_response()),
    };
    let lines = recording::lines(Arc::clone(&admin.context), which.plugin, environment, place);
    let lines = recording::within(MOST_BYTES, lines);
    Ok(([(CONTENT_TYPE, "application/jsonl")], Body::from_stream(lines)).into_response())
}

/// Returns the path of one of these jobs, which are sorted. It names the group where a job of another group has the same
/// plural, namespace and name.
fn path(layout: &Layout, keys: &[JobKey], key: &JobKey) -> Option<String> {
    let kind = &layout.kinds().get(&key.kind)?.kind;
    let of_plural = layout.kinds().iter().filter(|(_, served)| served.kind.plural == kind.plural);
    let alike = of_plural.map(|(kind, _)| JobKey::new(kind, &key.namespace, &key.name));
    let is_unique = alike.filter(|key| keys.binary_search(key).is_ok()).count() == 1;
    let resource = if is_unique { kind.plural.clone() } else { kind.crd() };
    Some(format!("/jobs/{resource}/{}/{}", key.namespace, key.name))
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
