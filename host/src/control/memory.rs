//! Permits for the memory of large jobs: a pass holds spec and status as values, which take up to a hundred times their
//! text.

use decide::{snapshot::Job, weight};
use fairness::{Rank, Share, Turn, Turns};

/// Memory of the large jobs in all passes at once, in bytes, as estimated.
const ALL: usize = 256 << 20;

/// Memory of those of one namespace: they leave room for other namespaces.
const OF_ONE: usize = 128 << 20;

/// Memory of the large jobs in all passes that are made for readers at once, and of those of one namespace: live passes
/// have theirs beside it, and wait for no reader.
const ASIDE: usize = 128 << 20;
const ASIDE_OF_ONE: usize = 64 << 20;

/// A job of at most so many bytes needs no permit, so that large jobs of others never delay it: the number of passes at
/// once bounds the memory of small ones.
const SMALL: usize = 1 << 20;

/// A pass holds the job and, for its recording, a copy.
const COPIES: usize = 2;

/// The permits for the jobs of all passes.
pub(crate) struct Memory {
    live: Turns,
    aside: Turns,
}

impl Default for Memory {
    fn default() -> Self {
        let of = |all, one| Turns::new(all, Share::fixed(one));
        Self { live: of(ALL, OF_ONE), aside: of(ASIDE, ASIDE_OF_ONE) }
    }
}

impl Memory {
    /// Returns how many bytes a pass over this job takes, if it needs a permit.
    pub(crate) fn needed(job: &Job) -> Option<usize> {
        let bytes = COPIES * weight::values(job);
        (bytes > SMALL).then_some(bytes)
    }

    /// Waits until there is room for so many bytes. The room is taken until the permit is dropped.
    pub(crate) async fn room(&self, bytes: usize, namespace: &str) -> Turn {
        self.live.wait_for(bytes, Rank::Rest, namespace).await
    }

    /// Waits for room for a pass that is made for a reader, and takes none from live passes.
    pub(crate) async fn room_aside(&self, bytes: usize, namespace: &str) -> Turn {
        self.aside.wait_for(bytes, Rank::Rest, namespace).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::testkit;
    use futures::FutureExt;
    use serde_json::json;

    #[test]
    fn an_ordinary_job_needs_no_permit_and_a_text_of_small_objects_does() {
        let mut job = testkit::job("hamlet", "u");
        assert_eq!(Memory::needed(&job), None);
        job.spec = json!(vec![json!({ "": 0 }); 2000]);
        assert!(Memory::needed(&job).is_some_and(|bytes| bytes > 2 * SMALL), "{:?}", Memory::needed(&job));
    }

    #[test]
    fn one_namespace_leaves_room_for_others() {
        let memory = Memory::default();
        let room = |namespace| memory.room(OF_ONE, namespace);
        let first = room("a").now_or_never().expect("there is room");
        let mut second = Box::pin(room("a"));
        assert!((&mut second).now_or_never().is_none());
        assert!(room("b").now_or_never().is_some());
        drop(first);
        assert!(second.now_or_never().is_some());
    }

    #[test]
    fn readers_take_no_room_from_live_passes() {
        let memory = Memory::default();
        let read = |namespace| memory.room_aside(OF_ONE, namespace).now_or_never();
        let held = ["a", "b"].map(|namespace| read(namespace).expect("there is room"));
        assert!(read("c").is_none(), "one more reader waits");
        assert!(memory.room(OF_ONE, "a").now_or_never().is_some());
        drop(held);
        assert!(read("c").is_some());
    }
}
