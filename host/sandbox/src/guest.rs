//! The data of one instance's store: its limits, its time and its log.

use super::{
    limits::{Ceiling, Limits},
    log::Log,
};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};
use sha2::{Digest, Sha256};
use wasmtime::{Engine, Store, StoreContextMut, Trap};

/// Handles that an instance may have at once.
const HANDLES: usize = 1024;

/// The data of a store. Nothing in it outlives the instance.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) ceiling: Ceiling,
    pub(super) log: Log,
    /// The time that the guest's clocks return, in Unix milliseconds.
    pub(super) now: u64,
    random: Random,
}

/// The source of a guest's random numbers. Most guests draw none.
#[derive(Debug)]
enum Random {
    Seed(String),
    Drawing(Box<ChaCha8Rng>),
}

impl Guest {
    /// Returns the data of an instance whose clocks return `now` and whose random bytes follow from `seed`.
    pub(super) fn new(limits: &Limits, log: Log, now: u64, seed: &str) -> Self {
        Self { ceiling: Ceiling::new(limits), log, now, random: Random::Seed(seed.to_owned()) }
    }

    /// A store with this in it that keeps the limits. It has no fuel yet.
    pub(super) fn into_store(self, engine: &Engine, limits: &Limits) -> Store<Self> {
        let mut store = Store::new(engine, self);
        store.limiter(|guest| &mut guest.ceiling);
        store.set_hostcall_fuel(limits.answer);
        store.set_max_component_handles(HANDLES);
        store
    }

    /// The next random number: the same for the same seed, so that even a `HashMap`'s order is.
    pub(super) fn draw(&mut self) -> u64 {
        if let Random::Seed(seed) = &self.random {
            let seed: [u8; 32] = Sha256::digest(seed.as_bytes()).into();
            self.random = Random::Drawing(Box::new(ChaCha8Rng::from_seed(seed)));
        }
        match &mut self.random {
            Random::Drawing(numbers) => numbers.next_u64(),
            Random::Seed(_) => 0,
        }
    }
}

/// Charges fuel for work that the host does on the guest's behalf.
///
/// # Errors
/// Returns [`Trap::OutOfFuel`] if less fuel is left.
pub(super) fn charge(store: &mut StoreContextMut<'_, Guest>, fuel: u64) -> wasmtime::Result<()> {
    let left = store.get_fuel()?.checked_sub(fuel).ok_or(Trap::OutOfFuel)?;
    store.set_fuel(left)
}
