//! Which slot has passed without a run, and when the next one is.

use crate::schedule::Schedule;

/// More missed slots than these are told, as `batch/v1` does.
pub(crate) const MANY: usize = 100;

/// The slots of a schedule around an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots {
    /// The newest slot that has passed without a run.
    pub(crate) missed: Option<i64>,
    /// The first slot after the instant, if there is one.
    pub(crate) next: Option<i64>,
}

impl Slots {
    /// Returns the slots after both `last`, the slot of the last run, and `not_before`.
    pub(crate) fn around(now: i64, schedule: &Schedule, last: i64, not_before: i64) -> Self {
        let begin = schedule.begin(last, not_before);
        let missed = schedule.newest(begin, now);
        Self { missed, next: schedule.next(missed.unwrap_or(begin)) }
    }
}

/// Returns whether more than [`MANY`] slots are between these two, of which the first is a slot or where slots begin.
pub(crate) fn are_many(schedule: &Schedule, mut after: i64, before: i64) -> bool {
    for _ in 0..=MANY {
        match schedule.next(after) {
            Some(slot) if slot < before => after = slot,
            _ => return false,
        }
    }
    true
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
        assert_eq!(slots("09:00", "09:59:59"), Slots { missed: None, next: Some(at("10:00")) });
        assert_eq!(slots("09:00", "10:00"), Slots { missed: Some(at("10:00")), next: Some(at("11:00")) });
        assert_eq!(slots("09:00", "13:30"), Slots { missed: Some(at("13:00")), next: Some(at("14:00")) });
        // The last run is of a slot that has not come.
        assert_eq!(slots("15:00", "13:30"), Slots { missed: None, next: Some(at("16:00")) });
    }

    // C07
    #[test]
    fn slots_before_the_starting_deadline_do_not_count() {
        let slots = |not_before| around("0 * * * *", "05:00", not_before, "09:10").missed;
        assert_eq!(slots("08:59:59"), Some(at("09:00")));
        assert_eq!(slots("09:00"), None);
    }

    // C10
    #[test]
    fn the_newest_slot_counts_however_many_were_missed() {
        let minutes = |now| around("* * * * *", "01:00", "01:00", now);
        assert_eq!(minutes("02:40:30"), Slots { missed: Some(at("02:40")), next: Some(at("02:41")) });
        assert_eq!(minutes("23:41"), Slots { missed: Some(at("23:41")), next: Some(at("23:42")) });
        let seconds = Slots { missed: Some(at("23:00")), next: Some(at("23:00:01")) };
        assert_eq!(around("@every 1s", "00:00", "00:00", "23:00"), seconds);
        assert_eq!(around("@every 1s", "00:00", "22:59:50", "23:00"), seconds);
        let schedule = Schedule::parse("* * * * *", Zone::named("UTC").unwrap()).unwrap();
        let many = |before| are_many(&schedule, at("01:00"), at(before));
        assert_eq!(["02:40", "02:41", "02:42", "23:00"].map(many), [false, false, true, true]);
    }

    // C05
    #[test]
    fn every_is_counted_from_the_last_run_and_not_from_the_deadline() {
        let slots = around("@every 1h", "05:10", "08:30", "09:20");
        assert_eq!(slots, Slots { missed: Some(at("09:10")), next: Some(at("10:10")) });
    }
}
