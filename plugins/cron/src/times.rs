//! Times in annotations and statuses, which anybody may have written. They are Unix seconds here.

/// Reads a time since 1970 as RFC 3339 has it, with an offset and a fraction of a second, which is dropped.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let local = troupe_plugin::parse_rfc3339(&format!("{}Z", text.get(..19)?))?;
    Some(seconds(local) - offset(without_fraction(text.get(19..)?)?)?)
}

fn without_fraction(text: &str) -> Option<&str> {
    let Some(fraction) = text.strip_prefix('.') else { return Some(text) };
    let rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < fraction.len()).then_some(rest)
}

fn offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, text) = match text.split_at_checked(1)? {
        ("+", text) => (1, text),
        ("-", text) => (-1, text),
        _ => return None,
    };
    let (hours, minutes) = text.split_once(':').filter(|(hours, minutes)| hours.len() == 2 && minutes.len() == 2)?;
    let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
    (hours < 24 && minutes < 60).then(|| sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60))
}

/// Formats a time as `2026-01-02T03:04:05Z`.
pub(crate) fn rfc3339(seconds: i64) -> String {
    troupe_plugin::rfc3339(milliseconds(seconds))
}

/// Returns a time as the contract has it. Times before 1970 become 1970: no clock of a cluster shows them.
pub(crate) fn milliseconds(seconds: i64) -> u64 {
    u64::try_from(seconds).unwrap_or(0).saturating_mul(1000)
}

/// Returns a time of the contract.
pub(crate) fn seconds(milliseconds: u64) -> i64 {
    i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    // C13
    #[test]
    fn times_are_read_as_rfc_3339_has_them() {
        for (text, same) in [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05.999Z", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
            ("2026-01-01T22:04:05.1-05:30", "2026-01-02T03:34:05Z"),
        ] {
            assert_eq!(parse(text).map(rfc3339).as_deref(), Some(same), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "2026-01-02",
            "2026-01-02T03:04:05",
            "2026-01-02 03:04:05Z",
            "2026-02-30T00:00:00Z",
            "2026-03-00T00:00:00Z",
            "2026-01-02T24:00:00Z",
            "2026-01-02T03:04:60Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04:05+0200",
            "2026-01-02T03:04:05+02:99",
            "+026-01-02T03:04:05Z",
            "2026-01-02T03:04:05Zé",
            "2026-01-02T03:0é:05Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
