//! How many different jobs have had a pass lately.

use crate::job_key::JobKey;
use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};
use tokio::time::Instant;

/// A job counts for at least this long after its pass, and at most for twice as long.
const WINDOW: Duration = Duration::from_secs(5);

/// The jobs that had a pass in this window and, as a number, in the one before.
#[derive(Debug)]
pub(super) struct Recent {
    began: Instant,
    /// Hashes of the jobs' keys: two jobs in one place are as good as one.
    jobs: HashSet<u64>,
    before: usize,
}

impl Default for Recent {
    fn default() -> Self {
        Self { began: Instant::now(), jobs: HashSet::new(), before: 0 }
    }
}

impl Recent {
    /// Counts a job that has its pass now.
    pub(super) fn add(&mut self, job: &JobKey, now: Instant) {
        if now.duration_since(self.began) >= WINDOW {
            self.before = self.in_window(now);
            // The set of a start with many jobs is not kept.
            self.jobs = HashSet::new();
            self.began = now;
        }
        let mut hasher = DefaultHasher::new();
        job.hash(&mut hasher);
        self.jobs.insert(hasher.finish());
    }

    /// Returns the larger number of the two windows.
    pub(super) fn count(&self, now: Instant) -> usize {
        let before = if now.duration_since(self.began) < WINDOW { self.before } else { 0 };
        before.max(self.in_window(now))
    }

    /// Returns the jobs of the window, or none if it is over for as long as it was.
    fn in_window(&self, now: Instant) -> usize {
        if now.duration_since(self.began) < 2 * WINDOW { self.jobs.len() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_key::GroupKind;

    #[test]
    fn a_job_counts_once_and_for_five_to_ten_seconds() {
        let (mut recent, start) = (Recent::default(), Instant::now());
        recent.began = start;
        let at = |seconds| start + Duration::from_secs(seconds);
        let job = |name: &str| JobKey::new(&GroupKind::new("example.com", "Tale"), "a", name);
        for name in ["one", "two", "one"] {
            recent.add(&job(name), at(4));
        }
        assert_eq!([recent.count(at(4)), recent.count(at(9)), recent.count(at(10))], [2, 2, 0]);
        recent.add(&job("one"), at(6));
        assert_eq!(
            [recent.count(at(6)), recent.count(at(10)), recent.count(at(11))],
            [2, 2, 1],
            "of the window before"
        );
        recent.add(&job("three"), at(30));
        assert_eq!([recent.count(at(30)), recent.count(at(39)), recent.count(at(40))], [1, 1, 0]);
    }
}
