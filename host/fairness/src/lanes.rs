//! Queues by namespace. Values of one namespace keep their order; the next value is from the namespace with the least
//! under way, and namespaces with equally much take turns. Our own: we know of no crate that queues by
//! what is under way.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};
use tokio::time::Instant;

/// For so long after its last turn a namespace counts as active.
const ACTIVE: Duration = Duration::from_secs(10);

/// How much of the shared resource a queued value takes up once it is under way.
pub trait Amount {
    /// Returns the amount; 1 where values are only counted.
    fn amount(&self) -> usize {
        1
    }
}

/// Queued values, by their namespace.
#[derive(Debug)]
pub struct Lanes<T> {
    by_namespace: BTreeMap<String, VecDeque<T>>,
    /// Namespaces with queued values; the first had its turn longest ago.
    turns: VecDeque<String>,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self { by_namespace: BTreeMap::new(), turns: VecDeque::new() }
    }
}

impl<T: Amount> Lanes<T> {
    /// Appends a value to the queue of its namespace.
    pub fn push(&mut self, namespace: &str, value: T) {
        match self.by_namespace.get_mut(namespace) {
            Some(lane) => lane.push_back(value),
            None => {
                self.turns.push_back(namespace.to_owned());
                self.by_namespace.insert(namespace.to_owned(), VecDeque::from([value]));
            }
        }
    }

    /// Returns the amount of the next value, or None if no namespace has room for its first value.
    pub fn next(&self, shares: &Shares, now: Instant) -> Option<usize> {
        self.first(shares, now).map(|(_, amount)| amount)
    }

    /// Removes the next value and returns it with its namespace: the one with the least under way of those with room.
    pub fn pop(&mut self, shares: &Shares, now: Instant) -> Option<(String, T)> {
        let (place, _) = self.first(shares, now)?;
        let namespace = self.turns.remove(place)?;
        let lane = self.by_namespace.get_mut(&namespace)?;
        let value = lane.pop_front()?;
        if lane.is_empty() {
            self.by_namespace.remove(&namespace);
        } else {
            self.turns.push_back(namespace.clone());
        }
        Some((namespace, value))
    }

    /// Returns the place of the next namespace in `turns` and the amount of its first value.
    fn first(&self, shares: &Shares, now: Instant) -> Option<(usize, usize)> {
        let amount = |namespace| Some(self.by_namespace.get(namespace)?.front()?.amount());
        let heads = self.turns.iter().enumerate().filter_map(|(place, namespace)| {
            let amount = amount(namespace).filter(|amount| shares.has_room(namespace, *amount, now))?;
            Some((shares.under_way(namespace), place, amount))
        });
        // Of namespaces with the same amount under way, the one that has waited longest.
        heads.min().map(|(_, place, amount)| (place, amount))
    }
}

/// The maximum that one namespace may have under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// While no other namespace is active: none had a turn in the last ten seconds.
    pub alone: usize,
    /// Beside an active namespace. What is under way costs others more than its place: the cores of this process and the
    /// API server behind it serve in the order of arrival.
    pub beside: usize,
}

impl Share {
    /// Returns a share that does not depend on others.
    #[must_use]
    pub fn fixed(most: usize) -> Self {
        Self { alone: most, beside: most }
    }
}

/// How much each namespace has under way. Each has a share, so that there is room for others.
#[derive(Debug)]
pub struct Shares {
    share: Share,
    under_way: BTreeMap<String, usize>,
    /// The namespace that had the last turn, and when.
    last: Option<(String, Instant)>,
    /// When another one had its last turn.
    last_of_others: Option<Instant>,
}

impl Shares {
    /// Returns the same share for each namespace.
    #[must_use]
    pub fn of(share: Share) -> Self {
        Self { share, under_way: BTreeMap::new(), last: None, last_of_others: None }
    }

    /// Returns whether the namespace has room in its share for this amount.
    #[must_use]
    pub fn has_room(&self, namespace: &str, amount: usize, now: Instant) -> bool {
        let most = if self.is_alone(namespace, now) { self.share.alone } else { self.share.beside };
        self.under_way(namespace) + amount <= most
    }

