//! Finished jobs: what is left to do.

use crate::{Snapshot, cleanup, decision::Decision, ledger::Finished, queue, ttl};

/// Tells the job's queue, and cleans up until the time to live expires, then deletes the job, and with it all its children.
pub(crate) fn over(snapshot: &Snapshot, finished: &Finished) -> Decision {
    let (expired, wake) = ttl::expire(snapshot, finished.delete_at);
    let left = || cleanup::cleanup(snapshot, finished).into_iter().chain(queue::finish(snapshot, finished)).collect();
    let actions = expired.map_or_else(left, |delete| vec![delete]);
    Decision::without_report(actions, wake)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        decision::Wake,
        lifecycle::{Triage, triage},
        plan::{Answer, Clean, Fault, FieldError, Outcome, Rejection},
        testkit,
    };
    use jiff::Timestamp;
    use std::collections::BTreeSet;

    #[test]
    fn a_job_that_was_edited_into_an_invalid_one_is_not_deleted_by_its_former_time_to_live() {
        let mut snapshot = testkit::snapshot(testkit::job("hamlet", "u"));
        let generation = snapshot.job.generation;
        let finished = |generation| Finished {
            at: Timestamp::UNIX_EPOCH,
            generation: Some(generation),
            outcome: Outcome::Succeeded,
            clean: Clean::Keep,
            clean_is_final: false,
            counting: false,
            clean_kinds: BTreeSet::new(),
            delete_at: Some(Timestamp::UNIX_EPOCH),
        };
        let rejected = Answer::Rejected(Rejection::Unsupported("tales".into()));
        let faulted = Answer::Faulted(Fault::NotAccepted { digest: testkit::digest("tales") });
        for (answer, is_asked_again) in [(rejected, false), (faulted, true)] {
            let mut decided = |generation| {
                snapshot.ledger.finished = Some(finished(generation));
                crate::decide::decide(&snapshot, &answer)
            };
            let (unedited, edited) = (decided(generation), decided(generation - 1));
            assert_eq!((unedited.actions.len(), edited.actions.len()), (1, 0), "{answer:?}");
            assert_eq!(matches!(edited.wake, Wake::At(_)), is_asked_again, "{answer:?}");
        }

        snapshot.unreadable = Some(FieldError { path: "spec.x".into(), message: "is nested too deep".into() });
        let mut deletions = |generation| {
            snapshot.ledger.finished = Some(finished(generation));
            let Triage::Settled(decision) = triage(&snapshot) else { panic!("no plugin is asked") };
            decision.actions.len()
        };
        assert_eq!((deletions(generation), deletions(generation - 1)), (1, 0), "unreadable");
    }
}
