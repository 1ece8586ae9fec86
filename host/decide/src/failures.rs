//! Failed pods that are replaced: which they are, how often it has happened, and when the next one is created.
//!
//! A failed pod is counted in the ledger before it is deleted, and by its uid, so that it counts once whatever happens to
//! the host in between. A pod that is being deleted when it fails is not counted: somebody else ended it.

use crate::{
    Snapshot,
    decision::{Action, Wake},
    ledger::Ledger,
    names,
    plan::{Failure, Plan, Role},
    snapshot::{ContainerState, Pod, PodPhase},
    standing::Replica,
};
use std::{collections::BTreeMap, sync::Arc};

/// Maximum number of replicas of a role that are replaced at once: the ledger holds the uid of each.
const MOST_AT_ONCE: usize = 500;

/// What becomes of a pod by the rules of its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// It has not failed, or no rule of its role is about it.
    None,
    /// It has failed, and the next ledger counts it.
    Due,
    /// It is counted, or cannot be: it is deleted, and another is created.
    UnderWay,
}

/// The failed pods that the next ledger counts.
#[derive(Debug)]
pub struct Due<'a> {
    snapshot: &'a Snapshot,
    /// By role: indices and uids.
    counted: BTreeMap<&'a str, Vec<(u32, &'a str)>>,
}

impl<'a> Due<'a> {
    /// Returns the failed pods of wanted replicas that a rule is about and that the ledger lacks. None of a suspended
    /// job, whose pods the host ends.
    #[must_use]
    pub fn of(snapshot: &'a Snapshot, plan: &'a Plan) -> Self {
        let mut counted: BTreeMap<&str, Vec<(u32, &str)>> = BTreeMap::new();
        if snapshot.suspended() || plan.roles.iter().all(|role| role.replace.is_empty()) {
            return Self { snapshot, counted };
        }
        for pod in snapshot.own_pods().filter(|pod| pod.phase == PodPhase::Failed && !pod.terminating) {
            let Some((role, index)) = place(snapshot, plan, pod) else { continue };
            let known = snapshot.ledger.failures.get(&role.name);
            let is_known = known.is_some_and(|known| known.pods.get(&index).is_some_and(|uid| *uid == pod.uid));
            let under_way = known.map_or(0, |known| known.pods.len());
            let due = counted.entry(&role.name).or_default();
            if is_replaced(role, pod) && !is_known && under_way + due.len() < MOST_AT_ONCE {
                due.push((index, &pod.uid));
            }
        }
        counted.retain(|_, due| !due.is_empty());
        Self { snapshot, counted }
    }

    /// Returns whether any pod is due.
    pub(crate) fn is_any(&self) -> bool {
        !self.counted.is_empty()
    }

    /// Returns what becomes of a pod of this role and index.
    #[must_use]
    pub fn replacement(&self, role: &Role, index: u32, pod: &Pod) -> Replacement {
        if index >= role.replicas || !is_replaced(role, pod) {
            return Replacement::None;
        }
        let is_due = self.counted.get(role.name.as_str()).is_some_and(|due| due.contains(&(index, &*pod.uid)));
        if is_due { Replacement::Due } else { Replacement::UnderWay }
    }

    /// Returns how many failed pods of the role are counted, with those that are due.
    #[must_use]
    pub fn count(&self, role: &str) -> u32 {
        let before = self.snapshot.ledger.failures.get(role).map_or(0, |failures| failures.count);
        let due = self.counted.get(role).map_or(0, Vec::len);
        before.saturating_add(u32::try_from(due).unwrap_or(u32::MAX))
    }

    /// Counts the pods that are due, and forgets those whose place another pod has taken.
    pub(crate) fn record(&self, replicas: &[Replica<'_>], ledger: &mut Ledger) {
        for (role, failures) in ledger.failures.iter_mut().filter(|(_, failures)| !failures.pods.is_empty()) {
            let of_role = |replica: &&Replica<'_>| replica.role.name == *role;
            let taken: BTreeMap<_, _> = replicas.iter().filter(of_role).map(|it| (it.index, it.pod)).collect();
            failures.pods.retain(|index, uid| match taken.get(index) {
                Some(Some(pod)) => pod.uid == *uid,
                Some(None) => true,
                None => false,
            });
        }
        for (role, due) in &self.counted {
            ledger.failures.entry((*role).to_owned()).or_default().add(self.snapshot.now, due);
        }
    }
}

/// Returns the wanted replica that the pod belongs to.
fn place<'a>(snapshot: &Snapshot, plan: &'a Plan, pod: &Pod) -> Option<(&'a Role, u32)> {
    let (role, index) = names::role_of_pod(plan, &snapshot.job.name, &pod.name)?;
    let role = plan.roles.get(role)?;
    (index < role.replicas).then_some((role, index))
}

fn is_replaced(role: &Role, pod: &Pod) -> bool {
    pod.phase == PodPhase::Failed && role.replace.iter().any(|rule| matches(rule, pod))
}

fn matches(rule: &Failure, pod: &Pod) -> bool {
    match rule {
        Failure::Any => true,
        Failure::ExitCodes { container, ranges } => exit_code(pod, container)
            .is_some_and(|code| ranges.iter().any(|(first, last)| (*first..=*last).contains(&code))),
        Failure::NoExitCode { container } => exit_code(pod, container).is_none(),
    }
}

fn exit_code(pod: &Pod, container: &str) -> Option<i32> {
    let of_name = pod.containers.iter().find(|status| !status.init && status.name == container)?;
    match of_name.state {
        ContainerState::Terminated { exit_code, .. } => Some(exit_code),
        ContainerState::Unknown | ContainerState::Waiting { .. } | ContainerState::Running { .. } => None,
    }
}

/// Returns the deletion of the replica's pod if the ledger has counted it as failed.
pub(crate) fn removal(snapshot: &Snapshot, replica: &Replica<'_>) -> Option<Action> {
    let pod: &Arc<Pod> = replica.pod.filter(|pod| !pod.terminating)?;
    let counted = snapshot.ledger.failures.get(&replica.role.name)?.pods.get(&replica.index)?;
    (*counted == pod.uid && is_replaced(replica.role, pod)).then(|| Action::delete_pod(pod))
}

/// Returns whether the replica, whose last pod has failed, is not created yet.
pub(crate) fn backs_off(snapshot: &Snapshot, replica: &Replica<'_>) -> bool {
    let failures = snapshot.ledger.failures.get(&replica.role.name);
    failures.is_some_and(|it| it.pods.contains_key(&replica.index) && it.ends_at(snapshot.now).is_some())
}

/// Returns when the first back-off of the job ends.
pub(crate) fn wake(snapshot: &Snapshot) -> Wake {
    let waiting = snapshot.ledger.failures.values().filter(|failures| !failures.pods.is_empty());
    waiting.filter_map(|failures| failures.ends_at(snapshot.now)).min().map_or(Wake::OnChange, Wake::At)
}

#[cfg(test)]
mod tests;
