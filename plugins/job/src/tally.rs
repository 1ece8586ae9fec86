//! The counts of a job at an instant.

use crate::plan::ROLE;
use crate::valid::Valid;
use troupe_plugin::types::{Observation, PodPhase, PodRow, Replacement};
use troupe_plugin::{Indexes, ObservationExt};

/// The counts of a job at an instant, as its status has them.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    /// Pods that have not ended and are not being deleted.
    pub(crate) active: u32,
    /// Of those, the ready ones.
    pub(crate) ready: u32,
    /// Pods that are being deleted and have not ended.
    pub(crate) terminating: u32,
    pub(crate) succeeded: Indexes,
    /// Failed pods that count.
    pub(crate) failed: u32,
    pub(crate) failed_indexes: Indexes,
    /// How often containers of pods that have not ended were started again in place.
    pub(crate) restarts: u32,
    /// The pods of the job's indexes.
    pub(crate) pods: Vec<&'a PodRow>,
}

impl<'a> Tally<'a> {
    pub(crate) fn of(valid: &Valid<'_>, seen: &'a Observation) -> Self {
        let wanted = |pod: &&PodRow| pod.index.is_some_and(|index| index < valid.replicas());
        let pods: Vec<_> = seen.pods_of(ROLE).filter(wanted).collect();
        let has_ended = |pod: &PodRow| matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed);
        // Pods that are beyond the indexes and have not ended are active until they are gone.
        let open = || seen.pods_of(ROLE).filter(|pod| !has_ended(pod));
        let active = || open().filter(|pod| !pod.terminating);
        let facts = seen.roles.iter().find(|facts| facts.role == ROLE);
        let gone = facts.map_or(&[][..], |facts| &facts.succeeded);
        let succeeded = pods
            .iter()
            .filter(|pod| pod.phase == PodPhase::Succeeded && pod.replacement == Replacement::None)
            .filter_map(|pod| pod.index);
        // A pod that fails the job stays, and only what is replaced or given up is counted by the host.
        let stays = |pod: &&&PodRow| pod.phase == PodPhase::Failed && pod.replacement == Replacement::None;
        let failed = facts.map_or(0, |facts| facts.failures).saturating_add(count(pods.iter().filter(stays)));
        let containers = active().flat_map(|pod| &pod.containers);
        Self {
            active: count(active()),
            ready: count(active().filter(|pod| pod.ready)),
            terminating: count(open().filter(|pod| pod.terminating)),
            succeeded: Indexes::of(succeeded.map(|index| (index, index)).chain(gone.iter().copied()).collect()),
            failed,
            failed_indexes: Indexes::of(facts.map_or_else(Vec::new, |facts| facts.given_up.clone())),
            restarts: containers.map(|row| row.restarts).fold(0, u32::saturating_add),
            pods,
        }
    }
}

fn count<T>(of: impl Iterator<Item = T>) -> u32 {
    u32::try_from(of.count()).unwrap_or(u32::MAX)
}
