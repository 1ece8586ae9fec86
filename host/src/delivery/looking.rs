//! What is written down before the host looks at bytes that do not serve: a component that ends the host is not looked at
//! again by each host that is started then.
//!
//! The mark stands in the Plugin's status while the look is under way. Its own retries have none: they have come to an end
//! before. What serves, or did, is loaded without one.

use super::{
    Handles,
    plugin_task::PluginTask,
    report::{Stage, StageFailure},
};
use crate::plugin_resource::Looking;
use decide::Digest;
use std::time::Duration;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};

/// The number of hosts that may have ended while they looked at a component. One may have been stopped, or have lost its machine.
const MOST: u32 = 2;

/// How often the mark is tried to be written for one look, and the time between: a Plugin that has just changed has to be seen
/// first.
const ATTEMPTS: u32 = 3;
const AGAIN: Duration = Duration::from_secs(1);

/// The API server did not take the mark.
const NOT_MARKED: &str = "LookNotRecorded";

/// A look of this process at bytes that did not serve: the last one of its Plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Begun {
    mark: Looking,
    come: Come,
}

/// How far a look has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Come {
    /// It is not known to be written down.
    NotMarked,
    /// It is written down and under way.
    Begun,
    /// It has ended.
    Ended,
}

/// What comes before a look.
#[derive(Debug, PartialEq, Eq)]
enum Before {
    /// Nothing: this process has looked at these bytes before, and is still there.
    Nothing,
    /// This mark has to be written.
    Mark(Looking),
    /// This number of hosts has ended while they looked at these bytes; there is no look unless somebody asks for it.
    Never(u32),
}

/// Returns what comes before a look at these bytes for this generation of a Plugin, in whose status this mark was found, and at
/// which this process has begun that look before.
fn before(digest: &Digest, generation: i64, found: Option<&Looking>, begun: Option<&Begun>) -> Before {
    let is_same = |mark: &Looking| mark.digest == digest.as_str() && mark.generation == generation;
    match begun.filter(|begun| is_same(&begun.mark)) {
        Some(Begun { come: Come::Ended, .. }) => return Before::Nothing,
        Some(begun) => return Before::Mark(begun.mark.clone()),
        None => {}
    }
    match found.filter(|found| is_same(found)).map_or(0, |found| found.times) {
        times if times >= MOST => Before::Never(times),
        times => Before::Mark(Looking { digest: digest.to_string(), generation, times: times + 1 }),
    }
}

/// A look asks whether it may go on to these bytes, which do not serve.
#[derive(Debug)]
pub(super) struct Begin {
    digest: Digest,
    generation: i64,
    answer: oneshot::Sender<Result<(), StageFailure>>,
}

/// Where a look asks.
#[derive(Debug, Clone)]
pub(super) struct Begins(mpsc::Sender<Begin>);

impl Begins {
    /// Of a Plugin, with what its task is asked by.
    pub(super) fn new() -> (Self, mpsc::Receiver<Begin>) {
        let (ask, asked) = mpsc::channel(1);
        (Self(ask), asked)
    }

    /// Returns once the look may go on.
    ///
    /// # Errors
    /// It may not: hosts have ended by such a look, or it cannot be written down now.
    pub(super) async fn look_at(&self, digest: &Digest, generation: i64) -> Result<(), StageFailure> {
        let mut attempts = 1;
        loop {
            match self.asked(digest, generation).await {
                Err(failure) if failure.reason == NOT_MARKED && attempts < ATTEMPTS => sleep(AGAIN).await,
                answer => return answer,
            }
            attempts += 1;
        }
    }

    async fn asked(&self, digest: &Digest, generation: i64) -> Result<(), StageFailure> {
        let (answer, answered) = oneshot::channel();
        let begin = Begin { digest: digest.clone(), generation, answer };
        // If the task of the Plugin has ended, nobody answers, and nobody is told how the look ends.
        let _is_asked = self.0.send(begin).await;
        answered.await.unwrap_or_else(|_| Err(not_marked(Duration::ZERO)))
    }
}

impl Handles {
    /// Forgets which look at a Plugin has begun, since that is gone.
    pub(super) fn forget_looks(&self, plugin: &str) {
        self.begun.lock().remove(plugin);
    }
}

