//! When the host deletes a job itself.

use crate::{
    Snapshot,
    decision::{Action, Wake},
    plan::Ttl,
};
use jiff::{SignedDuration, Timestamp};

/// Returns when the time to live of a job that ended at this time expires.
pub(crate) fn due(snapshot: &Snapshot, ttl: Ttl, ended: Timestamp) -> Timestamp {
    let (from, seconds) = match ttl {
        Ttl::AfterFinished(seconds) => (ended, seconds),
        Ttl::AfterCreation(seconds) => (snapshot.job.created, seconds),
    };
    from.checked_add(SignedDuration::from_secs(seconds.into())).unwrap_or(Timestamp::MAX)
}

/// Returns when the time to live of an unfinished job expires; `None` unless it counts from creation.
pub(crate) fn due_unfinished(snapshot: &Snapshot, ttl: Option<Ttl>) -> Option<Timestamp> {
    ttl.filter(|ttl| matches!(ttl, Ttl::AfterCreation(_))).map(|ttl| due(snapshot, ttl, snapshot.now))
}

/// Returns the deletion of the job once it is due, and when to look again before that.
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
