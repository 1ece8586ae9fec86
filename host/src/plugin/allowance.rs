//! What all calls of a plugin together may burn in a minute. Time is an argument.

use decide::plan::Fault;
use jiff::{SignedDuration, Timestamp};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// A plugin that has used everything up waits until it has this part of it again, so that it is not asked in drips.
const AGAIN_FROM: i128 = 10;

const MINUTE: i128 = 60_000;

/// The fuel of every plugin, by name: a second digest of it burns the same.
#[derive(Debug, Default)]
pub(super) struct Allowances(Mutex<BTreeMap<String, Tank>>);

/// Filled evenly, up to what is for a minute. A call that was let in may leave it in debt.
#[derive(Debug)]
struct Tank {
    left: i128,
    filled: Timestamp,
    /// It was used up and waits.
    waits: bool,
}

impl Allowances {
    /// Lets a plugin be asked that has fuel left.
    ///
    /// # Errors
    /// It has used up what it has for a minute, and when it is asked again.
    pub(super) fn admit(&self, plugin: &str, per_minute: u64, now: Timestamp) -> Result<(), Fault> {
        let mut tanks = self.lock();
        let full = i128::from(per_minute);
        if !tanks.contains_key(plugin) {
            tanks.insert(plugin.to_owned(), Tank { left: full, filled: now, waits: false });
        }
        let Some(tank) = tanks.get_mut(plugin) else { return Ok(()) };
        let millis = now.duration_since(tank.filled).as_millis().max(0);
        tank.left = (tank.left + full * millis / MINUTE).min(full);
        tank.filled = now.max(tank.filled);
        let least = if tank.waits { (full / AGAIN_FROM).max(1) } else { 1 };
        tank.waits = tank.left < least;
        if !tank.waits {
            return Ok(());
        }
        let lacks = (full / AGAIN_FROM).max(1) - tank.left;
        let millis = (lacks * MINUTE).checked_div(full).map_or(MINUTE, |millis| millis + 1);
        let pause = SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
        let until = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        Err(Fault::Throttled { plugin: plugin.to_owned(), fuel: per_minute, until })
    }

    /// Notes what a call has burnt.
    pub(super) fn charge(&self, plugin: &str, fuel: u64) {
        if let Some(tank) = self.lock().get_mut(plugin) {
            tank.left -= i128::from(fuel);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Tank>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        all.admit("greedy", 600, at(0)).unwrap();
        all.charge("greedy", 500);
        all.admit("greedy", 600, at(0)).unwrap();
        all.charge("greedy", 200);
        // 100 in debt; 60 are a tenth, 10 come back each second.
        let again = until(all.admit("greedy", 600, at(0)));
        assert_eq!(again.duration_since(at(16)).as_millis(), 1);
        all.admit("modest", 600, at(0)).unwrap();
        until(all.admit("greedy", 600, at(15)));
        all.admit("greedy", 600, again).unwrap();
    }

    #[test]
    fn nothing_is_saved_up_beyond_a_minute_and_no_clock_goes_back() {
        let all = Allowances::default();
        all.admit("p", 600, at(0)).unwrap();
        all.admit("p", 600, at(6000)).unwrap();
        all.charge("p", 600);
        until(all.admit("p", 600, at(6000)));
        until(all.admit("p", 600, at(0)));
        all.admit("p", 600, at(6006)).unwrap();
    }

    #[test]
    fn a_plugin_without_any_fuel_is_asked_about_again_later_and_never_let_in() {
        let all = Allowances::default();
        assert_eq!(until(all.admit("p", 0, at(0))), at(60));
        assert_eq!(until(all.admit("p", 0, at(60))), at(120));
    }
}
