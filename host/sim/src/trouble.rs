//! The faults that a test aims itself: crashes, freezes, refusals.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::{ApiError, Crash, Faults, Matching, Refusal, Sim, When};

impl Sim {
    /// Returns a receiver of every crash by the fault plan, [`Sim::crash_at`] or [`Sim::crash`].
    ///
    /// The request of a crashed process never gets a response: its runner must drop its tasks and start it again.
    pub fn crashes(&self) -> UnboundedReceiver<Crash> {
        self.world().faults.listen()
    }

    /// Crashes the actor at its n-th request from now on (1 is the next).
    pub fn crash_at(&self, actor: &str, request: u64, when: When) {
        self.world().aim(actor, request, when);
    }

    /// Crashes an actor between two requests.
    pub fn crash(&self, actor: &str) {
        let crash = Crash { actor: actor.to_owned(), request: String::new(), when: When::Before };
        self.world().kill(&crash);
    }

    /// Returns the number of requests that the actor has started, so that a test can crash it at each.
    pub fn asked(&self, actor: &str) -> u64 {
        self.world().asked(actor)
    }

    /// Holds the requests and the watches of an actor until [`Sim::thaw`], as if its node were paused.
    pub fn freeze(&self, actor: &str) {
        self.world().trouble("host frozen");
        self.world().faults.frozen.insert(actor.to_owned());
    }

    /// Continues what [`Sim::freeze`] holds.
    pub fn thaw(&self, actor: &str) {
        self.world().faults.frozen.remove(actor);
    }

    pub(crate) fn is_frozen(&self, actor: &str) -> bool {
        self.world().faults.frozen.contains(actor)
    }

    pub(crate) async fn thawed(&self, actor: &str) {
        while self.is_frozen(actor) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Refuses matching requests with this error until the refusal is lifted.
    pub fn refuse(&self, matching: Matching, error: ApiError) -> Refusal {
        Refusal(self.world().refuse(matching, error, None))
    }

    /// Refuses the next `times` matching requests with this error.
    pub fn refuse_times(&self, matching: Matching, error: ApiError, times: u64) -> Refusal {
        Refusal(self.world().refuse(matching, error, Some(times.max(1))))
    }

    /// Ends a refusal.
    pub fn lift(&self, refusal: Refusal) {
        self.world().faults.lift(refusal.0);
    }

    /// Notes trouble that the test itself has made, or seen, among the faults.
    pub fn note_trouble(&self, what: &str) {
        self.world().trouble(what);
    }

    /// Returns the times of each kind of fault that has happened so far.
    pub fn troubles(&self) -> BTreeMap<String, Vec<Timestamp>> {
        self.world().troubles.clone()
    }

    /// Replaces the fault plan from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.world().faults.faults = faults;
    }

    /// Compacts all past changes: watches that resume from before are refused with 410.
    pub fn compact(&self) {
        self.world().store.compact();
    }
}
