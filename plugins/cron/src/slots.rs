//! Which slots have passed without a run, and when the next one is.

use crate::schedule::Schedule;

/// How many slots may pass without a run before it counts as a mistake, as in the original.
pub(crate) const MOST_MISSED: usize = 100;

/// The slots of a schedule around an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) missed: Missed,
    /// The first slot after the instant, if it is known and there is one.
    pub(crate) next: Option<i64>,
}

/// The slots that have passed without a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missed {
    None,
    /// The newest of them.
    Newest(i64),
    /// More than [`MOST_MISSED`].
    TooMany,
}

impl Slots {
    /// Returns the slots after both `last`, the slot of the last run, and `not_before`.
    pub(crate) fn around(now: i64, schedule: &Schedule, last: i64, not_before: i64) -> Self {
        let mut missed = Missed::None;
        let mut at = schedule.begin(last, not_before);
        for _ in 0..=MOST_MISSED {
            match schedule.next(at) {
                Some(slot) if slot <= now => {
                    missed = Missed::Newest(slot);
                    at = slot;
                }
                next => return Self { missed, next },
            }
        }
        Self { missed: Missed::TooMany, next: None }
    }
}
