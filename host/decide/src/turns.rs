//! Roles whose replicas do not all run at once: how many more may run, and which are too many.

use crate::{
    decision::Action,
    plan::Role,
    snapshot::{Pod, PodPhase},
    standing::{Replica, Standing},
};
use std::{cmp::Reverse, sync::Arc};

/// Returns how many more pods of the role may be created. A pod that is being deleted counts until it has ended.
pub(crate) fn room(standing: &Standing<'_>, role: &Role) -> usize {
    match role.at_once {
        None => usize::MAX,
        Some(most) => {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            most.saturating_sub(pods(standing.replicas.iter().chain(&standing.surplus), role).count())
        }
    }
}

/// Returns the deletions of pods that are too many, those that are worth least first: what a Job prefers as well.
pub(crate) fn too_many(standing: &Standing<'_>) -> Vec<Action> {
    let roles = standing.plan.roles.iter().filter_map(|role| Some((role, role.at_once?)));
    let victims = roles.flat_map(|(role, most)| {
        let mut active: Vec<_> = pods(standing.replicas.iter(), role).filter(|(_, pod)| !pod.terminating).collect();
        let victims = active.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
        active.sort_by_key(|(index, pod)| (worth(pod), Reverse(*index)));
        active.truncate(victims);
        active
    });
    victims.map(|(_, pod)| Action::delete_pod(pod)).collect()
}

/// Returns the pods of the role that have not ended, with their indices.
fn pods<'a>(replicas: impl Iterator<Item = &'a Replica<'a>>, role: &Role) -> impl Iterator<Item = (u32, &'a Arc<Pod>)> {
    let of_role = replicas.filter(move |replica| replica.role.name == role.name);
    of_role.filter_map(|replica| Some((replica.index, replica.pod?))).filter(|(_, pod)| !pod.phase.is_terminal())
}

/// Orders pods by what is lost with them: unscheduled, pending, not ready, the younger first.
fn worth(pod: &Pod) -> (bool, bool, bool, Reverse<jiff::Timestamp>) {
    (!pod.node.is_empty(), pod.phase == PodPhase::Running, pod.ready, Reverse(pod.created))
}
