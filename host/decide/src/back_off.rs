//! How often pods of a role have failed, and how long the host waits before it creates the next one.

use crate::ranges::Ranges;
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
    /// The failures in a row.
    pub row: Row,
    /// Uids of the failed pods that are replaced, by index, until another pod has taken the place.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pods: BTreeMap<u32, String>,
    /// Uids of pods that are not counted, or not again, whatever becomes of them; by index, until they are gone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settled: BTreeMap<u32, String>,
    /// Replicas whose pods are counted since the job is ending: an index names one pod then, as none is created any more.
    #[serde(skip_serializing_if = "Ranges::is_empty")]
    pub ended: Ranges,
    /// The failures of replicas that have a back-off of their own and are not done, by index.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub replicas: BTreeMap<u32, OfReplica>,
}

/// The failed pods of one replica. A list in the ledger, of count, failures in a row, and Unix seconds of the last one: there
/// may be thousands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, i64)", into = "(u32, u32, i64)")]
pub struct OfReplica {
    /// How many were counted.
    pub count: u32,
    /// The failures in a row.
    pub row: Row,
}

impl From<(u32, u32, i64)> for OfReplica {
    fn from((count, in_a_row, last): (u32, u32, i64)) -> Self {
        Self { count, row: Row { in_a_row, last: Timestamp::from_second(last).unwrap_or_default() } }
    }
}

impl From<OfReplica> for (u32, u32, i64) {
    fn from(OfReplica { count, row }: OfReplica) -> Self {
        (count, row.in_a_row, row.last.as_second())
    }
}

/// The attempt that a role is at which was started again as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Attempt {
    /// How often it was started again.
    pub count: u32,
    /// Its pods are created at this time at the earliest.
    pub not_before: Timestamp,
}

/// Failures in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Row {
    /// How many, for the back-off. Failures during a back-off count as one.
    pub in_a_row: u32,
    /// When the last one ended.
    pub last: Timestamp,
}

impl Row {
    /// Returns when the back-off ends, unless it is over. It is over, too, if the last failure is later than now: the
    /// clock was set back.
    #[must_use]
    pub(crate) fn ends_at(&self, now: Timestamp) -> Option<Timestamp> {
        let end = self.end();
        (self.in_a_row > 0 && self.last <= now && now < end).then_some(end)
    }

    /// Adds a failure of this time, which is not later than now.
    pub(crate) fn add(&mut self, at: Timestamp, now: Timestamp) {
        // Pods are not seen in the order in which they ended.
        let is_within = self.in_a_row > 0 && self.last <= now && at < self.end();
        if !is_within {
            let is_recent = at.duration_since(self.end()) < MOST_BACK_OFF;
            self.in_a_row = if is_recent { self.in_a_row.saturating_add(1) } else { 1 };
        }
        if self.last < at || self.last > now {
            self.last = at;
        }
    }

    fn end(&self) -> Timestamp {
        let doubled = LEAST_BACK_OFF * (1 << self.in_a_row.saturating_sub(1).min(6));
        self.last.checked_add(doubled.min(MOST_BACK_OFF)).unwrap_or(Timestamp::MAX)
    }
}

impl Failures {
    /// Returns whether the pod of this uid is counted, and replaced.
    #[must_use]
    pub(crate) fn replaces(&self, index: u32, uid: &str) -> bool {
        self.pods.get(&index).is_some_and(|known| known == uid)
    }

    /// Returns whether the pod of this uid is not counted, or not again.
    #[must_use]
    pub(crate) fn has_settled(&self, index: u32, uid: &str) -> bool {
        self.settled.get(&index).is_some_and(|known| known == uid)
    }

    /// Returns when the back-off of a replica ends, by the role's failures or by its own.
    #[must_use]
    pub(crate) fn ends_at(&self, index: u32, own: bool, now: Timestamp) -> Option<Timestamp> {
        let row = if own { self.replicas.get(&index).map(|replica| replica.row) } else { Some(self.row) };
        row?.ends_at(now)
    }
}
