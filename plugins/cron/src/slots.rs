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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::at;
    use crate::schedule::Zone;

    fn around(schedule: &str, last: &str, not_before: &str, now: &str) -> Slots {
        let schedule = Schedule::parse(schedule, Zone::named("UTC").unwrap()).unwrap();
        Slots::around(at(now), &schedule, at(last), at(not_before))
    }

    // C06
    #[test]
    fn the_newest_missed_slot_counts() {
        let slots = |last, now| around("0 * * * *", last, last, now);
        assert_eq!(slots("09:00", "09:59:59"), Slots { missed: Missed::None, next: Some(at("10:00")) });
        assert_eq!(slots("09:00", "10:00"), Slots { missed: Missed::Newest(at("10:00")), next: Some(at("11:00")) });
        assert_eq!(slots("09:00", "13:30"), Slots { missed: Missed::Newest(at("13:00")), next: Some(at("14:00")) });
        // The last run is of a slot that has not come.
        assert_eq!(slots("15:00", "13:30"), Slots { missed: Missed::None, next: Some(at("16:00")) });
    }

    // C07
    #[test]
    fn slots_before_the_starting_deadline_do_not_count() {
        let slots = |not_before| around("0 * * * *", "05:00", not_before, "09:10").missed;
        assert_eq!(slots("08:59:59"), Missed::Newest(at("09:00")));
        assert_eq!(slots("09:00"), Missed::None);
    }

    // C10
    #[test]
    fn a_hundred_slots_may_be_missed_and_no_more() {
        let minutes = |now| around("* * * * *", "01:00", "01:00", now);
        assert_eq!(minutes("02:40:30"), Slots { missed: Missed::Newest(at("02:40")), next: Some(at("02:41")) });
        assert_eq!(minutes("02:41"), Slots { missed: Missed::TooMany, next: None });
        assert_eq!(around("@every 1s", "00:00", "00:00", "23:00").missed, Missed::TooMany);
        assert_eq!(around("@every 1s", "00:00", "22:59:50", "23:00").missed, Missed::Newest(at("23:00")));
    }

    // C05
    #[test]
    fn every_is_counted_from_the_last_run_and_not_from_the_deadline() {
        let slots = around("@every 1h", "05:10", "08:30", "09:20");
        assert_eq!(slots, Slots { missed: Missed::Newest(at("09:10")), next: Some(at("10:10")) });
    }
}
