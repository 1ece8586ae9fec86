//! A candidate beside the active digest: what it would have done, and when it has to stop. Pure.

use crate::plugin_resource::{CandidateState, Comparison};
use decide::{
    Digest,
    difference::{Danger, Difference},
    plan::{Answer, Fault, Outcome},
};

/// The number of examples of differences that are reported.
const EXAMPLES: usize = 10;

/// A failure rate is one from so many jobs on.
const ENOUGH_JOBS: u32 = 5;

/// A candidate's jobs may fail more often than the others by this much, in hundredths.
const TOLERATED: u32 = 20;

/// How jobs of a digest ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ended {
    succeeded: u32,
    failed: u32,
}

impl Ended {
    fn all(self) -> u32 {
        self.succeeded + self.failed
    }

    /// Of a hundred jobs so many failed.
    fn rate(self) -> u32 {
        (100 * self.failed).checked_div(self.all()).unwrap_or_default()
    }
}

/// A candidate that is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// Its digest.
    pub digest: Digest,
    /// How it is tried.
    pub state: CandidateState,
    /// How its answers differ.
    pub live: Comparison,
    candidate: Ended,
    active: Ended,
    /// Passes that it was not shown, since it is behind.
    pub dropped: u32,
    /// Why it has to stop.
    pub stopped: Option<String>,
}

impl Trial {
    /// One that begins.
    pub(crate) fn of(digest: &Digest, state: CandidateState) -> Self {
        Self {
            digest: digest.clone(),
            state,
            live: Comparison::default(),
            candidate: Ended::default(),
            active: Ended::default(),
            dropped: 0,
            stopped: None,
        }
    }

    /// A job that the active digest plans was shown to the candidate too.
    pub(crate) fn record_compared(&mut self, job: &str, differences: &[Difference], candidate: &Answer) {
        match candidate {
            Answer::Faulted(fault) if is_no_answer(fault) => return,
            Answer::Faulted(fault) => self.stop(format!("{job}: {fault}")),
            Answer::Judged { .. } | Answer::Rejected(_) => {}
        }
        count(&mut self.live, job, differences, candidate);
        if let Some(difference) = differences.iter().find(|difference| difference.danger == Danger::Dangerous) {
            self.stop(format!("{job}: a live pod would be changed: {}", difference.without_secrets()));
        }
    }

    /// A job that the candidate plans was not answered.
    pub(crate) fn record_fault(&mut self, job: &str, fault: &Fault) {
        if is_no_answer(fault) {
            return;
        }
        self.live.passes += 1;
        self.live.failed += 1;
        self.stop(format!("{job}: {fault}"));
    }

    /// A job of this digest is over.
    pub(crate) fn record_end(&mut self, digest: Option<&Digest>, outcome: Outcome) {
        let ended = if digest == Some(&self.digest) { &mut self.candidate } else { &mut self.active };
        match outcome {
            Outcome::Open | Outcome::Succeeding | Outcome::Failing => return,
            Outcome::Succeeded => ended.succeeded += 1,
            Outcome::Failed => ended.failed += 1,
        }
        let (candidate, active) = (self.candidate, self.active);
        if candidate.all() >= ENOUGH_JOBS && candidate.rate() > active.rate() + TOLERATED {
            let (failed, all, other) = (candidate.failed, candidate.all(), active.rate());
            self.stop(format!("{failed} of its {all} jobs failed, but only {other} % of the active digest's"));
        }
    }

    /// A shadow serves nobody and need not stop.
    fn stop(&mut self, why: String) {
        if self.state == CandidateState::Canary {
            self.stopped.get_or_insert(why);
        }
    }
}

/// Counts one comparison. Whoever reads the examples in the status of a Plugin may not read the jobs.
pub(super) fn count(into: &mut Comparison, job: &str, differences: &[Difference], candidate: &Answer) {
    into.passes += 1;
    into.different += u32::from(!differences.is_empty());
    into.dangerous += u32::from(differences.iter().any(|difference| difference.danger == Danger::Dangerous));
    into.failed += u32::from(!matches!(candidate, Answer::Judged { .. }) && !differences.is_empty());
    let room = EXAMPLES.saturating_sub(into.examples.len());
    let fresh = differences.iter().map(|difference| format!("{job}: {}", difference.without_secrets()));
    into.examples.extend(fresh.take(room));
}

