//! What waits, namespace by namespace: those of one come in their order, and the namespace with the least under way is next;
//! those with equally much take turns.

use std::collections::{BTreeMap, VecDeque};

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

impl<T> Lanes<T> {
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

    /// Something waits of a namespace that the shares leave room for.
    pub fn has(&self, shares: &Shares) -> bool {
        self.turns.iter().any(|namespace| shares.has_room(namespace))
    }

    /// The next value of the namespace that has the least under way and room for more, with the namespace.
    pub fn pop(&mut self, shares: &Shares) -> Option<(String, T)> {
        let with_room = self.turns.iter().enumerate().filter(|(_, namespace)| shares.has_room(namespace));
        let (place, _) = with_room.min_by_key(|(_, namespace)| shares.under_way(namespace))?;
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
}

/// How much of something each namespace has under way: never more than its share, so that there is room for another.
#[derive(Debug)]
pub struct Shares {
    most: usize,
    under_way: BTreeMap<String, usize>,
}

impl Shares {
    /// At most so many at once of one namespace.
    pub fn of(most: usize) -> Self {
        Self { most, under_way: BTreeMap::new() }
    }

    /// The namespace has less under way than its share.
    pub fn has_room(&self, namespace: &str) -> bool {
        self.under_way(namespace) < self.most
    }

    fn under_way(&self, namespace: &str) -> usize {
        self.under_way.get(namespace).copied().unwrap_or_default()
    }

    /// One more of this namespace is under way.
    pub fn begin(&mut self, namespace: &str) {
        *self.under_way.entry(namespace.to_owned()).or_default() += 1;
    }

    /// One less is.
    pub fn end(&mut self, namespace: &str) {
        if let Some(count) = self.under_way.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        (0..2).for_each(|_| shares.begin("a"));
        let next = || {
            let (namespace, value) = lanes.pop(&shares)?;
            shares.begin(&namespace);
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
        (0..2).for_each(|_| shares.begin("a"));
        assert_eq!(lanes.pop(&shares), Some(("b".to_owned(), 2)));
        assert!(!lanes.has(&shares) && lanes.pop(&shares).is_none());
        shares.end("a");
        assert!(lanes.has(&shares));
        assert_eq!(lanes.pop(&shares), Some(("a".to_owned(), 1)));
    }
}
