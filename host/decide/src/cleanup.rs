//! What happens to pods and objects of a finished job.

use crate::{
    Snapshot,
    decision::{Action, Write},
    ledger::Finished,
    plan::{Clean, Moment, Outcome, Plan},
    snapshot::{Child, Pod, PodPhase},
};
use std::collections::BTreeSet;

/// The deletions that are left to do. Called only with a `finished` that the observed ledger holds, so that no
/// evidence is destroyed before it is written down.
#[must_use]
pub fn cleanup(snapshot: &Snapshot, finished: &Finished) -> Vec<Action> {
    let pods = snapshot.own_pods().filter(|pod| removes(finished.clean, pod)).map(|pod| delete_pod(pod));
    let objects = snapshot
        .children
        .iter()
        .filter(|child| !child.terminating && finished.clean_kinds.contains(&child.kind))
        .map(|child| delete_child(child));
    pods.chain(objects).collect()
}

/// How the job ended, with the clean-pod rule that applies.
#[must_use]
pub fn finished(snapshot: &Snapshot, plan: &Plan, outcome: Outcome) -> Finished {
    let clean = match outcome {
        Outcome::Failed => plan.policy.clean_on_failure,
        Outcome::Succeeded | Outcome::Open => plan.policy.clean_on_success,
    };
    let with_pods = plan.objects.iter().filter(|object| object.remove_when.contains(&Moment::Cleaned));
    let clean_kinds =
        if clean == Clean::Keep { BTreeSet::new() } else { with_pods.map(|object| object.kind.clone()).collect() };
    Finished { at: snapshot.now, outcome, clean, clean_kinds }
}

/// A clean-pod rule removes this pod.
pub(crate) fn removes(clean: Clean, pod: &Pod) -> bool {
    let covered = match clean {
        Clean::Keep => false,
        Clean::Active => matches!(pod.phase, PodPhase::Pending | PodPhase::Running),
        Clean::All => true,
    };
    covered && !pod.terminating
}

pub(crate) fn delete_pod(pod: &Pod) -> Action {
    Action {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: pod.name.clone(),
        write: Write::Delete { uid: pod.uid.clone() },
    }
}

pub(crate) fn delete_child(child: &Child) -> Action {
    Action {
        api_version: child.api_version.clone(),
        kind: child.kind.clone(),
        name: child.name.clone(),
        write: Write::Delete { uid: child.uid.clone() },
    }
}
