//! Jobs behind roles that went before their end. Not all of their pods need have been shown yet.

use crate::observe::{
    table::{Controller, Table},
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

    /// Returns the Jobs of this namespace that went and whose names begin with the prefix.
    pub(super) fn named_alike(
        &self,
        namespace: &str,
        prefix: &str,
    ) -> impl Iterator<Item = (Controller<'_>, &Departure)> {
        let from_here = self.by_name.range((namespace.to_owned(), prefix.to_owned())..);
        let alike = from_here.take_while(move |((ns, name), _)| ns == namespace && name.starts_with(prefix));
        alike.map(|((namespace, name), departure)| (Controller { namespace, name, uid: &departure.uid }, departure))
    }
}

impl Departure {
    /// Returns whether it went so long ago that no watch is awaited any more.
    pub(super) fn is_old(&self) -> bool {
        self.at.elapsed() >= SHOWN_WITHIN
    }

    /// Returns whether a watch of pods with this table has shown all pods that were there when this Job went.
    pub(super) fn has_all_pods_in(&self, job: Controller<'_>, table: &Table) -> bool {
        table.progress >= self.version || table.owned_by(job).count() >= self.active
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        api::resource::Resource,
        observe::{
            layout::{Purpose, WatchSpec},
            wire,
        },
    };

    fn job(name: &str, uid: &str) -> Object {
        let owner = serde_json::json!({
            "apiVersion": "example.com/v1", "kind": "Tale", "name": "hamlet", "uid": "u", "controller": true,
        });
        let text = serde_json::json!({
            "apiVersion": "batch/v1", "kind": "Job", "status": { "active": 1 },
            "metadata": {
                "namespace": "ns", "name": name, "uid": uid, "resourceVersion": "1", "ownerReferences": [owner],
            },
        });
        let resource = Resource::new("batch/v1", "Job", "jobs");
        let purpose = Purpose::Children(["/status"].into_iter().collect());
        wire::object(&text.to_string(), &WatchSpec { resource, selector: None, purpose, optional: false }).unwrap()
    }

    #[test]
    fn an_earlier_job_of_the_name_that_another_watch_shows_late_is_none_to_wait_for() {
        let mut departures = Departures::default();
        departures.record(&job("hamlet-stage", "second"), 9);
        departures.record(&job("hamlet-stage", "first"), 5);
        let waits = |progress| {
            let mut pods = Table::default();
            pods.progress = progress;
            departures.named_alike("ns", "hamlet").any(|(job, it)| !it.has_all_pods_in(job, &pods))
        };
        assert_eq!((waits(8), waits(9)), (true, false));
        assert_eq!(
            departures.named_alike("other", "hamlet").count() + departures.named_alike("ns", "macbeth").count(),
            0
        );
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_went_long_ago_are_dropped() {
        let mut departures = Departures::default();
        for number in 0..2 * FEW {
            departures.record(&job(&format!("hamlet-{number}"), "u"), 1);
        }
        assert_eq!(departures.by_name.len(), 2 * FEW);
        tokio::time::advance(SHOWN_WITHIN).await;
        departures.record(&job("hamlet-last", "u"), 1);
        assert_eq!(departures.by_name.len(), 1);
    }
}
