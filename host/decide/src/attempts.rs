//! Which attempt of its role a pod belongs to. `restarts` says when another begins.

use crate::{
    plan::Role,
    snapshot::{Pod, Snapshot},
};

/// The annotation of a pod that names the attempt it was created for, if that is not the first.
pub const ATTEMPT_ANNOTATION: &str = "troupe.dev/attempt";

/// Returns whether the pod is of an earlier attempt of its role. It decides nothing any more.
#[must_use]
pub fn is_old(snapshot: &Snapshot, role: &Role, pod: &Pod) -> bool {
    pod.attempt < snapshot.ledger.attempt(&role.name)
}
