//! What was refused, and when it is looked at again: the same refusal in a row waits twice as long each time, and as long as
//! the API server asks for. Pure.

use super::{accept::CONFLICT, report::StageFailure};
use decide::Digest;
use std::time::Duration;
use tokio::time::Instant;

/// Between a refusal and the next look: doubled with each refusal in a row up to the most.
const LEAST_BACK_OFF: Duration = Duration::from_secs(10);
const MOST_BACK_OFF: Duration = Duration::from_secs(600);

/// A look at a Plugin that got no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// What the source had; None where it was not read.
    pub(super) digest: Option<Digest>,
    /// Of the Plugin.
    pub(super) generation: i64,
    pub(super) failure: StageFailure,
    /// How many in a row there were of it.
    times: u32,
    /// When it is looked at again, if nothing changes before.
    pub(super) again: Instant,
}

impl Refusal {
    /// The refusal of a digest under a generation of the Plugin. `before` is the last one.
    pub(super) fn new(
        digest: Option<Digest>,
        generation: i64,
        failure: StageFailure,
        before: Option<&Self>,
        now: Instant,
    ) -> Self {
        let same = |before: &&Self| {
            (&before.digest, before.generation, before.failure.reason) == (&digest, generation, failure.reason)
        };
        let times = before.filter(same).map_or(1, |before| before.times.saturating_add(1));
        let wait = LEAST_BACK_OFF.saturating_mul(1 << (times - 1).min(16)).min(MOST_BACK_OFF);
        let again = now + wait.max(failure.retry_after);
        Self { digest, generation, failure, times, again }
    }

    /// Another Plugin has what this one wants, and may let it go.
    pub(super) fn is_conflict(&self) -> bool {
        self.failure.reason == CONFLICT
    }

    /// Nothing but waiting for its time can lead to another end: the Plugin's generation has this same component again.
    pub(super) fn stands(&self, digest: &Digest, generation: i64, now: Instant) -> bool {
        self.digest.as_ref() == Some(digest) && self.generation == generation && now < self.again
    }
}

#[cfg(test)]
mod tests {
    use super::{super::report::Stage, *};
    use decide::testkit::digest;

    fn failure(reason: &'static str) -> StageFailure {
        StageFailure::new(Stage::Accepted, reason, "as it is".into())
    }

    fn refused(name: &str, generation: i64, before: Option<&Refusal>, now: Instant) -> Refusal {
        Refusal::new(Some(digest(name)), generation, failure("GrantMissing"), before, now)
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_refusal_waits_twice_as_long_each_time_up_to_ten_minutes() {
        let now = Instant::now();
        let mut refusal = refused("one", 1, None, now);
        let mut waits = vec![];
        for _ in 0..8 {
            waits.push((refusal.again - now).as_secs());
            refusal = refused("one", 1, Some(&refusal), now);
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_waits_at_least_as_long_as_the_api_server_asks_for() {
        let now = Instant::now();
        let waits = [5, 60].map(|seconds| {
            let failure = failure("NotKept").asking(Duration::from_secs(seconds));
            (Refusal::new(Some(digest("one")), 1, failure, None, now).again - now).as_secs()
        });
        assert_eq!(waits, [10, 60]);
    }

    #[tokio::test(start_paused = true)]
    async fn another_component_generation_or_reason_begins_anew() {
        let now = Instant::now();
        let one = refused("one", 1, None, now);
        let again = refused("one", 1, Some(&one), now);
        let others = [
            refused("two", 1, Some(&again), now),
            refused("one", 2, Some(&again), now),
            Refusal::new(Some(digest("one")), 1, failure("InvalidConfig"), Some(&again), now),
        ];
        for other in others {
            assert_eq!((other.again - now).as_secs(), 10, "{other:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_stands_for_its_component_and_generation_until_its_time() {
        let now = Instant::now();
        let refusal = refused("one", 1, None, now);
        assert!(refusal.stands(&digest("one"), 1, now));
        assert!(!refusal.stands(&digest("two"), 1, now) && !refusal.stands(&digest("one"), 2, now));
        assert!(!refusal.stands(&digest("one"), 1, refusal.again));
    }
}
