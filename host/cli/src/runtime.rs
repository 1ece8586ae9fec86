//! Runtimes for commands. A future is boxed, so that tokio's own code is compiled once for all of them.

use anyhow::Context;
use std::pin::Pin;
use tokio::runtime::{Builder, Runtime};

/// The future of a command.
pub(crate) type Work<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Runs the future on the thread of the caller and returns its output.
///
/// # Errors
/// The system has no resources for a runtime.
pub(crate) fn on_one_thread<T>(work: Work<'_, T>) -> anyhow::Result<T> {
    Ok(started(&mut Builder::new_current_thread())?.block_on(work))
}

/// Runs the future, and the tasks that it starts on as many threads as the process may use, and returns its output.
///
/// # Errors
/// As for [`on_one_thread`].
pub(crate) fn on_all_threads<T>(work: Work<'_, T>) -> anyhow::Result<T> {
    Ok(started(&mut Builder::new_multi_thread())?.block_on(work))
}

fn started(builder: &mut Builder) -> anyhow::Result<Runtime> {
    builder.enable_all().build().context("failed to start the runtime")
}
