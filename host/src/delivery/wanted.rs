//! Digests that jobs need and that are not loaded: asked for by passes, brought by the delivery.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};
use tokio::sync::Notify;

/// Each digest once.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    digests: Mutex<BTreeSet<String>>,
    changed: Notify,
}

impl Wanted {
    /// A job needs this one.
    pub(crate) fn add(&self, digest: String) {
        if self.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(digest) {
            self.changed.notify_one();
        }
    }

    /// Those that were asked for since the last time; returns once there are any.
    pub(crate) async fn take(&self) -> BTreeSet<String> {
        loop {
            let digests = std::mem::take(&mut *self.digests.lock().unwrap_or_else(PoisonError::into_inner));
            if !digests.is_empty() {
                return digests;
            }
            self.changed.notified().await;
        }
    }
}
