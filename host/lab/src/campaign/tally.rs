//! How often each thing really happened in a run: what was only planned does not count.

use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};

/// Counts by name; clones are the same tally.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally(Arc<Mutex<BTreeMap<String, u64>>>);

impl Tally {
    /// It happened once more.
    pub(super) fn count(&self, what: &str) {
        self.add(what, 1);
    }

    /// It happened so often more. What did not happen has no count.
    pub(super) fn add(&self, what: &str, times: u64) {
        if times == 0 {
            return;
        }
        *self.0.lock().entry(what.to_owned()).or_default() += times;
    }

    /// All counts.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.0.lock().clone()
    }
}
