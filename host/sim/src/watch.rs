//! Watches: replay, selection, bookmarks, timeouts, and the faults that delay, repeat or end them.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

use crate::Sim;
use crate::error::ApiError;
use crate::fate::{EventFate, WatchFate};
use crate::selector::Selector;
use crate::serve::shown;
use crate::store::{Change, Event, Kind};
use crate::world::World;

/// The interval of bookmarks.
const BOOKMARK: Duration = Duration::from_secs(60);

/// How long before its end a watch gets its last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

type Line = Result<Bytes, Error>;

/// The request of one watch.
#[derive(Debug)]
pub(crate) struct WatchPlan {
    kind: Arc<Kind>,
    namespace: String,
    selector: Selector,
    metadata_only: bool,
    bookmarks: bool,
    initial_events: bool,
    timeout: Duration,
    /// The resource version to resume from; `None` begins with the current objects.
    from: Option<u64>,
}

impl WatchPlan {
    pub(crate) fn new(
        kind: &Arc<Kind>,
        namespace: &str,
        query: &BTreeMap<String, String>,
        metadata_only: bool,
    ) -> Result<Self, ApiError> {
        let param = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
        let selector = Selector::parse(kind, param("labelSelector"), param("fieldSelector"))?;
        let initial_events = param("sendInitialEvents") == "true";
        let from = match param("resourceVersion") {
            "" | "0" => None,
            _ if initial_events => None,
            version => Some(version.parse().map_err(|_| {
                let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
                ApiError::new(500, "", format!("resourceVersion: Invalid value: {version:?}: {why}"))
            })?),
        };
        Ok(Self {
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            selector,
            metadata_only,
            bookmarks: param("allowWatchBookmarks") == "true",
            initial_events,
            // The real server draws between 30 and 60 minutes by default.
            timeout: Duration::from_secs(param("timeoutSeconds").parse().unwrap_or(2700)),
            from,
        })
    }

    fn passes(&self, object: &Value) -> bool {
        (self.namespace.is_empty() || crate::store::namespace(object) == self.namespace)
            && self.selector.matches(object)
    }

    /// Returns the line for a change, if any: a change of labels may turn into an addition or a deletion.
    fn line(&self, event: &Event) -> Option<Bytes> {
        let now = event.change != Change::Deleted && self.passes(&event.object);
        let before = event.before.as_ref().is_some_and(|before| self.passes(before));
        match (before, now) {
            (false, true) => Some(self.encode("ADDED", &event.object)),
            (true, true) => Some(self.encode("MODIFIED", &event.object)),
            (true, false) => {
                let mut object = event.before.as_deref().cloned().unwrap_or_default();
                object["metadata"]["resourceVersion"] = json!(event.version.to_string());
                Some(self.encode("DELETED", &object))
            }
            (false, false) => None,
        }
    }

    fn encode(&self, change: &str, object: &Value) -> Bytes {
        line(change, &shown(object, self.metadata_only))
    }

