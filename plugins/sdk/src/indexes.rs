//! Sets of indexes, and their text in a spec and a status: `1,3-5,7`.

/// A set of indexes: ranges in ascending order, first to last, that do not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Indexes(Vec<(u32, u32)>);

/// Why a text is no set of indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotIndexes(String);

impl Indexes {
    /// Returns the set of these ranges, in any order.
    #[must_use]
    pub fn of(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        Self::folded(ranges)
    }

    /// Returns the set of these ranges, which are in ascending order.
    fn folded(ranges: Vec<(u32, u32)>) -> Self {
        let mut folded: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match folded.last_mut() {
                Some(before) if before.1.saturating_add(1) >= first => before.1 = before.1.max(last),
                _ => folded.push((first, last)),
            }
        }
        Self(folded)
    }

    /// Reads indexes in ascending order: `1,3-5`.
    ///
    /// # Errors
    /// The part that is no index or range, or not in ascending order.
    pub fn parse(text: &str) -> Result<Self, NotIndexes> {
        let mut ranges: Vec<(u32, u32)> = vec![];
        for part in text.split(',') {
            let number = |text: &str| {
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let number: Option<u32> = text.parse().ok().filter(|_| digits);
                number.ok_or_else(|| NotIndexes(format!("{text:?} is no index")))
            };
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last || ranges.last().is_some_and(|(_, before)| *before >= first) {
                return Err(NotIndexes(format!("{part:?} is not in ascending order")));
            }
            ranges.push((first, last));
        }
        Ok(Self::folded(ranges))
    }

    /// Returns the last index, if there is any.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        self.0.last().map(|(_, last)| *last)
    }

    /// Returns whether the index is in the set.
    #[must_use]
    pub fn contains(&self, index: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&index))
    }

    /// Returns how many indexes there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().fold(0, |sum: u32, (first, last)| sum.saturating_add((last - first).saturating_add(1)))
    }

    /// Returns how many indexes are below this one.
    #[must_use]
    pub fn count_below(&self, end: u32) -> u32 {
        let below = self.0.iter().filter(|(first, _)| *first < end);
        below.map(|(first, last)| (*last).min(end - 1) - first + 1).sum()
    }

    /// Returns the ranges, first to last.
    #[must_use]
    pub fn into_ranges(self) -> Vec<(u32, u32)> {
        self.0
    }
}

impl std::error::Error for NotIndexes {}

impl std::fmt::Display for NotIndexes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Display for Indexes {
    /// Two neighbours are listed, more are a range.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, (first, last)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // J06
    #[test]
    fn indexes_are_written_as_a_job_writes_them() {
        for (ranges, text) in [
            (vec![], ""),
            (vec![(1, 1), (3, 3), (4, 4), (5, 5), (7, 7)], "1,3-5,7"),
            (vec![(0, 0), (1, 1)], "0,1"),
            (vec![(7, 9), (0, 2)], "0-2,7-9"),
        ] {
            assert_eq!(Indexes::of(ranges).to_string(), text);
        }
    }

    // J11
    #[test]
    fn a_text_that_is_no_set_says_why() {
        let parsed = Indexes::parse("1,3-5").unwrap();
        assert_eq!(parsed, Indexes::of(vec![(1, 1), (3, 5)]));
        assert!(parsed.contains(4) && !parsed.contains(2) && parsed.last() == Some(5) && parsed.count() == 4);
        assert_eq!([0, 2, 4, 9].map(|end| parsed.count_below(end)), [0, 1, 2, 4]);
        for (text, why) in [
            ("", "\"\" is no index"),
            ("1,,2", "\"\" is no index"),
            ("+1", "\"+1\" is no index"),
            ("5-3", "\"5-3\" is not in ascending order"),
            ("3,2", "\"2\" is not in ascending order"),
            ("4294967296", "\"4294967296\" is no index"),
        ] {
            assert_eq!(Indexes::parse(text), Err(NotIndexes(why.into())), "{text}");
        }
    }
}
