//! The page: the jobs, why each waits or has failed, and one job with its pods. The document at `/` holds no data and is
//! open. Its data is below `/page/jobs`, as JSON or, for `Accept: text/event-stream`, as a stream of what has changed; it
//! shows jobs that the viewer may `list`, and no value of an environment variable.

mod board;
mod detail;
mod document;
mod outline;
mod stream;

use super::{
    Admin,
    access::{Access, Denied, Right},
    may_list,
    reader::{Peer, Reader},
    reader_of,
    seats::{NoSeat, Seat, Seats},
};
use axum::{
    Extension, Router,
    extract::{Path, Query, State},
    http::{
        HeaderMap, StatusCode,
        header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
    routing::get,
};
use board::{Board, Group, Wanted};
use detail::Details;
use serde::Deserialize;
use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};
use stream::Look;
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};
use troupe::job_key::{GroupKind, JobKey};

/// The maximum number of open pages at one time, in total and of one viewer. If there are as many in total, one of the viewer
/// with the most is closed for a viewer with fewer.
const VIEWERS: usize = 64;
const VIEWERS_OF_ONE: usize = 16;

/// The rights of a viewer whose stream goes on are asked about again after this long.
const RIGHTS_AGAIN: Duration = Duration::from_secs(60);

/// The rows are kept for this long after the last viewer: one who asks each few seconds does not have all of them made.
const ROWS_FOR: Duration = Duration::from_secs(60);

/// The number of rows that a viewer gets who names none, and the maximum.
const ROWS: usize = 200;
const MOST_ROWS: usize = 2_000;

/// The maximum number of words in a search.
const WORDS: usize = 8;

/// What all viewers share.
pub(super) struct Page {
    board: Board,
    details: Details,
    viewers: Arc<Seats<Reader>>,
}

impl Default for Page {
    fn default() -> Self {
        let viewers = Seats::new(VIEWERS, VIEWERS_OF_ONE);
        Self { board: Board::default(), details: Details::default(), viewers }
    }
}

/// The place of one viewer. The rows go some time after the last one.
struct Place {
    page: Arc<Page>,
    /// There until the place is dropped.
    seat: Option<Seat<Reader>>,
}

