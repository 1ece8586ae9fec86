//! The work queue: each key at most once, one pass of a job at a time, namespaces in turn, and not before the time that
//! a pass asked for.

use crate::job_key::JobKey;
use fairness::{Amount, Lanes, Shares};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// A job is not decided again before this many times the duration of its last pass.
const PACE: u32 = 20;

/// Upper limit of that wait.
const LONGEST_PACE: Duration = Duration::from_secs(1);

/// Passes at once. Most of them wait for their writes, which have a limit of their own.
pub(crate) const PASSES: usize = 80;

/// Passes at once over jobs of one namespace: slow passes leave room for other namespaces.
const PASSES_OF_ONE: usize = 64;

/// The work queue of job keys.
#[derive(Debug, Default)]
pub struct Queue {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug)]
struct Inner {
    ready: Lanes<JobKey>,
    shares: Shares,
    queued: BTreeSet<JobKey>,
    /// Keys in a pass, and whether the job has changed meanwhile.
    running: BTreeMap<JobKey, bool>,
    /// Keys that become ready at a later time; each key has one time.
    later: BTreeSet<(Instant, JobKey)>,
    later_at: BTreeMap<JobKey, Instant>,
    /// Earliest time of the next pass, from the pace of the last pass or the back-off of a failed one.
    not_before: BTreeMap<JobKey, Instant>,
    failures: BTreeMap<JobKey, u32>,
}

impl Amount for JobKey {}

impl Queue {
    /// Adds a job that may have changed.
    pub fn add(&self, key: JobKey) {
        self.lock().add(key, Instant::now());
        self.changed.notify_one();
    }

    /// Adds a job at this time, unless it becomes ready before.
    pub fn add_at(&self, key: JobKey, at: Instant) {
        self.lock().add_later(key, at);
        self.changed.notify_one();
    }

    /// Waits for the next job. The job is not returned again before `done`, `failed` or `gone`.
    pub async fn next(&self) -> JobKey {
        loop {
            let now = Instant::now();
            let (key, next) = {
                let mut inner = self.lock();
                inner.promote(now);
                (inner.pop(), inner.later.first().map(|(at, _)| *at))
            };
            if let Some(key) = key {
                return key;
            }
            let due = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = due => {}
            }
        }
    }

    /// Ends a pass that succeeded after this time.
    pub fn done(&self, key: &JobKey, took: Duration) {
        let mut inner = self.lock();
        inner.failures.remove(key);
        inner.not_before.insert(key.clone(), Instant::now() + (took * PACE).min(LONGEST_PACE));
        inner.finish(key);
        drop(inner);
        self.changed.notify_one();
    }

    /// Ends a failed pass; requeues the job after the `back_off` of its number of failures in a row.
    pub fn failed(&self, key: &JobKey, back_off: impl FnOnce(u32) -> Duration) {
        let mut inner = self.lock();
        let failures = inner.failures.entry(key.clone()).or_insert(0);
        *failures += 1;
        let at = Instant::now() + back_off(*failures);
        inner.not_before.insert(key.clone(), at);
        inner.finish(key);
        inner.add_later(key.clone(), at);
        drop(inner);
        self.changed.notify_one();
    }

    /// Ends a pass that found the job gone; keeps nothing of the job.
    pub fn gone(&self, key: &JobKey) {
        let mut inner = self.lock();
        inner.not_before.remove(key);
        inner.failures.remove(key);
        inner.drop_later(key);
        inner.finish(key);
        drop(inner);
        self.changed.notify_one();
    }

    /// Returns the number of jobs of which the queue keeps anything.
    #[must_use]
    pub fn jobs(&self) -> usize {
        let inner = self.lock();
        let keys = inner.queued.iter().chain(inner.running.keys()).chain(inner.later_at.keys());
        keys.chain(inner.not_before.keys()).chain(inner.failures.keys()).collect::<BTreeSet<_>>().len()
    }

    /// Returns the number of ready keys.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.lock().queued.len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            ready: Lanes::default(),
            shares: Shares::of(PASSES_OF_ONE),
            queued: BTreeSet::new(),
            running: BTreeMap::new(),
            later: BTreeSet::new(),
            later_at: BTreeMap::new(),
            not_before: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }
}

impl Inner {
    fn add(&mut self, key: JobKey, now: Instant) {
        if let Some(dirty) = self.running.get_mut(&key) {
            *dirty = true;
            return;
        }
        match self.not_before.get(&key) {
            Some(at) if *at > now => {
                let at = *at;
                self.add_later(key, at);
            }
            _ => self.make_ready(key),
        }
    }

