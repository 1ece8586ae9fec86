//! Sets of indexes, and their text in a spec and a status: `1,3-5,7`.

/// A set of indexes: ranges in ascending order, first to last, that do not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Indexes(Vec<(u32, u32)>);

/// Why a text is no set of indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotIndexes(pub(crate) String);

impl Indexes {
    /// Returns the set of these ranges, in any order.
    pub(crate) fn of(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut folded: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match folded.last_mut() {
                Some(before) if before.1.saturating_add(1) >= first => before.1 = before.1.max(last),
                _ => folded.push((first, last)),
            }
        }
        Self(folded)
    }

    /// Reads indexes below `end`, in ascending order: `1,3-5`.
    pub(crate) fn parse(text: &str, end: u32) -> Result<Self, NotIndexes> {
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
            if last >= end {
                return Err(NotIndexes(format!("index {last} is not below spec.completions, {end}")));
            }
            ranges.push((first, last));
        }
        Ok(Self::of(ranges))
    }

    /// Returns how many indexes there are.
    pub(crate) fn count(&self) -> u32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Returns how many indexes are in both sets.
    pub(crate) fn count_in(&self, other: &Self) -> u32 {
        let overlap = |one: &(u32, u32)| {
            let with = other.0.iter().map(|(first, last)| (one.0.max(*first), one.1.min(*last)));
            with.filter(|(first, last)| first <= last).map(|(first, last)| last - first + 1).sum::<u32>()
        };
        self.0.iter().map(overlap).sum()
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
        assert_eq!(Indexes::parse("1,3-5", 6), Ok(Indexes::of(vec![(1, 1), (3, 5)])));
        for (text, why) in [
            ("", "\"\" is no index"),
            ("1,,2", "\"\" is no index"),
            ("+1", "\"+1\" is no index"),
            ("5-3", "\"5-3\" is not in ascending order"),
            ("3,2", "\"2\" is not in ascending order"),
            ("1-6", "index 6 is not below spec.completions, 6"),
            ("4294967296", "\"4294967296\" is no index"),
        ] {
            assert_eq!(Indexes::parse(text, 6), Err(NotIndexes(why.into())), "{text}");
        }
    }

    #[test]
    fn what_two_sets_share_is_counted() {
        let one = Indexes::of(vec![(0, 3), (6, 9)]);
        let other = Indexes::of(vec![(2, 6), (9, 20)]);
        assert_eq!((one.count(), one.count_in(&other), other.count_in(&one)), (8, 4, 4));
    }
}
