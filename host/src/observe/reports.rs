//! What schedulers have said of children in events, and nowhere else.

use decide::{shortened, snapshot::Child};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc};

/// A scheduler repeats what still holds: Volcano at least every five minutes. What is older than this does not count.
const LATELY: SignedDuration = SignedDuration::from_mins(15);

/// What an event says of an object.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    metadata: Metadata,
    #[serde(rename = "involvedObject")]
    pub(crate) about: About,
    #[serde(default)]
    message: String,
    #[serde(default)]
    last_timestamp: Option<Timestamp>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    resource_version: String,
    #[serde(default)]
    creation_timestamp: Option<Timestamp>,
}

/// The object that an event is about.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Report {
    /// Returns the namespace of the event, which is the only one that it can be about.
    pub(crate) fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    /// Returns the version of the event.
    pub(crate) fn version(&self) -> &str {
        &self.metadata.resource_version
    }

    fn at(&self) -> Timestamp {
        self.last_timestamp.or(self.metadata.creation_timestamp).unwrap_or_default()
    }
}

/// What was said last of each child, by its uid.
#[derive(Debug, Default)]
pub(crate) struct Reports(BTreeMap<String, Said>);

#[derive(Debug, Default)]
struct Said {
    message: String,
    at: Timestamp,
}

impl Reports {
    /// Records a report at a limited length. Returns whether it says something new.
    pub(crate) fn record(&mut self, report: &Report) -> bool {
        let said = Said { message: shortened(&report.message), at: report.at() };
        let before = self.0.entry(report.about.uid.clone()).or_default();
        if said.at < before.at {
            return false;
        }
        let is_new = said.message != before.message;
        *before = said;
        is_new
    }

    /// Returns what was said lately of these children, by uid.
    pub(crate) fn of(&self, children: &[Arc<Child>], now: Timestamp) -> BTreeMap<String, String> {
        let said = children.iter().filter_map(|child| Some((&child.uid, self.0.get(&child.uid)?)));
        let lately = said.filter(|(_, said)| now.duration_since(said.at) <= LATELY);
        lately.map(|(uid, said)| (uid.clone(), said.message.clone())).collect()
    }

    /// Forgets what was said of a child that is gone.
    pub(crate) fn forget(&mut self, uid: &str) {
        self.0.remove(uid);
    }

    /// Returns whether nothing was said of any child.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
