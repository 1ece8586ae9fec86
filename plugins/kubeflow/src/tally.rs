//! The pods of each type of replica, counted.

use crate::family::{Family, Replicas};
use crate::fate::{self, End, Fate};
use crate::kind::ReplicaType;
use crate::{left_out, pods, rules};
use serde_json::{Map, Value};
use troupe_plugin::ObservationExt;
use troupe_plugin::types::{Observation, PodPhase, PodRow, Replacement};

/// The pods of one type of replica.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) of: &'static ReplicaType,
    pub(crate) active: u32,
    pub(crate) succeeded: u32,
    pub(crate) failed: u32,
    /// What becomes of its failed pods: one for each.
    pub(crate) fates: Vec<Fate>,
    /// How many failed pods are replaced from now on: each is reported once.
    pub(crate) restarts: usize,
    /// Whether replica 0 is among those that have succeeded.
    pub(crate) first_succeeded: bool,
}

/// Returns a tally for each type that the job has. Pods beyond the wanted ones count for a suspended job alone, whose
/// pods all have to go.
pub(crate) fn of(family: &Family<'_>, seen: &Observation, suspended: bool) -> Vec<Tally> {
    family.replicas.iter().map(|replicas| tally(family, replicas, seen, suspended)).collect()
}

fn tally(family: &Family<'_>, replicas: &Replicas<'_>, seen: &Observation, suspended: bool) -> Tally {
    let of = replicas.of;
    let left_out = left_out::of_type(family.job, of);
    let is_wanted =
        |index: u32| !left_out.contains(index) && index.saturating_sub(left_out.count_below(index)) < replicas.count;
    let mut tally =
        Tally { of, active: 0, succeeded: 0, failed: 0, fates: vec![], restarts: 0, first_succeeded: false };
    if !suspended {
        // Better: a replica has succeeded also when its pod is gone.
        let first = of.first.map_or(0, |role| seen.succeeded_without_pod(role));
        tally.succeeded = seen.succeeded_without_pod(of.lower).saturating_add(first);
        tally.first_succeeded = first > 0;
    }
    for pod in &seen.pods {
        let Some(index) = index(of, pod) else { continue };
        if suspended {
            tally.active += u32::from(holds_resources(pod));
        } else if is_wanted(index) {
            let before = tally.succeeded;
            tally.count(family, replicas, pod);
            tally.first_succeeded |= index == 0 && tally.succeeded > before;
        }
    }
    tally
}

impl Tally {
    fn count(&mut self, family: &Family<'_>, replicas: &Replicas<'_>, pod: &PodRow) {
        let policy = replicas.restart_policy.unwrap_or(family.kind.restart_policy);
        let exit_code = fate::exit_code(pod, family.kind.container);
        let fate = rules::fate(family, self.of, policy, exit_code);
        // Better: the framework's container decides, whatever a sidecar does after it.
        let ends = fate::ends(family.job, policy, exit_code);
        match pod.phase {
            PodPhase::Running if pod.terminating => self.failed += 1,
            PodPhase::Succeeded if pod.replacement == Replacement::None => self.succeeded += 1,
            // Better: how a pod ends that is being deleted says nothing of its work. Many programs exit with 0 then.
            _ if pod.terminating => {}
            PodPhase::Running | PodPhase::Failed if ends == Some(End::Well) => self.succeeded += 1,
            // Only a pod that has ended is replaced.
            PodPhase::Running if ends.is_none() || fate == Fate::Restart => self.active += 1,
            PodPhase::Running | PodPhase::Failed => {
                // Better: one that is about to be replaced is not counted, as the original hardly ever shows it.
                self.failed += u32::from(fate != Fate::Restart);
                self.restarts += usize::from(pod.replacement == Replacement::Due);
                self.fates.push(fate);
            }
            PodPhase::Pending | PodPhase::Succeeded | PodPhase::Unknown => {}
        }
    }

    /// Returns the type's entry of `replicaStatuses`, which leaves out zeros, as the original does. Once the job has
    /// succeeded, what is active has succeeded too.
    pub(crate) fn entry(&self, family: &Family<'_>, job_has_succeeded: bool) -> Value {
        let (active, succeeded) = match job_has_succeeded {
            true => (0, self.succeeded + self.active),
            false => (self.active, self.succeeded),
        };
        let counts = [("active", active), ("succeeded", succeeded), ("failed", self.failed)];
        let mut entry = Map::new();
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            entry.insert(name.to_owned(), count.into());
        }
        if family.kind.scales {
            entry.insert("selector".to_owned(), selector(family, self.of).into());
        }
        entry.into()
    }
}

/// Returns the labels of a type's pods as the scale subresource has them.
fn selector(family: &Family<'_>, of: &ReplicaType) -> String {
    let labels = [
        (pods::JOB_NAME, family.job.name()),
        (pods::OPERATOR_NAME, family.kind.operator),
        (pods::REPLICA_TYPE, of.lower),
    ];
    labels.map(|(label, value)| format!("{label}={value}")).join(",")
}

/// Returns the index of a pod among all of this type; None if it is of another.
fn index(of: &ReplicaType, pod: &PodRow) -> Option<u32> {
    let index = pod.index.unwrap_or(0);
    if of.first == Some(pod.role.as_str()) {
        return Some(index);
    }
    (pod.role == of.lower).then(|| index + u32::from(of.first.is_some()))
}

/// Returns whether a pod of a suspended job still holds what it runs on: its quota must not be given away before.
fn holds_resources(pod: &PodRow) -> bool {
    match pod.phase {
        PodPhase::Running | PodPhase::Unknown => true,
        PodPhase::Pending => !pod.node.is_empty(),
        PodPhase::Succeeded | PodPhase::Failed => false,
    }
}
