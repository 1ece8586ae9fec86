//! Sets of replica indices as ranges, which is how a ledger holds them.

use serde::{Deserialize, Serialize};

/// A set of indices. Its ranges are in ascending order and do not touch each other, whatever order they are read in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u32, u32)>", into = "Vec<(u32, u32)>")]
pub struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    /// Returns whether there is no index.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of indices.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(first, last)| u64::from(last - first) + 1).sum()
    }

    /// Returns whether the index is in the set.
    #[must_use]
    pub fn contains(&self, index: u32) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= index);
        after > 0 && index <= self.0[after - 1].1
    }

    /// Returns the last index, if there is any.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        self.0.last().map(|(_, last)| *last)
    }

    /// Returns the indices in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// Returns the number of indices below `end`.
    #[must_use]
    pub fn count_below(&self, end: u32) -> u64 {
        let below = self.0.iter().take_while(|(first, _)| *first < end);
        below.map(|(first, last)| u64::from((*last).min(end - 1) - first) + 1).sum()
    }

    /// Returns the number of ranges.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.0.len()
    }

    /// Returns the indices that are in both sets.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        let (mut found, mut ours, mut theirs) = (vec![], self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some((our_first, our_last)), Some((their_first, their_last))) = (ours.peek(), theirs.peek()) {
            let (first, last) = (*our_first.max(their_first), *our_last.min(their_last));
            if first <= last {
                found.push((first, last));
            }
            if our_last <= their_last {
                ours.next();
            } else {
                theirs.next();
            }
        }
        Self(found)
    }

    /// Returns the first `count` indices that are not in the set; fewer where there are no more.
    #[must_use]
    pub fn first_outside(&self, count: u32) -> Self {
        let (mut found, mut left, mut next) = (vec![], count, Some(0));
        let ends = self.0.iter().map(|(first, last)| (Some(*first), last.checked_add(1)));
        for (first, after) in ends.chain([(None, None)]) {
            let Some(start) = next.filter(|_| left > 0) else { break };
            let room = first.map_or(u32::MAX, |first| first - start);
            let taken = left.min(room);
            if taken > 0 {
                found.push((start, start.saturating_add(taken - 1)));
            }
            (left, next) = (left - taken, after);
        }
        Self(found)
    }

    /// Adds an index.
    pub fn insert(&mut self, index: u32) {
        if self.contains(index) {
            return;
        }
        let after = self.0.partition_point(|(first, _)| *first <= index);
        let joins_before = after > 0 && self.0[after - 1].1.checked_add(1) == Some(index);
        let joins_after = self.0.get(after).is_some_and(|(first, _)| index.checked_add(1) == Some(*first));
        match (joins_before, joins_after) {
            (true, true) => {
                self.0[after - 1].1 = self.0[after].1;
                self.0.remove(after);
            }
            (true, false) => self.0[after - 1].1 = index,
            (false, true) => self.0[after].0 = index,
            (false, false) => self.0.insert(after, (index, index)),
        }
    }

    /// Returns the indices below `end`.
    #[must_use]
    pub fn below(&self, end: u32) -> Self {
        let begun = self.0.iter().filter(|(first, _)| *first < end);
        Self(begun.map(|(first, last)| (*first, (*last).min(end - 1))).collect())
    }

    /// Returns the set without these indices.
    #[must_use]
    pub fn without(&self, indices: impl Iterator<Item = u32>) -> Self {
        let mut left = self.0.clone();
        for index in indices {
            let Some(place) = left.iter().position(|(first, last)| (*first..=*last).contains(&index)) else { continue };
            let (first, last) = left[place];
            let before = index.checked_sub(1).filter(|before| *before >= first).map(|before| (first, before));
            let after = index.checked_add(1).filter(|after| *after <= last).map(|after| (after, last));
            left.splice(place..=place, before.into_iter().chain(after));
        }
        Self(left)
    }
}

