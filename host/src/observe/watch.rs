//! One watch: a consistent list, then events with bookmarks. A connection that breaks is opened again from the version
//! that was reached. Knows kinds and keys, never meanings.
//!
//! A state machine of our own: kube-runtime's watcher hides bookmarks and list versions, which read-your-writes needs,
//! and decodes an answer as a whole, so that one unreadable object hides all others.

use crate::{
    api::{
        answer,
        back_off::BackOff,
        continued::{Continued, Endless},
        discovery::Discovery,
        forbidden::is_forbidden,
        names::{self, Mismatch, NamesError},
    },
    control::queue::Queue,
    error::chain,
    observe::{
        cache::Cache,
        layout::{Purpose, WatchId, WatchSpec},
        pages::Pages,
        position::{Failure, Position, Step},
        stores::{Listed, Stores},
        wire::{self, Object, Page, PageMetadata},
    },
};
use futures::StreamExt;
use kube::{
    Client,
    api::{ListParams, WatchParams},
    core::{Request, Status},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    collections::BTreeSet,
    io,
    mem::{Discriminant, discriminant},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

/// The host asks the API server to end a watch after this many seconds; it sends a bookmark about once a minute.
const LIFE: u32 = 290;

/// A watch is opened again if not even a bookmark has come for this long.
const SILENCE: Duration = Duration::from_secs(90);

/// Deadline of a page of a list, and of the start of the answer to a watch.
const LIST_DEADLINE: Duration = Duration::from_secs(30);

/// A page is requested again at most this many times in a row; then the list starts again.
const PAGE_FAILURES: u32 = 8;

/// Time to the next attempt for a kind that is not served: doubled with each in a row, from the first value to the second; and
/// for an optional one.
const NO_SUCH_KIND_AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(30));
pub(super) const OPTIONAL_AGAIN: Duration = Duration::from_secs(600);

