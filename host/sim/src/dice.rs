//! Seeded randomness: one independent stream per concern and number, so that a new draw in one shifts no other.
//! The ranges are our own for the reason that `draw.rs` of the campaign has: seeds keep their meaning.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::record::Hash;

/// The random stream of one concern.
#[derive(Debug, Clone)]
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64, concern: &str, number: u64) -> Self {
        let mut hash = Hash::default();
        hash.add(&seed.to_le_bytes());
        hash.field(concern);
        hash.add(&number.to_le_bytes());
        Self(ChaCha8Rng::seed_from_u64(hash.0))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// Returns true with this probability. Always draws, so that changing a probability does not shift later draws.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        let draw = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        draw < probability
    }

    /// Returns a duration in whole milliseconds, between zero and `most`.
    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_millis(self.below(u64::try_from(most.as_millis()).unwrap_or(u64::MAX).saturating_add(1)))
    }

    /// Returns five characters as the API server appends to a generated name.
    pub(crate) fn suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| ALPHABET[self.below(ALPHABET.len() as u64) as usize] as char).collect()
    }

    /// Returns a version 4 UUID.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        let (high, low) = (high & !0xf000 | 0x4000, low & !(0b11 << 62) | (0b10 << 62));
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }
}