impl From<Vec<(u32, u32)>> for Ranges {
    /// Puts the ranges in order. Drops those whose last index is before their first: users can write a ledger.
    fn from(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.retain(|(first, last)| first <= last);
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
}

impl From<Ranges> for Vec<(u32, u32)> {
    fn from(ranges: Ranges) -> Self {
        ranges.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn indices_fold_into_ranges() {
        let mut ranges = Ranges::default();
        for index in [0, 2, 1, 5, 1, u32::MAX] {
            ranges.insert(index);
        }
        assert_eq!(Vec::from(ranges.clone()), vec![(0, 2), (5, 5), (u32::MAX, u32::MAX)]);
        assert!(ranges.contains(2) && !ranges.contains(3) && ranges.contains(u32::MAX));
        assert_eq!(Vec::from(ranges.below(2)), vec![(0, 1)]);
        assert_eq!(Vec::from(ranges.without([1, 5].into_iter())), vec![(0, 0), (2, 2), (u32::MAX, u32::MAX)]);
        assert!(ranges.below(0).is_empty());
    }

    #[test]
    fn indices_are_taken_out_of_ranges() {
        let without = |ranges: &[(u32, u32)], indices: &[u32]| {
            Vec::from(Ranges::from(ranges.to_vec()).without(indices.iter().copied()))
        };
        assert_eq!(without(&[(0, 4), (7, 7)], &[0, 2, 7]), vec![(1, 1), (3, 4)]);
        assert_eq!(without(&[(0, 0)], &[0, 0]), vec![]);
        assert_eq!(without(&[(0, u32::MAX)], &[u32::MAX]), vec![(0, u32::MAX - 1)]);
        let below = |end, ranges: &[(u32, u32)]| Vec::from(Ranges::from(ranges.to_vec()).below(end));
        assert_eq!(below(4, &[(0, 1), (3, 7), (9, 9)]), vec![(0, 1), (3, 3)]);
        assert_eq!(below(u32::MAX, &[(2, u32::MAX)]), vec![(2, u32::MAX - 1)]);
    }

    #[test]
    fn the_first_indices_outside_a_set_go_around_it() {
        let outside = |ranges: &[(u32, u32)], count| Vec::from(Ranges::from(ranges.to_vec()).first_outside(count));
        assert_eq!(outside(&[], 3), vec![(0, 2)]);
        assert_eq!(outside(&[(1, 1), (4, 6)], 4), vec![(0, 0), (2, 3), (7, 7)]);
        assert_eq!(outside(&[(0, 1)], 2), vec![(2, 3)]);
        assert_eq!(outside(&[(1, u32::MAX)], 3), vec![(0, 0)]);
        assert_eq!(outside(&[(2, 3)], 0), vec![]);
        let within = |one: &[(u32, u32)], other: &[(u32, u32)]| {
            Vec::from(Ranges::from(one.to_vec()).within(&Ranges::from(other.to_vec())))
        };
        assert_eq!(within(&[(0, 3), (6, 9)], &[(2, 6), (9, 20)]), vec![(2, 3), (6, 6), (9, 9)]);
        assert_eq!(within(&[(0, u32::MAX)], &[(1, 1), (u32::MAX, u32::MAX)]), vec![(1, 1), (u32::MAX, u32::MAX)]);
        let below = |end| Ranges::from(vec![(1, 1), (4, 6), (9, u32::MAX)]).count_below(end);
        assert_eq!([0, 1, 2, 5, 9, 11].map(below), [0, 0, 1, 2, 4, 6]);
        assert_eq!(Ranges::from(vec![(0, 1), (4, 4)]).iter().collect::<Vec<_>>(), [0, 1, 4]);
    }

    #[test]
    fn ranges_in_any_order_are_one_set() {
        let read: Ranges = serde_json::from_str("[[7,6],[4,9],[1,2],[3,5],[4,4294967295]]").unwrap();
        assert_eq!(Vec::from(read), vec![(1, u32::MAX)]);
    }

    #[test]
    fn a_set_of_ranges_is_a_set() {
        let (mut ranges, mut set, mut seed) = (Ranges::default(), BTreeSet::new(), 1_u32);
        for _ in 0..500 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let index = (seed >> 16) % 64;
            ranges.insert(index);
            set.insert(index);
            assert!((0..64).all(|index| ranges.contains(index) == set.contains(&index)));
            assert_eq!(Ranges::from(Vec::from(ranges.clone())), ranges);
        }
    }
}
