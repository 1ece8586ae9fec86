//! The watch of the events in which schedulers say of children what they say nowhere else.
//!
//! The API server reads all events of the cluster for a list, and sends no bookmarks with a watch of them, since it has no
//! watch cache of events. So they are listed once, a watch may be silent for its whole life, and where its version has
//! expired it goes on with what is new: a scheduler repeats itself.

use crate::{
    api::{answer, back_off::BackOff, continued::Continued, forbidden::Forbidden, resource::Resource},
    control::queue::Queue,
    error::chain,
    observe::{
        pages::Pages,
        reports::Report,
        stores::Stores,
        watch::{Change, Line, OPTIONAL_AGAIN, WatchError},
        wire::Page,
    },
};
use decide::gang;
use futures::StreamExt;
use kube::{
    Client,
    api::{ListParams, WatchParams},
    core::{Request, Status},
};
use serde_json::value::RawValue;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info};

/// The host asks the API server to end a watch after this many seconds.
const LIFE: u32 = 290;

/// Deadline of a list, of the start of the answer to a watch, and of the end of a watch after its [`LIFE`].
const DEADLINE: Duration = Duration::from_secs(30);

/// A connection that lasted this long ends a row of failures.
const LASTING: Duration = Duration::from_secs(10);

/// Number of the back-off's jitter; those of the watches begin with 2.
const JITTER: u64 = u64::MAX;

/// Records reports for ever, and adds the keys of their jobs to the work queue. Asks for nothing before a kind that is
/// reported on is served. The jitter of its back-off comes from the seed.
pub(crate) async fn follow(
    client: Client,
    stores: Arc<Stores>,
    queue: Arc<Queue>,
    namespace: Option<String>,
    seed: [u8; 32],
) {
    stores.can_be_reported().await;
    let requests = Resource::new("v1", "Event", "events").requests(namespace.as_deref());
    Follower { client, stores, queue, requests, back_off: BackOff::new(seed, JITTER) }.run().await;
}

struct Follower {
    client: Client,
    stores: Arc<Stores>,
    queue: Arc<Queue>,
    requests: Request,
    back_off: BackOff,
}

impl Follower {
    async fn run(&self) {
        let (mut reached, mut failures, mut forbidden) = (None, 0, Forbidden::default());
        loop {
            let began = Instant::now();
            let step = match reached {
                None => self.list().await.map(|version| reached = Some(version)),
                Some(from) => match self.watch(from, &mut reached).await {
                    Err(WatchError::Expired) => self.newest().await.map(|version| reached = Some(version)),
                    other => other,
                },
            };
            failures = if began.elapsed() >= LASTING { 0 } else { failures + 1 };
            let wait = if failures == 0 { Duration::ZERO } else { self.back_off.after(failures) };
            let now = Instant::now();
            let has_no_right = match &step {
                Err(WatchError::Client(error)) => forbidden.is_for_good(error, now),
                _ => {
                    forbidden.ended();
                    false
                }
            };
            match step {
                Ok(()) => sleep(wait).await,
                Err(error) if has_no_right || matches!(error, WatchError::NoSuchKind(_)) => {
                    info!(error = chain(&error), "what schedulers say in events is not shown");
                    sleep(OPTIONAL_AGAIN).await;
                }
                Err(error) => {
                    debug!(failures, error = chain(&error), "the watch of events goes on");
                    sleep(wait.max(error.retry_after())).await;
                }
            }
        }
    }

    /// Records all reports that there are. Returns the version of the list.
    async fn list(&self) -> Result<u64, WatchError> {
        let (mut params, mut pages) = (ListParams::default().fields(gang::REPORTS), Pages::default());
        let mut list = Continued::default();
        loop {
            params.limit = Some(pages.limit());
            let began = Instant::now();
            let Some(text) = self.text(&params).await? else {
                if pages.is_least() {
                    return Err(WatchError::TooLarge);
                }
                pages.was_too_large();
                continue;
            };
            let took = began.elapsed();
            let page: Page<&RawValue> = serde_json::from_str(&text)?;
            pages.read(page.items.len(), text.len(), took);
            for event in &page.items {
                self.record(event.get());
            }
            let version = page.metadata.version();
            params.continue_token = list.next(page.items.len(), text.len(), page.metadata.more())?;
            if params.continue_token.is_none() {
                return Ok(version);
            }
        }
    }

    /// Returns the newest version, from a list of one event.
    async fn newest(&self) -> Result<u64, WatchError> {
        let text = self.text(&ListParams::default().limit(1)).await?;
        let text = text.ok_or(WatchError::TooLarge)?;
        let page: Page<&RawValue> = serde_json::from_str(&text)?;
        Ok(page.metadata.version())
    }

    /// Returns a page, or `None` if it has more bytes than a page may have.
    async fn text(&self, params: &ListParams) -> Result<Option<String>, WatchError> {
        let request = self.requests.list(params)?;
        let answer = timeout(DEADLINE, answer::text_within(&self.client, request, Pages::MOST_BYTES)).await;
        answer.map_err(|_| WatchError::NoAnswer(DEADLINE))?.map_err(classify)
    }

    /// Records the reports after the version `from` until the watch ends.
    async fn watch(&self, from: u64, reached: &mut Option<u64>) -> Result<(), WatchError> {
        let params = WatchParams { bookmarks: false, ..WatchParams::default().fields(gang::REPORTS).timeout(LIFE) };
        let request = self.requests.watch(&params, &from.to_string())?;
        let answer = timeout(DEADLINE, answer::lines(&self.client, request)).await;
        let lines = answer.map_err(|_| WatchError::NoAnswer(DEADLINE))?.map_err(classify)?;
        let mut lines = std::pin::pin!(lines);
        while let Some(line) = timeout(DEADLINE + Duration::from_secs(LIFE.into()), lines.next()).await.unwrap_or(None)
        {
            let line = line.map_err(WatchError::Broken)?;
            let Line { change, object } = serde_json::from_str(&line)?;
            match change {
                Change::Added | Change::Modified => {
                    *reached = self.record(object.get()).or(*reached);
                }
                // An event expires an hour after it was said.
                Change::Deleted | Change::Bookmark => {}
                Change::Error => {
                    let status: Status = serde_json::from_str(object.get())?;
                    return Err(classify(kube::Error::Api(status.boxed())));
                }
            }
        }
        Ok(())
    }

    /// Records what an event says. Returns its version; `None` if it cannot be read.
    fn record(&self, event: &str) -> Option<u64> {
        let report: Report = serde_json::from_str(event).ok()?;
        let version = version(report.version());
        if let Some(key) = self.stores.report(&report) {
            debug!(job = key.name, "its scheduler says something new");
            self.queue.add(key);
        }
        Some(version)
    }
}

fn version(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

fn classify(error: kube::Error) -> WatchError {
    match &error {
        kube::Error::Api(status) if status.code == 404 => WatchError::NoSuchKind("v1 events to it".into()),
        kube::Error::Api(status) if status.code == 410 => WatchError::Expired,
        _ => WatchError::Client(error),
    }
}