/// Returns whether the candidate was not asked for a reason that says nothing about it: the plugin's jobs burnt too much
/// together, or the host could not read what the job names.
fn is_no_answer(fault: &Fault) -> bool {
    matches!(fault, Fault::Throttled { .. } | Fault::Unread { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::testkit::digest;

    fn fault() -> Fault {
        Fault::OutOfBudget { plugin: "plays".into(), function: "plan".into(), budget: decide::plan::Budget::Fuel }
    }

    fn difference(danger: Danger) -> Difference {
        let text = |text: &str| text.to_owned();
        Difference { what: text("role worker"), field: text("/replicas"), old: text("3"), new: text("2"), danger }
    }

    fn compared(state: CandidateState, danger: Danger) -> Trial {
        let mut trial = Trial::of(&digest("new"), state);
        let rejected = Answer::Rejected(decide::plan::Rejection::Unsupported("x".into()));
        trial.record_compared("ns/hamlet", &[difference(danger)], &rejected);
        trial
    }

    #[test]
    fn a_canary_that_runs_out_of_budget_stops_and_says_for_which_job() {
        let mut trial = Trial::of(&digest("new"), CandidateState::Canary);
        trial.record_fault("ns/hamlet", &fault());
        assert_eq!(trial.stopped.as_deref(), Some("ns/hamlet: plugin plays ran out of fuel in plan"));
        assert_eq!((trial.live.passes, trial.live.failed), (1, 1));
    }

    #[test]
    fn a_canary_does_not_stop_because_its_plugin_has_no_fuel_left_this_minute() {
        let throttled = Fault::Throttled { plugin: "plays".into(), fuel: 1, until: jiff::Timestamp::UNIX_EPOCH };
        let mut trial = Trial::of(&digest("new"), CandidateState::Canary);
        trial.record_fault("ns/hamlet", &throttled);
        trial.record_compared("ns/hamlet", &[difference(Danger::Dangerous)], &Answer::Faulted(throttled));
        assert_eq!(trial, Trial::of(&digest("new"), CandidateState::Canary));
    }

    #[test]
    fn a_canary_stops_where_a_live_pod_would_be_touched_and_only_there() {
        assert!(compared(CandidateState::Canary, Danger::Dangerous).stopped.unwrap().contains("role worker /replicas"));
        assert_eq!(compared(CandidateState::Canary, Danger::Harmless).stopped, None);
    }

    #[test]
    fn neither_the_examples_nor_the_reason_of_a_stop_have_the_value_of_a_variable() {
        let mut trial = Trial::of(&digest("new"), CandidateState::Canary);
        let password = Difference {
            field: "/env/PASSWORD".into(),
            old: "hunter2".into(),
            new: "hunter3".into(),
            ..difference(Danger::Dangerous)
        };
        let rejected = Answer::Rejected(decide::plan::Rejection::Unsupported("x".into()));
        trial.record_compared("ns/hamlet", &[password, difference(Danger::Harmless)], &rejected);
        let variable = "role worker /env/PASSWORD: differs (dangerous)";
        let examples = [format!("ns/hamlet: {variable}"), "ns/hamlet: role worker /replicas: 3 -> 2".to_owned()];
        assert_eq!(trial.live.examples, examples);
        assert_eq!(trial.stopped, Some(format!("ns/hamlet: a live pod would be changed: {variable}")));
    }

    #[test]
    fn a_shadow_only_counts() {
        let trial = compared(CandidateState::Shadow, Danger::Dangerous);
        assert_eq!((trial.stopped, trial.live.dangerous, trial.live.examples.len()), (None, 1, 1));
    }

    #[test]
    fn a_canary_stops_when_its_jobs_fail_more_often_than_the_others() {
        let mut trial = Trial::of(&digest("new"), CandidateState::Canary);
        for _ in 0..10 {
            trial.record_end(Some(&digest("old")), Outcome::Succeeded);
        }
        for outcome in [Outcome::Succeeded, Outcome::Succeeded, Outcome::Failed, Outcome::Failed] {
            trial.record_end(Some(&digest("new")), outcome);
        }
        assert_eq!(trial.stopped, None, "four jobs are no rate yet");
        trial.record_end(Some(&digest("new")), Outcome::Succeeded);
        assert_eq!(trial.stopped.as_deref(), Some("2 of its 5 jobs failed, but only 0 % of the active digest's"));
    }

    #[test]
    fn as_many_failures_as_the_others_have_are_no_reason_to_stop() {
        let mut trial = Trial::of(&digest("new"), CandidateState::Canary);
        for digest in [digest("old"), digest("new")] {
            for outcome in [Outcome::Failed, Outcome::Failed, Outcome::Succeeded, Outcome::Succeeded, Outcome::Failed] {
                trial.record_end(Some(&digest), outcome);
            }
        }
        assert_eq!(trial.stopped, None);
    }
}
