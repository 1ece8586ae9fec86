//! What a job is observed to be.

use crate::{api::resource::Resource, observe::layout::WatchId};
use decide::{Digest, Snapshot, plan::Fault};

/// The snapshot of a job, or why there is none.
#[derive(Debug)]
pub enum Observed {
    /// The snapshot.
    Ready(Box<Snapshot>),
    /// The snapshot, and the reason why no plugin is asked about the job.
    Held(Box<Snapshot>, Fault),
    /// The watches have not shown one of the host's own writes yet, or have not listed yet.
    Stale,
    /// It is not known whether a create succeeded. Its version has to be read first.
    InDoubt(Doubt),
    /// The job does not exist.
    Gone,
    /// The watch of its kind shows nothing now: it has not listed yet, or the kind is not served or forbidden. The next
    /// list wakes every job.
    Unlisted,
    /// The plugin with this digest is not loaded yet.
    Loading(Digest),
    /// No plugin serves the job's kind, and another controller writes its status: it is left alone.
    Another,
}

impl Observed {
    /// Returns the snapshot, if there is one.
    pub(crate) fn snapshot(&self) -> Option<&Snapshot> {
        match self {
            Self::Ready(snapshot) | Self::Held(snapshot, _) => Some(snapshot),
            Self::Stale | Self::InDoubt(_) | Self::Gone | Self::Unlisted | Self::Loading(_) | Self::Another => None,
        }
    }
}

/// A create of an object that must not be created twice, with an unknown result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The kind of the object.
    pub resource: Resource,
    /// The name of the object.
    pub name: String,
    pub(super) watch: WatchId,
}
