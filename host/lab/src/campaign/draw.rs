//! Seeded choices: the same seed and the same concern make the same ones, whatever else is drawn.
//! The ranges are our own, not those of the crate rand: another rule, or another version of it, would give the seeds that
//! tests name (`ONCE_FAILED`) another meaning.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};
use std::time::Duration;

/// A sequence of choices.
pub(super) struct Draw(ChaCha8Rng);

impl Draw {
    /// The choices of one concern of a seed.
    pub(super) fn new(seed: u64, concern: &str) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..].iter_mut().zip(concern.bytes()).for_each(|(byte, of)| *byte = of);
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u32) -> u32 {
        self.0.next_u32() % end
    }

    /// True once in `n` times.
    pub(super) fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// One of these.
    pub(super) fn of<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let count = u32::try_from(from.len()).expect("choices are few");
        &from[self.below(count) as usize]
    }

    /// A time between these, in milliseconds.
    pub(super) fn ms(&mut self, from: u32, to: u32) -> Duration {
        Duration::from_millis(u64::from(from + self.below(to - from)))
    }
}
