//! Writes the job's status, then emits events. No other module writes either.

use crate::{
    api::{FIELD_MANAGER, resource::Resource},
    clock::Clock,
    error::chain,
    job_key::JobKey,
    observe::{
        stores::{Expected, Stores},
        wire::Written,
    },
    record::events::Events,
    traces::spans,
    write::{apply, error::WriteError, published::PublishedStatuses},
};
use decide::{
    Applied, Decision, Snapshot, Wake,
    plan::Event,
    status::{Publication, Published, creation, publication},
    time::rfc3339,
};
use jiff::SignedDuration;
use kube::{
    Client,
    api::{Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, sync::Arc};
use tracing::{Instrument, debug, warn};

/// After this many passes in a row that wrote no status, since the API server asked to wait, the next one does.
const MOST_HELD: u32 = 3;

/// The API server refuses longer messages of events; in bytes.
const LONGEST_MESSAGE: usize = 1024;

/// The state of the job's status after a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusState {
    /// Whether the watch has shown the complete status, as far as the CRD keeps it.
    pub is_complete: bool,
    /// When to look again because of the status.
    pub wake: Wake,
}

impl StatusState {
    /// The status was written, and its watch must show it.
    const WRITTEN: Self = Self { is_complete: false, wake: Wake::OnChange };
}

/// Writes status and events.
pub struct Publisher {
    client: Client,
    stores: Arc<Stores>,
    clock: Clock,
    published: Arc<PublishedStatuses>,
    events: Events,
    held: Mutex<BTreeMap<JobKey, Held>>,
}

/// The passes in a row over a job that published nothing.
#[derive(Default)]
struct Held {
    /// The job's uid.
    uid: String,
    passes: u32,
    /// What was created and no event has named yet.
    created: Vec<String>,
}

impl Publisher {
    /// Returns a publisher that remembers there what it has written.
    pub(crate) fn new(client: Client, stores: Arc<Stores>, clock: Clock, published: Arc<PublishedStatuses>) -> Self {
        Self { client, stores, clock, published, events: Events::default(), held: Mutex::default() }
    }

    /// Returns the latest events that were emitted.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Returns whether the CRD pruned what was last written to the status of the job with this uid.
    pub(crate) fn is_pruned(&self, key: &JobKey, uid: &str) -> bool {
        self.published.is_pruned(key, uid)
    }

    /// Forgets what was last written to the job's status, and what no event has named yet: the job is gone.
    pub(crate) fn forget(&self, key: &JobKey) {
        self.published.forget(key);
        self.held.lock().remove(key);
    }

    /// Returns whether a pass over the job with this uid, which the API server has asked to wait, publishes nothing: not if
    /// several before it did not, since the user has to see what the job waits for. Keeps the names of what it has created
    /// for the event of the next pass that is published. No later pass names them by itself: it finds them there.
    pub(crate) fn hold(&self, key: &JobKey, uid: &str, created: &[String]) -> bool {
        let mut all = self.held.lock();
        let held = all.entry(key.clone()).or_default();
        if held.uid != uid {
            *held = Held { uid: uid.to_owned(), ..Held::default() };
        }
        if held.passes == MOST_HELD {
            return false;
        }
        held.passes += 1;
        held.created.extend_from_slice(created);
        true
    }

    /// Returns the names that [`Publisher::hold`] has kept for the job with this uid, then those of this pass; they are
    /// kept no longer, and its passes in a row end.
    fn take_created(&self, key: &JobKey, uid: &str, applied: &Applied) -> Vec<String> {
        let held = self.held.lock().remove(key).filter(|held| held.uid == uid);
        let mut names = held.map(|held| held.created).unwrap_or_default();
        names.extend_from_slice(&applied.created);
        names
    }

    /// Writes the status if it has changed, a change of counts alone no sooner than `fold` after the last write, then
    /// emits its events and the event of the created objects, with those that [`Publisher::hold`] has kept.
    pub(crate) async fn publish(
        &self,
        key: &JobKey,
        snapshot: &Snapshot,
        decision: &Decision,
        applied: &Applied,
        fold: SignedDuration,
    ) -> Result<StatusState, WriteError> {
        let layout = self.stores.layout();
        let none = BTreeMap::new();
        let reasons =
            layout.framework(&key.kind, snapshot.digest.as_ref()).map_or(&none, |framework| &framework.event_reasons);
        let before = self.published.of(key, &snapshot.job.uid);
        let status = match publication(snapshot, decision, applied, (before.as_ref(), fold), reasons) {
            Publication::Nothing(wake) => Ok(StatusState { is_complete: true, wake }),
            Publication::Later(at) => Ok(StatusState { is_complete: false, wake: Wake::At(at) }),
            Publication::Now { patch, wanted, overwritten, events } => {
                self.write_and_emit(key, snapshot, &patch, (wanted, overwritten), &events).await
            }
        };
        let created = self.take_created(key, &snapshot.job.uid, applied);
        if matches!(&status, Err(error) if error.retry_after().is_some()) {
            self.hold(key, &snapshot.job.uid, &created);
            return status;
        }
        let created = creation(&Applied { created, ..Applied::default() }, reasons);
        self.emit_all(snapshot, created.as_slice()).await;
        status
    }

