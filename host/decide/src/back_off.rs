//! How often pods of a role have failed, and how long the host waits before it creates the next one.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Back-off before the first replacement, as of Kubernetes' Job controller; doubled with each failure in a row.
pub(crate) const LEAST_BACK_OFF: SignedDuration = SignedDuration::from_secs(10);

/// Maximum back-off. A role without a failure for this long after a back-off begins anew.
pub(crate) const MOST_BACK_OFF: SignedDuration = SignedDuration::from_mins(10);

/// The failed pods of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Failures {
    /// How many were counted in the life of the job.
    pub count: u32,
    /// How many times in a row, for the back-off. Failures during a back-off count as one.
    pub in_a_row: u32,
    /// When the last one was counted.
    pub last: Timestamp,
    /// Uids of the counted pods, by index, until another pod has taken the place.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pods: BTreeMap<u32, String>,
}

impl Failures {
    /// Returns when the back-off ends, unless it is over. It is over, too, if the last failure is later than now: the
    /// clock was set back.
    #[must_use]
    pub(crate) fn ends_at(&self, now: Timestamp) -> Option<Timestamp> {
        let end = self.end();
        (self.in_a_row > 0 && self.last <= now && now < end).then_some(end)
    }

    /// Counts these pods, by index and uid, at this time.
    pub(crate) fn add(&mut self, now: Timestamp, pods: &[(u32, &str)]) {
        if self.ends_at(now).is_none() {
            let is_recent = now.duration_since(self.end()) < MOST_BACK_OFF;
            self.in_a_row = if is_recent { self.in_a_row.saturating_add(1) } else { 1 };
        }
        self.last = now;
        self.count = self.count.saturating_add(u32::try_from(pods.len()).unwrap_or(u32::MAX));
        self.pods.extend(pods.iter().map(|(index, uid)| (*index, (*uid).to_owned())));
    }

    fn end(&self) -> Timestamp {
        let doubled = LEAST_BACK_OFF * (1 << self.in_a_row.saturating_sub(1).min(6));
        self.last.checked_add(doubled.min(MOST_BACK_OFF)).unwrap_or(Timestamp::MAX)
    }
}
