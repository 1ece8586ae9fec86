//! Repeats a digest's calls in a fresh environment and compares the answers.

use super::{
    super::{
        call::internal,
        compile::reload,
        determinism::{check_same, on_another_thread},
        executor::Runner,
        load_error::LoadError,
        twin::Twin,
    },
    Loaded, Plugins, missing,
};
use decide::{
    Digest, Snapshot,
    plan::{Answer, Fault},
};
use futures::executor::block_on;
use std::sync::Arc;

impl Plugins {
    /// Calls the plugin with this digest again and compares the answers with the given ones. The plugin is loaded again
    /// and runs on another thread with an empty cache.
    ///
    /// # Errors
    /// Returns a fault if the plugin is not loaded, or gives another answer.
    pub async fn repeats(&self, digest: &Digest, answered: Vec<(Snapshot, Answer)>) -> Result<(), Fault> {
        let plugin = self.by_digest(digest).ok_or_else(|| missing(Some(digest)))?;
        let twin = self.alone(&plugin);
        let twin = twin.map_err(|error| internal(&plugin.descriptor.name, "describe", &error.to_string()))?;
        let (name, digest) = (plugin.descriptor.name.clone(), digest.clone());
        let ask_again = move |(snapshot, first): &(Snapshot, Answer)| {
            let second = block_on(twin.answer(snapshot, &digest));
            match (first, &second) {
                // Faults depend on time and budgets, so they are not compared.
                (Answer::Faulted(_), _) | (_, Answer::Faulted(_)) => Ok(()),
                (first, second) => check_same(&name, "plan, bind and judge", first, second),
            }
        };
        let work = move || on_another_thread(|| answered.iter().try_for_each(ask_again));
        self.runner.beside().run(&plugin.share, "", work).await
    }

    /// Returns a set of plugins that contains only this one, loaded again.
    fn alone(&self, plugin: &Loaded) -> Result<Self, LoadError> {
        let exports = reload(self.caller.engine(), &plugin.exports)?;
        let anew = Arc::new(Loaded { exports, twin: Twin::default(), ..plugin.clone() });
        Ok(Self { runner: Runner::Inline, ..self.fork_with(vec![anew]) })
    }
}
