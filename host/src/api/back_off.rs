//! Back-off after failures in a row.

use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use parking_lot::Mutex;
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{RngCore, SeedableRng},
};
use std::time::Duration;

/// The wait doubles with each failure in a row, from the first value to the second.
const LEAST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(15);

/// A back-off whose jitter comes from a seed.
#[derive(Debug)]
pub(crate) struct BackOff(Mutex<ChaCha20Rng>);

impl BackOff {
    /// Returns the back-off with this number of a seed: each number has its own jitter.
    pub(crate) fn new(seed: [u8; 32], number: u64) -> Self {
        let mut random = ChaCha20Rng::from_seed(seed);
        random.set_stream(number);
        Self(Mutex::new(random))
    }

    /// Returns the wait after this many failures in a row: 0.1 s doubled with each further failure, at most 15 s, times
    /// a random factor from one half to one.
    pub(crate) fn after(&self, failures: u32) -> Duration {
        let doubled = LEAST * 2_u32.saturating_pow(failures.saturating_sub(1).min(10));
        let jitter = self.0.lock().next_u32() % 256;
        doubled.min(MOST) * (256 + jitter) / 512
    }
}

/// The time without a failure after which [`Waits`] begin anew. It is kube-runtime's own.
const RESET: Duration = Duration::from_secs(120);

/// The waits of a [`BackOff`] for a watch of kube-runtime, whose own have a jitter that no seed decides.
#[derive(Debug)]
pub(crate) struct Waits {
    back_off: BackOff,
    failures: u32,
}

impl Waits {
    /// Returns the waits from the first one on.
    pub(crate) fn of(back_off: BackOff) -> ResetTimerBackoff<Self> {
        ResetTimerBackoff::new(Self { back_off, failures: 0 }, RESET)
    }
}

impl Iterator for Waits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        Some(self.back_off.after(self.failures))
    }
}

impl Backoff for Waits {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_of_a_watch_follow_from_the_seed_and_begin_anew_after_a_success() {
        let waits = || Waits::of(BackOff::new([7; 32], 3));
        let (mut once, mut again) = (waits(), waits());
        let five: Vec<_> = once.by_ref().take(5).collect();
        assert_eq!(five, again.by_ref().take(5).collect::<Vec<_>>());
        assert!(five[4] >= Duration::from_millis(800), "{five:?}");
        once.reset();
        assert!(once.next().is_some_and(|wait| wait <= Duration::from_millis(100)));
    }

    #[test]
    fn the_wait_doubles_up_to_the_most_and_is_never_less_than_half_of_it() {
        let waits = BackOff::new([7; 32], 0);
        let millis = |failures| waits.after(failures).as_millis();
        assert!((50..=100).contains(&millis(1)));
        assert!((400..=800).contains(&millis(4)));
        assert!((7500..=15_000).contains(&millis(50)));
    }
}
