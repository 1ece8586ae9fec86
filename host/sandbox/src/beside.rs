//! The one thread for work that no live job waits for: what readers are answered, calls of plugins for them and for
//! candidates, what is compressed to be kept.
//!
//! All of it has one core, and less where live jobs need that: the thread does one piece at a time, in the order in which
//! they came, and is of lower priority. Who has much to do hands over a piece of it at a time. A thread of its own, since none
//! gets its priority back.

use super::trace;
use rustix::process::setpriority_process;
use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};
use tokio::sync::oneshot;
use tracing::{debug, error};

/// The nice value of the thread: on the core of a busy one of 0 it gets a quarter. No less, since calls of plugins have
/// deadlines, and it takes the locks that passes take, each for some instructions.
const NICE: i32 = 5;

type Work = Box<dyn FnOnce() + Send>;

/// The thread; it ends with the last clone.
#[derive(Debug, Clone)]
pub(super) struct Beside(Sender<Work>);

impl Beside {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no resources for it.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, receiver) = channel();
        thread::Builder::new().name("beside".to_owned()).spawn(move || do_all(receiver))?;
        Ok(Self(sender))
    }

    /// Runs `work` in the trace of the caller and returns its result. A panic of `work` resumes in the caller. Work of a
    /// caller who is dropped before is not begun.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = oneshot::channel();
        let span = trace::current();
        self.hand_over(Box::new(move || {
            if !done.is_closed() {
                drop(done.send(catch_unwind(AssertUnwindSafe(|| span.in_scope(work)))));
            }
        }));
        match result.await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_dropped) => std::future::pending().await,
        }
    }

    /// Hands over work that nobody waits for.
    pub(super) fn begin(&self, work: impl FnOnce() + Send + 'static) {
        self.hand_over(Box::new(work));
    }

    fn hand_over(&self, work: Work) {
        // The thread takes work for as long as there is a sender.
        drop(self.0.send(work));
    }
}

fn do_all(works: Receiver<Work>) {
    if let Err(error) = setpriority_process(None, NICE) {
        debug!(%error, "work for readers has the priority of live jobs");
    }
    for work in works {
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            error!("the host panicked in work that no live job waits for");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{FutureExt, executor::block_on};

    #[test]
    fn one_piece_is_done_at_a_time_and_the_first_to_come_is_first() {
        let beside = Beside::start().unwrap();
        let ((end, ends), (note, noted)) = (channel(), channel());
        let slow = beside.run(move || ends.recv().unwrap());
        let mut slow = Box::pin(slow);
        assert!((&mut slow).now_or_never().is_none());
        let [mut first, mut second] = ["first", "second"].map(|name| {
            let note = note.clone();
            Box::pin(beside.run(move || note.send(name).unwrap()))
        });
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        assert!(noted.try_recv().is_err(), "the thread is taken");
        end.send(()).unwrap();
        block_on(async { (slow.await, second.await, first.await) });
        assert_eq!(noted.try_iter().collect::<Vec<_>>(), ["first", "second"]);
    }

    #[test]
    fn work_of_a_caller_who_is_gone_is_not_begun() {
        let beside = Beside::start().unwrap();
        let (end, ends) = channel::<()>();
        let mut slow = Box::pin(beside.run(move || ends.recv().unwrap()));
        assert!((&mut slow).now_or_never().is_none());
        let (note, noted) = channel();
        let mut gone = Box::pin(beside.run(move || note.send(()).unwrap()));
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        end.send(()).unwrap();
        block_on(slow);
        assert!(noted.recv().is_err(), "it was dropped");
    }

    #[test]
    fn a_panic_is_the_callers_and_the_thread_goes_on() {
        let beside = Beside::start().unwrap();
        let caught = block_on(AssertUnwindSafe(beside.run(|| -> u8 { panic!("mine") })).catch_unwind());
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"mine"));
        beside.begin(|| panic!("nobody's"));
        assert_eq!(block_on(beside.run(|| 7)), 7);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_thread_is_of_lower_priority_than_those_of_live_jobs() {
        use rustix::process::getpriority_process;
        let here = getpriority_process(None).unwrap();
        let there = block_on(Beside::start().unwrap().run(|| getpriority_process(None))).unwrap();
        assert!(there > here, "{there} beside {here}");
    }
}
