//! The work queue: each key at most once, one pass of a job at a time, namespaces in turn, and not before the time that
//! a pass asked for.

use super::recent::Recent;
use crate::job_key::{GroupKind, JobKey};
use fairness::{Amount, Lanes, Share, Shares};
use parking_lot::{Mutex, MutexGuard};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// A job is not decided again before this many times the duration of its last pass.
const PACE: u32 = 20;

/// Upper limit of that wait.
const LONGEST_PACE: Duration = Duration::from_secs(1);

/// Passes at once. Most of them wait for their writes, which have a limit of their own.
pub const PASSES: usize = 80;

/// Passes at once over jobs of one namespace: slow passes leave room for other namespaces, and so do those of several
/// namespaces with many jobs.
const PASSES_OF_ONE: Share = Share { alone: 64, beside: 16 };

/// The work queue of job keys.
#[derive(Debug, Default)]
pub struct Queue {
    inner: Mutex<Inner>,
    changed: Notify,
    times: Times,
}

/// Times of a queue, by client-go's rules.
#[derive(Debug, Clone)]
pub struct Times {
    /// Seconds for which a key was ready before its pass.
    pub waited: Histogram,
    /// Seconds that a pass took.
    pub worked: Histogram,
}

impl Default for Times {
    fn default() -> Self {
        // controller-runtime's buckets: ten nanoseconds to 1,000 seconds.
        let histogram = || Histogram::new(exponential_buckets(1e-8, 10.0, 12));
        Self { waited: histogram(), worked: histogram() }
    }
}

/// How many keys a queue has and has had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ready keys.
    pub depth: usize,
    /// Keys that have become ready so far.
    pub adds: u64,
    /// Keys that were tried again after a failed pass.
    pub retries: u64,
}

/// A pass under way.
#[derive(Debug, Clone)]
pub struct UnderWay {
    /// The kind of its job.
    pub kind: GroupKind,
    /// For how long it has run.
    pub since: Duration,
}

#[derive(Debug)]
struct Inner {
    ready: Lanes<JobKey>,
    shares: Shares,
    /// Ready keys, and since when they are.
    queued: BTreeMap<JobKey, Instant>,
    /// Keys in a pass.
    running: BTreeMap<JobKey, Running>,
    /// Keys that become ready at a later time; each key has one time.
    later: BTreeSet<(Instant, JobKey)>,
    later_at: BTreeMap<JobKey, Instant>,
    /// Earliest time of the next pass, from the pace of the last pass or the back-off of a failed one.
    not_before: BTreeMap<JobKey, Instant>,
    failures: BTreeMap<JobKey, u32>,
    recent: Recent,
    adds: u64,
    retries: u64,
}

#[derive(Debug)]
struct Running {
    since: Instant,
    /// Whether the job has changed meanwhile.
    is_dirty: bool,
}

impl Amount for JobKey {}

impl Queue {
    /// Adds a job that may have changed.
    pub fn add(&self, key: JobKey) {
        self.inner.lock().add(key, Instant::now());
        self.changed.notify_one();
    }

    /// Adds a job at this time, unless it becomes ready before.
    pub fn add_at(&self, key: JobKey, at: Instant) {
        self.inner.lock().add_later(key, at);
        self.changed.notify_one();
    }

    /// Waits for the next job. The job is not returned again before `done`, `not_yet`, `failed` or `gone`.
    pub async fn next(&self) -> JobKey {
        loop {
            let now = Instant::now();
            let (key, next) = {
                let mut inner = self.inner.lock();
                inner.promote(now);
                (inner.pop(now), inner.later.first().map(|(at, _)| *at))
            };
            if let Some((key, waited)) = key {
                self.times.waited.observe(waited.as_secs_f64());
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
        let mut inner = self.inner.lock();
        inner.failures.remove(key);
        self.finish_paced(inner, key, took);
    }

    /// Ends a pass that could not decide about the job yet, after this time. It says nothing of what failed before, so its
    /// failures in a row are kept.
    pub fn not_yet(&self, key: &JobKey, took: Duration) {
        self.finish_paced(self.inner.lock(), key, took);
    }

    /// Ends a failed pass; requeues the job after the `back_off` of its number of failures in a row.
    pub fn failed(&self, key: &JobKey, back_off: impl FnOnce(u32) -> Duration) {
        let mut inner = self.inner.lock();
        let failures = inner.failures.entry(key.clone()).or_insert(0);
        *failures += 1;
        let at = Instant::now() + back_off(*failures);
        inner.not_before.insert(key.clone(), at);
        inner.retries += 1;
        inner.add_later(key.clone(), at);
        self.finish(inner, key);
        self.changed.notify_one();
    }

    /// Ends a pass that found the job gone; keeps nothing of the job.
    pub fn gone(&self, key: &JobKey) {
        let mut inner = self.inner.lock();
        inner.not_before.remove(key);
        inner.failures.remove(key);
        inner.drop_later(key);
        self.finish(inner, key);
        self.changed.notify_one();
    }

    /// Returns the number of jobs of which the queue keeps anything.
    #[must_use]
    pub fn jobs(&self) -> usize {
        let inner = self.inner.lock();
        let keys = inner.queued.keys().chain(inner.running.keys()).chain(inner.later_at.keys());
        keys.chain(inner.not_before.keys()).chain(inner.failures.keys()).collect::<BTreeSet<_>>().len()
    }

    /// Returns how many keys there are and have been.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let inner = self.inner.lock();
        Counts { depth: inner.queued.len(), adds: inner.adds, retries: inner.retries }
    }

    /// Returns how many jobs are ready or in a pass, or have had one in the last seconds if those are more: many jobs
    /// that change at once are seldom ready at once.
    #[must_use]
    pub fn busy(&self) -> usize {
        let inner = self.inner.lock();
        (inner.queued.len() + inner.running.len()).max(inner.recent.count(Instant::now()))
    }

    /// Returns the passes under way.
    #[must_use]
    pub fn under_way(&self) -> Vec<UnderWay> {
        let running = &self.inner.lock().running;
        running.iter().map(|(key, pass)| UnderWay { kind: key.kind.clone(), since: pass.since.elapsed() }).collect()
    }

    /// Returns the times of this queue; clones share them.
    #[must_use]
    pub fn times(&self) -> &Times {
        &self.times
    }

    fn finish_paced(&self, mut inner: MutexGuard<'_, Inner>, key: &JobKey, took: Duration) {
        inner.not_before.insert(key.clone(), Instant::now() + (took * PACE).min(LONGEST_PACE));
        self.finish(inner, key);
        self.changed.notify_one();
    }

    fn finish(&self, mut inner: MutexGuard<'_, Inner>, key: &JobKey) {
        let worked = inner.finish(key);
        drop(inner);
        self.times.worked.observe(worked.as_secs_f64());
    }
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            ready: Lanes::default(),
            shares: Shares::of(PASSES_OF_ONE),
            queued: BTreeMap::new(),
            running: BTreeMap::new(),
            later: BTreeSet::new(),
            later_at: BTreeMap::new(),
            not_before: BTreeMap::new(),
            failures: BTreeMap::new(),
            recent: Recent::default(),
            adds: 0,
            retries: 0,
        }
    }
}

