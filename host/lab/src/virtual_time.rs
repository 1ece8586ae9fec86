//! Runtimes whose time passes only when everything waits.

use std::{
    io::Write,
    pin::Pin,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};
use tokio::time::sleep;

/// Real time within which virtual time has to move on. A component is compiled in a fraction of it.
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
    let (second, seconds) = mpsc::channel();
    let what = what.to_owned();
    thread::spawn(move || watch(&seconds, &what));
    let clock = async move {
        while second.send(()).is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    };
    Ok(runtime.block_on(async {
        let clock = tokio::spawn(clock);
        let ended = future.await;
        clock.abort();
        ended
    }))
}

/// Waits until no more seconds can come.
fn watch(seconds: &mpsc::Receiver<()>, what: &str) {
    loop {
        match seconds.recv_timeout(STUCK) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                // Past the capture of a test's output, which an abort would lose.
                let _closed = writeln!(
                    std::io::stderr().lock(),
                    "{what}: virtual time has not passed for {} s; tasks wake each other for ever",
                    STUCK.as_secs()
                );
                std::process::abort();
            }
        }
    }
}
