//! Where calls of plugins run: the one difference between production and everything that must repeat.

use super::compile::SLOTS;
use std::sync::Arc;
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
    Blocking(Arc<Semaphore>),
}

impl Seat {
    pub(super) fn new(seam: Seam) -> Self {
        match seam {
            Seam::Inline => Self::Inline,
            Seam::Blocking { at_once } => Self::Blocking(Arc::new(Semaphore::new(at_once.clamp(1, SLOTS)))),
        }
    }

    /// The result of `work`. A panic in it goes on in the caller. A caller that gives up leaves its place taken until the
    /// work is done.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let Self::Blocking(seats) = self else { return work() };
        let seat = Arc::clone(seats).acquire_owned().await;
        let work = move || {
            let result = work();
            drop(seat);
            result
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}
