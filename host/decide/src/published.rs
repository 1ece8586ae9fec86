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
        let is_pruned = stored.get("troupe").is_none();
        Self { at, wanted: hash_of_wanted(wanted, is_pruned), stored: hash(stored), is_pruned, overwritten }
    }

    /// Returns whether this status was sent.
    pub(crate) fn was_wanted(&self, status: &Value) -> bool {
        self.wanted == hash_of_wanted(status, self.is_pruned)
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

/// Returns the hash of a status that was sent. Where the host's conditions are pruned, their times are those of each pass.
fn hash_of_wanted(status: &Value, is_pruned: bool) -> [u8; 32] {
    if !is_pruned {
        return hash(status);
    }
    let mut timeless = status.clone();
    for condition in timeless["troupe"]["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastTransitionTime"].take();
    }
    hash(&timeless)
}

fn hash(status: &Value) -> [u8; 32] {
    let mut hash = Sha256::new();
    serde_json::to_writer(&mut hash, status).expect("its keys are text, and a hash takes every byte");
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_whose_conditions_are_pruned_is_the_same_at_another_time() {
        let wanted = |reason: &str, at: &str| {
            let waiting = json!({ "type": "Waiting", "reason": reason, "lastTransitionTime": at });
            json!({ "phase": "Pending", "troupe": { "conditions": [waiting] } })
        };
        let (first, stored) = (wanted("Pods", "1"), json!({ "phase": "Pending" }));
        let pruned = Published::new(Timestamp::UNIX_EPOCH, &first, &stored, 0);
        assert!(pruned.was_wanted(&wanted("Pods", "2")) && !pruned.was_wanted(&wanted("NameTaken", "2")));
        let kept = Published::new(Timestamp::UNIX_EPOCH, &first, &first, 0);
        assert!(kept.was_wanted(&first) && !kept.was_wanted(&wanted("Pods", "2")));
    }
}
