//! What time it is: the system's clock, or tokio's, which a test may pause. Neither goes back.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::time::Instant;

/// A source of time that never goes back; all clones return the same time.
///
/// The clock is read once when it is made, so that a clock that is set back before the first call of [`Clock::now`]
/// counts too. If the system's clock is set back, time continues from where it was, a tenth slower, until the two agree:
/// what waits for a time waits at most a tenth longer.
#[derive(Debug, Clone)]
pub struct Clock {
    wall: Wall,
    /// The time that was returned last, and when.
    last: Arc<Mutex<(Instant, Timestamp)>>,
}

#[derive(Debug, Clone)]
enum Wall {
    /// The system's.
    System,
    /// `base` at `start`, running with tokio's clock, and moved by so much.
    Virtual { base: Timestamp, start: Instant, moved: Arc<Mutex<SignedDuration>> },
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::read_from(Wall::System)
    }

    /// A clock that starts now, in tokio's time, at `base`.
    #[must_use]
    pub fn starting_at(base: Timestamp) -> Self {
        Self::read_from(Wall::Virtual { base, start: Instant::now(), moved: Arc::default() })
    }

    fn read_from(wall: Wall) -> Self {
        let last = (Instant::now(), wall.read());
        Self { wall, last: Arc::new(Mutex::new(last)) }
    }

    /// Sets what a virtual clock reads forward, or back, as an operator of the machine does with the system's.
    pub fn set_by(&self, step: SignedDuration) {
        if let Wall::Virtual { moved, .. } = &self.wall {
            let mut moved = moved.lock();
            *moved = moved.saturating_add(step);
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let mut last = self.last.lock();
        let instant = Instant::now();
        let (at, latest) = *last;
        let now = steady(latest, instant - at, self.wall.read());
        *last = (instant, now);
        now
    }

    /// The tokio instant at which this clock will say `at`; now, if that has passed.
    #[must_use]
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.now());
        Instant::now() + ahead.try_into().unwrap_or_default()
    }
}

impl Wall {
    fn read(&self) -> Timestamp {
        match self {
            #[expect(clippy::disallowed_methods, reason = "this is where the clock is read")]
            Self::System => Timestamp::now(),
            Self::Virtual { base, start, moved } => {
                let passed = SignedDuration::try_from(start.elapsed()).unwrap_or(SignedDuration::ZERO);
                let moved = *moved.lock();
                base.checked_add(passed.saturating_add(moved)).unwrap_or(*base)
            }
        }
    }
}

/// Returns the time, `passed` after it was `latest`, where the clock on the wall says `wall`.
fn steady(latest: Timestamp, passed: std::time::Duration, wall: Timestamp) -> Timestamp {
    let later = |by: std::time::Duration| latest.checked_add(by).unwrap_or(latest);
    if wall >= later(passed) { wall } else { wall.max(later(passed * 9 / 10)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn after(latest: i64, passed: u64, wall: i64) -> i64 {
        steady(at(latest), Duration::from_secs(passed), at(wall)).as_second()
    }

    #[test]
    fn a_clock_that_is_right_or_set_forward_is_believed() {
        assert_eq!(after(100, 10, 110), 110);
        assert_eq!(after(100, 10, 5000), 5000);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_stop_the_time() {
        assert_eq!(after(3600, 100, 100), 3690);
    }

    #[test]
    fn time_slows_down_until_the_clock_has_caught_up() {
        assert_eq!(after(3600, 100, 3695), 3695);
        assert_eq!(after(3600, 100, 3700), 3700);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_back_before_anybody_asks_for_the_time_does_not_stop_it() {
        let clock = Clock::starting_at(at(10_000));
        tokio::time::advance(Duration::from_secs(10)).await;
        clock.set_by(SignedDuration::from_secs(-1000));
        assert_eq!(clock.now(), at(10_009));
    }

    #[tokio::test(start_paused = true)]
    async fn no_clone_of_a_clock_goes_back() {
        let clock = Clock::starting_at(at(10_000));
        clock.set_by(SignedDuration::from_secs(500));
        assert_eq!(clock.now(), at(10_500));
        clock.set_by(SignedDuration::from_secs(-1000));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(clock.clone().now(), at(10_509));
        assert_eq!(clock.now(), at(10_509));
    }
}