impl Page {
    fn admit(&self, reader: Reader) -> Result<Seat<Reader>, Refused> {
        self.viewers.take(reader).map_err(|none| match none {
            NoSeat::OfOne => Refused::ManyOfOne,
            NoSeat::OfAll => Refused::Full,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.seat = None;
        let (page, runtime) = (Arc::clone(&self.page), Handle::try_current());
        if let (true, Ok(runtime)) = (page.viewers.are_free(), runtime) {
            runtime.spawn(async move {
                sleep(ROWS_FOR).await;
                page.board.forget_after(ROWS_FOR).await;
            });
        }
    }
}

/// Why a viewer is shown nothing.
#[derive(Debug)]
pub(super) enum Refused {
    /// The name in the request is not one of this machine: another page of the browser may ask, under a name of its own.
    OtherName,
    /// There are too many viewers.
    Full,
    /// The viewer has as many pages open as one may.
    ManyOfOne,
    /// This host stands by for the one that has the lease of this name.
    StandsBy(String),
    /// No such job, or none that the viewer may see.
    NoSuchJob,
    Denied(Denied),
}

impl From<Denied> for Refused {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::OtherName => {
                let text = "on a loopback address, this page is served under localhost and under addresses alone";
                (StatusCode::MISDIRECTED_REQUEST, text).into_response()
            }
            Self::Full => {
                (StatusCode::SERVICE_UNAVAILABLE, "this host has too many viewers; try again").into_response()
            }
            Self::ManyOfOne => {
                let text = format!("you have {VIEWERS_OF_ONE} pages of this host open, as many as one may; close some");
                (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
            }
            Self::StandsBy(lease) => {
                let text = format!(
                    "this host stands by and watches nothing; ask the host that the Lease {lease} names: \
                     kubectl get lease --all-namespaces"
                );
                (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
            }
            Self::NoSuchJob => (StatusCode::NOT_FOUND, "there is no such job").into_response(),
            Self::Denied(denied) => denied.into_response(),
        }
    }
}

/// Returns the routes of the page.
pub(super) fn routes() -> Router<Admin> {
    Router::new()
        .route("/", get(document::document))
        .route("/page/jobs", get(jobs))
        .route("/page/jobs/{resource}/{namespace}/{name}", get(job))
}

/// The query of the list.
#[derive(Debug, Clone, Default, Deserialize)]
struct Search {
    /// Only this namespace: then the viewer needs rights in no other.
    #[serde(default)]
    namespace: String,
    /// Only jobs with all of these words in what the list shows of them.
    #[serde(default)]
    text: String,
    /// Only this group.
    group: Option<Group>,
    /// At most this many rows.
    limit: Option<usize>,
}

impl Search {
    fn namespace(&self) -> Option<&str> {
        Some(self.namespace.as_str()).filter(|namespace| !namespace.is_empty())
    }

    fn of_kinds(&self, kinds: BTreeSet<GroupKind>) -> Wanted {
        Wanted {
            kinds,
            namespace: self.namespace().map(str::to_owned),
            words: self.text.split_whitespace().take(WORDS).map(str::to_lowercase).collect(),
            group: self.group,
            limit: self.limit.unwrap_or(ROWS).min(MOST_ROWS),
        }
    }
}

/// Sends the jobs that the viewer may list.
async fn jobs(
    State(admin): State<Admin>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Query(search): Query<Search>,
) -> Result<Response, Refused> {
    let (kinds, user) = may_list(&admin, &headers, search.namespace()).await?;
    serves(&admin)?;
    let seat = admin.page.admit(reader_of(user, peer))?;
    let (clock, revoked) = (admin.context.clock().clone(), seat.revoked());
    let is_stream = wants_stream(&headers);
    let wanted = Arc::new(search.of_kinds(kinds));
    let mut viewer = ListViewer { rights: Rights::new(admin, headers, seat), search, wanted };
    Ok(if is_stream { stream::response(clock, viewer, revoked) } else { json(viewer.look().await) })
}

/// Sends one job, if the viewer may list those of its kind in its namespace.
async fn job(
    State(admin): State<Admin>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    Path((resource, namespace, name)): Path<(String, String, String)>,
) -> Result<Response, Refused> {
    let layout = admin.context.stores().layout();
    let Some((kind, served)) = layout.kinds().iter().find(|(_, served)| served.kind.crd() == resource) else {
        // An unauthenticated viewer does not learn which kinds are served.
        admin.access.check(&headers, &Right::Path("/jobs")).await?;
        return Err(Refused::NoSuchJob);
    };
    let right = Right::jobs("list", &served.kind, Some(&namespace), None);
    let user = admin.access.check(&headers, &right).await?;
    serves(&admin)?;
    let seat = admin.page.admit(reader_of(user, peer))?;
    let (clock, revoked) = (admin.context.clock().clone(), seat.revoked());
    let is_stream = wants_stream(&headers);
    let key = JobKey::new(kind, &namespace, &name);
    let mut viewer = JobViewer { rights: Rights::new(admin, headers, seat), right, key };
    let Some(first) = viewer.look().await else { return Err(Refused::NoSuchJob) };
    Ok(if is_stream { stream::response(clock, viewer, revoked) } else { json(Some(first)) })
}

/// One who looks, and what he may see.
struct Rights {
    admin: Admin,
    headers: HeaderMap,
    asked: Instant,
    _place: Place,
}

impl Rights {
    fn new(admin: Admin, headers: HeaderMap, seat: Seat<Reader>) -> Self {
        let place = Place { page: Arc::clone(&admin.page), seat: Some(seat) };
        Self { admin, headers, asked: Instant::now(), _place: place }
    }

    /// Returns whether the rights have to be asked about again, and notes that they are.
    fn are_due(&mut self) -> bool {
        let is_due = self.asked.elapsed() >= RIGHTS_AGAIN;
        if is_due {
            self.asked = Instant::now();
        }
        is_due
    }
}

/// One who looks at the list.
struct ListViewer {
    rights: Rights,
    search: Search,
    wanted: Arc<Wanted>,
}

impl Look for ListViewer {
    async fn look(&mut self) -> Option<String> {
        if self.rights.are_due() {
            let Rights { admin, headers, .. } = &self.rights;
            let (kinds, _) = may_list(admin, headers, self.search.namespace()).await.ok()?;
            self.wanted = Arc::new(self.search.of_kinds(kinds));
        }
        let Admin { page, context, .. } = &self.rights.admin;
        page.board.view(context, &self.wanted).await
    }
}

/// One who looks at a job.
struct JobViewer {
    rights: Rights,
    right: Right,
    key: JobKey,
}

impl Look for JobViewer {
    async fn look(&mut self) -> Option<String> {
        if self.rights.are_due() {
            self.rights.admin.access.check(&self.rights.headers, &self.right).await.ok()?;
        }
        let Admin { page, context, .. } = &self.rights.admin;
        Some(page.details.of(context, &self.key).await?.as_ref().to_owned())
    }
}

/// Refuses a request that another page of the browser may have made. On a loopback address nobody is asked who he is, so
/// a page that has its own name resolved to this address must not read the answer.
pub(super) fn begin(admin: &Admin, headers: &HeaderMap) -> Result<(), Refused> {
    let Access::Loopback = &*admin.access else { return Ok(()) };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name);
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_own = name.is_empty() || name == "localhost" || address.parse::<IpAddr>().is_ok();
    if is_own { Ok(()) } else { Err(Refused::OtherName) }
}

/// Refuses where this host watches nothing.
fn serves(admin: &Admin) -> Result<(), Refused> {
    match admin.context.lease() {
        Some((lease, false)) => Err(Refused::StandsBy(lease.to_owned())),
        Some((_, true)) | None => Ok(()),
    }
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accepts.is_some_and(|accept| accept.starts_with("text/event-stream"))
}

fn json(text: Option<String>) -> Response {
    let head = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (head, text.unwrap_or_default()).into_response()
}
