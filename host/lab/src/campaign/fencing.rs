//! Of two hosts one may write: the one that holds the lease when it sends the request.

use super::hosts::is_host;
use jiff::Timestamp;
use parking_lot::Mutex;
use sim::Sim;
use std::sync::Arc;

/// Who held the lease, each since when.
pub(super) struct Holders(Arc<Mutex<Vec<(Timestamp, String)>>>);

impl Holders {
    /// The holders from now on.
    pub(super) fn of(sim: &Sim) -> Self {
        let holders: Arc<Mutex<Vec<_>>> = Arc::default();
        let note = holders.clone();
        sim.on_write(move |write, _| {
            if let Some(lease) = write.after.as_ref().filter(|_| write.kind == "Lease") {
                let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
                note.lock().push((write.at, holder.to_owned()));
            }
        });
        Self(holders)
    }

    /// S9: a host sends no write before it has the lease, nor after another has taken it. One that was on its way may
    /// still arrive.
    pub(super) fn not_fenced(&self, sim: &Sim) -> Vec<String> {
        let holders = self.0.lock();
        // Within one instant of virtual time the order is not known.
        let holds = |actor: &str, at: Timestamp| {
            let until = |is_before: fn(&Timestamp, &Timestamp) -> bool| {
                holders.iter().rev().find(|(since, _)| is_before(since, &at)).is_some_and(|(_, holder)| holder == actor)
            };
            until(Timestamp::lt) || until(Timestamp::le)
        };
        let requests = sim.requests();
        let writes =
            requests.iter().filter(|made| made.is_write() && made.resource != "leases" && is_host(&made.actor));
        let wrong = writes.filter(|made| !holds(&made.actor, made.sent));
        wrong
            .map(|made| format!("{} S9: {} {} of {} without the lease", made.sent, made.what(), made.name, made.actor))
            .collect()
    }
}
