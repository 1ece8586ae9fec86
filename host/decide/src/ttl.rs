//! When a job itself is deleted.

use crate::{
    Snapshot,
    decision::{Action, Wake},
    plan::Ttl,
};
use jiff::{SignedDuration, Timestamp};

/// When the time to live of a job that ended at this time is over.
pub(crate) fn due(snapshot: &Snapshot, ttl: Ttl, ended: Timestamp) -> Timestamp {
    let (from, seconds) = match ttl {
        Ttl::AfterFinished(seconds) => (ended, seconds),
        Ttl::AfterCreation(seconds) => (snapshot.job.created, seconds),
    };
    from.checked_add(SignedDuration::from_secs(seconds.into())).unwrap_or(Timestamp::MAX)
}

/// When the time to live of a job that goes on is over: only one that counts from creation runs already.
pub(crate) fn due_unfinished(snapshot: &Snapshot, ttl: Option<Ttl>) -> Option<Timestamp> {
    ttl.filter(|ttl| matches!(ttl, Ttl::AfterCreation(_))).map(|ttl| due(snapshot, ttl, snapshot.now))
}

/// The deletion of the job once it is due, and when to look again until then.
pub(crate) fn expire(snapshot: &Snapshot, due: Option<Timestamp>) -> (Option<Action>, Wake) {
    match due {
        None => (None, Wake::OnChange),
        Some(due) if due > snapshot.now => (None, Wake::At(due)),
        Some(_) => {
            let (kind, job) = (&snapshot.kind, &snapshot.job);
            (Some(Action::delete_job(&kind.api_version(), &kind.kind, job)), Wake::OnChange)
        }
    }
}
