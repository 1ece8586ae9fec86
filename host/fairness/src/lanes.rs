//! Queues by namespace. Values of one namespace keep their order; the next value is from the namespace with the least
//! under way, and namespaces with equally much take turns. Our own: we know of no crate that queues by
//! what is under way.

use std::collections::{BTreeMap, VecDeque};

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
    pub fn next(&self, shares: &Shares) -> Option<usize> {
        self.first(shares).map(|(_, amount)| amount)
    }

    /// Removes the next value and returns it with its namespace: the one with the least under way of those with room.
    pub fn pop(&mut self, shares: &Shares) -> Option<(String, T)> {
        let (place, _) = self.first(shares)?;
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
    fn first(&self, shares: &Shares) -> Option<(usize, usize)> {
        let amount = |namespace| Some(self.by_namespace.get(namespace)?.front()?.amount());
        let heads = self.turns.iter().enumerate().filter_map(|(place, namespace)| {
            let amount = amount(namespace).filter(|amount| shares.has_room(namespace, *amount))?;
            Some((shares.under_way(namespace), place, amount))
        });
        // Of namespaces with the same amount under way, the one that has waited longest.
        heads.min().map(|(_, place, amount)| (place, amount))
    }
}

/// How much each namespace has under way. Each has a share, so that there is room for others.
#[derive(Debug)]
pub struct Shares {
    most: usize,
    under_way: BTreeMap<String, usize>,
}

impl Shares {
    /// Returns shares of at most `most` at once for each namespace.
    pub fn of(most: usize) -> Self {
        Self { most, under_way: BTreeMap::new() }
    }

    /// Returns whether the namespace has room in its share for this amount.
    pub fn has_room(&self, namespace: &str, amount: usize) -> bool {
        self.under_way(namespace) + amount <= self.most
    }

    fn under_way(&self, namespace: &str) -> usize {
        self.under_way.get(namespace).copied().unwrap_or_default()
    }

    /// Counts this amount as under way in the namespace.
    pub fn begin(&mut self, namespace: &str, amount: usize) {
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
        let mut lanes = Lanes::default();
        for (namespace, value) in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5)] {
            lanes.push(namespace, value);
        }
        let shares = Shares::of(1);
        let order: Vec<_> = std::iter::from_fn(|| lanes.pop(&shares)).map(|(_, value)| value).collect();
        assert_eq!(order, [1, 4, 5, 2, 3]);
    }

    #[test]
    fn a_namespace_with_less_under_way_goes_first() {
        let (mut lanes, mut shares) = (Lanes::default(), Shares::of(9));
        for (namespace, value) in [("a", 1), ("a", 2), ("b", 3), ("b", 4), ("b", 5)] {
            lanes.push(namespace, value);
        }
        (0..2).for_each(|_| shares.begin("a", 1));
        let next = || {
            let (namespace, value) = lanes.pop(&shares)?;
            shares.begin(&namespace, 1);
            Some(value)
        };
        let order: Vec<_> = std::iter::from_fn(next).collect();
        assert_eq!(order, [3, 4, 1, 5, 2]);
    }

    #[test]
    fn a_namespace_that_has_its_share_under_way_is_passed_over() {
        let (mut lanes, mut shares) = (Lanes::default(), Shares::of(2));
        for (namespace, value) in [("a", 1), ("b", 2)] {
            lanes.push(namespace, value);
        }
        (0..2).for_each(|_| shares.begin("a", 1));
        assert_eq!(lanes.pop(&shares), Some(("b".to_owned(), 2)));
        assert!(lanes.next(&shares).is_none() && lanes.pop(&shares).is_none());
        shares.end("a", 1);
        assert_eq!(lanes.next(&shares), Some(1));
        assert_eq!(lanes.pop(&shares), Some(("a".to_owned(), 1)));
    }
}