impl PluginTask {
    /// Answers a look that wants to go on to bytes that do not serve.
    pub(super) async fn begin(&mut self, Begin { digest, generation, answer }: Begin) {
        // Else the look has taken too long meanwhile.
        if !answer.is_closed() {
            let may = self.may_begin(&digest, generation).await;
            let _is_told = answer.send(may);
        }
    }

    async fn may_begin(&mut self, digest: &Digest, generation: i64) -> Result<(), StageFailure> {
        let (name, handles) = (self.seen.name.clone(), self.shared.handles.clone());
        let begun = handles.begun.lock().get(&name).cloned();
        let mark = match before(digest, generation, self.status.looking.as_ref(), begun.as_ref()) {
            Before::Nothing => return Ok(()),
            Before::Never(times) => return Err(crashed(&name, digest, times)),
            Before::Mark(mark) => mark,
        };
        // Before it is written: if the answer is lost, the look is this process's all the same.
        let begun = |come| Begun { mark: mark.clone(), come };
        handles.begun.lock().insert(name.clone(), begun(Come::NotMarked));
        let found = self.status.looking.replace(mark.clone());
        if self.write_status().await {
            handles.begun.lock().insert(name, begun(Come::Begun));
            return Ok(());
        }
        self.status.looking = found;
        Err(not_marked(self.status_not_before.saturating_duration_since(Instant::now())))
    }

    /// A look has ended, and the host is still there. What hosts before it have ended by stays written down.
    pub(super) fn end_look(&mut self) {
        let mut all = self.shared.handles.begun.lock();
        if let Some(begun) = all.get_mut(&self.seen.name).filter(|begun| begun.come == Come::Begun) {
            begun.come = Come::Ended;
            self.status.looking = None;
        }
    }
}

fn crashed(plugin: &str, digest: &Digest, times: u32) -> StageFailure {
    let message = format!(
        "the host ended {times} times while it looked at {digest}, and looks at it again only if it is asked to: give the Plugin \
         another component, or have this one looked at once more by `troupe plugin approve {plugin}` or any other change of \
         its spec"
    );
    StageFailure::new(Stage::Compiled, "CrashedHost", message)
}

fn not_marked(asked: Duration) -> StageFailure {
    let message = "the host looks at a new component once the API server has taken status.looking, and tries again";
    StageFailure::new(Stage::Compiled, NOT_MARKED, message.to_owned()).asking(asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::testkit::digest;

    fn mark(name: &str, generation: i64, times: u32) -> Looking {
        Looking { digest: digest(name).to_string(), generation, times }
    }

    fn found(found: &Looking) -> Before {
        before(&digest("one"), 1, Some(found), None)
    }

    #[test]
    fn after_two_hosts_have_ended_there_is_no_look_until_the_spec_or_the_component_is_another() {
        assert_eq!(before(&digest("one"), 1, None, None), Before::Mark(mark("one", 1, 1)));
        assert_eq!(found(&mark("one", 1, 1)), Before::Mark(mark("one", 1, 2)));
        assert_eq!(found(&mark("one", 1, 2)), Before::Never(2));
        assert_eq!(found(&mark("one", 1, u32::MAX)), Before::Never(u32::MAX));
        for other in [mark("two", 1, 2), mark("one", 0, 2)] {
            assert_eq!(found(&other), Before::Mark(mark("one", 1, 1)));
        }
    }

    #[test]
    fn what_this_process_has_written_is_no_host_that_has_ended() {
        let begun = |come| Begun { mark: mark("one", 1, 2), come };
        let again = |come| before(&digest("one"), 1, Some(&mark("one", 1, 2)), Some(&begun(come)));
        assert_eq!(again(Come::NotMarked), Before::Mark(mark("one", 1, 2)));
        assert_eq!(again(Come::Begun), Before::Mark(mark("one", 1, 2)));
        assert_eq!(again(Come::Ended), Before::Nothing);
        assert_eq!(before(&digest("two"), 1, None, Some(&begun(Come::Ended))), Before::Mark(mark("two", 1, 1)));
    }
}
