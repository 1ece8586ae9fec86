//! The pace of runs: how many objects of series are made for the jobs of one namespace. A schedule of a second is cheap to
//! write, and what it makes costs everybody: the API server, and those who run it.

use decide::{Action, Waiting, Write, decision::Part};
use parking_lot::Mutex;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// The runs a second that are made for the jobs of a namespace in the long run, and the time that each of them takes then.
const A_SECOND: u32 = 10;
const EACH: Duration = Duration::from_millis(1000 / A_SECOND as u64);

/// The runs that may be made at once after a pause: those of schedules that fall on the same minute.
const AT_ONCE: u32 = 300;

/// When all runs that were made would have been made one after another at that pace, by namespace. Past times are left out.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<BTreeMap<String, Instant>>);

/// What is left to later of the actions of a pass.
#[derive(Debug, PartialEq)]
pub(crate) struct Later {
    /// The words for it.
    pub(crate) waiting: Waiting,
    /// How long until some of it may be made.
    pub(crate) after: Duration,
}

impl Pace {
    /// Returns the actions that are taken now for a job of this namespace: all but the runs beyond its pace.
    pub(crate) fn admit(&self, namespace: &str, actions: Vec<Action>, now: Instant) -> (Vec<Action>, Option<Later>) {
        let runs = actions.iter().filter(|action| makes_run(action)).count();
        if runs == 0 {
            return (actions, None);
        }
        let mut left = self.take(namespace, runs, now);
        let is_paced = left < runs;
        let admitted = actions.into_iter().filter(|action| {
            let is_one = makes_run(action);
            let is_admitted = !is_one || left > 0;
            left -= usize::from(is_one && is_admitted);
            is_admitted
        });
        let later = is_paced.then_some(Later { waiting: Waiting::Paced { a_second: A_SECOND }, after: EACH });
        (admitted.collect(), later)
    }

    /// Takes up to `runs` runs. Returns how many there are.
    fn take(&self, namespace: &str, runs: usize, now: Instant) -> usize {
        let mut all = self.0.lock();
        all.retain(|_, until| *until > now);
        let until = all.get(namespace).copied().unwrap_or(now);
        let free = (EACH * AT_ONCE).saturating_sub(until - now).as_nanos() / EACH.as_nanos();
        let taken = u32::try_from(runs).unwrap_or(u32::MAX).min(u32::try_from(free).unwrap_or(AT_ONCE));
        all.insert(namespace.to_owned(), until + EACH * taken);
        taken as usize
    }
}

fn makes_run(action: &Action) -> bool {
    matches!(action.write(), Write::Create(Part::Run { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(runs: usize) -> Vec<Action> {
        let run = |number| Action::create("batch/v1", "Job", &format!("run-{number}"), Part::Run { run: number });
        let other = Action::create("v1", "Pod", "pod", Part::Pod { role: 0, index: 0 });
        (0..runs).map(run).chain([other]).collect()
    }

    /// Returns how many runs are made in these seconds for `jobs` jobs of a namespace that each want one a second.
    fn made(pace: &Pace, namespace: &str, jobs: usize, (from, seconds): (Instant, u64)) -> usize {
        let passes = (0..seconds).flat_map(|second| (0..jobs).map(move |_| from + Duration::from_secs(second)));
        passes.map(|now| pace.admit(namespace, pass(1), now).0.len() - 1).sum()
    }

    #[tokio::test(start_paused = true)]
    async fn schedules_of_a_second_make_runs_at_a_pace_and_leave_other_namespaces_theirs() {
        let (pace, now) = (Pace::default(), Instant::now());
        assert_eq!(made(&pace, "ns", 300, (now, 60)), 300 + 59 * 10);
        assert_eq!(made(&pace, "other", 5, (now, 60)), 300, "a pace of five a second is not held up");
    }

    #[tokio::test(start_paused = true)]
    async fn runs_beyond_the_pace_wait_and_nothing_else_does() {
        let (pace, now) = (Pace::default(), Instant::now());
        let (taken, later) = pace.admit("ns", pass(1000), now);
        assert_eq!((taken.len(), taken.last().map(|action| action.kind.as_str())), (301, Some("Pod")));
        let Later { waiting, after } = later.unwrap();
        assert_eq!(waiting, Waiting::Paced { a_second: 10 });
        let (taken, later) = pace.admit("ns", pass(700), now + after);
        assert_eq!((taken.len(), later.is_some()), (2, true), "one more");
        let (taken, later) = pace.admit("ns", pass(300), now + Duration::from_secs(60));
        assert_eq!((taken.len(), later), (301, None), "all of a burst after a pause");
    }
}
