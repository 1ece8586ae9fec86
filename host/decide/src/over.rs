//! Finished jobs: what is left to do, and whether the job was edited after its end.

use crate::{Snapshot, cleanup, decision::Decision, ledger::Finished, queue, ttl};

/// Returns whether the job was edited after its end.
pub(crate) fn was_edited(snapshot: &Snapshot, finished: &Finished) -> bool {
    finished.generation.is_some_and(|planned| planned != snapshot.job.generation)
}

/// Tells the job's queue, and cleans up until the time to live expires, then deletes the job, and with it all its children.
pub(crate) fn over(snapshot: &Snapshot, finished: &Finished) -> Decision {
    let (expired, wake) = ttl::expire(snapshot, finished.delete_at);
    let left = || cleanup::cleanup(snapshot, finished).into_iter().chain(queue::finish(snapshot, finished)).collect();
    let actions = expired.map_or_else(left, |delete| vec![delete]);
    Decision::without_report(actions, wake)
}