    fn bookmark(&self, version: u64, initial_end: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if initial_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let object = json!({ "kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata });
        line("BOOKMARK", &shown(&object, self.metadata_only))
    }
}

/// Formats an event: `type` comes before `object`, as in the real server.
fn line(change: &str, object: &Value) -> Bytes {
    format!("{{\"type\":\"{change}\",\"object\":{object}}}\n").into()
}

fn gone(version: u64, oldest: u64) -> Bytes {
    line("ERROR", &ApiError::expired(format!("too old resource version: {version} ({oldest})")).body())
}

/// Opens a watch: subscribes at once, and spawns a task that feeds the body.
pub(crate) fn open(sim: &Sim, world: &mut World, actor: &str, plan: WatchPlan) -> UnboundedReceiver<Line> {
    let (lines, body) = unbounded_channel();
    let fate = world.watch_fate(actor);
    let table = plan.kind.table();
    let version = world.store.version;
    let mut backlog = Vec::new();
    match plan.from {
        Some(from) if fate.gone => {
            world.trouble("watch refused with 410");
            let _ = lines.send(Ok(gone(from, version)));
            return body;
        }
        Some(from) => match world.store.since(&table, from) {
            Some(events) => backlog = events,
            None => {
                world.trouble("watch refused with 410");
                let _ = lines.send(Ok(gone(from, world.store.compacted)));
                return body;
            }
        },
        None => {
            let there = world.store.list(&table, &plan.namespace).filter(|object| plan.passes(object));
            for object in there.cloned().collect::<Vec<_>>() {
                let _ = lines.send(Ok(plan.encode("ADDED", &object)));
                world.delivered(actor, &plan.kind.kind, &object);
            }
            if plan.initial_events {
                let _ = lines.send(Ok(plan.bookmark(version, true)));
            }
        }
    }
    let events = world.subscribe(&table);
    let sent = plan.from.unwrap_or(version);
    let watch = Watch { sim: sim.clone(), actor: actor.to_owned(), plan, fate, lines, sent, queue: VecDeque::new() };
    tokio::spawn(watch.run(backlog, events));
    body
}

/// A running watch.
struct Watch {
    sim: Sim,
    actor: String,
    plan: WatchPlan,
    fate: WatchFate,
    lines: UnboundedSender<Line>,
    /// The resource version of the last event sent.
    sent: u64,
    /// Queued events, each with its arrival time.
    queue: VecDeque<Queued>,
}

struct Queued {
    due: Instant,
    event: Arc<Event>,
    fate: EventFate,
}

/// Whether a watch continues.
enum Then {
    Goes,
    Ends,
}

impl Watch {
    async fn run(mut self, backlog: Vec<Arc<Event>>, mut events: UnboundedReceiver<Arc<Event>>) {
        let start = Instant::now();
        let end = start + self.plan.timeout;
        let mut bookmark = start + BOOKMARK;
        // The last bookmark comes shortly before the end, so that the next watch begins close to now.
        let last = start + self.plan.timeout.saturating_sub(LAST_BOOKMARK);
        let mut said_last = false;
        let silent = self.fate.silent_after.map(|after| start + after);
        for event in backlog {
            self.accept(event);
        }
        loop {
            if let Then::Ends = self.deliver().await {
                return;
            }
            let due = self.queue.front().map(|queued| queued.due);
            tokio::select! {
                biased;
                () = self.lines.closed() => return,
                () = sleep_until(silent.unwrap_or(end)), if silent.is_some() => {
                    self.sim.world().trouble("watch silent");
                    return self.lines.closed().await;
                }
                event = events.recv() => match event {
                    Some(event) => self.accept(event),
                    None => return,
                },
                () = sleep_until(due.unwrap_or(end)), if due.is_some() => {}
                () = sleep_until(bookmark), if self.plan.bookmarks && self.fate.bookmarks => {
                    bookmark += BOOKMARK;
                    self.bookmark(&events);
                }
                () = sleep_until(last), if self.plan.bookmarks && self.fate.bookmarks && last > start && !said_last => {
                    said_last = true;
                    self.bookmark(&events);
                }
                () = sleep_until(end) => return,
            }
        }
    }

    /// Queues an event; no event overtakes another of the same watch.
    fn accept(&mut self, event: Arc<Event>) {
        let fate = self.sim.world().event_fate(&self.actor, &mut self.fate);
        let due = Instant::now() + fate.delay;
        let due = self.queue.back().map_or(due, |queued| due.max(queued.due));
        self.queue.push_back(Queued { due, event, fate });
    }

    /// Sends the events that are due.
    async fn deliver(&mut self) -> Then {
        while self.queue.front().is_some_and(|queued| queued.due <= Instant::now()) {
            self.sim.thawed(&self.actor).await;
            let Some(Queued { event, fate, .. }) = self.queue.pop_front() else {
                break;
            };
            if let Some(line) = self.plan.line(&event) {
                if let Some(trouble) = fate.trouble() {
                    self.sim.world().trouble(trouble);
                }
                if fate.gone {
                    let _ = self.lines.send(Ok(gone(self.sent, event.version)));
                    return Then::Ends;
                }
                if fate.drop {
                    if event.version % 2 == 0 {
                        let _ =
                            self.lines.send(Err(Error::new(ErrorKind::ConnectionReset, "connection reset by peer")));
                    }
                    return Then::Ends;
                }
                if fate.twice {
                    let _ = self.lines.send(Ok(line.clone()));
                }
                if self.lines.send(Ok(line)).is_err() {
                    return Then::Ends;
                }
                self.sim.world().delivered(&self.actor, &self.plan.kind.kind, &event.object);
            }
            self.sent = event.version;
        }
        Then::Goes
    }

    fn bookmark(&mut self, events: &UnboundedReceiver<Arc<Event>>) {
        if self.sim.is_frozen(&self.actor) {
            return;
        }
        if self.queue.is_empty() && events.is_empty() {
            self.sent = self.sent.max(self.sim.world().store.version);
        }
        let _ = self.lines.send(Ok(self.plan.bookmark(self.sent, false)));
    }
}
