//! What all calls of a plugin together may burn in a minute, and the part of it that is kept for namespaces that have burnt
//! little. Time is an argument.

use decide::plan::Fault;
use jiff::{SignedDuration, Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Who has used everything up waits until this part of a minute's fuel is there again, so that it is not asked in drips.
const AGAIN_FROM: i128 = 10;

/// This part of a minute's fuel is for namespaces that have not burnt their share of the minute.
const KEPT: i128 = 4;

/// A namespace that has burnt no more than this part of a minute's fuel, and nothing for a minute, is forgotten.
const FORGOTTEN: i128 = 100;

const MINUTE: i128 = 60_000;

/// The fuel of every plugin, by name: a second digest of it burns the same.
#[derive(Debug, Default)]
pub(super) struct Allowances(Mutex<BTreeMap<String, Tank>>);

/// Filled evenly, up to what is for a minute. A call that was let in may leave it in debt.
#[derive(Debug)]
struct Tank {
    left: i128,
    filled: Timestamp,
    /// What the jobs of each namespace have burnt: forgotten evenly, within minutes.
    burnt: BTreeMap<String, Burnt>,
    /// Namespaces for which it was used up and which wait.
    waiting: BTreeSet<String>,
}

/// What the jobs of a namespace have burnt, and when they last did.
#[derive(Debug)]
struct Burnt {
    fuel: i128,
    last: Timestamp,
}

impl Allowances {
    /// Lets a plugin be asked about a job of this namespace, if there is fuel for it.
    ///
    /// # Errors
    /// The plugin has used up what it has for a minute, or the namespace its share and there is little left; and when it is
    /// asked again.
    pub(super) fn admit(&self, plugin: &str, namespace: &str, per_minute: u64, now: Timestamp) -> Result<(), Fault> {
        let mut tanks = self.lock();
        let full = i128::from(per_minute);
        if !tanks.contains_key(plugin) {
            tanks.insert(plugin.to_owned(), Tank::full(full, now));
        }
        let Some(tank) = tanks.get_mut(plugin) else { return Ok(()) };
        tank.fill(full, now);
        let Some(lacks) = tank.lacks(namespace, full) else { return Ok(()) };
        let millis = (lacks * MINUTE).checked_div(full).map_or(MINUTE, |millis| millis + 1);
        let pause = SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
        let until = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        Err(Fault::Throttled { plugin: plugin.to_owned(), fuel: per_minute, until })
    }

    /// Notes what a call about a job of this namespace has burnt.
    pub(super) fn charge(&self, plugin: &str, namespace: &str, fuel: u64) {
        if let Some(tank) = self.lock().get_mut(plugin) {
            tank.left -= i128::from(fuel);
            let last = tank.filled;
            let burnt = tank.burnt.entry(namespace.to_owned()).or_insert(Burnt { fuel: 0, last });
            (burnt.fuel, burnt.last) = (burnt.fuel + i128::from(fuel), last);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Tank>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tank {
    fn full(full: i128, now: Timestamp) -> Self {
        Self { left: full, filled: now, burnt: BTreeMap::new(), waiting: BTreeSet::new() }
    }

    fn fill(&mut self, full: i128, now: Timestamp) {
        let millis = now.duration_since(self.filled).as_millis().max(0);
        self.left = (self.left + full * millis / MINUTE).min(full);
        self.filled = now.max(self.filled);
        let filled = self.filled;
        self.burnt.retain(|_, burnt| {
            burnt.fuel -= burnt.fuel * millis.min(MINUTE) / MINUTE;
            burnt.fuel > full / FORGOTTEN || filled.duration_since(burnt.last).as_millis() < MINUTE
        });
        self.waiting.retain(|namespace| self.burnt.contains_key(namespace));
    }

    /// How much has to come before the plugin is asked about this namespace; None if it is asked now. A namespace that has
    /// burnt its share, which leaves one for a namespace that is still to come, does not touch what is kept for others.
    fn lacks(&mut self, namespace: &str, full: i128) -> Option<i128> {
        let others = self.burnt.keys().filter(|other| *other != namespace).count();
        let share = full / i128::try_from(others + 2).unwrap_or(i128::MAX);
        let kept = if self.burnt.get(namespace).is_some_and(|burnt| burnt.fuel >= share) { full / KEPT } else { 0 };
        let again = kept + (full / AGAIN_FROM).max(1);
        let least = if self.waiting.contains(namespace) { again } else { kept + 1 };
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
    fn what_was_burnt_comes_back_evenly_and_another_plugin_has_its_own() {
        let all = Allowances::default();
        all.admit("greedy", "a", 600, at(0)).unwrap();
        all.charge("greedy", "a", 400);
        all.admit("greedy", "a", 600, at(0)).unwrap();
        all.charge("greedy", "a", 150);
        // 50 are left; 150 are kept for others, 60 are a tenth, 10 come back each second.
        let again = until(all.admit("greedy", "a", 600, at(0)));
        assert_eq!(again.duration_since(at(16)).as_millis(), 1);
        all.admit("modest", "a", 600, at(0)).unwrap();
        until(all.admit("greedy", "a", 600, at(15)));
        all.admit("greedy", "a", 600, again).unwrap();
    }

    #[test]
    fn a_namespace_that_burns_all_it_can_leaves_fuel_for_others() {
        let all = Allowances::default();
        let mut burnt = [0, 0];
        for second in 0..300 {
            while all.admit("p", "greedy", 600, at(second)).is_ok() {
                all.charge("p", "greedy", 10);
                burnt[0] += 10;
            }
            if second >= 60 {
                all.admit("p", "modest", 600, at(second)).unwrap();
                all.charge("p", "modest", 3);
                burnt[1] += 3;
            }
        }
        assert_eq!(burnt[1], 720);
        assert!((3000..3600).contains(&(burnt[0] + burnt[1])), "all of the fuel is used, and no more: {burnt:?}");
    }

    #[test]
    fn nothing_is_saved_up_beyond_a_minute_and_no_clock_goes_back() {
        let all = Allowances::default();
        all.admit("p", "a", 600, at(0)).unwrap();
        all.admit("p", "a", 600, at(6000)).unwrap();
        all.charge("p", "a", 600);
        until(all.admit("p", "a", 600, at(6000)));
        until(all.admit("p", "a", 600, at(0)));
        all.admit("p", "a", 600, at(6021)).unwrap();
    }

    #[test]
    fn a_plugin_without_any_fuel_is_asked_about_again_later_and_never_let_in() {
        let all = Allowances::default();
        assert_eq!(until(all.admit("p", "a", 0, at(0))), at(60));
        assert_eq!(until(all.admit("p", "a", 0, at(60))), at(120));
    }
}
