//! Runtimes whose time passes only when everything waits.

use std::{
    io::Write,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};
use tokio::time::sleep;

/// Real time within which virtual time has to move on; it is looked at this often. A component is compiled in a fraction of
/// it.
const STUCK: Duration = Duration::from_secs(180);

/// Runs the future to its end. If tasks wake each other for ever, so that virtual time stands still, the process is
/// aborted with a message, since nothing else can end such a run.
///
/// # Errors
/// When the runtime cannot be made.
pub(crate) fn run<T>(what: &str, future: impl Future<Output = T>) -> std::io::Result<T> {
    run_boxed(what, Box::pin(future))
}

/// Does the same. What is generic in the future is small, since tokio's own code would be compiled for each.
fn run_boxed<T>(what: &str, future: Pin<Box<dyn Future<Output = T> + '_>>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let seconds = Arc::new(AtomicU64::new(0));
    let (_running, ended) = mpsc::channel();
    let (what, passed) = (what.to_owned(), Arc::clone(&seconds));
    thread::spawn(move || watch(&ended, &passed, &what));
    let clock = async move {
        loop {
            sleep(Duration::from_secs(1)).await;
            seconds.fetch_add(1, Ordering::Relaxed);
        }
    };
    Ok(runtime.block_on(async {
        let clock = tokio::spawn(clock);
        let ended = future.await;
        clock.abort();
        ended
    }))
}

/// Waits until the run has ended, which drops the sender.
fn watch(ended: &mpsc::Receiver<()>, seconds: &AtomicU64, what: &str) {
    let mut before = seconds.load(Ordering::Relaxed);
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(STUCK) {
        let now = seconds.load(Ordering::Relaxed);
        if now == before {
            // Past the capture of a test's output, which an abort would lose.
            let _closed = writeln!(
                std::io::stderr().lock(),
                "{what}: virtual time has not passed for {} s; tasks wake each other for ever",
                STUCK.as_secs()
            );
            std::process::abort();
        }
        before = now;
    }
}
