//! A digest's answers, asked for once more where nothing is the same but the question.

use super::{
    super::{
        call::internal,
        compile::reload,
        determinism::{check_same, on_another_thread},
        load_error::LoadError,
        seam::Seat,
    },
    Loaded, Plugins,
};
use decide::{
    Snapshot,
    plan::{Answer, Fault},
};
use futures::executor::block_on;
use std::sync::Arc;

impl Plugins {
    /// Asks the plugin with this digest again what it has answered: loaded anew, on another thread, by a host that
    /// remembers nothing.
    ///
    /// # Errors
    /// It is not loaded, or it answers otherwise.
    pub async fn repeats(&self, digest: &str, answered: Vec<(Snapshot, Answer)>) -> Result<(), Fault> {
        let plugin = self.by_digest(digest)?;
        let twin = self.alone(&plugin);
        let twin = twin.map_err(|error| internal(&plugin.descriptor.name, "describe", &error.to_string()))?;
        let (name, digest) = (plugin.descriptor.name.clone(), digest.to_owned());
        let ask_again = move |(snapshot, first): &(Snapshot, Answer)| {
            let second = block_on(twin.answer(snapshot, &digest));
            match (first, &second) {
                // Time and budgets are not the plugin's words.
                (Answer::Faulted(_), _) | (_, Answer::Faulted(_)) => Ok(()),
                (first, second) => check_same(&name, "plan, bind and judge", first, second),
            }
        };
        let work = move || on_another_thread(|| answered.iter().try_for_each(ask_again));
        self.seat.beside().run(&plugin.share, "", work).await
    }

    /// One plugin, loaded anew, in a host of its own.
    fn alone(&self, plugin: &Loaded) -> Result<Self, LoadError> {
        let exports = reload(self.caller.engine(), &plugin.exports)?;
        let anew = Arc::new(Loaded { exports, ..plugin.clone() });
        Ok(Self { seat: Seat::Inline, ..self.fork_with(vec![anew]) })
    }
}
