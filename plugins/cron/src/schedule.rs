//! When a CronJob runs: schedules as `ParseStandard` of `github.com/robfig/cron/v3` reads them, which the original and
//! Kubernetes use.
//!
//! Not the crates croner and cronexpr, which read other schedules: of the 230 cases of `golden.txt` croner 4.0.3 differs in
//! 74, most where clocks are switched, and cronexpr 1.7.0 in 50; in 6 more it never returns.

mod duration;
mod fields;
mod zone;

pub(crate) use zone::Zone;

use fields::Fields;
use jiff::{Timestamp, tz::Offset};

/// In nanoseconds.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// How many years after the present one a schedule is searched for its next slot.
const YEARS: i16 = 5;

/// 2024 begins.
const A_LEAP_YEAR: i64 = 1_704_067_200;

/// The names of schedules, with the fields that they stand for.
pub(crate) const NAMED: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A schedule. Its slots are Unix seconds.
#[derive(Debug, Clone)]
pub(crate) enum Schedule {
    /// Every so many seconds.
    Every(i64),
    /// Whenever the local time in the zone is one that the fields name.
    Calendar { fields: Fields, zone: Zone },
}

/// Why a text is no schedule, in words for the CronJob's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidSchedule(pub(crate) String);

/// A schedule's text: its zone, if it begins with one (`TZ=` or `CRON_TZ=`), and the rest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    pub(crate) zone: Option<&'a str>,
    pub(crate) rest: &'a str,
}

impl<'a> Text<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        match text.strip_prefix("CRON_TZ=").or_else(|| text.strip_prefix("TZ=")) {
            None => Self { zone: None, rest: text },
            Some(zoned) => {
                let (zone, rest) = zoned.split_once(' ').unwrap_or((zoned, ""));
                Self { zone: Some(zone), rest: rest.trim() }
            }
        }
    }
}

/// The duration that follows `@every `, in nanoseconds, of a schedule without a zone in front; None if it is another one.
pub(crate) fn every(text: &str) -> Option<i64> {
    text.strip_prefix("@every ").and_then(duration::nanoseconds)
}

impl Schedule {
    /// Reads a schedule without a zone in front.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str, zone: Zone) -> Result<Self, InvalidSchedule> {
        if let Some(every) = text.strip_prefix("@every ") {
            let duration = duration::nanoseconds(every);
            let duration =
                duration.ok_or_else(|| InvalidSchedule(format!("{every:?} is no duration such as 1h30m")))?;
            return Ok(Self::Every((duration / SECOND).max(1)));
        }
        let fields = match NAMED.iter().find(|(name, _)| *name == text) {
            Some((_, fields)) => fields,
            None if text.starts_with('@') => {
                let names = NAMED.map(|(name, _)| name).join(", ");
                let message = format!("{text:?} is not one of {names}, and \"@every\" with a duration");
                return Err(InvalidSchedule(message));
            }
            None => text,
        };
        Ok(Self::Calendar { fields: Fields::parse(fields)?, zone })
    }

    /// Returns the first slot after this instant. None: there is none in the next years, as on 30 February.
    pub(crate) fn next(&self, after: i64) -> Option<i64> {
        match self {
            Self::Every(seconds) => after.checked_add(*seconds),
            Self::Calendar { fields, zone } => next_in(fields, zone, after),
        }
    }

    /// Returns whether there is no slot in any year, as on 30 February.
    pub(crate) fn never_comes(&self) -> bool {
        // The years after it have a 29 February and each day of the week on each day of a month that may matter.
        self.next(A_LEAP_YEAR).is_none()
    }

    /// Returns the newest slot after `from`, which is where [`begin`](Self::begin) begins, up to this instant, in a few dozen
    /// steps however many there are.
    pub(crate) fn newest(&self, from: i64, now: i64) -> Option<i64> {
        if let Self::Every(_) = self {
            return Some(self.begin(from, now)).filter(|slot| *slot > from);
        }
        let slot_after = |after: i64| self.next(after).filter(|slot| *slot <= now);
        let (mut newest, mut end) = (slot_after(from)?, now);
        // No slot is after `end`.
        while newest < end {
            let middle = newest + (end - newest) / 2;
            match slot_after(middle) {
                Some(slot) => newest = slot,
                None => end = middle,
            }
        }
        Some(newest)
    }

    /// Returns where to begin with the slots after both `last`, which is one, and `not_before`.
    pub(crate) fn begin(&self, last: i64, not_before: i64) -> i64 {
        match self {
            Self::Calendar { .. } => last.max(not_before),
            Self::Every(seconds) => last + (not_before - last).max(0) / seconds * seconds,
        }
    }
}

