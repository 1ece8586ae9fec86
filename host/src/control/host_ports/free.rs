//! Free host ports, as runs of consecutive ports.

use decide::ledger::HostPorts;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

/// Free ports of a range. `runs` has the first port of each run and the port after its last; runs do not touch.
#[derive(Debug)]
pub(super) struct Free {
    range: RangeInclusive<u32>,
    runs: BTreeMap<u32, u32>,
}

impl Free {
    /// Returns a set in which every port of the range is free.
    pub(super) fn all(range: &RangeInclusive<u32>) -> Self {
        Self { range: range.clone(), runs: BTreeMap::from([(*range.start(), *range.end() + 1)]) }
    }

    /// Returns the first port of the lowest run of `count` free ports of which none is to be avoided.
    pub(super) fn lowest(&self, count: u32, avoided: &BTreeSet<u32>) -> Option<u32> {
        self.runs.iter().find_map(|(first, end)| {
            let mut first = *first;
            while first + count <= *end {
                match avoided.range(first..first + count).next_back() {
                    Some(port) => first = port + 1,
                    None => return Some(first),
                }
            }
            None
        })
    }

    /// Returns whether all of these ports are free.
    pub(super) fn contains(&self, ports: HostPorts) -> bool {
        let before = self.runs.range(..=ports.first).next_back();
        before.is_some_and(|(_, end)| ports.first + ports.count <= *end)
    }

    /// Marks these ports as taken.
    pub(super) fn take(&mut self, ports: HostPorts) {
        let (first, end) = (ports.first, ports.first + ports.count);
        let touched: Vec<_> =
            self.runs.range(..end).rev().take_while(|(_, it)| **it > first).map(|(a, b)| (*a, *b)).collect();
        for (from, to) in touched {
            self.runs.remove(&from);
            self.run(from, first);
            self.run(end, to);
        }
    }

    /// Marks these ports as free. Ignores ports outside the range.
    pub(super) fn add(&mut self, ports: HostPorts) {
        let mut first = ports.first.max(*self.range.start());
        let mut end = (ports.first + ports.count).min(*self.range.end() + 1);
        if first >= end {
            return;
        }
        if let Some((from, to)) = self.runs.range(..first).next_back().map(|(a, b)| (*a, *b))
            && to == first
        {
            self.runs.remove(&from);
            first = from;
        }
        if let Some(to) = self.runs.remove(&end) {
            end = to;
        }
        self.run(first, end);
    }

    fn run(&mut self, first: u32, end: u32) {
        if first < end {
            self.runs.insert(first, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::{
        ChaCha8Rng,
        rand_core::{RngCore, SeedableRng},
    };
    use std::collections::BTreeSet;

    const RANGE: RangeInclusive<u32> = 100..=115;

    fn runs_of(free: &BTreeSet<u32>) -> BTreeMap<u32, u32> {
        let starts = free.iter().filter(|port| !free.contains(&(*port - 1)));
        starts.map(|first| (*first, (*first..).find(|port| !free.contains(port)).unwrap())).collect()
    }

    fn all_of(ports: HostPorts) -> impl Iterator<Item = u32> {
        ports.first..ports.first + ports.count
    }

    #[test]
    fn runs_are_those_of_a_set_of_ports() {
        let mut draw = ChaCha8Rng::seed_from_u64(1);
        let (mut free, mut set) = (Free::all(&RANGE), RANGE.collect::<BTreeSet<u32>>());
        let mut held: Vec<HostPorts> = vec![];
        for _ in 0..2000 {
            let ports = HostPorts { first: 90 + draw.next_u32() % 30, count: 1 + draw.next_u32() % 8 };
            let disjoint = held.iter().all(|other| all_of(*other).all(|port| all_of(ports).all(|new| new != port)));
            assert_eq!(free.contains(ports), all_of(ports).all(|port| set.contains(&port)));
            if disjoint {
                free.take(ports);
                set.retain(|port| !ports.contains(*port));
                held.push(ports);
            } else {
                let back = held.swap_remove(draw.next_u32() as usize % held.len());
                free.add(back);
                set.extend(all_of(back).filter(|port| RANGE.contains(port)));
            }
            assert_eq!(free.runs, runs_of(&set));
            let lowest = runs_of(&set).into_iter().find(|(first, end)| end - first >= ports.count);
            assert_eq!(free.lowest(ports.count, &BTreeSet::new()), lowest.map(|(first, _)| first));
        }
    }

    #[test]
    fn ports_that_are_avoided_are_in_no_run_that_is_given() {
        let free = Free::all(&(100..=199));
        let lowest = |count, avoided: &[u32]| free.lowest(count, &avoided.iter().copied().collect());
        assert_eq!(lowest(20, &[100, 119]), Some(120));
        assert_eq!(lowest(20, &[125]), Some(100));
        assert_eq!(lowest(60, &[150]), None);
        assert_eq!(lowest(50, &[150]), Some(100));
    }
}
