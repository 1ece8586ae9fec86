//! What a CronJob does at one instant: the run that is made, and those that are removed.

use crate::CronJob;
use crate::runs::{self, Run, State};
use crate::slots::{Missed, Slots};
use crate::times;
use crate::valid::{Concurrency, Valid, validate};
use serde_json::Value;
use troupe_plugin::ObservationExt;
use troupe_plugin::types::{Bindings, Observation, Refusal};

/// A CronJob and its runs at one instant.
#[derive(Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) valid: Valid,
    pub(crate) runs: Vec<Run<'a>>,
    /// The slot of the last run that the published status knows of.
    pub(crate) recorded: Option<i64>,
    /// The slot of the last run.
    pub(crate) last: Option<i64>,
    pub(crate) slots: Slots,
}

impl<'a> Moment<'a> {
    /// Looks at the runs, and at the published status only for the slot of a run that is gone. A status that is ahead of
    /// the clock counts as now: either the clock was set back, or somebody else wrote the status.
    pub(crate) fn of(job: &CronJob, seen: &'a Observation) -> Result<Self, Refusal> {
        let valid = validate(job)?;
        let now = times::seconds(seen.now);
        let runs = runs::observed(seen);
        let status: Value = seen.previous();
        let recorded = status["lastScheduleTime"].as_str().and_then(times::parse).map(|slot| slot.min(now));
        let last = runs.iter().filter_map(|run| run.slot).chain(recorded).max();
        let not_before = valid.deadline.map_or(i64::MIN, |seconds| now.saturating_sub(seconds));
        let from = last.unwrap_or_else(|| times::seconds(job.view.created));
        let slots = Slots::around(now, &valid.schedule, from, not_before.max(from));
        Ok(Self { valid, runs, recorded, last, slots })
    }

    pub(crate) fn active(&self) -> impl DoubleEndedIterator<Item = &Run<'a>> {
        self.runs.iter().filter(|run| run.is_active())
    }

    /// Returns the run that is made, and the runs that are removed.
    pub(crate) fn bindings(&self, cron_job: &str) -> Bindings {
        let due = self.due(cron_job);
        let replaced = match (due, self.valid.concurrency) {
            (Some(_), Concurrency::Replace) => self.active().filter(|run| run.is_removable()).collect(),
            _ => vec![],
        };
        let limits = self.valid.limits;
        let old = self.above(limits.succeeded, State::Succeeded).chain(self.above(limits.failed, State::Failed));
        Bindings {
            bodies: vec![],
            runs: due.map(|slot| runs::of_slot(cron_job, slot)).into_iter().collect(),
            remove: old.chain(replaced).map(|run| run.object.uid.clone()).collect(),
        }
    }

    /// Returns the slot of the run that is made now. A run that has its name already is its run.
    fn due(&self, cron_job: &str) -> Option<i64> {
        let Missed::Newest(slot) = self.slots.missed else { return None };
        let is_held =
            self.valid.suspended || (self.valid.concurrency == Concurrency::Forbid && self.active().next().is_some());
        let is_taken = self.runs.iter().any(|run| run.object.name == runs::name(cron_job, slot));
        (!is_held && !is_taken).then_some(slot)
    }

    /// Returns the oldest runs that ended so, above a number of them. A run whose slot is not in the published status yet
    /// stays until it is: afterwards nothing else tells that the slot had a run.
    fn above(&self, limit: usize, state: State) -> impl Iterator<Item = &Run<'a>> {
        let ended = || self.runs.iter().filter(move |run| run.state == state && run.is_removable());
        let many = ended().count().saturating_sub(limit);
        ended()
            .take(many)
            .filter(|run| run.slot.is_none_or(|slot| self.recorded.is_some_and(|recorded| slot <= recorded)))
    }
}
