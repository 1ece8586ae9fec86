//! Durations as Go writes them: `1h30m`, `1.5h`, `500ms`.

/// Returns the nanoseconds of a duration; None if it is none, or longer than Go has them (292 years).
pub(crate) fn nanoseconds(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut nanoseconds: u64 = 0;
    loop {
        let (part, after) = first_part(rest)?;
        nanoseconds = nanoseconds.checked_add(part)?;
        if after.is_empty() {
            break;
        }
        rest = after;
    }
    Some(sign * i64::try_from(nanoseconds).ok()?)
}

/// Reads a number and its unit. Returns its nanoseconds and what follows.
fn first_part(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_ends = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_ends);
    let unit = nanoseconds_of(unit)?;
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()?.checked_mul(unit)? };
    Some((whole.checked_add(part_of(unit, fraction))?, rest))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn nanoseconds_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Returns this fraction of a unit. The thirteenth digit of an hour is less than a nanosecond.
fn part_of(unit: u64, fraction: &str) -> u64 {
    let mut size = unit;
    let parts = fraction.bytes().take(13).map(|digit| {
        let part = size * u64::from(digit - b'0') / 10;
        size /= 10;
        part
    });
    parts.sum()
}
