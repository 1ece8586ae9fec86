//! One watch: a consistent list, then events with bookmarks, then again. Knows kinds and keys, never meanings.
//!
//! Our own small state machine, since kube-runtime's watcher hides bookmarks and list versions, and read-your-writes
//! needs both.

use crate::{
    layout::{Purpose, WatchSpec},
    queue::Queue,
    resource::Resource,
    stores::Stores,
    wire::{self, Object, PodWire},
};
use futures::StreamExt;
use kube::{
    Client,
    api::{ListParams, WatchEvent, WatchParams},
    core::Request,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tracing::{debug, info, warn};

/// Objects a list brings at a time.
const PAGE: u32 = 500;

/// The API server is asked to end a watch after this long; it sends a bookmark about once a minute.
const LIFE: u32 = 290;

/// A watch on which not even a bookmark has come for this long is opened again.
const SILENCE: Duration = Duration::from_secs(90);

/// A list that has not come after this long is asked for again.
const LIST_DEADLINE: Duration = Duration::from_secs(30);

/// After an error, while a kind is not served, and while one is not served that jobs do without.
const AGAIN: Duration = Duration::from_secs(1);
const NO_SUCH_KIND_AGAIN: Duration = Duration::from_secs(5);
const OPTIONAL_AGAIN: Duration = Duration::from_secs(600);

/// What went wrong with a list or a watch.
#[derive(Debug, thiserror::Error)]
enum WatchError {
    #[error("the API server does not serve {0}")]
    NoSuchKind(String),
    #[error("the version to go on from has expired")]
    Expired,
    #[error("no answer after {} s", .0.as_secs())]
    Silent(Duration),
    #[error("{}", said(.0))]
    Client(kube::Error),
    #[error("cannot form the request")]
    Request(#[from] kube::core::request::Error),
}

/// Feeds one table of the stores for ever, and puts the keys of concerned jobs into the queue.
pub async fn watch(client: Client, stores: Arc<Stores>, queue: Arc<Queue>, place: usize, namespace: Option<String>) {
    let Some(spec) = stores.layout().watches().get(place).cloned() else { return };
    let watch = Watch { client, stores, queue, place, namespace, spec };
    match watch.spec.purpose {
        Purpose::Pods => watch.run::<PodWire>().await,
        Purpose::Jobs(_) | Purpose::Children(_) => watch.run::<Value>().await,
    }
}

struct Watch {
    client: Client,
    stores: Arc<Stores>,
    queue: Arc<Queue>,
    place: usize,
    namespace: Option<String>,
    spec: WatchSpec,
}

/// One object as it is decoded from the wire; None is told in the log and passed over.
trait Wire: DeserializeOwned + Clone {
    fn object(self, spec: &WatchSpec) -> Option<Object>;
}

impl Wire for PodWire {
    fn object(self, _: &WatchSpec) -> Option<Object> {
        Some(self.into())
    }
}

impl Wire for Value {
    fn object(self, spec: &WatchSpec) -> Option<Object> {
        let Resource { kind, .. } = &spec.resource;
        let decoded = match &spec.purpose {
            Purpose::Jobs(_) => wire::job(self),
            Purpose::Children(keep) => wire::child(self, &spec.resource.api_version(), kind, keep),
            Purpose::Pods => return None,
        };
        decoded.map_err(|error| warn!(kind, %error, "an object cannot be read and is passed over")).ok()
    }
}

#[derive(Deserialize)]
struct Page<T> {
    metadata: PageMetadata,
    /// The API server writes null for an empty list of metadata.
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    resource_version: String,
    #[serde(default, rename = "continue")]
    more: Option<String>,
}

impl Watch {
    async fn run<T: Wire>(&self) {
        let kind = &self.spec.resource.plural;
        let mut told_missing = false;
        loop {
            let wait = match self.list_and_follow::<T>().await {
                Ok(()) | Err(WatchError::Expired) => Duration::ZERO,
                Err(error @ WatchError::NoSuchKind(_)) => {
                    self.wake(self.stores.no_such_kind(self.place));
                    if !told_missing && self.spec.optional {
                        info!(%error, "jobs are served without it");
                    } else if !told_missing {
                        let name = format!("{kind}.{}", self.spec.resource.group);
                        warn!(%error, crd = name, "waiting for the CRD: apply crds/ or start with --install-crds");
                    }
                    told_missing = true;
                    if self.spec.optional { OPTIONAL_AGAIN } else { NO_SUCH_KIND_AGAIN }
                }
                Err(error) => {
                    warn!(kind, error = chain(&error), "watch broke and is started again");
                    AGAIN
                }
            };
            // A write of ours may tell first that the kind is served by now.
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.stores.is_served(self.place) => {}
            }
        }
    }

    async fn list_and_follow<T: Wire>(&self) -> Result<(), WatchError> {
        let mut version = self.list::<T>().await?;
        loop {
            version = self.follow::<T>(version).await?;
        }
    }

    /// A consistent list: without a resource version, so that it is at least as new as any write before it.
    async fn list<T: Wire>(&self) -> Result<u64, WatchError> {
        let mut objects = Vec::new();
        let mut params =
            ListParams { limit: Some(PAGE), label_selector: self.spec.selector.clone(), ..ListParams::default() };
        loop {
            let request = if self.metadata_only() {
                self.requests().list_metadata(&params)?
            } else {
                self.requests().list(&params)?
            };
            let page: Page<T> = tokio::time::timeout(LIST_DEADLINE, self.client.request(request))
                .await
                .map_err(|_| WatchError::Silent(LIST_DEADLINE))?
                .map_err(|error| self.classify(error))?;
            objects.extend(page.items.into_iter().flatten().filter_map(|item| item.object(&self.spec)));
            match page.metadata.more.filter(|more| !more.is_empty()) {
                Some(more) => params.continue_token = Some(more),
                None => {
                    let version = page.metadata.resource_version.parse().unwrap_or(0);
                    info!(kind = self.spec.resource.plural, objects = objects.len(), version, "listed");
                    self.wake(self.stores.replace(self.place, objects, version));
                    return Ok(version);
                }
            }
        }
    }

    /// Follows events until the API server ends the watch; returns the version to go on from.
    async fn follow<T: Wire>(&self, from: u64) -> Result<u64, WatchError> {
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
        let opened = tokio::time::timeout(LIST_DEADLINE, self.client.request_events::<T>(request)).await;
        let events = opened.map_err(|_| WatchError::Silent(LIST_DEADLINE))?.map_err(|error| self.classify(error))?;
        let mut events = std::pin::pin!(events);
        let mut version = from;
        loop {
            let event = match tokio::time::timeout(SILENCE, events.next()).await {
                Err(_) => return Err(WatchError::Silent(SILENCE)),
                Ok(None) => return Ok(version),
                Ok(Some(event)) => event.map_err(|error| self.classify(error))?,
            };
            let concerned = match event {
                WatchEvent::Added(item) | WatchEvent::Modified(item) => {
                    let Some(object) = item.object(&self.spec) else { continue };
                    version = version.max(object.resource_version);
                    self.stores.upsert(self.place, object)
                }
                WatchEvent::Deleted(item) => {
                    let Some(object) = item.object(&self.spec) else { continue };
                    version = version.max(object.resource_version);
                    self.stores.remove(self.place, &object)
                }
                WatchEvent::Bookmark(bookmark) => {
                    version = version.max(bookmark.metadata.resource_version.parse().unwrap_or(0));
                    self.stores.bookmark(self.place, version)
                }
                WatchEvent::Error(status) => return Err(self.classify(kube::Error::Api(status))),
            };
            self.wake(concerned);
        }
    }

    fn requests(&self) -> Request {
        self.spec.resource.requests(self.namespace.as_deref())
    }

    /// Existence is enough where nothing is kept.
    fn metadata_only(&self) -> bool {
        self.spec.purpose == Purpose::Children(vec![])
    }

    fn wake(&self, concerned: BTreeSet<crate::stores::JobKey>) {
        for key in concerned {
            debug!(kind = self.spec.resource.plural, job = key.name, "something changed");
            self.queue.add(key);
        }
    }

    fn classify(&self, error: kube::Error) -> WatchError {
        match &error {
            kube::Error::Api(status) if status.code == 404 || (status.code == 403 && self.spec.optional) => {
                WatchError::NoSuchKind(format!("{} {}", self.spec.resource.api_version(), self.spec.resource.plural))
            }
            kube::Error::Api(status) if status.code == 410 => WatchError::Expired,
            _ => WatchError::Client(error),
        }
    }
}

/// An error with its causes, each said once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

/// What the client has to say, in one line: kube adds the whole status of a refusal to its message.
pub(crate) fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{}: {}", status.reason, status.message),
        error => chain(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_of_metadata_is_a_page_without_items() {
        for text in [r#"{"metadata":{"resourceVersion":"7"},"items":null}"#, r#"{"metadata":{"resourceVersion":"7"}}"#]
        {
            let page: Page<Value> = serde_json::from_str(text).unwrap();
            assert_eq!(page.items.into_iter().flatten().count(), 0);
        }
    }
}
