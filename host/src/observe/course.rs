//! Where a watch goes on after what came of it. Pure.

use std::time::Duration;

/// So many answers in a row that brought nothing make the version doubtful.
const DOUBTS: u32 = 8;

/// A connection that lasted this long was none of a row of failures.
const LASTING: Duration = Duration::from_secs(10);

/// What a watch does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It lists.
    List,
    /// It follows what happens after this version.
    Follow(u64),
}

/// What an attempt that failed says of the version to go on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The version is of no use any more.
    Expired,
    /// Nothing: there was no answer, or one that asks to come again.
    Unanswered,
    /// There was an answer, and nothing in it.
    Barren,
}

/// The version that a watch has come to, and its failures in a row. What a list finds missing has ended unseen, so it is
/// listed only when the version is of no use.
#[derive(Debug, Default)]
pub(crate) struct Course {
    from: Option<u64>,
    failures: u32,
    barren: u32,
}

impl Course {
    /// What comes next.
    pub(crate) fn step(&self) -> Step {
        self.from.map_or(Step::List, Step::Follow)
    }

    /// A list has shown all there is as of this version.
    pub(crate) fn listed(&mut self, version: u64) {
        self.from = Some(version);
    }

    /// An event or a bookmark has come.
    pub(crate) fn shown(&mut self, version: u64) {
        self.from = Some(version);
        (self.failures, self.barren) = (0, 0);
    }

    /// A connection has ended that lasted so long. Returns how many attempts failed in a row; none of them is this one if
    /// it lasted.
    pub(crate) fn ended(&mut self, lasted: Duration) -> u32 {
        if lasted >= LASTING {
            (self.failures, self.barren) = (0, 0);
            return 0;
        }
        self.failed(Failure::Barren)
    }

    /// An attempt has failed. Returns how many did in a row.
    pub(crate) fn failed(&mut self, failure: Failure) -> u32 {
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

    fn at(version: u64) -> Course {
        let mut course = Course::default();
        course.listed(version);
        course
    }

    #[test]
    fn a_watch_lists_first_and_then_follows() {
        assert_eq!(Course::default().step(), Step::List);
        let mut course = at(7);
        assert_eq!(course.step(), Step::Follow(7));
        course.shown(9);
        assert_eq!(course.step(), Step::Follow(9));
    }

    #[test]
    fn nothing_but_an_expired_version_is_listed_again_at_once() {
        let mut course = at(7);
        for _ in 0..1000 {
            course.failed(Failure::Unanswered);
        }
        course.failed(Failure::Barren);
        course.ended(Duration::from_secs(90));
        assert_eq!(course.step(), Step::Follow(7));
        course.failed(Failure::Expired);
        assert_eq!(course.step(), Step::List);
    }

    #[test]
    fn a_version_that_brings_nothing_several_times_in_a_row_is_given_up() {
        let mut course = at(7);
        for _ in 1..DOUBTS {
            course.failed(Failure::Barren);
        }
        assert_eq!(course.step(), Step::Follow(7));
        course.failed(Failure::Barren);
        assert_eq!(course.step(), Step::List);
        course.listed(8);
        assert_eq!(course.step(), Step::Follow(8));
    }

    #[test]
    fn what_comes_in_between_ends_the_row() {
        let mut course = at(7);
        for version in 8..100 {
            course.ended(Duration::ZERO);
            course.shown(version);
        }
        assert_eq!(course.failed(Failure::Unanswered), 1);
        assert_eq!(course.ended(LASTING), 0);
        assert_eq!(course.failed(Failure::Unanswered), 1);
    }

    #[test]
    fn a_list_that_is_expired_at_once_is_a_failure_in_a_row() {
        let mut course = at(7);
        assert_eq!(course.failed(Failure::Expired), 1);
        course.listed(8);
        assert_eq!(course.failed(Failure::Expired), 2);
    }
}
