//! What waits, namespace by namespace: those of one come in their order, and the namespace with the least under way is next;
//! those with equally much take turns.

use std::collections::{BTreeMap, VecDeque};

/// What a waiting value takes up of what is shared, once it is under way.
pub trait Amount {
    /// How much it takes up; 1 where values are counted.
    fn amount(&self) -> usize {
        1
    }
}

/// Waiting values, by the namespace that each is of.
#[derive(Debug)]
pub struct Lanes<T> {
    by_namespace: BTreeMap<String, VecDeque<T>>,
    /// Namespaces with something that waits; the first has had its turn longest ago.
    turns: VecDeque<String>,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self { by_namespace: BTreeMap::new(), turns: VecDeque::new() }
    }
}

impl<T: Amount> Lanes<T> {
    /// The value waits behind those of its namespace.
    pub fn push(&mut self, namespace: &str, value: T) {
        match self.by_namespace.get_mut(namespace) {
            Some(lane) => lane.push_back(value),
            None => {
                self.turns.push_back(namespace.to_owned());
                self.by_namespace.insert(namespace.to_owned(), VecDeque::from([value]));
            }
        }
    }

    /// How much the next value takes up.
    pub fn next(&self, shares: &Shares) -> Option<usize> {
        self.first(shares).map(|(_, amount)| amount)
    }

    /// The next value of the namespace that has the least under way and room for it, with the namespace.
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

    /// Whose turn it is, and how much the value takes up.
    fn first(&self, shares: &Shares) -> Option<(usize, usize)> {
        let amount = |namespace| Some(self.by_namespace.get(namespace)?.front()?.amount());
        let heads = self.turns.iter().enumerate().filter_map(|(place, namespace)| {
            let amount = amount(namespace).filter(|amount| shares.has_room(namespace, *amount))?;
            Some((shares.under_way(namespace), place, amount))
        });
        // Of those with equally much the one whose turn was longest ago.
        heads.min().map(|(_, place, amount)| (place, amount))
    }
}

/// How much of something each namespace has under way: never more than its share, so that there is room for another.
#[derive(Debug)]
pub struct Shares {
    most: usize,
    under_way: BTreeMap<String, usize>,
}

impl Shares {
    /// At most so much at once of one namespace.
    pub fn of(most: usize) -> Self {
        Self { most, under_way: BTreeMap::new() }
    }

    /// The namespace has less under way than its share, by this amount.
    pub fn has_room(&self, namespace: &str, amount: usize) -> bool {
        self.under_way(namespace) + amount <= self.most
    }

    fn under_way(&self, namespace: &str) -> usize {
        self.under_way.get(namespace).copied().unwrap_or_default()
    }

    /// So much more of this namespace is under way.
    pub fn begin(&mut self, namespace: &str, amount: usize) {
        *self.under_way.entry(namespace.to_owned()).or_default() += amount;
    }

    /// So much less is.
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
