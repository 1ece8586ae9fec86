//! The last status of a job that this process wrote.

use jiff::Timestamp;
use serde_json::Value;

/// The last status of a job that this process wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// When the status was written.
    pub at: Timestamp,
    /// The status that was sent.
    pub wanted: Value,
    /// The status that the API server stored; an older CRD prunes fields.
    pub stored: Value,
    /// How many times in a row another writer had overwritten the status before.
    pub overwritten: u32,
}

impl Published {
    /// Returns whether the installed CRD prunes the ledger.
    #[must_use]
    pub fn is_pruned(&self) -> bool {
        self.stored.get("troupe").is_none()
    }
}