    async fn write_and_emit(
        &self,
        key: &JobKey,
        snapshot: &Snapshot,
        patch: &Value,
        (wanted, overwritten): (Value, u32),
        events: &[Event],
    ) -> Result<StatusState, WriteError> {
        let stored = match self.write(key, snapshot, patch).await {
            Ok(stored) => stored,
            // The job was deleted meanwhile; the watch will show it.
            Err(error) if error.code() == Some(404) => return Ok(StatusState::WRITTEN),
            Err(error) => {
                if error.is_of_doubt() {
                    // The write may have succeeded, so the last write is unknown.
                    self.published.forget(key);
                }
                return Err(error);
            }
        };
        if stored.get("troupe").is_none() {
            warn!(crd = snapshot.kind.crd(), "the CRD prunes status.troupe, so nothing can be cleaned up: apply crds/");
        }
        debug!("status written");
        let published = Published::new(self.clock.now(), &wanted, &stored, overwritten);
        self.published.record(key, &snapshot.job.uid, published);
        self.emit_all(snapshot, events).await;
        Ok(StatusState::WRITTEN)
    }

    async fn emit_all(&self, snapshot: &Snapshot, events: &[Event]) {
        for (number, event) in events.iter().enumerate() {
            self.events.record(&snapshot.job.uid, self.clock.now(), event);
            if let Err(error) = self.emit(snapshot, event, number).await {
                debug!(reason = event.reason, error = chain(&error), "failed to write an event");
            }
        }
    }

    async fn write(&self, key: &JobKey, snapshot: &Snapshot, patch: &Value) -> Result<Value, WriteError> {
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let resource = Resource::from(&*snapshot.kind);
        let requests = resource.requests(Some(&key.namespace));
        let mut request = requests.patch_subresource("status", &key.name, &params, &Patch::Merge(patch))?;
        let span = spans::request(&mut request, &resource.kind, &key.name);
        let job: Written = apply::send(&self.client, request).instrument(span).await?;
        let expected = Expected::Version(job.version());
        let kind = (resource.api_version(), resource.kind);
        self.stores.expect(key, snapshot.digest.as_ref(), (&kind.0, &kind.1), expected);
        Ok(job.status)
    }

    /// Creates an event in the core group, where the RBAC of the original operators allows it. The name is derived from
    /// the content, so that a repeated attempt is the same event.
    async fn emit(&self, snapshot: &Snapshot, event: &Event, number: usize) -> Result<(), WriteError> {
        let job = &snapshot.job;
        let content = format!("{}/{}/{}/{}/{number}", job.uid, job.resource_version, event.reason, event.message);
        let name = format!("{}.{:.16x}", job.name, Sha256::digest(content.as_bytes()));
        let now = rfc3339(self.clock.now());
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": name, "namespace": job.namespace },
            "involvedObject": {
                "apiVersion": snapshot.kind.api_version(),
                "kind": snapshot.kind.kind,
                "namespace": job.namespace,
                "name": job.name,
                "uid": job.uid,
                "resourceVersion": job.resource_version,
            },
            "type": if event.warning { "Warning" } else { "Normal" },
            "reason": event.reason,
            "message": cut(&event.message),
            "source": { "component": snapshot.kind.event_source },
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        });
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        let requests = Resource::new("v1", "Event", "events").requests(Some(&job.namespace));
        let mut request = requests.create(&params, serde_json::to_vec(&body).unwrap_or_default())?;
        let span = spans::request(&mut request, "Event", &name);
        match apply::send::<Written>(&self.client, request).instrument(span).await {
            Err(error) if error.code() == Some(409) => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

/// Returns at most 1024 bytes of the message; `...` ends a message that was cut.
fn cut(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let mut end = LONGEST_MESSAGE - 3;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &message[..end])
}
