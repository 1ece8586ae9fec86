//! Where calls of plugins run: the one difference between production and everything that must repeat.

use super::compile::SLOTS;
use fairness::{Rank, Turns};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Semaphore;

/// Where calls of plugins run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seam {
    /// On the caller's own thread, limited by fuel alone: the same on every run. For the simulator and for tests.
    Inline,
    /// On threads that may block, so many calls at once, limited by fuel and by the clock. For production.
    Blocking {
        /// How many; no more than there are slots for instances.
        at_once: usize,
    },
}

impl Seam {
    /// As many calls at once as there are cores.
    #[must_use]
    pub fn blocking() -> Self {
        Self::Blocking { at_once: std::thread::available_parallelism().map_or(2, usize::from) }
    }
}

/// A [`Seam`] with its threads' bound.
#[derive(Debug, Clone)]
pub(super) enum Seat {
    Inline,
    Blocking {
        seats: Arc<Semaphore>,
        all: usize,
        shares: Shares,
        beside: Arc<Semaphore>,
    },
    /// One that no live job waits for.
    Beside(Arc<Semaphore>),
}

/// How many of the seats one plugin may have at once, so that a plugin that loops leaves room for others. The namespaces
/// whose jobs it is asked about take turns.
#[derive(Debug, Clone)]
pub(super) struct Share(Turns);

/// By the plugin's name, with their sizes: all digests of a plugin have one share.
type Shares = Arc<Mutex<BTreeMap<String, (usize, Share)>>>;

impl Seat {
    pub(super) fn new(seam: Seam) -> Self {
        match seam {
            Seam::Inline => Self::Inline,
            Seam::Blocking { at_once } => {
                let all = at_once.clamp(1, SLOTS - 1);
                let (seats, beside) = (Arc::new(Semaphore::new(all)), Arc::new(Semaphore::new(1)));
                Self::Blocking { seats, all, shares: Shares::default(), beside }
            }
        }
    }

    /// The one seat for calls that no live job waits for: they take no place of a plugin's share.
    pub(super) fn beside(&self) -> Self {
        match self {
            Self::Inline => Self::Inline,
            Self::Blocking { beside, .. } | Self::Beside(beside) => Self::Beside(Arc::clone(beside)),
        }
    }

    /// A plugin's share: so many seats, or all but one. It is the one that the plugin has, unless its size is another now.
    pub(super) fn share(&self, plugin: &str, concurrency: Option<usize>) -> Share {
        let of_size = |size| Share(Turns::new(size, size));
        let Self::Blocking { all, shares, .. } = self else { return of_size(1) };
        let size = concurrency.unwrap_or(all - 1).clamp(1, *all);
        let mut shares = shares.lock().unwrap_or_else(PoisonError::into_inner);
        let (is, share) = shares.entry(plugin.to_owned()).or_insert_with(|| (size, of_size(size)));
        if *is != size {
            (*is, *share) = (size, of_size(size));
        }
        share.clone()
    }

    /// The result of `work`. A panic in it goes on in the caller. A caller that gives up leaves its place taken until the
    /// work is done.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        share: &Share,
        namespace: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let (own, seats) = match self {
            Self::Inline => return work(),
            // A plugin's calls wait for each other before they wait for those of others.
            Self::Blocking { seats, .. } => (Some(share.0.wait(Rank::Rest, namespace).await), seats),
            Self::Beside(seat) => (None, seat),
        };
        let seat = Arc::clone(seats).acquire_owned().await;
        let work = move || {
            let result = work();
            drop((own, seat));
            result
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::sync::mpsc;

    /// How many calls could begin.
    fn free(share: &Share) -> usize {
        let takes = || share.0.wait(Rank::Rest, "a").now_or_never();
        std::iter::from_fn(takes).collect::<Vec<_>>().len()
    }

    #[test]
    fn a_plugin_that_holds_all_of_its_seats_leaves_one_for_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let seat = Seat::new(Seam::Blocking { at_once: 3 });
        let (greedy, modest) = (seat.share("greedy", None), seat.share("modest", None));
        let (started, starts) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let ends = Arc::new(std::sync::Mutex::new(ends));
        let calls: Vec<_> = (0..10)
            .map(|_| {
                let (seat, greedy, started, ends) = (seat.clone(), greedy.clone(), started.clone(), Arc::clone(&ends));
                let wait = move || {
                    started.send(()).unwrap();
                    ends.lock().unwrap().recv().unwrap();
                };
                runtime.spawn(async move { seat.run(&greedy, "a", wait).await })
            })
            .collect();
        starts.recv().unwrap();
        starts.recv().unwrap();
        assert_eq!(runtime.block_on(seat.run(&modest, "a", || "served")), "served");
        assert_eq!(free(&greedy), 0);
        // All ends first: the calls take their seats in an order of their own.
        (0..calls.len()).for_each(|_| end.send(()).unwrap());
        calls.into_iter().for_each(|call| runtime.block_on(call).unwrap());
    }

    #[test]
    fn a_share_is_at_least_one_seat_and_at_most_all() {
        let permits = |at_once, own| free(&Seat::new(Seam::Blocking { at_once }).share("p", own));
        assert_eq!([permits(1, None), permits(8, None), permits(8, Some(0)), permits(8, Some(99))], [1, 7, 1, 8]);
    }

    #[test]
    fn a_call_that_no_live_job_waits_for_takes_nobodys_seat() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let seat = Seat::new(Seam::Blocking { at_once: 1 });
        let share = seat.share("p", None);
        let (end, ends) = mpsc::channel::<()>();
        let (beside, own) = (seat.beside(), share.clone());
        let slow = runtime.spawn(async move { beside.run(&own, "a", move || ends.recv().unwrap()).await });
        assert_eq!(runtime.block_on(seat.run(&share, "a", || "served")), "served");
        end.send(()).unwrap();
        runtime.block_on(slow).unwrap();
    }

    #[test]
    fn all_digests_of_a_plugin_have_one_share() {
        let seat = Seat::new(Seam::Blocking { at_once: 8 });
        let held = seat.share("p", None).0.wait(Rank::Rest, "a").now_or_never().unwrap();
        assert_eq!((free(&seat.share("p", None)), free(&seat.share("other", None))), (6, 7));
        drop(held);
        assert_eq!(free(&seat.share("p", None)), 7);
    }
}
