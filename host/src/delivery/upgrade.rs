//! How a digest that was found and is acceptable comes to serve. Pure.

use crate::plugin_resource::{Canary, CandidateState, Strategy, Upgrade};
use decide::Digest;

/// What is known when a digest was found in a Plugin's source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    /// The digest.
    pub(super) digest: &'a Digest,
    /// The one that serves new jobs now.
    pub(super) active: Option<&'a Digest>,
    /// The one that did before.
    pub(super) previous: Option<&'a Digest>,
    /// It has been a canary and was stopped.
    pub(super) stopped: bool,
}

/// What is done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// It serves all new jobs.
    Serve,
    /// It serves none, or some: a candidate in this state.
    Candidate(CandidateState, Option<Canary>),
}

impl Step {
    /// Jobs are planned by it from now on, or were before.
    pub(super) fn plans_jobs(&self) -> bool {
        matches!(self, Self::Serve | Self::Candidate(CandidateState::Canary | CandidateState::Stopped, _))
    }
}

/// What is done with a digest that is acceptable. The first one of a framework serves at once, and so does the one that
/// served before: going back waits for nothing.
pub(super) fn step(upgrade: &Upgrade, found: &Found<'_>) -> Step {
    let Found { digest, active, previous, stopped } = *found;
    let approved = upgrade.approve.as_deref() == Some(digest.as_str());
    let waits = upgrade.strategy == Strategy::Manual && !approved;
    match &upgrade.canary {
        _ if active.is_none_or(|active| active == digest) || previous == Some(digest) => Step::Serve,
        _ if stopped && !approved => Step::Candidate(CandidateState::Stopped, None),
        _ if upgrade.shadow => Step::Candidate(CandidateState::Shadow, None),
        _ if waits => Step::Candidate(CandidateState::Waiting, None),
        Some(canary) if !stopped => Step::Candidate(CandidateState::Canary, Some(canary.clone())),
        _ => Step::Serve,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::testkit::digest;
    use std::sync::LazyLock;

    static OLD: LazyLock<Digest> = LazyLock::new(|| digest("old"));
    static NEW: LazyLock<Digest> = LazyLock::new(|| digest("new"));

    fn found() -> Found<'static> {
        Found { digest: &NEW, active: Some(&OLD), previous: None, stopped: false }
    }

    #[test]
    fn the_first_digest_of_a_framework_serves_at_once() {
        let manual = Upgrade { strategy: Strategy::Manual, shadow: true, ..Upgrade::default() };
        assert_eq!(step(&manual, &Found { active: None, ..found() }), Step::Serve);
    }

    #[test]
    fn a_new_digest_serves_new_jobs_unless_the_plugin_says_otherwise() {
        assert_eq!(step(&Upgrade::default(), &found()), Step::Serve);
        let migrate = Upgrade { strategy: Strategy::Migrate, ..Upgrade::default() };
        assert_eq!(step(&migrate, &found()), Step::Serve);
    }

    #[test]
    fn by_hand_means_that_this_very_digest_was_approved() {
        let manual = |approve: Option<&Digest>| Upgrade {
            strategy: Strategy::Manual,
            approve: approve.map(Digest::to_string),
            ..Upgrade::default()
        };
        let waiting = Step::Candidate(CandidateState::Waiting, None);
        assert_eq!(step(&manual(None), &found()), waiting);
        assert_eq!(step(&manual(Some(&OLD)), &found()), waiting);
        assert_eq!(step(&manual(Some(&NEW)), &found()), Step::Serve);
    }

    #[test]
    fn a_shadow_serves_nobody_and_a_canary_some() {
        let canary = Canary { percent: 10, ..Canary::default() };
        let upgrade = Upgrade { canary: Some(canary.clone()), ..Upgrade::default() };
        assert_eq!(step(&upgrade, &found()), Step::Candidate(CandidateState::Canary, Some(canary)));
        let stopped = Found { stopped: true, ..found() };
        assert_eq!(step(&upgrade, &stopped), Step::Candidate(CandidateState::Stopped, None));
        let approved = Upgrade { approve: Some(NEW.to_string()), ..upgrade.clone() };
        assert_eq!(step(&approved, &stopped), Step::Serve);
        let shadow = Upgrade { shadow: true, ..upgrade };
        assert_eq!(step(&shadow, &found()), Step::Candidate(CandidateState::Shadow, None));
    }

    #[test]
    fn going_back_waits_for_nothing() {
        let upgrade = Upgrade { strategy: Strategy::Manual, shadow: true, ..Upgrade::default() };
        assert_eq!(step(&upgrade, &Found { previous: Some(&NEW), ..found() }), Step::Serve);
    }
}