/// Why a list or a watch failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    #[error("the API server does not serve {0}")]
    NoSuchKind(String),
    #[error("404 for {0}, which the API server serves")]
    NotFound(String),
    #[error("{0}: the plugin has to be mended")]
    Misnamed(Mismatch),
    #[error("the version to go on from has expired")]
    Expired,
    #[error("no answer within {} s", .0.as_secs())]
    NoAnswer(Duration),
    #[error("{}", chain(.0))]
    Client(kube::Error),
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    #[error("a page has more bytes than it may have")]
    TooLarge,
    #[error("{0}")]
    Endless(#[from] Endless),
    #[error("nothing came for {} s", SILENCE.as_secs())]
    Silent,
    #[error("the API server ended the watch")]
    Ended,
    #[error("the answer is not what was asked for")]
    Garbled(#[from] serde_json::Error),
    #[error("cannot form the request")]
    Request(#[from] kube::core::request::Error),
}

impl WatchError {
    /// Returns what the error says about the version to continue from.
    fn failure(&self) -> Failure {
        match self {
            Self::NoSuchKind(_) | Self::Misnamed(_) | Self::Expired => Failure::Expired,
            Self::Client(kube::Error::Api(status)) if !matches!(status.code, 429 | 502 | 503) => Failure::Barren,
            Self::Client(_) | Self::NoAnswer(_) => Failure::Unanswered,
            Self::NotFound(_) | Self::Broken(_) | Self::Silent | Self::Ended => Failure::Barren,
            Self::Garbled(_) | Self::Request(_) | Self::TooLarge | Self::Endless(_) => Failure::Barren,
        }
    }

    fn is_forbidden(&self) -> bool {
        matches!(self, Self::Client(error) if is_forbidden(error))
    }

    pub(super) fn retry_after(&self) -> Duration {
        match self {
            Self::Client(error) => answer::retry_after(error).unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }
}

/// Feeds one table of the stores for ever, and adds the keys of concerned jobs to the work queue. The jitter of its
/// back-off comes from the seed.
pub(crate) async fn watch(
    client: Client,
    discovery: Arc<Discovery>,
    stores: Arc<Stores>,
    queue: Arc<Queue>,
    (id, spec): (WatchId, WatchSpec),
    namespace: Option<String>,
    seed: [u8; 32],
) {
    let back_off = BackOff::new(seed, 2 + id.0);
    Watch { client, discovery, stores, queue, id, namespace, spec, back_off }.run().await;
}

/// That a kind is not watched.
struct Missing {
    /// Why, as it was logged.
    why: Discriminant<WatchError>,
    /// Attempts in a row that found so.
    in_a_row: u32,
}

struct Watch {
    client: Client,
    discovery: Arc<Discovery>,
    stores: Arc<Stores>,
    queue: Arc<Queue>,
    id: WatchId,
    namespace: Option<String>,
    spec: WatchSpec,
    back_off: BackOff,
}

/// One line of a watch; its object is not decoded yet.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub(super) change: Change,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Change {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

/// Returns the text of the object in a line of a watch.
///
/// # Errors
/// If the text is no line of a watch.
#[cfg(feature = "fuzz")]
pub(crate) fn object_of_line(line: &str) -> Result<&str, serde_json::Error> {
    serde_json::from_str(line).map(|line: Line<'_>| line.object.get())
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: PageMetadata,
}

impl Watch {
    async fn run(&self) {
        let (mut position, mut pages) = (Position::default(), Pages::default());
        let mut missing = None;
        loop {
            let began = Instant::now();
            let result = match position.step() {
                Step::List => match self.check_names(missing.is_some()).await {
                    Ok(()) => self.list(&mut position, &mut pages).await,
                    Err(error) => Err(error),
                },
                Step::Follow(from) => self.follow(&mut position, from).await,
            };
            let lasted = began.elapsed();
            let Err(error) = result else {
                missing = None;
                continue;
            };
            let wait = match self.confirmed(error).await {
                error @ (WatchError::NoSuchKind(_) | WatchError::Misnamed(_)) => {
                    position.failed(error.failure());
                    self.missing(&error, &mut missing)
                }
                error if error.is_forbidden() => self.forbidden(&mut position, &error, &mut missing),
                error => self.failed(&mut position, &error, lasted),
            };
            // A write of the host may show first that the kind is served now.
            tokio::select! {
                biased;
                () = sleep(wait) => {}
                () = self.stores.is_served(self.id) => {}
            }
        }
    }

    /// Returns what this error says of the kind. A 404 may be that of one API server that is behind the others, so what has
    /// been listed of an optional kind counts until discovery says, too, that the kind is not served.
    async fn confirmed(&self, error: WatchError) -> WatchError {
        match error {
            WatchError::NoSuchKind(kind) if self.is_believed() => {
                self.look_up().await.err().unwrap_or(WatchError::NotFound(kind))
            }
            error => error,
        }
    }

    /// Returns whether jobs are served by what has been listed of this optional kind: without Workloads no queue holds one.
    fn is_believed(&self) -> bool {
        let has_listed = |cache: &Cache| cache.table(self.id).is_some_and(|table| table.listed == Listed::Yes);
        self.spec.optional && self.stores.read(has_listed)
    }

    /// Records that the API server forbids this kind; returns the time to the next attempt. Once the host has no right to
    /// it, an optional kind that was never listed counts as not served, and nobody waits for jobs of another.
    fn forbidden(&self, position: &mut Position, error: &WatchError, missing: &mut Option<Missing>) -> Duration {
        let now = Instant::now();
        let in_a_row = position.forbidden(now);
        let left = position.lacks_right_in(now);
        if left.is_zero() && self.spec.optional && !self.is_believed() {
            return self.missing(error, missing);
        }
        self.log_failure(position, in_a_row, error);
        let pause = self.pause(in_a_row, error);
        if left.is_zero() {
            self.stores.forbidden(self.id);
            return pause;
        }
        pause.min(left).max(error.retry_after())
    }

    /// Records that the kind is not served; returns the time to the next attempt.
    fn missing(&self, error: &WatchError, missing: &mut Option<Missing>) -> Duration {
        self.wake(self.stores.no_such_kind(self.id));
        let why = discriminant(error);
        let before = missing.as_ref().filter(|before| before.why == why).map_or(0, |before| before.in_a_row);
        if before > 0 {
            // It is logged already.
        } else if matches!(error, WatchError::Misnamed(_)) {
            warn!(%error, "a kind of a plugin is not watched");
        } else if self.spec.optional {
            info!(%error, "jobs are served without this optional kind");
        } else {
            let crd = format!("{}.{}", self.spec.resource.plural, self.spec.resource.group);
            warn!(%error, crd, "waiting for the CRD: apply crds/ or start with --install-crds");
        }
        *missing = Some(Missing { why, in_a_row: before + 1 });
        let (least, most) = NO_SUCH_KIND_AGAIN;
        if self.spec.optional { OPTIONAL_AGAIN } else { least.saturating_mul(1 << before.min(16)).min(most) }
    }

    /// Records an attempt that failed after this time; returns the time to the next attempt.
    fn failed(&self, position: &mut Position, error: &WatchError, lasted: Duration) -> Duration {
        let in_a_row = match error {
            WatchError::Broken(_) | WatchError::Silent | WatchError::Ended => position.ended(lasted),
            _ => position.failed(error.failure()),
        };
        self.log_failure(position, in_a_row, error);
        self.pause(in_a_row, error)
    }

    /// Logs a failed attempt and what comes next.
    fn log_failure(&self, position: &Position, in_a_row: u32, error: &WatchError) {
        let kind = &self.spec.resource.plural;
        match (error, position.step()) {
            (WatchError::Ended, Step::Follow(version)) => debug!(kind, version, "watch ended and goes on where it was"),
            (_, Step::Follow(version)) => {
                info!(kind, version, in_a_row, error = chain(error), "watch broke and goes on where it was");
            }
            (_, Step::List) => warn!(kind, in_a_row, error = chain(error), "listing all objects again"),
        }
    }

    fn pause(&self, in_a_row: u32, error: &WatchError) -> Duration {
        let back_off = if in_a_row == 0 { Duration::ZERO } else { self.back_off.after(in_a_row) };
        back_off.max(error.retry_after())
    }

    /// Looks up a kind that was not served, before anything of it is listed: its names may not be those of its plugin.
    async fn check_names(&self, was_missing: bool) -> Result<(), WatchError> {
        match was_missing {
            true => self.looked_up(self.discovery.check(&self.spec.resource)).await,
            false => Ok(()),
        }
    }

    /// Looks up now whether the API server serves the kind, under the plugin's names.
    async fn look_up(&self) -> Result<(), WatchError> {
        self.looked_up(names::check(&self.client, &self.spec.resource)).await
    }

    async fn looked_up(&self, look_up: impl Future<Output = Result<bool, NamesError>>) -> Result<(), WatchError> {
        let checked = timeout(LIST_DEADLINE, look_up).await;
        match checked.map_err(|_| WatchError::NoAnswer(LIST_DEADLINE))? {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.no_such_kind()),
            Err(NamesError::Mismatch { other, .. }) => Err(WatchError::Misnamed(other)),
            Err(NamesError::LookUp { source, .. }) => Err(self.classify(source)),
        }
    }

    fn no_such_kind(&self) -> WatchError {
        let resource = &self.spec.resource;
        WatchError::NoSuchKind(format!("{} {}", resource.api_version(), resource.plural))
    }

    /// Lists all objects, without a resource version, so that the list is at least as new as any earlier write. A page
    /// that fails is requested again, without the pages before it, and with fewer objects if it was too slow.
    async fn list(&self, position: &mut Position, pages: &mut Pages) -> Result<(), WatchError> {
        let (mut objects, mut failures, mut list) = (Vec::new(), 0, Continued::default());
        let mut params = ListParams { label_selector: self.spec.selector.clone(), ..ListParams::default() };
        loop {
            params.limit = Some(pages.limit());
            let page = self.page(&params, pages).await;
            if let Err(WatchError::NoAnswer(_)) = &page {
                pages.was_too_slow();
            }
            let (mut page, bytes) = match page {
                Ok(page) => page,
                Err(WatchError::TooLarge) if !pages.is_least() => {
                    pages.was_too_large();
                    continue;
                }
                Err(error) if params.continue_token.is_none() || failures == PAGE_FAILURES => return Err(error),
                Err(error @ (WatchError::Expired | WatchError::NoSuchKind(_))) => return Err(error),
                Err(error) => {
                    failures += 1;
                    sleep(self.pause(failures, &error)).await;
                    continue;
                }
            };
            failures = 0;
            position.allowed();
            let version = page.metadata.version();
            params.continue_token = list.next(page.items.len(), bytes, page.metadata.more())?;
            self.stores.trim(&mut page.items);
            objects.extend(page.items);
            if params.continue_token.is_none() {
                info!(kind = self.spec.resource.plural, objects = objects.len(), version, "listed");
                self.wake(self.stores.replace(self.id, objects, version));
                position.listed(version);
                return Ok(());
            }
        }
    }

    /// Returns a page with the number of its bytes.
    async fn page(&self, params: &ListParams, pages: &mut Pages) -> Result<(Page<Object>, usize), WatchError> {
        let request =
            if self.metadata_only() { self.requests().list_metadata(params)? } else { self.requests().list(params)? };
        let began = Instant::now();
        let text = self.answered(answer::text_within(&self.client, request, Pages::MOST_BYTES)).await?;
        let (text, took) = (text.ok_or(WatchError::TooLarge)?, began.elapsed());
        let page = wire::page(&text, &self.spec)?;
        pages.read(page.items.len(), text.len(), took);
        Ok((page, text.len()))
    }

    /// Follows events until the watch ends.
    async fn follow(&self, position: &mut Position, from: u64) -> Result<(), WatchError> {
        let params = WatchParams {
            label_selector: self.spec.selector.clone(),
            timeout: Some(LIFE),
            bookmarks: true,
            ..WatchParams::default()
        };
        let request = if self.metadata_only() {
            self.requests().watch_metadata(&params, &from.to_string())?
        } else {
            self.requests().watch(&params, &from.to_string())?
        };
        let lines = self.answered(answer::lines(&self.client, request)).await?;
        position.allowed();
        let mut lines = std::pin::pin!(lines);
        let mut version = from;
        loop {
            let line = match timeout(SILENCE, lines.next()).await {
                Err(_) => return Err(WatchError::Silent),
                Ok(None) => return Err(WatchError::Ended),
                Ok(Some(line)) => line.map_err(WatchError::Broken)?,
            };
            version = version.max(self.take(&line)?);
            position.shown(version);
        }
    }

    /// Applies one line of a watch to the stores; returns the version that it shows.
    fn take(&self, line: &str) -> Result<u64, WatchError> {
        let Line { change, object } = serde_json::from_str(line)?;
        match change {
            Change::Bookmark => {
                let bookmark: Bookmark = serde_json::from_str(object.get())?;
                let version = bookmark.metadata.version();
                self.wake(self.stores.bookmark(self.id, version));
                Ok(version)
            }
            Change::Error => {
                let status: Status = serde_json::from_str(object.get())?;
                Err(self.classify(kube::Error::Api(status.boxed())))
            }
            Change::Added | Change::Modified | Change::Deleted => {
                let Some(object) = wire::identified(object.get(), &self.spec) else { return Ok(0) };
                let version = object.resource_version;
                self.wake(match change {
                    Change::Deleted => self.stores.remove(self.id, &object),
                    _ => self.stores.upsert(self.id, object),
                });
                Ok(version)
            }
        }
    }

    /// Returns the answer if it comes within the deadline.
    async fn answered<T>(&self, answer: impl Future<Output = Result<T, kube::Error>>) -> Result<T, WatchError> {
        let answer = timeout(LIST_DEADLINE, answer).await.map_err(|_| WatchError::NoAnswer(LIST_DEADLINE))?;
        answer.map_err(|error| self.classify(error))
    }

    fn requests(&self) -> Request {
        let is_of_cluster = matches!(self.spec.purpose, Purpose::Classes(_));
        self.spec.resource.requests(self.namespace.as_deref().filter(|_| !is_of_cluster))
    }

    /// Returns whether metadata is enough: no fields of the objects are kept.
    fn metadata_only(&self) -> bool {
        matches!(&self.spec.purpose, Purpose::Children(kept) | Purpose::Dependents(kept) if kept.is_empty())
    }

    fn wake(&self, concerned: BTreeSet<crate::job_key::JobKey>) {
        for key in concerned {
            debug!(kind = self.spec.resource.plural, job = key.name, "something changed");
            self.queue.add(key);
        }
    }

    fn classify(&self, error: kube::Error) -> WatchError {
        match &error {
            kube::Error::Api(status) if status.code == 404 => self.no_such_kind(),
            kube::Error::Api(status) if status.code == 410 => WatchError::Expired,
            _ => WatchError::Client(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{api::resource::Resource, observe::places::Places};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn refused(code: u16) -> WatchError {
        WatchError::Client(kube::Error::Api(Status::failure("", "").with_code(code).boxed()))
    }

    #[test]
    fn who_is_too_busy_to_answer_says_nothing_of_the_version() {
        assert!([429, 502, 503].into_iter().all(|code| refused(code).failure() == Failure::Unanswered));
        assert!([401, 403, 500, 504].into_iter().all(|code| refused(code).failure() == Failure::Barren));
    }

    #[test]
    fn a_404_that_discovery_denies_leaves_the_version_for_another_attempt() {
        assert_eq!(WatchError::NotFound("workloads".into()).failure(), Failure::Barren);
        assert_eq!(WatchError::NoSuchKind("workloads".into()).failure(), Failure::Expired);
    }

    /// Returns a watch of ConfigMaps on an API server that answers every request for a page with this, and the number of
    /// requests.
    fn on_pages_of(page: &'static str) -> (Watch, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let server = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move { Ok::<_, tower::BoxError>(http::Response::new(axum::body::Body::from(page))) }
        });
        let resource = Resource::new("v1", "ConfigMap", "configmaps");
        let spec =
            WatchSpec { resource, selector: None, purpose: Purpose::Children(Places::default()), optional: false };
        let watch = Watch {
            client: Client::new(server, "default"),
            discovery: Arc::new(Discovery::new(sim::Sim::new(sim::Options::default()).client("host"))),
            stores: Arc::default(),
            queue: Arc::default(),
            id: WatchId(0),
            namespace: None,
            spec,
            back_off: BackOff::new([7; 32], 2),
        };
        (watch, asked)
    }

    // A plugin decides how many kinds it describes, and nobody has to define them.
    #[tokio::test(start_paused = true)]
    async fn hundreds_of_kinds_that_are_not_served_cost_the_requests_of_one() {
        const HOST: &str = "host";
        let sim = sim::Sim::new(sim::Options::default());
        let discovery = Arc::new(Discovery::new(sim.client(HOST)));
        let mut watches = tokio::task::JoinSet::new();
        for number in 0..600 {
            let api_version = format!("g{}.example.com/v1", number % 60);
            let resource = Resource::new(&api_version, &format!("Tale{number}"), &format!("tales{number}"));
            let spec =
                WatchSpec { resource, selector: None, purpose: Purpose::Children(Places::default()), optional: false };
            let (stores, queue) = (Arc::default(), Arc::default());
            let place = (WatchId(number), spec);
            watches.spawn(watch(sim.client(HOST), discovery.clone(), stores, queue, place, None, [7; 32]));
        }
        sleep(Duration::from_secs(1)).await;
        let first = sim.requests_of(HOST).len();
        assert_eq!(first, 600, "each is listed once");
        sleep(Duration::from_secs(600)).await;
        let in_ten_minutes = sim.requests_of(HOST).len() - first;
        assert!(in_ten_minutes <= 150, "{in_ten_minutes} requests: at most one in four seconds for all");

        sim.serve(sim::Kind::custom("g7.example.com/v1", "Tale7", "tales7"));
        sleep(Duration::from_secs(40)).await;
        let is_followed = |it: &sim::RequestRecord| (it.verb.as_str(), it.resource.as_str()) == ("watch", "tales7");
        assert!(sim.requests_of(HOST).iter().any(is_followed), "it is found within half a minute");
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_hands_out_continue_tokens_for_ever_fails_with_the_reason() {
        let same = r#"{"metadata":{"resourceVersion":"7","continue":"on"},"items":[]}"#;
        let (watch, asked) = on_pages_of(same);
        let mut position = Position::default();
        let error = watch.list(&mut position, &mut Pages::default()).await.unwrap_err();
        let words = "the list does not end: a page has the continue token that it was asked for with";
        assert_eq!((error.to_string().as_str(), asked.load(Ordering::Relaxed)), (words, 2));
        assert_eq!(error.failure(), Failure::Barren, "it waits before it lists again");
        assert_eq!(position.step(), Step::List, "nothing of it counts");
    }

    #[test]
    fn an_empty_list_of_metadata_is_a_page_without_items() {
        for text in [r#"{"metadata":{"resourceVersion":"7"},"items":null}"#, r#"{"metadata":{"resourceVersion":"7"}}"#]
        {
            let page: Page<&RawValue> = serde_json::from_str(text).unwrap();
            assert_eq!(page.items.len(), 0);
        }
    }
}
