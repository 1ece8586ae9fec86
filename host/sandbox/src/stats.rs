//! Call statistics of each plugin: number of calls, duration, fuel and faults.

use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

/// Maximum number of recent calls from which the median is computed.
const RECENT: usize = 256;

/// Upper bounds of the histogram of durations; a last bucket has none.
pub const BUCKETS: [Duration; 12] = [
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
];

/// Statistics of the calls to one function of one plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallStats {
    /// Number of calls.
    pub count: u64,
    /// Number of calls that ended in a fault.
    pub faults: u64,
    /// Total duration of the calls.
    pub total: Duration,
    /// Total fuel that the calls used.
    pub fuel: u64,
    /// Calls by the first of [`BUCKETS`] that their duration does not exceed.
    pub buckets: [u64; BUCKETS.len() + 1],
    recent: VecDeque<Duration>,
}

impl CallStats {
    /// Returns the median duration of the most recent calls, or zero if there were none.
    #[must_use]
    pub fn median(&self) -> Duration {
        let mut sorted: Vec<Duration> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

/// Counts calls by plugin and function. All threads share it.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<BTreeMap<String, BTreeMap<&'static str, CallStats>>>);

/// The measurements of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) function: &'static str,
    pub(super) took: Duration,
    pub(super) fuel: u64,
    pub(super) faulted: bool,
}

impl Tally {
    pub(super) fn record(&self, plugin: &str, calls: &[Call]) {
        let mut all = self.0.lock();
        if !all.contains_key(plugin) {
            all.insert(plugin.to_owned(), BTreeMap::new());
        }
        let Some(functions) = all.get_mut(plugin) else { return };
        for call in calls {
            let stats = functions.entry(call.function).or_default();
            stats.count += 1;
            stats.faults += u64::from(call.faulted);
            stats.total += call.took;
            stats.fuel += call.fuel;
            stats.buckets[BUCKETS.partition_point(|bound| *bound < call.took)] += 1;
            if stats.recent.len() == RECENT {
                stats.recent.pop_front();
            }
            stats.recent.push_back(call.took);
        }
    }

    /// Returns the statistics of every function of every plugin, as (plugin, function, statistics).
    pub(super) fn read(&self) -> Vec<(String, String, CallStats)> {
        let all = self.0.lock();
        let of = |plugin: &String, functions: &BTreeMap<&'static str, CallStats>| {
            let each =
                functions.iter().map(|(function, stats)| (plugin.clone(), (*function).to_owned(), stats.clone()));
            each.collect::<Vec<_>>()
        };
        all.iter().flat_map(|(plugin, functions)| of(plugin, functions)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_covers_only_the_most_recent_calls() {
        let tally = Tally::default();
        let call =
            |micros| Call { function: "judge", took: Duration::from_micros(micros), fuel: 2, faulted: micros == 9 };
        for micros in [9_000_000, 1, 9, 5] {
            tally.record("paddle", &[call(micros)]);
        }
        for _ in 0..RECENT - 3 {
            tally.record("paddle", &[call(7)]);
        }
        let read = tally.read();
        let [(_, function, stats)] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!((function.as_str(), stats.count, stats.faults, stats.fuel), ("judge", 257, 1, 514));
        assert_eq!(stats.median(), Duration::from_micros(7));
        let mut buckets = [0; BUCKETS.len() + 1];
        (buckets[0], buckets[BUCKETS.len()]) = (256, 1);
        assert_eq!(stats.buckets, buckets);
    }
}
