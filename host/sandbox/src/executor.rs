//! Where plugin calls run: the only difference between production and reproducible runs.

use super::{beside::Beside, compile::SLOTS, trace};
use fairness::{Rank, Turns};
use parking_lot::Mutex;
use std::{collections::BTreeMap, io, sync::Arc};
use tokio::sync::Semaphore;

/// Where plugin calls run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// On the caller's own thread, limited by fuel only: the same result on every run. For the simulator and for tests.
    Inline,
    /// On blocking threads, limited by fuel, by the clock and in number. For production.
    Blocking {
        /// Maximum number of calls at once, which the number of instance slots also bounds.
        at_once: usize,
    },
}

impl Executor {
    /// Returns a executor that runs as many calls at once as there are cores.
    #[must_use]
    pub fn blocking() -> Self {
        Self::Blocking { at_once: std::thread::available_parallelism().map_or(2, usize::from) }
    }
}

/// Runs calls as an [`Executor`] says, within its permits.
#[derive(Debug, Clone)]
pub(super) enum Runner {
    Inline,
    Blocking {
        permits: Arc<Semaphore>,
        all: usize,
        shares: Shares,
        beside: Beside,
    },
    /// For calls that no live job waits for.
    Beside(Beside),
}

/// The permits that one plugin may hold at once, so that a plugin that loops leaves permits for others. The namespaces
/// of its jobs take turns.
#[derive(Debug, Clone)]
pub(super) struct Share(Turns);

/// Size and share by plugin name: all digests of a plugin have one share.
type Shares = Arc<Mutex<BTreeMap<String, (usize, Share)>>>;

impl Runner {
    /// Returns a runner for this executor.
    ///
    /// # Errors
    /// The system has no resources for a thread.
    pub(super) fn new(executor: Executor) -> io::Result<Self> {
        Ok(match executor {
            Executor::Inline => Self::Inline,
            Executor::Blocking { at_once } => {
                let all = at_once.clamp(1, SLOTS - 1);
                let (permits, beside) = (Arc::new(Semaphore::new(all)), Beside::start()?);
                Self::Blocking { permits, all, shares: Shares::default(), beside }
            }
        })
    }

    /// Returns the runner of work that no live job waits for. It does one piece at a time, on a thread of lower priority, and
    /// takes no permit of a plugin's share.
    pub(super) fn beside(&self) -> Self {
        match self {
            Self::Inline => Self::Inline,
            Self::Blocking { beside, .. } | Self::Beside(beside) => Self::Beside(beside.clone()),
        }
    }

    /// Begins work that nobody waits for, where work runs that no live job waits for.
    pub(super) fn begin_beside(&self, work: impl FnOnce() + Send + 'static) {
        match self {
            Self::Inline => work(),
            Self::Blocking { beside, .. } | Self::Beside(beside) => beside.begin(work),
        }
    }

    /// Returns the plugin's share of `concurrency` permits, or of all but one. Beside another namespace, one has all of them
    /// but one: a call may take seconds. It is the existing share, unless the size has changed.
    pub(super) fn share(&self, plugin: &str, concurrency: Option<usize>) -> Share {
        let of_size = |size| Share(Turns::new(size, fairness::Share { alone: size, beside: (size - 1).max(1) }));
        let Self::Blocking { all, shares, .. } = self else { return of_size(1) };
        let size = concurrency.unwrap_or(all - 1).clamp(1, *all);
        let mut shares = shares.lock();
        let (is, share) = shares.entry(plugin.to_owned()).or_insert_with(|| (size, of_size(size)));
        if *is != size {
            (*is, *share) = (size, of_size(size));
        }
        share.clone()
    }

    /// Runs `work` in the trace of the caller and returns its result. A panic of `work` resumes in the caller. If the
    /// caller is dropped, its permits stay taken until the work ends. Never returns if the runtime shuts down before the
    /// work begins.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        share: &Share,
        namespace: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let permits = match self {
            Self::Inline => return work(),
            Self::Blocking { permits, .. } => permits,
            Self::Beside(beside) => return beside.run(work).await,
        };
        // A call waits for a permit of its plugin's share before it waits for one of all permits.
        let own = share.0.wait(Rank::Rest, namespace).await;
        let permit = Arc::clone(permits).acquire_owned().await;
        let span = trace::current();
        let work = move || {
            let result = span.in_scope(work);
            drop((own, permit));
            result
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_cancelled) => std::future::pending().await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::sync::mpsc;

