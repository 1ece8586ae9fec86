//! Another writer of the same jobs: how it is recognised, and that the status is not fought about.

use crate::{
    Snapshot,
    decision::{Trouble, Wake},
    published::Published,
};
use jiff::SignedDuration;

/// The type of the condition that tells of it.
pub(crate) const CONDITION: &str = "Contested";

/// Overwritten so often in a row, a status has another writer. A person with an editor does not come so far.
const ENOUGH: u32 = 3;

/// A status that nobody else wrote for so long has no other writer any more.
const CALM: SignedDuration = SignedDuration::from_secs(300);

/// The pause before a contested status is written again: doubled with each time it was overwritten, up to the most.
const LEAST_PAUSE: SignedDuration = SignedDuration::from_secs(10);
const MOST_PAUSE: SignedDuration = SignedDuration::from_secs(240);

/// How many times in a row somebody else has overwritten what this process wrote.
pub(crate) fn overwritten(snapshot: &Snapshot, before: Option<&Published>) -> u32 {
    match before {
        None => 0,
        Some(before) if before.stored != snapshot.job.status => before.overwritten.saturating_add(1),
        Some(before) if is_contested(before.overwritten) && !is_calm(snapshot, before) => before.overwritten,
        Some(_) => 0,
    }
}

/// Nobody else has written for so long that a contest is over.
fn is_calm(snapshot: &Snapshot, last: &Published) -> bool {
    snapshot.now.duration_since(last.at) >= CALM
}

pub(crate) fn is_contested(overwritten: u32) -> bool {
    overwritten >= ENOUGH
}

/// It was not contested before.
pub(crate) fn begins(overwritten: u32) -> bool {
    overwritten == ENOUGH
}

/// How long after the last write a contested status may be written again; None for one that is not contested.
pub(crate) fn pace(overwritten: u32) -> Option<SignedDuration> {
    let more = overwritten.checked_sub(ENOUGH)?;
    Some((LEAST_PAUSE * (1 << more.min(5))).min(MOST_PAUSE))
}

/// When a contested status has no other writer any more, unless that one writes until then.
pub(crate) fn ends(overwritten: u32, before: Option<&Published>) -> Wake {
    let last = before.filter(|_| is_contested(overwritten));
    last.and_then(|last| last.at.checked_add(CALM).ok()).map_or(Wake::OnChange, Wake::At)
}

pub(crate) fn trouble() -> Trouble {
    Trouble {
        condition: CONDITION.into(),
        reason: "AnotherWriter".into(),
        message:
            "somebody else keeps overwriting this status: an original operator that still runs, or a second Troupe \
                  without --leader-elect; stop one of them"
                .into(),
    }
}
