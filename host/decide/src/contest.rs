//! Detects another writer of the same jobs, and keeps the host from fighting over the status.

use crate::{
    Snapshot,
    condition::{Condition, Reason},
    decision::{HostCondition, Wake},
    published::Published,
};
use jiff::SignedDuration;

/// A status that was overwritten this often in a row has another writer: a person with an editor does not reach this
/// number.
const ENOUGH: u32 = 3;

/// A contest is over when nobody else has written the status for this long.
const CALM: SignedDuration = SignedDuration::from_secs(300);

/// Pause before a contested status is written again: it doubles with each overwrite, up to the maximum.
const LEAST_PAUSE: SignedDuration = SignedDuration::from_secs(10);
const MOST_PAUSE: SignedDuration = SignedDuration::from_secs(240);

/// Returns how many times in a row another writer has overwritten what this process wrote.
pub(crate) fn overwritten(snapshot: &Snapshot, before: Option<&Published>) -> u32 {
    match before {
        None => 0,
        Some(before) if !before.was_stored(&snapshot.job.status) => before.overwritten.saturating_add(1),
        Some(before) if is_contested(before.overwritten) && !is_calm(snapshot, before) => before.overwritten,
        Some(_) => 0,
    }
}

/// Returns whether nobody else has written for so long that the contest is over.
fn is_calm(snapshot: &Snapshot, last: &Published) -> bool {
    snapshot.now.duration_since(last.at) >= CALM
}

pub(crate) fn is_contested(overwritten: u32) -> bool {
    overwritten >= ENOUGH
}

/// Returns whether this overwrite starts the contest.
pub(crate) fn begins(overwritten: u32) -> bool {
    overwritten == ENOUGH
}

/// Returns the pause between two writes of a contested status; `None` for a status that is not contested.
pub(crate) fn pace(overwritten: u32) -> Option<SignedDuration> {
    let more = overwritten.checked_sub(ENOUGH)?;
    Some((LEAST_PAUSE * (1 << more.min(5))).min(MOST_PAUSE))
}

/// Returns when the contest ends if the other writer does not write again.
pub(crate) fn ends(overwritten: u32, before: Option<&Published>) -> Wake {
    let last = before.filter(|_| is_contested(overwritten));
    last.and_then(|last| last.at.checked_add(CALM).ok()).map_or(Wake::OnChange, Wake::At)
}

/// Returns the condition of a contested status.
pub(crate) fn condition() -> HostCondition {
    HostCondition {
        kind: Condition::Contested,
        reason: Reason::AnotherWriter,
        message:
            "somebody else keeps overwriting this status: an original operator that still runs, or a second Troupe \
                  without --leader-elect; stop one of them"
                .into(),
    }
}