    /// Returns the number of calls that could start.
    fn free(share: &Share) -> usize {
        let takes = || share.0.wait(Rank::Rest, "a").now_or_never();
        std::iter::from_fn(takes).collect::<Vec<_>>().len()
    }

    #[test]
    fn a_plugin_that_holds_all_of_its_permits_leaves_one_for_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let runner = Runner::new(Executor::Blocking { at_once: 3 }).unwrap();
        let (greedy, modest) = (runner.share("greedy", None), runner.share("modest", None));
        let (started, starts) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let ends = Arc::new(parking_lot::Mutex::new(ends));
        let calls: Vec<_> = (0..10)
            .map(|_| {
                let (runner, greedy, started, ends) =
                    (runner.clone(), greedy.clone(), started.clone(), Arc::clone(&ends));
                let wait = move || {
                    started.send(()).unwrap();
                    ends.lock().recv().unwrap();
                };
                runtime.spawn(async move { runner.run(&greedy, "a", wait).await })
            })
            .collect();
        starts.recv().unwrap();
        starts.recv().unwrap();
        assert_eq!(runtime.block_on(runner.run(&modest, "a", || "served")), "served");
        assert_eq!(free(&greedy), 0);
        // Send every end first: the order in which the calls get their permits is not fixed.
        (0..calls.len()).for_each(|_| end.send(()).unwrap());
        calls.into_iter().for_each(|call| runtime.block_on(call).unwrap());
    }

    // Calls of one namespace that take seconds.
    #[test]
    fn a_call_for_another_namespace_waits_for_one_call_and_not_for_all_that_were_there_before() {
        let share = Runner::new(Executor::Blocking { at_once: 4 }).unwrap().share("p", None);
        let wait = |namespace| Box::pin(share.0.wait(Rank::Rest, namespace));
        let mut held: Vec<_> = (0..3).map(|_| wait("greedy").now_or_never().unwrap()).collect();
        let mut waiting = [wait("greedy"), wait("greedy")];
        assert!(waiting.iter_mut().all(|call| call.now_or_never().is_none()));
        let mut modest = wait("modest");
        assert!((&mut modest).now_or_never().is_none());
        held.pop();
        assert!(modest.now_or_never().is_some());
    }

    #[test]
    fn a_share_has_at_least_one_permit_and_at_most_all() {
        let permits = |at_once, own| free(&Runner::new(Executor::Blocking { at_once }).unwrap().share("p", own));
        assert_eq!([permits(1, None), permits(8, None), permits(8, Some(0)), permits(8, Some(99))], [1, 7, 1, 8]);
    }

    #[test]
    fn a_call_that_no_live_job_waits_for_takes_no_permit_of_a_share() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let runner = Runner::new(Executor::Blocking { at_once: 1 }).unwrap();
        let share = runner.share("p", None);
        let (end, ends) = mpsc::channel::<()>();
        let (beside, own) = (runner.beside(), share.clone());
        let slow = runtime.spawn(async move { beside.run(&own, "a", move || ends.recv().unwrap()).await });
        assert_eq!(runtime.block_on(runner.run(&share, "a", || "served")), "served");
        end.send(()).unwrap();
        runtime.block_on(slow).unwrap();
    }

    #[test]
    fn all_digests_of_a_plugin_have_one_share() {
        let runner = Runner::new(Executor::Blocking { at_once: 8 }).unwrap();
        let held = runner.share("p", None).0.wait(Rank::Rest, "a").now_or_never().unwrap();
        assert_eq!((free(&runner.share("p", None)), free(&runner.share("other", None))), (6, 7));
        drop(held);
        assert_eq!(free(&runner.share("p", None)), 7);
    }
}
