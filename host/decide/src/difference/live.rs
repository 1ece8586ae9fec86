//! The live parts of a job: pods that have not ended, and Jobs that are not finished.

use crate::{
    Snapshot, names,
    plan::{Backing, Plan},
    snapshot::Pod,
};
use std::sync::Arc;

/// The live parts of a job.
pub(super) struct Live<'a>(&'a Snapshot);

impl<'a> Live<'a> {
    pub(super) fn of(snapshot: &'a Snapshot) -> Self {
        Self(snapshot)
    }

    /// Returns whether any pod or Job is live.
    pub(super) fn any(&self) -> bool {
        let pods = self.0.pods.iter().any(|pod| lives(pod));
        pods || self.0.children.iter().any(|child| child.kind == "Job" && !child.job_is_over())
    }

    /// Returns the pods of the plan's role at this place, ended ones too, with their indices; none for a Job-backed
    /// role.
    pub(super) fn pods(&self, plan: &'a Plan, place: usize) -> impl Iterator<Item = (u32, &'a Arc<Pod>)> {
        self.0.own_pods().filter_map(move |pod| match names::role_of_pod(plan, &self.0.job.name, &pod.name) {
            Some((role, index)) if role == place => Some((index, pod)),
            _ => None,
        })
    }

    /// Returns whether a pod of the plan's role at this place, or the Job behind it, is live.
    pub(super) fn role(&self, plan: &'a Plan, place: usize) -> bool {
        let role = &plan.roles[place];
        match role.backing {
            Backing::Pods => self.pods(plan, place).any(|(_, pod)| lives(pod)),
            Backing::Job(_) => self.0.job_behind(role).is_some_and(|job| !job.job_is_over()),
        }
    }
}

fn lives(pod: &Pod) -> bool {
    !pod.phase.is_terminal()
}
