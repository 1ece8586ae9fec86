//! What a watch does next, from the results of its attempts. Pure.

use crate::api::forbidden::Forbidden;
use std::time::Duration;
use tokio::time::Instant;

/// After this many answers in a row without an event, the version is given up.
const DOUBTS: u32 = 8;

/// A connection that lasted this long ends a row of failures.
const LASTING: Duration = Duration::from_secs(10);

/// What a watch does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// List all objects.
    List,
    /// Follow the events after this version.
    Follow(u64),
}

/// What a failed attempt says about the version to continue from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The version cannot be used any more.
    Expired,
    /// Nothing: there was no answer, or the API server asked to try again later.
    Unanswered,
    /// There was an answer without an event.
    Barren,
}

/// The version that a watch has reached, and its failures in a row. A list does not show how missing objects ended, so
/// a watch lists again only when the version cannot be used.
#[derive(Debug, Default)]
pub(crate) struct Position {
    from: Option<u64>,
    failures: u32,
    barren: u32,
    forbidden: Forbidden,
}

impl Position {
    /// Returns the next step.
    pub(crate) fn step(&self) -> Step {
        self.from.map_or(Step::List, Step::Follow)
    }

    /// Records a complete list as of this version.
    pub(crate) fn listed(&mut self, version: u64) {
        self.from = Some(version);
    }

    /// Records an event or a bookmark, which ends the row of failures.
    pub(crate) fn shown(&mut self, version: u64) {
        self.from = Some(version);
        (self.failures, self.barren) = (0, 0);
    }

    /// Records that a connection has ended after this time. Returns the number of failures in a row: 0 if it lasted.
    pub(crate) fn ended(&mut self, lasted: Duration) -> u32 {
        if lasted >= LASTING {
            self.allowed();
            (self.failures, self.barren) = (0, 0);
            return 0;
        }
        self.failed(Failure::Barren)
    }

    /// Records that the API server has begun to answer, and so does not forbid the kind.
    pub(crate) fn allowed(&mut self) {
        self.forbidden.ended();
    }

    /// Records an attempt that was forbidden at `now`. Returns the number of failures in a row. The version is given up
    /// once the host has no right to the kind.
    pub(crate) fn forbidden(&mut self, now: Instant) -> u32 {
        self.forbidden.again(now);
        self.failed_in_a_row(if self.lacks_right_in(now).is_zero() { Failure::Expired } else { Failure::Barren })
    }

    /// Returns how long after `now` nothing but further forbidden attempts show that the host has no right to the kind:
    /// zero once they have.
    pub(crate) fn lacks_right_in(&self, now: Instant) -> Duration {
        self.forbidden.lacks_right_in(now)
    }

    /// Records a failed attempt that was not forbidden. Returns the number of failures in a row.
    pub(crate) fn failed(&mut self, failure: Failure) -> u32 {
        self.forbidden.ended();
        self.failed_in_a_row(failure)
    }

    fn failed_in_a_row(&mut self, failure: Failure) -> u32 {
        self.failures += 1;
        self.barren += u32::from(failure == Failure::Barren);
        if failure == Failure::Expired || self.barren >= DOUBTS {
            (self.from, self.barren) = (None, 0);
        }
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORBIDDEN: Duration = Duration::from_secs(30);

    fn at(version: u64) -> Position {
        let mut position = Position::default();
        position.listed(version);
        position
    }

    #[test]
    fn a_watch_lists_first_and_then_follows() {
        assert_eq!(Position::default().step(), Step::List);
        let mut position = at(7);
        assert_eq!(position.step(), Step::Follow(7));
        position.shown(9);
        assert_eq!(position.step(), Step::Follow(9));
    }

    #[test]
    fn nothing_but_an_expired_version_is_listed_again_at_once() {
        let mut position = at(7);
        for _ in 0..1000 {
            position.failed(Failure::Unanswered);
        }
        position.failed(Failure::Barren);
        position.ended(Duration::from_secs(90));
        assert_eq!(position.step(), Step::Follow(7));
        position.failed(Failure::Expired);
        assert_eq!(position.step(), Step::List);
    }

    #[test]
    fn a_version_that_brings_nothing_several_times_in_a_row_is_given_up() {
        let mut position = at(7);
        for _ in 1..DOUBTS {
            position.failed(Failure::Barren);
        }
        assert_eq!(position.step(), Step::Follow(7));
        position.failed(Failure::Barren);
        assert_eq!(position.step(), Step::List);
        position.listed(8);
        assert_eq!(position.step(), Step::Follow(8));
    }

    #[test]
    fn what_comes_in_between_ends_the_row() {
        let mut position = at(7);
        for version in 8..100 {
            position.ended(Duration::ZERO);
            position.shown(version);
        }
        assert_eq!(position.failed(Failure::Unanswered), 1);
        assert_eq!(position.ended(LASTING), 0);
        assert_eq!(position.failed(Failure::Unanswered), 1);
    }

    #[test]
    fn what_is_forbidden_for_half_a_minute_and_never_answered_is_no_right_of_the_host() {
        let (mut position, first) = (at(7), Instant::now());
        assert_eq!(position.lacks_right_in(first), FORBIDDEN);
        assert_eq!(position.forbidden(first), 1);
        let almost = first + FORBIDDEN - Duration::from_secs(1);
        assert_eq!(position.forbidden(almost), 2);
        assert_eq!((position.lacks_right_in(almost), position.step()), (Duration::from_secs(1), Step::Follow(7)));
        position.forbidden(first + FORBIDDEN);
        assert_eq!((position.lacks_right_in(first + FORBIDDEN), position.step()), (Duration::ZERO, Step::List));
        let later = first + Duration::from_secs(600);
        position.forbidden(later);
        assert!(position.lacks_right_in(later).is_zero(), "it is not waited for again");
    }

    #[test]
    fn any_other_answer_begins_the_half_minute_anew() {
        let others: [fn(&mut Position); 4] = [
            Position::allowed,
            |it| _ = it.failed(Failure::Unanswered),
            |it| _ = it.failed(Failure::Barren),
            |it| _ = it.ended(LASTING),
        ];
        for other in others {
            let (mut position, first) = (at(7), Instant::now());
            position.forbidden(first);
            other(&mut position);
            let last = first + FORBIDDEN;
            position.forbidden(last);
            assert_eq!((position.lacks_right_in(last), position.step()), (FORBIDDEN, Step::Follow(7)));
        }
    }

    #[test]
    fn a_list_that_is_expired_at_once_is_a_failure_in_a_row() {
        let mut position = at(7);
        assert_eq!(position.failed(Failure::Expired), 1);
        position.listed(8);
        assert_eq!(position.failed(Failure::Expired), 2);
    }
}
