//! The plugins that come with the host, compiled once for all tests of this program.

use lab::campaign;
use sandbox::{Executor, Plugins};
use std::sync::{Arc, LazyLock};

/// Returns them with their default settings, as if they had been loaded for this test alone: what is configured, planned,
/// refused or counted is nobody else's.
pub(crate) fn plugins() -> Plugins {
    static COMPILED: LazyLock<Plugins> = LazyLock::new(|| Plugins::builtin(Executor::Inline).unwrap());
    COMPILED.fork().counted_anew()
}

/// The same, called as in a campaign: limited by instructions alone, so that a run is the same on each machine. What is
/// delivered in a run is compiled once for all tests, too.
pub(crate) fn of_campaigns() -> Arc<Plugins> {
    static COMPILED: LazyLock<Arc<Plugins>> = LazyLock::new(|| campaign::plugins().unwrap());
    Arc::new(COMPILED.fork().counted_anew())
}
