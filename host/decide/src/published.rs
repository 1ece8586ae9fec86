//! The last status of a job that this process wrote.

use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The last status of a job that this process wrote. Of the statuses themselves there are hashes: a user can make a status
/// large, and the host remembers that of every job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// When the status was written.
    pub at: Timestamp,
    /// The status that was sent.
    wanted: [u8; 32],
    /// The status that the API server stored; an older CRD prunes fields.
    stored: [u8; 32],
    is_pruned: bool,
    /// How many times in a row another writer had overwritten the status before.
    pub overwritten: u32,
}

impl Published {
    /// Returns what is known of a write: the status that was sent, and the one that the API server stored.
    #[must_use]
    pub fn new(at: Timestamp, wanted: &Value, stored: &Value, overwritten: u32) -> Self {
        Self { at, wanted: hash(wanted), stored: hash(stored), is_pruned: stored.get("troupe").is_none(), overwritten }
    }

    /// Returns whether this status was sent.
    pub(crate) fn was_wanted(&self, status: &Value) -> bool {
        self.wanted == hash(status)
    }

    /// Returns whether the API server stored this status.
    pub(crate) fn was_stored(&self, status: &Value) -> bool {
        self.stored == hash(status)
    }

    /// Returns whether the installed CRD prunes the ledger.
    #[must_use]
    pub fn is_pruned(&self) -> bool {
        self.is_pruned
    }
}

fn hash(status: &Value) -> [u8; 32] {
    let mut hash = Sha256::new();
    serde_json::to_writer(&mut hash, status).expect("its keys are text, and a hash takes every byte");
    hash.finalize().into()
}