impl Inner {
    fn add(&mut self, key: JobKey, now: Instant) {
        if let Some(running) = self.running.get_mut(&key) {
            running.is_dirty = true;
            return;
        }
        match self.not_before.get(&key) {
            Some(at) if *at > now => {
                let at = *at;
                self.add_later(key, at);
            }
            _ => self.make_ready(key, now),
        }
    }

    fn make_ready(&mut self, key: JobKey, now: Instant) {
        self.drop_later(&key);
        if self.queued.contains_key(&key) {
            return;
        }
        self.queued.insert(key.clone(), now);
        self.adds += 1;
        let namespace = key.namespace.clone();
        self.ready.push(&namespace, key);
    }

    fn add_later(&mut self, key: JobKey, at: Instant) {
        if self.queued.contains_key(&key) {
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
            if let Some(running) = self.running.get_mut(&key) {
                running.is_dirty = true;
            } else {
                self.make_ready(key, at);
            }
        }
    }

    /// Returns the next key, and how long it was ready.
    fn pop(&mut self, now: Instant) -> Option<(JobKey, Duration)> {
        let (namespace, key) = self.ready.pop(&self.shares, now)?;
        self.shares.begin(&namespace, 1, now);
        let since = self.queued.remove(&key).unwrap_or(now);
        self.running.insert(key.clone(), Running { since: now, is_dirty: false });
        self.recent.add(&key, now);
        Some((key, now.duration_since(since)))
    }

    /// Ends the pass over this key, and returns how long it took.
    fn finish(&mut self, key: &JobKey) -> Duration {
        self.shares.end(&key.namespace, 1);
        let Some(pass) = self.running.remove(key) else { return Duration::ZERO };
        let now = Instant::now();
        if pass.is_dirty {
            self.add(key.clone(), now);
        }
        now.duration_since(pass.since)
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
        assert_eq!(queue.counts(), Counts { depth: 0, adds: 3, retries: 0 });
    }

    #[tokio::test(start_paused = true)]
    async fn slow_passes_of_one_namespace_leave_room_for_others() {
        let queue = Queue::default();
        (0..PASSES).for_each(|job| queue.add(key("a", &job.to_string())));
        let mut under_way = Vec::new();
        while let Some(job) = queue.next().now_or_never() {
            under_way.push(job);
        }
        assert_eq!(under_way.len(), PASSES_OF_ONE.alone);
        queue.add(key("b", "1"));
        assert_eq!(queue.next().await.namespace, "b");
        let (last, ended) = under_way[PASSES_OF_ONE.beside - 1..].split_first().unwrap();
        ended.iter().for_each(|job| queue.done(job, Duration::ZERO));
        assert!(queue.next().now_or_never().is_none(), "beside another namespace it has enough under way");
        queue.done(last, Duration::ZERO);
        assert_eq!(queue.next().await.namespace, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_changed_during_its_pass_is_looked_at_again() {
        let queue = Queue::default();
        queue.add(key("a", "1"));
        let first = queue.next().await;
        queue.add(first.clone());
        assert_eq!(queue.counts().depth, 0, "one pass of a job at a time");
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
        assert_eq!(queue.counts(), Counts { depth: 0, adds: 2, retries: 1 });
        assert_eq!((queue.times().waited.count(), queue.times().waited.sum()), (2, 0.0), "a back-off is no queue");
    }

    // A create whose answer is lost each time: the next pass reads what it has done and waits for the watch.
    #[tokio::test(start_paused = true)]
    async fn a_pass_that_cannot_decide_yet_does_not_end_a_row_of_failures() {
        let queue = Queue::default();
        queue.add(key("a", "1"));
        let job = queue.next().await;
        let fails = async || {
            let start = Instant::now();
            queue.failed(&job, |failures| Duration::from_secs(failures.into()));
            assert_eq!(queue.next().await, job);
            start.elapsed().as_secs()
        };
        assert_eq!(fails().await, 1);
        queue.not_yet(&job, Duration::ZERO);
        queue.add(job.clone());
        assert_eq!(queue.next().await, job);
        assert_eq!(fails().await, 2);
        queue.done(&job, Duration::ZERO);
        queue.add(job.clone());
        assert_eq!(queue.next().await, job);
        assert_eq!(fails().await, 1, "a pass that decides ends the row");
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
