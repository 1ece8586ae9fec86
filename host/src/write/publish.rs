//! Writes the job's status, then emits events. No other module writes either.

use crate::{
    api::{FIELD_MANAGER, resource::Resource},
    clock::Clock,
    error::{chain, cut},
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
    api::{ListParams, Patch, PatchParams, PostParams},
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
            Err(error) if error.says_that_there_is_no(&key.name) => return self.gone(key, snapshot).await,
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

    /// Returns the state of the status of a job that the API server says not to have: it was deleted meanwhile, and the
    /// watch will show that. The same is said of each job whose CRD has no subresource `status`, so it is looked whether
    /// the job is there. By a list, since the host has no right to get jobs.
    ///
    /// # Errors
    ///
    /// [`WriteError::NoStatus`] if it is there.
    async fn gone(&self, key: &JobKey, snapshot: &Snapshot) -> Result<StatusState, WriteError> {
        let resource = Resource::from(&*snapshot.kind);
        let of_name = ListParams::default().fields(&format!("metadata.name={}", key.name));
        let mut request = resource.requests(Some(&key.namespace)).list_metadata(&of_name)?;
        let span = spans::request(&mut request, &resource.kind, &key.name);
        let found: Value = apply::send(&self.client, request).instrument(span).await?;
        // Another job may have the name by now.
        let is_there = found["items"][0]["metadata"]["uid"] == snapshot.job.uid;
        if is_there { Err(WriteError::NoStatus) } else { Ok(StatusState::WRITTEN) }
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
            "message": cut(&event.message, LONGEST_MESSAGE),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_key::GroupKind;
    use decide::testkit;
    use kube::client::Body;
    use std::convert::Infallible;

    /// As the API server answers about a job that it does not have, and about the status of any whose CRD has no such
    /// subresource.
    const NOT_FOUND: &str =
        r#"{"code":404,"reason":"NotFound","details":{"name":"hamlet","group":"example.com","kind":"tales"}}"#;

    /// Returns what comes of a status that is answered with 404 and this text while a list has these jobs.
    async fn refused(answer: &'static str, listed: Value) -> Result<StatusState, WriteError> {
        let server = tower::service_fn(move |request: http::Request<Body>| {
            let (code, text) = match *request.method() {
                http::Method::PATCH => (404_u16, answer.to_owned()),
                _ => (200, json!({ "items": listed }).to_string()),
            };
            let response = http::Response::builder().status(code).body(Body::from(text.into_bytes()));
            async { Ok::<_, Infallible>(response.expect("its parts are valid")) }
        });
        let (client, clock) = (Client::new(server, "default"), Clock::system());
        let publisher = Publisher::new(client, Arc::default(), clock, Arc::default());
        let snapshot = testkit::snapshot(testkit::job("hamlet", "uid"));
        let key = JobKey::new(&GroupKind::new("example.com", "Tale"), "ns", "hamlet");
        publisher.write_and_emit(&key, &snapshot, &json!({}), (json!({}), 0), &[]).await
    }

    #[tokio::test]
    async fn a_status_that_is_not_found_counts_as_written_only_if_the_job_is_gone() {
        let of_uid = |uid: &str| json!([{ "metadata": { "uid": uid } }]);
        assert!(refused(NOT_FOUND, json!([])).await.is_ok());
        assert!(refused(NOT_FOUND, of_uid("another")).await.is_ok(), "another job has the name by now");
        let without_subresource = refused(NOT_FOUND, of_uid("uid")).await;
        assert!(matches!(without_subresource, Err(WriteError::NoStatus)), "{without_subresource:?}");
    }

    #[tokio::test]
    async fn a_status_of_a_kind_that_is_not_served_yet_is_written_again() {
        let not_served = refused("404 page not found\n", json!([])).await;
        assert_eq!(not_served.unwrap_err().code(), Some(404));
    }
}
