//! What this process last wrote to the status of a job.

use jiff::Timestamp;
use serde_json::Value;

/// What this process last wrote to a job's status.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// When.
    pub at: Timestamp,
    /// The status that was sent.
    pub wanted: Value,
    /// The status that the API server made of it; an older CRD prunes fields.
    pub stored: Value,
    /// How many times in a row it was overwritten by somebody else before.
    pub overwritten: u32,
}

impl Published {
    /// The installed CRD drops the ledger.
    #[must_use]
    pub fn is_pruned(&self) -> bool {
        self.stored.get("troupe").is_none()
    }
}
