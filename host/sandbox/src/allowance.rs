//! Limits the fuel that all calls of one plugin use per minute, and reserves a part of it for namespaces that have used
//! little. The caller passes the current time.

use decide::plan::Fault;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// Divisor of a minute's fuel. A refused namespace waits for a tenth of it, so that it does not get fuel in drips.
const AGAIN_FROM: i128 = 10;

/// Divisor of a minute's fuel. A quarter of it is reserved for namespaces that have not used their share.
const RESERVE: i128 = 4;

/// Divisor of a minute's fuel. The accounting drops a namespace that has used at most 1% of it, and none for a minute.
const FORGOTTEN: i128 = 100;

const MINUTE: i128 = 60_000;

/// The fuel of each plugin, by plugin name: all digests of a plugin share it.
#[derive(Debug, Default)]
pub(super) struct Allowances(Mutex<BTreeMap<String, Tank>>);

/// A token bucket. It refills continuously up to the fuel of one minute. An admitted call may make it negative.
#[derive(Debug)]
struct Tank {
    left: i128,
    filled: Timestamp,
    /// Fuel that the jobs of each namespace have used. The amounts decay continuously, within minutes.
    used: BTreeMap<String, Used>,
    /// Namespaces that were refused and wait for fuel.
    waiting: BTreeSet<String>,
}

/// Fuel that the jobs of a namespace have used, and the time of the last charge.
#[derive(Debug)]
struct Used {
    fuel: i128,
    last: Timestamp,
}

impl Allowances {
    /// Admits a call of the plugin for a job of this namespace, if enough fuel is left.
    ///
    /// # Errors
    /// Returns [`Fault::Throttled`] with the time of the next attempt if the plugin has used up its fuel, or if the
    /// namespace has used its share and only the reserve is left.
    pub(super) fn admit(&self, plugin: &str, namespace: &str, per_minute: u64, now: Timestamp) -> Result<(), Fault> {
        let mut tanks = self.0.lock();
        let full = i128::from(per_minute);
        if !tanks.contains_key(plugin) {
            tanks.insert(plugin.to_owned(), Tank::full(full, now));
        }
        let Some(tank) = tanks.get_mut(plugin) else { return Ok(()) };
        tank.fill(full, now);
        let Some(shortfall) = tank.shortfall(namespace, full) else { return Ok(()) };
        let millis = (shortfall * MINUTE).checked_div(full).map_or(MINUTE, |millis| millis + 1);
        let pause = SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
        let until = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        Err(Fault::Throttled { plugin: plugin.to_owned(), fuel: per_minute, until })
    }

    /// Charges the fuel that a call for a job of this namespace has used.
    pub(super) fn charge(&self, plugin: &str, namespace: &str, fuel: u64) {
        if let Some(tank) = self.0.lock().get_mut(plugin) {
            tank.left -= i128::from(fuel);
            let last = tank.filled;
            let used = tank.used.entry(namespace.to_owned()).or_insert(Used { fuel: 0, last });
            (used.fuel, used.last) = (used.fuel + i128::from(fuel), last);
        }
    }
}

impl Tank {
    fn full(full: i128, now: Timestamp) -> Self {
        Self { left: full, filled: now, used: BTreeMap::new(), waiting: BTreeSet::new() }
    }

    fn fill(&mut self, full: i128, now: Timestamp) {
        let millis = now.duration_since(self.filled).as_millis().max(0);
        self.left = (self.left + full * millis / MINUTE).min(full);
        self.filled = now.max(self.filled);
        let filled = self.filled;
        self.used.retain(|_, used| {
            used.fuel -= used.fuel * millis.min(MINUTE) / MINUTE;
            used.fuel > full / FORGOTTEN || filled.duration_since(used.last).as_millis() < MINUTE
        });
        self.waiting.retain(|namespace| self.used.contains_key(namespace));
    }

    /// Returns the fuel that must refill before a call for this namespace is admitted, or None if it is admitted now.
    /// The reserve is not available to a namespace that has used its share. Shares leave room for one more namespace.
    fn shortfall(&mut self, namespace: &str, full: i128) -> Option<i128> {
        let others = self.used.keys().filter(|other| *other != namespace).count();
        let share = full / i128::try_from(others + 2).unwrap_or(i128::MAX);
        let reserve = if self.used.get(namespace).is_some_and(|used| used.fuel >= share) { full / RESERVE } else { 0 };
        let again = reserve + (full / AGAIN_FROM).max(1);
        let least = if self.waiting.contains(namespace) { again } else { reserve + 1 };
        if self.left >= least {
            self.waiting.remove(namespace);
            return None;
        }
        self.waiting.insert(namespace.to_owned());
        Some(again - self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    fn until(admitted: Result<(), Fault>) -> Timestamp {
        match admitted {
            Err(Fault::Throttled { until, .. }) => until,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn used_fuel_refills_evenly_and_each_plugin_has_its_own() {
        let all = Allowances::default();
        all.admit("greedy", "a", 600, at(0)).unwrap();
        all.charge("greedy", "a", 400);
        all.admit("greedy", "a", 600, at(0)).unwrap();
        all.charge("greedy", "a", 150);
        // 50 are left; 150 are reserved for others, 60 are a tenth, 10 refill each second.
        let again = until(all.admit("greedy", "a", 600, at(0)));
        assert_eq!(again.duration_since(at(16)).as_millis(), 1);
        all.admit("modest", "a", 600, at(0)).unwrap();
        until(all.admit("greedy", "a", 600, at(15)));
        all.admit("greedy", "a", 600, again).unwrap();
    }

    #[test]
    fn a_greedy_namespace_leaves_fuel_for_others() {
        let all = Allowances::default();
        let mut used = [0, 0];
        for second in 0..300 {
            while all.admit("p", "greedy", 600, at(second)).is_ok() {
                all.charge("p", "greedy", 10);
                used[0] += 10;
            }
            if second >= 60 {
                all.admit("p", "modest", 600, at(second)).unwrap();
                all.charge("p", "modest", 3);
                used[1] += 3;
            }
        }
        assert_eq!(used[1], 720);
        assert!((3000..3600).contains(&(used[0] + used[1])), "all of the fuel is used, and no more: {used:?}");
    }

    #[test]
    fn fuel_does_not_accumulate_beyond_a_minute_and_time_does_not_go_back() {
        let all = Allowances::default();
        all.admit("p", "a", 600, at(0)).unwrap();
        all.admit("p", "a", 600, at(6000)).unwrap();
        all.charge("p", "a", 600);
        until(all.admit("p", "a", 600, at(6000)));
        until(all.admit("p", "a", 600, at(0)));
        all.admit("p", "a", 600, at(6021)).unwrap();
    }

    #[test]
    fn a_plugin_without_fuel_is_never_admitted_and_is_retried_later() {
        let all = Allowances::default();
        assert_eq!(until(all.admit("p", "a", 0, at(0))), at(60));
        assert_eq!(until(all.admit("p", "a", 0, at(60))), at(120));
    }
}