/// Searches one stretch of constant offset after the other. A local time that a switch of the clocks leaves out is no slot,
/// and one that it repeats is two.
fn next_in(fields: &Fields, zone: &Zone, after: i64) -> Option<i64> {
    let mut from = after.checked_add(1)?;
    let last_year = local(from)?.year() + YEARS;
    loop {
        let stretch = zone.stretch(from);
        let time = fields.next(local(whole_minute(from + stretch.offset))?, last_year)?;
        let slot = Offset::UTC.to_timestamp(time).ok()?.as_second() - stretch.offset;
        match stretch.end {
            Some(end) if slot >= end => from = end,
            _ => return Some(slot),
        }
    }
}

/// Returns the local time, where the offset has been added already.
fn local(seconds: i64) -> Option<jiff::civil::DateTime> {
    Some(Offset::UTC.to_datetime(Timestamp::from_second(seconds).ok()?))
}

/// Returns the first whole minute that is not before.
fn whole_minute(seconds: i64) -> i64 {
    (seconds + 59).div_euclid(60) * 60
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One case a line, with tabs between: zone, schedule, start, and the slots after it, or `refused`, as Go 1.26 has them
    /// with `ParseStandard(schedule).Next(start.In(zone))` of github.com/robfig/cron/v3 v3.0.1. Where slots follow once
    /// more, these are right: each minute whose local time the fields name, as found by trying all minutes with Python's
    /// zoneinfo. The original loses or moves a slot where clocks are set by half an hour, or at midnight.
    const GOLDEN: &str = include_str!("schedule/golden.txt");

    fn slots(zone: &str, text: &str, start: &str, count: usize) -> String {
        let text = Text::of(text);
        let zone = match text.zone {
            None => Zone::named(zone),
            Some("") => Zone::named("UTC"),
            Some(zone) => Zone::named(zone),
        };
        let Some(Ok(schedule)) = zone.map(|zone| Schedule::parse(text.rest, zone)) else { return "refused".into() };
        let mut slots = vec![];
        let mut at = start.parse::<Timestamp>().unwrap().as_second();
        while slots.len() < count {
            let Some(slot) = schedule.next(at) else {
                slots.push("never".to_owned());
                break;
            };
            slots.push(Timestamp::from_second(slot).unwrap().to_string());
            at = slot;
        }
        slots.join(" ")
    }

    // C04, and the cases in which the original's are wrong (Better)
    #[test]
    fn slots_are_the_originals() {
        let mut better = 0;
        for line in GOLDEN.lines() {
            let columns: Vec<_> = line.split('\t').collect();
            let [zone, text, start, original] = columns[..4] else { panic!("{line}") };
            let expected = columns.get(4).copied().unwrap_or(original);
            assert_eq!(slots(zone, text, start, original.split(' ').count()), expected, "{line}");
            better += columns.len() - 4;
        }
        assert_eq!(better, 12);
    }

    // C04
    #[test]
    fn a_schedule_that_has_no_slot_is_searched_for_a_few_years() {
        for text in ["0 0 30 2 *", "0 0 31 4,6,9,11 *"] {
            assert_eq!(slots("America/New_York", text, "2026-01-01T00:00:00Z", 1), "never", "{text}");
        }
        // 2100 is no leap year.
        assert_eq!(slots("UTC", "0 0 29 2 *", "2096-03-01T00:00:00Z", 1), "never");
    }

    // C06, C10
    #[test]
    fn the_newest_slot_is_found_whatever_lies_before() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_second();
        for (zone, text) in [
            ("UTC", "* * * * *"),
            ("UTC", "0 0 29 2 *"),
            ("Europe/Berlin", "*/7 2 * * 0"),
            ("Australia/Lord_Howe", "15,45 1-2 * 4,10 *"),
        ] {
            let schedule = Schedule::parse(text, Zone::named(zone).unwrap()).unwrap();
            for (from, now) in [
                ("2019-01-01T00:00:00Z", "2026-04-05T12:00:30Z"),
                ("2024-02-28T23:59:00Z", "2024-02-29T00:00:00Z"),
                ("2026-04-04T00:00:00Z", "2026-04-05T12:00:00Z"),
            ] {
                let (from, now) = (at(from), at(now));
                let found = schedule.newest(from, now);
                let Some(slot) = found else {
                    assert!(schedule.next(from).is_none_or(|next| next > now), "{text} {from} {now}");
                    continue;
                };
                assert!(from < slot && slot <= now, "{text} {from} {now} {slot}");
                assert_eq!(schedule.next(slot - 1), Some(slot), "{text}: it is no slot");
                assert!(schedule.next(slot).is_none_or(|next| next > now), "{text}: there is a newer one");
            }
        }
        let every = Schedule::Every(60);
        assert_eq!(
            (every.newest(100, 159), every.newest(100, 160), every.newest(100, 7_000)),
            (None, Some(160), Some(7_000))
        );
    }

    // C05
    #[test]
    fn every_counts_on_from_the_last_slot() {
        let every = Schedule::Every(60);
        assert_eq!((every.begin(100, 90), every.begin(100, 159), every.begin(100, 160)), (100, 100, 160));
        assert_eq!(every.next(every.begin(100, 175)), Some(220));
        assert_eq!(every.next(i64::MAX), None);
    }
}
