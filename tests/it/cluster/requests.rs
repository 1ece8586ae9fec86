//! What the operator asked of the API server in a test's namespace, read from the audit log.

use super::world::World;
use harness::audit::Record;
use jiff::Timestamp;
use std::{collections::BTreeMap, time::Duration};

/// Requests of the user `troupe`, in order of their coming in.
pub(crate) struct Requests(Vec<Record>);

impl World {
    /// The operator's requests so far.
    pub(crate) fn requests(&self) -> Requests {
        let mut records = self.audit().unwrap();
        records.retain(|record| record.user == "troupe");
        records.sort_by_key(|record| record.at);
        Requests(records)
    }
}

impl Requests {
    /// Those that came in later than all of `before`.
    pub(crate) fn after(self, before: &Self) -> Self {
        let last = before.0.last().map_or(Timestamp::MIN, |record| record.at);
        self.only(|record| record.at > last)
    }

    /// Those about a job and its children: by their names, which begin with the job's.
    pub(crate) fn of(&self, job: &str) -> Self {
        let child = format!("{job}-");
        // An event is named after its job and a digest.
        let event = format!("{job}.");
        let named = |name: &str| name == job || name.starts_with(&child) || name.starts_with(&event);
        Self(self.0.iter().filter(|record| named(&record.name)).cloned().collect())
    }

    /// Those that are not watches.
    pub(crate) fn without_watches(self) -> Self {
        self.only(|record| record.verb != "watch")
    }

    /// Those of a verb on a resource.
    pub(crate) fn that(&self, verb: &str, target: &str) -> Vec<&Record> {
        self.0.iter().filter(|record| record.verb == verb && record.target() == target).collect()
    }

    /// How many there are of each `verb resource`.
    pub(crate) fn table(&self) -> BTreeMap<String, usize> {
        let mut table = BTreeMap::new();
        for record in &self.0 {
            *table.entry(format!("{} {}", record.verb, record.target())).or_default() += 1;
        }
        table
    }

    /// Those whose replies were no success; that a kind is not served which jobs do without is none.
    pub(crate) fn refused(&self) -> Vec<&Record> {
        let optional = |record: &Record| {
            let is_optional = record.resource == "podgroups" || record.group == "kueue.x-k8s.io";
            record.verb == "list" && is_optional && record.code == 404
        };
        self.0.iter().filter(|record| record.code >= 300 && !optional(record)).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    fn only(mut self, wanted: impl Fn(&Record) -> bool) -> Self {
        self.0.retain(wanted);
        self
    }
}

/// The time from one instant to a later one.
pub(crate) fn time(from: Timestamp, to: Timestamp) -> Duration {
    to.duration_since(from).try_into().unwrap_or_default()
}
