//! Jobs behind roles that went before their end. Not all of their pods need have been shown yet.

use crate::observe::{
    table::Table,
    wire::{Held, Object, Owner},
};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// A watch of pods is awaited no longer: one without events, of an API server without bookmarks, shows nothing.
const SHOWN_WITHIN: Duration = Duration::from_secs(100);

/// So few are kept whatever their time.
const FEW: usize = 64;

/// The Jobs that departed, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Departures {
    by_name: BTreeMap<(String, String), Departure>,
    /// Once there are so many, those that are of no interest any more go.
    most: usize,
}

/// A Job that went: as of this resource version, and by the clock.
#[derive(Debug)]
pub(super) struct Departure {
    uid: String,
    /// How many pods it had then that had not ended.
    active: usize,
    version: u64,
    at: Instant,
}

impl Departures {
    /// Records that this object was gone at this version, if it is a Job whose pods may be running.
    pub(super) fn record(&mut self, object: &Object, version: u64) {
        let Held::Child(child) = &object.held else { return };
        let active = usize::try_from(child.job_active_pods()).unwrap_or(usize::MAX);
        if active == 0 || child.job_is_over() || !object.owner.as_deref().is_some_and(Owner::may_be_job) {
            return;
        }
        if self.by_name.len() >= self.most {
            self.by_name.retain(|_, departure| !departure.is_old());
            self.most = 2 * self.by_name.len().max(FEW);
        }
        let here = (object.namespace.clone(), object.name.clone());
        // Another watch of Jobs may show an earlier one of this name late.
        if self.by_name.get(&here).is_none_or(|before| before.version < version) {
            let departure = Departure { uid: object.uid.clone(), active, version, at: Instant::now() };
            self.by_name.insert(here, departure);
        }
    }

    /// Returns the names in this namespace that begin with the prefix, and what went.
    pub(super) fn named_alike(&self, namespace: &str, prefix: &str) -> impl Iterator<Item = (&str, &Departure)> {
        let from_here = self.by_name.range((namespace.to_owned(), prefix.to_owned())..);
        let alike = from_here.take_while(move |((ns, name), _)| ns == namespace && name.starts_with(prefix));
        alike.map(|((_, name), departure)| (name.as_str(), departure))
    }
}

impl Departure {
    /// Returns whether it went so long ago that no watch is awaited any more.
    pub(super) fn is_old(&self) -> bool {
        self.at.elapsed() >= SHOWN_WITHIN
    }

    /// Returns whether a watch of pods with this table has shown all pods that were there when the Job of this namespace
    /// went.
    pub(super) fn has_all_pods_in(&self, namespace: &str, table: &Table) -> bool {
        table.progress >= self.version || table.owned_by(namespace, &self.uid).count() >= self.active
    }
}
