//! Long-lived tasks: a task that panics or ends is counted, logged, and started again with back-off.

use futures::FutureExt;
use parking_lot::Mutex;
use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::{
    task::AbortHandle,
    time::{Instant, sleep},
};
use tracing::error;

/// Time from the end of a task to its next start: doubled with each end in a row, from the first value to the second.
const LEAST_BACK_OFF: Duration = Duration::from_secs(1);
const MOST_BACK_OFF: Duration = Duration::from_secs(60);

/// The end of a task that has run for this long counts as the first in a row.
const STEADY: Duration = Duration::from_secs(120);

/// Aborts a task when dropped.
pub struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How often each long-lived task was started again, by its name; 0 for one that has run ever since.
#[derive(Debug, Default)]
pub struct Restarts(Mutex<BTreeMap<&'static str, u64>>);

impl Restarts {
    /// Returns the name of each task, and how often it was started again.
    #[must_use]
    pub fn read(&self) -> Vec<(&'static str, u64)> {
        self.0.lock().iter().map(|(task, restarts)| (*task, *restarts)).collect()
    }

    /// Notes that a task runs: a first restart is an increase only then.
    fn begin(&self, task: &'static str) {
        self.0.lock().entry(task).or_insert(0);
    }

    /// Counts one more restart of a task.
    pub(crate) fn add(&self, task: &'static str) {
        *self.0.lock().entry(task).or_insert(0) += 1;
    }
}

/// Runs the task that `start` returns until the returned value is dropped. Starts it again if it ends or panics.
pub fn supervise<F>(
    task: &'static str,
    restarts: &Arc<Restarts>,
    mut start: impl FnMut() -> F + Send + 'static,
) -> AbortOnDrop
where
    F: Future<Output = ()> + Send,
{
    let restarts = Arc::clone(restarts);
    restarts.begin(task);
    let supervised = tokio::spawn(async move {
        let mut in_a_row = 0;
        loop {
            let began = Instant::now();
            let ended = AssertUnwindSafe(async { start().await }).catch_unwind().await;
            in_a_row = if began.elapsed() < STEADY { in_a_row + 1 } else { 1 };
            restarts.add(task);
            let wait = back_off(in_a_row);
            let (panicked, seconds) = (ended.is_err(), wait.as_secs());
            error!(task, panicked, seconds, "a task of the host ended and is started again; report this");
            sleep(wait).await;
        }
    });
    AbortOnDrop(supervised.abort_handle())
}

fn back_off(in_a_row: u32) -> Duration {
    LEAST_BACK_OFF.saturating_mul(1 << in_a_row.saturating_sub(1).min(16)).min(MOST_BACK_OFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    /// Starts a supervised task, which sleeps if `does` returns true and then ends; returns the times of its starts.
    fn starts(does: fn() -> bool) -> (mpsc::UnboundedReceiver<Instant>, Arc<Restarts>, AbortOnDrop) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let restarts = Arc::default();
        let task = supervise("play", &restarts, move || {
            sender.send(Instant::now()).unwrap();
            async move {
                if does() {
                    sleep(STEADY).await;
                }
            }
        });
        (receiver, restarts, task)
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_counted_and_started_again_with_back_off() {
        let (mut starts, restarts, _task) = starts(|| panic!("in the first act"));
        let mut at = Vec::new();
        for _ in 0..9 {
            at.push(starts.recv().await.unwrap());
        }
        let waits: Vec<_> = at.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(matches!(restarts.read()[..], [("play", 8 | 9)]), "{:?}", restarts.read());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_has_run_for_long_is_started_again_at_once() {
        let (mut starts, _, _task) = starts(|| true);
        let first = starts.recv().await.unwrap();
        for number in 1..5 {
            assert_eq!(starts.recv().await.unwrap() - first, (STEADY + LEAST_BACK_OFF) * number);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_ends_with_its_guard() {
        let (mut starts, _, task) = starts(|| false);
        starts.recv().await.unwrap();
        drop(task);
        assert_eq!(starts.recv().await, None);
    }
}