    fn make_ready(&mut self, key: JobKey) {
        self.drop_later(&key);
        if !self.queued.insert(key.clone()) {
            return;
        }
        let namespace = key.namespace.clone();
        self.ready.push(&namespace, key);
    }

    fn add_later(&mut self, key: JobKey, at: Instant) {
        if self.queued.contains(&key) {
            return;
        }
        match self.later_at.get(&key) {
            Some(earlier) if *earlier <= at => return,
            Some(later) => {
                self.later.remove(&(*later, key.clone()));
            }
            None => {}
        }
        self.later_at.insert(key.clone(), at);
        self.later.insert((at, key));
    }

    fn drop_later(&mut self, key: &JobKey) {
        if let Some(at) = self.later_at.remove(key) {
            self.later.remove(&(at, key.clone()));
        }
    }

    fn promote(&mut self, now: Instant) {
        while let Some((at, key)) = self.later.first().cloned() {
            if at > now {
                break;
            }
            self.later.remove(&(at, key.clone()));
            self.later_at.remove(&key);
            if let Some(dirty) = self.running.get_mut(&key) {
                *dirty = true;
            } else {
                self.make_ready(key);
            }
        }
    }

    fn pop(&mut self) -> Option<JobKey> {
        let (namespace, key) = self.ready.pop(&self.shares)?;
        self.shares.begin(&namespace, 1);
        self.queued.remove(&key);
        self.running.insert(key.clone(), false);
        Some(key)
    }

    fn finish(&mut self, key: &JobKey) {
        self.shares.end(&key.namespace, 1);
        if self.running.remove(key) == Some(true) {
            self.add(key.clone(), Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_key::GroupKind;
    use futures::FutureExt;

    fn key(namespace: &str, name: &str) -> JobKey {
        JobKey::new(&GroupKind::new("example.com", "Tale"), namespace, name)
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_take_turns_and_a_key_stands_once() {
        let queue = Queue::default();
        for (namespace, name) in [("a", "1"), ("a", "2"), ("a", "1"), ("b", "3")] {
            queue.add(key(namespace, name));
        }
        let order = [queue.next().await.name, queue.next().await.name, queue.next().await.name];
        assert_eq!(order, ["1", "3", "2"]);
        assert_eq!(queue.depth(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_passes_of_one_namespace_leave_room_for_others() {
        let queue = Queue::default();
        (0..PASSES).for_each(|job| queue.add(key("a", &job.to_string())));
        let mut under_way = Vec::new();
        while let Some(job) = queue.next().now_or_never() {
            under_way.push(job);
        }
        assert_eq!(under_way.len(), PASSES_OF_ONE);
        queue.add(key("b", "1"));
        assert_eq!(queue.next().await.namespace, "b");
        queue.done(&under_way[0], Duration::ZERO);
        assert_eq!(queue.next().await.namespace, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_changed_during_its_pass_is_looked_at_again() {
        let queue = Queue::default();
        queue.add(key("a", "1"));
        let first = queue.next().await;
        queue.add(first.clone());
        assert_eq!(queue.depth(), 0, "one pass of a job at a time");
        queue.done(&first, Duration::ZERO);
        assert_eq!(queue.next().await, first);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_pass_waits_for_its_back_off_whatever_happens_meanwhile() {
        let queue = Queue::default();
        queue.add(key("a", "1"));
        let first = queue.next().await;
        let start = Instant::now();
        queue.failed(&first, |failures| Duration::from_secs(u64::from(failures)));
        queue.add(first.clone());
        assert_eq!(queue.next().await, first);
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_of_a_job_that_is_gone() {
        let queue = Queue::default();
        queue.add(key("a", "1"));
        let first = queue.next().await;
        queue.failed(&first, |_| Duration::from_secs(1));
        assert_eq!(queue.next().await, first);
        queue.add_at(first.clone(), Instant::now() + Duration::from_secs(3600));
        queue.gone(&first);
        assert_eq!(queue.jobs(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_is_made_again_in_the_pass_that_found_it_gone_is_looked_at() {
        let queue = Queue::default();
        queue.add(key("a", "1"));
        let first = queue.next().await;
        queue.add(first.clone());
        queue.gone(&first);
        assert_eq!(queue.next().await, first);
    }
}
