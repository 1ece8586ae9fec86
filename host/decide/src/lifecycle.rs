//! What the host decides about a job without asking its plugin.

use crate::{
    Snapshot,
    decide::decide,
    decision::{Action, Decision, Wake},
    over::over,
    plan::{Answer, Rejection},
};

/// Whether the plugin has to be asked.
#[expect(clippy::large_enum_variant, reason = "there is one a pass, and it is taken apart at once")]
#[derive(Debug, Clone, PartialEq)]
pub enum Triage {
    /// No: this is the whole decision.
    Settled(Decision),
    /// Yes.
    NeedsPlan,
}

/// Settles jobs that need no plugin: those of another manager, those being deleted, unreadable ones, and finished ones
/// unless they were edited since or their pods are still counted.
#[must_use]
pub fn triage(snapshot: &Snapshot) -> Triage {
    if snapshot.managed_by_another() {
        return settled(vec![]);
    }
    if snapshot.job.deleting {
        return settled(drop_retired_finalizers(snapshot));
    }
    match (&snapshot.ledger.finished, &snapshot.unreadable) {
        (_, Some(error)) => {
            let answer = Answer::Rejected(Rejection::Invalid(vec![error.clone()]));
            Triage::Settled(decide(snapshot, &answer))
        }
        (Some(finished), None) if !finished.needs_plan(snapshot.job.generation) => {
            Triage::Settled(over(snapshot, finished))
        }
        (_, None) => Triage::NeedsPlan,
    }
}

fn settled(actions: Vec<Action>) -> Triage {
    Triage::Settled(Decision::without_report(actions, Wake::OnChange))
}

/// Removes an original operator's finalizers, which have nothing left to do: garbage collection deletes the children.
fn drop_retired_finalizers(snapshot: &Snapshot) -> Vec<Action> {
    let job = &snapshot.job;
    let kept: Vec<_> = job.finalizers.iter().filter(|name| !snapshot.kind.retired_finalizers.contains(name)).collect();
    if kept.len() == job.finalizers.len() {
        return vec![];
    }
    let kind = &snapshot.kind;
    vec![Action::set_finalizers(&kind.api_version(), &kind.kind, job, &kept)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decision::Report, plan::FieldError, testkit};

    #[test]
    fn a_job_that_cannot_be_read_is_rejected_and_its_pods_stay() {
        let mut snapshot = testkit::snapshot(testkit::job("hamlet", "u"));
        snapshot.pods = vec![testkit::pod("hamlet-0", "u", crate::snapshot::PodPhase::Running).into()];
        snapshot.unreadable = Some(FieldError { path: "spec.x".into(), message: "is nested too deep".into() });
        let Triage::Settled(Decision { actions, report: Report::Condition(condition), .. }) = triage(&snapshot) else {
            panic!("no plugin is asked")
        };
        assert_eq!((actions, condition.kind.as_str()), (vec![], "Rejected"));
        assert_eq!(condition.message, "Found validation errors: spec.x: is nested too deep");
    }

    #[test]
    fn a_job_that_is_being_deleted_is_left_alone_also_when_it_cannot_be_read() {
        let mut snapshot = testkit::snapshot(testkit::job("hamlet", "u"));
        snapshot.unreadable = Some(FieldError { path: "spec.x".into(), message: "is nested too deep".into() });
        snapshot.job = crate::snapshot::Job { deleting: true, ..testkit::job("hamlet", "u") }.into();
        assert_eq!(triage(&snapshot), settled(vec![]));
    }
}