    fn is_alone(&self, namespace: &str, now: Instant) -> bool {
        let other = match &self.last {
            Some((last, _)) if last == namespace => self.last_of_others,
            Some((_, at)) => Some(*at),
            None => None,
        };
        other.is_none_or(|at| now.duration_since(at) >= ACTIVE)
    }

    fn under_way(&self, namespace: &str) -> usize {
        self.under_way.get(namespace).copied().unwrap_or_default()
    }

    /// Counts this amount as under way in the namespace.
    pub fn begin(&mut self, namespace: &str, amount: usize, now: Instant) {
        match &mut self.last {
            Some((last, at)) if last == namespace => *at = now,
            last => {
                self.last_of_others = last.take().map(|(_, at)| at);
                *last = Some((namespace.to_owned(), now));
            }
        }
        *self.under_way.entry(namespace.to_owned()).or_default() += amount;
    }

    /// Counts this amount as no longer under way in the namespace.
    pub fn end(&mut self, namespace: &str, amount: usize) {
        if let Some(count) = self.under_way.get_mut(namespace) {
            *count -= amount;
            if *count == 0 {
                self.under_way.remove(namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Amount for i32 {}

    #[test]
    fn namespaces_take_turns_whatever_each_has_waiting() {
        let now = Instant::now();
        let mut lanes = Lanes::default();
        for (namespace, value) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5)] {
            lanes.push(namespace, value);
        }
        let shares = Shares::of(Share::fixed(1));
        let order: Vec<_> = std::iter::from_fn(|| lanes.pop(&shares, now)).map(|(_, value)| value).collect();
        assert_eq!(order, [1, 4, 5, 2, 3]);
    }

    #[test]
    fn a_namespace_with_less_under_way_goes_first() {
        let now = Instant::now();
        let (mut lanes, mut shares) = (Lanes::default(), Shares::of(Share::fixed(9)));
        for (namespace, value) in [("a", 1), ("a", 2), ("b", 3), ("b", 4), ("b", 5)] {
            lanes.push(namespace, value);
        }
        (0..2).for_each(|_| shares.begin("a", 1, now));
        let next = || {
            let (namespace, value) = lanes.pop(&shares, now)?;
            shares.begin(&namespace, 1, now);
            Some(value)
        };
        let order: Vec<_> = std::iter::from_fn(next).collect();
        assert_eq!(order, [3, 4, 1, 5, 2]);
    }

    #[test]
    fn a_namespace_that_has_its_share_under_way_is_passed_over() {
        let now = Instant::now();
        let (mut lanes, mut shares) = (Lanes::default(), Shares::of(Share::fixed(2)));
        for (namespace, value) in [("a", 1), ("b", 2)] {
            lanes.push(namespace, value);
        }
        (0..2).for_each(|_| shares.begin("a", 1, now));
        assert_eq!(lanes.pop(&shares, now), Some(("b".to_owned(), 2)));
        assert!(lanes.next(&shares, now).is_none() && lanes.pop(&shares, now).is_none());
        shares.end("a", 1);
        assert_eq!(lanes.next(&shares, now), Some(1));
        assert_eq!(lanes.pop(&shares, now), Some(("a".to_owned(), 1)));
    }

    #[test]
    fn a_share_is_smaller_beside_a_namespace_that_had_a_turn_a_moment_ago() {
        let mut shares = Shares::of(Share { alone: 4, beside: 2 });
        let start = Instant::now();
        (0..3).for_each(|_| shares.begin("crowd", 1, start));
        assert!(shares.has_room("crowd", 1, start), "it is alone");
        shares.begin("quiet", 1, start);
        shares.end("quiet", 1);
        assert!(!shares.has_room("crowd", 1, start));
        assert!(shares.has_room("quiet", 2, start) && !shares.has_room("quiet", 3, start));
        shares.begin("crowd", 1, start + ACTIVE / 2);
        assert!(!shares.has_room("crowd", 0, start + ACTIVE / 2), "four are more than two");
        shares.end("crowd", 1);
        assert!(shares.has_room("crowd", 1, start + ACTIVE), "the other has had no turn for ten seconds");
        assert!(!shares.has_room("quiet", 3, start + ACTIVE), "the crowd has");
    }
}
