//! Conversion between Unix milliseconds and the time format of Kubernetes. A plugin has no clock: the host passes
//! `now`.

/// Formats a time in Unix milliseconds as `2026-01-02T03:04:05Z`. Drops fractions of a second, as `metav1.Time` does.
#[must_use]
pub fn rfc3339(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Parses a text in the format of [`rfc3339`] to Unix milliseconds. Fractions of a second may stand before the `Z`, and are
/// dropped. Returns None if the text has another format or names no time: users may write statuses too.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !text.ends_with('Z') || !(1..=12).contains(&month) || !(1..=31).contains(&day) || year < 1970 {
        return None;
    }
    let unix_ms = (days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * 1000;
    (text.get(..19) == rfc3339(unix_ms).get(..19)).then_some(unix_ms)
}

/// Returns year, month and day for a number of days since 1970-01-01, by Howard Hinnant's `civil_from_days`.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted_year / 400, shifted_year % 400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + (year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year) - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_kubernetes_does() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_868_799_999), "2000-02-29T23:59:59Z");
        assert_eq!(rfc3339(1_795_268_339_000), "2026-11-21T13:38:59Z");
    }

    #[test]
    fn a_formatted_time_parses_to_the_same_time() {
        for ms in [0, 68_169_599_000, 951_868_799_000, 1_795_268_339_000, 4_102_444_800_000] {
            assert_eq!(parse_rfc3339(&rfc3339(ms)), Some(ms));
        }
        assert_eq!(parse_rfc3339("2000-02-29T23:59:59.5Z"), Some(951_868_799_000));
    }

    #[test]
    fn a_text_that_names_no_time_is_none() {
        for text in [
            "yesterday",
            "2026-03-00T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026 01 01 00 00 00Z",
            "2026-01-01T00:00:00+01:00",
            "2026-01-0éT00:00:00Z",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }
}
