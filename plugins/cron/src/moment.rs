//! What a CronJob does at one instant: the run that is made, and those that are removed.

use crate::CronJob;
use crate::runs::{self, Run, State};
use crate::slots::{Slots, are_many};
use crate::times;
use crate::valid::{Concurrency, Valid, validate};
use serde_json::{Value, json};
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
    /// The schedule and since when it is this one, as the status says it.
    pub(crate) schedule: Value,
    /// Slots up to this instant have had a run, or are of the time before the CronJob or its schedule.
    from: i64,
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
        // Nothing that anybody wrote makes slots of the time before the CronJob.
        let created = times::seconds(job.view.created);
        let begun = created.max(recorded.unwrap_or(0));
        let from = created.max(last.unwrap_or(0));
        let (schedule, since) = scheduled(job, &status["observedSchedule"], created, now);
        let slots = Slots::around(now, &valid.schedule, from, not_before.max(from).max(since));
        Ok(Self { valid, runs, recorded, last, slots, schedule, from: begun.max(since) })
    }

    /// Returns the slot of the last run, if the published status does not know it yet.
    pub(crate) fn unrecorded(&self) -> Option<i64> {
        self.last.filter(|last| self.recorded.is_none_or(|recorded| recorded < *last))
    }

    /// Returns whether more than [`MANY`](crate::slots::MANY) slots passed without a run before the
    /// [unrecorded](Self::unrecorded) one. With a starting deadline the user does not care for old slots.
    pub(crate) fn missed_many(&self) -> bool {
        let begin = self.valid.schedule.begin(self.recorded.unwrap_or(self.from), self.from);
        self.valid.deadline.is_none()
            && self.unrecorded().is_some_and(|last| are_many(&self.valid.schedule, begin, last))
    }

    pub(crate) fn active(&self) -> impl DoubleEndedIterator<Item = &Run<'a>> {
        self.runs.iter().filter(|run| run.is_active())
    }

    /// Returns the run that is made, and the runs that are removed.
    pub(crate) fn bindings(&self, cron_job: &str) -> Bindings {
        let due = self.due(cron_job);
        let replaced = self
            .active()
            .filter(|run| due.is_some() && self.valid.concurrency == Concurrency::Replace && run.is_removable());
        let old = self.old().filter(|run| self.is_recorded(run));
        Bindings {
            bodies: vec![],
            runs: due.map(|slot| runs::of_slot(cron_job, slot)).into_iter().collect(),
            remove: old.chain(replaced).map(|run| run.object.uid.clone()).collect(),
        }
    }

    /// Returns whether a run has to go once its slot is in the published status.
    pub(crate) fn waits_for_record(&self) -> bool {
        self.old().any(|run| !self.is_recorded(run))
    }

    /// Returns the slot of the run that is made now. A run that has its name already is its run.
    fn due(&self, cron_job: &str) -> Option<i64> {
        let slot = self.slots.missed?;
        let is_forbidden = self.valid.concurrency == Concurrency::Forbid && self.active().next().is_some();
        let is_taken = self.runs.iter().any(|run| run.object.name == runs::name(cron_job, slot));
        (!self.valid.suspended && !is_forbidden && !is_taken).then_some(slot)
    }

    /// Returns the finished runs above the limits, the oldest. What was refused counts as failed.
    fn old(&self) -> impl Iterator<Item = &Run<'a>> {
        let limits = self.valid.limits;
        let both: [(&[State], usize); 2] =
            [(&[State::Succeeded], limits.succeeded), (&[State::Failed, State::Refused], limits.failed)];
        both.into_iter().flat_map(move |(states, limit)| {
            let ended = move || self.runs.iter().filter(move |run| states.contains(&run.state) && run.is_removable());
            ended().take(ended().count().saturating_sub(limit))
        })
    }

    /// Returns whether the published status says that the slot of this run had a run. Nothing else does once it is gone.
    fn is_recorded(&self, run: &Run<'_>) -> bool {
        run.slot.is_none_or(|slot| self.recorded.is_some_and(|recorded| slot <= recorded))
    }
}

/// Returns the schedule as the status is to say it, and since when it is this one. What was due by an earlier schedule is not
/// due by this one: only slots after an edit count. No time of an edit is known but that of the look which found it.
fn scheduled(job: &CronJob, published: &Value, created: i64, now: i64) -> (Value, i64) {
    let mut schedule = json!({ "schedule": job.spec.schedule, "timeZone": job.spec.time_zone });
    if let Value::Object(fields) = &mut schedule {
        fields.retain(|_, text| !text.is_null());
    }
    let since = if ["schedule", "timeZone"].iter().all(|field| published[field] == schedule[field]) {
        published["since"].as_str().and_then(times::parse).map_or(created, |since| since.min(now))
    } else if published.is_object() {
        now
    } else {
        created
    };
    schedule["since"] = times::rfc3339(since).into();
    (schedule, since)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{
        annotated, at, complete, cron_job, failed, going, hourly, hourly_with, job, other, paddle, refused, seen,
        seen_after,
    };
    use troupe_plugin::types::ChildView;

    fn bindings(spec: &Value, seen: &Observation) -> Bindings {
        Moment::of(&cron_job(spec), seen).unwrap().bindings("tick")
    }

    /// Returns the time of the run that is made.
    fn made(spec: &Value, seen: &Observation) -> Option<String> {
        let mut bindings = bindings(spec, seen);
        assert!(bindings.runs.len() < 2);
        bindings.runs.pop().map(|run| run.annotations[0].1.clone())
    }

    /// Returns the uids of runs for the slots of these times.
    fn uids(slots: &[&str]) -> Vec<String> {
        slots.iter().map(|slot| job(slot).uid).collect()
    }

    // C06
    #[test]
    fn a_run_is_made_for_the_newest_missed_slot() {
        let runs = bindings(&hourly(), &seen_after("09:00", "11:20", &[])).runs;
        let run = &runs[0];
        assert_eq!((&*run.series, &*run.name, runs.len()), ("runs", "tick-1767265200", 1));
        let annotation = ("batch.tutorial.kubebuilder.io/scheduled-at".to_owned(), "2026-01-01T11:00:00Z".to_owned());
        assert_eq!(run.annotations, [annotation]);
        assert_eq!(made(&hourly(), &seen_after("11:00", "11:20", &[])), None);
        // Nothing has run yet: slots count from the creation, at midnight.
        assert_eq!(made(&hourly(), &seen("00:59", &[])), None);
        assert_eq!(made(&hourly(), &seen("01:00", &[])).as_deref(), Some("2026-01-01T01:00:00Z"));
    }

    // C06
    #[test]
    fn the_slots_are_those_of_the_time_zone() {
        let mut spec = hourly_with("schedule", json!("30 9 * * *"));
        spec["timeZone"] = json!("Asia/Kolkata");
        assert_eq!(made(&spec, &seen("03:59", &[])), None);
        assert_eq!(made(&spec, &seen("04:00", &[])).as_deref(), Some("2026-01-01T04:00:00Z"));
        let in_schedule = hourly_with("schedule", json!("TZ=Asia/Kolkata 30 9 * * *"));
        assert_eq!(made(&in_schedule, &seen("04:00", &[])).as_deref(), Some("2026-01-01T04:00:00Z"));
    }

    // C07
    #[test]
    fn a_run_is_not_made_after_its_starting_deadline() {
        let spec = hourly_with("startingDeadlineSeconds", json!(60));
        assert!(made(&spec, &seen_after("09:00", "11:00:59", &[])).is_some());
        assert_eq!(made(&spec, &seen_after("09:00", "11:01", &[])), None);
        let never = hourly_with("startingDeadlineSeconds", json!(0));
        assert_eq!(made(&never, &seen_after("09:00", "11:00", &[])), None);
        let always = hourly_with("startingDeadlineSeconds", json!(i64::MAX));
        assert!(made(&always, &seen_after("09:00", "11:01", &[])).is_some());
    }

    // C08
    #[test]
    fn active_runs_are_left_alone_wait_or_are_replaced() {
        let with = |policy: &str| {
            let runs = [complete("09:00"), job("10:00"), going(job("10:30"))];
            let bindings =
                bindings(&hourly_with("concurrencyPolicy", json!(policy)), &seen_after("10:30", "11:00", &runs));
            (bindings.runs.len(), bindings.remove)
        };
        assert_eq!(with("Allow"), (1, vec![]));
        assert_eq!(with("Forbid"), (0, vec![]));
        assert_eq!(with("Replace"), (1, uids(&["10:00"])));
    }

    // C08
    #[test]
    fn replace_removes_nothing_while_no_run_is_due() {
        let replace = hourly_with("concurrencyPolicy", json!("Replace"));
        assert_eq!(bindings(&replace, &seen_after("11:00", "11:20", &[job("11:00")])).remove, uids(&[]));
        // Its own run is there, though its annotation names another slot.
        let seen = seen_after("10:00", "11:20", &[annotated("11:00", "yesterday")]);
        assert_eq!(bindings(&replace, &seen), Bindings { bodies: vec![], runs: vec![], remove: vec![] });
    }

    // C08: a slot that Forbid held back is made up for
    #[test]
    fn forbid_lets_the_newest_slot_run_once_the_active_run_has_ended() {
        let forbid = hourly_with("concurrencyPolicy", json!("Forbid"));
        assert_eq!(made(&forbid, &seen("13:10", &[job("09:00")])), None);
        assert_eq!(made(&forbid, &seen("13:10", &[complete("09:00")])).as_deref(), Some("2026-01-01T13:00:00Z"));
    }

    // C09
    #[test]
    fn a_suspended_cron_job_makes_no_run_and_keeps_to_its_limits() {
        let mut spec = hourly_with("suspend", json!(true));
        spec["successfulJobsHistoryLimit"] = json!(0);
        let bindings = bindings(&spec, &seen_after("10:00", "11:20", &[complete("09:00"), job("10:00")]));
        assert_eq!((bindings.runs.len(), bindings.remove), (0, uids(&["09:00"])));
    }

    // C10
    #[test]
    fn after_more_than_a_hundred_missed_slots_the_newest_has_a_run() {
        let spec = hourly_with("schedule", json!("* * * * *"));
        for now in ["11:40", "11:41", "23:59"] {
            let slot = format!("2026-01-01T{now}:00Z");
            assert_eq!(made(&spec, &seen_after("10:00", now, &[])), Some(slot), "{now}");
        }
        let told = |spec: &Value, last: &str| {
            Moment::of(&cron_job(spec), &seen_after(last, "12:00", &[job("12:00")])).unwrap().missed_many()
        };
        assert!(told(&spec, "10:00") && !told(&spec, "10:20") && !told(&spec, "12:00"));
        let mut deadline = spec.clone();
        deadline["startingDeadlineSeconds"] = json!(200);
        assert!(!told(&deadline, "10:00"));
    }

    /// What is published by a CronJob with this schedule, which it has since this time.
    fn published(schedule: &str, since: &str, last: &str) -> Value {
        let since = times::rfc3339(at(since));
        json!({ "lastScheduleTime": times::rfc3339(at(last)), "observedSchedule": { "schedule": schedule, "since": since } })
    }

    // C17
    #[test]
    fn only_times_after_an_edit_are_due_by_the_edited_schedule() {
        let at_time = |status: &Value, now: &str| Observation { previous_status: status.to_string(), ..seen(now, &[]) };
        let daily = published("0 9 * * *", "00:00", "09:00");
        // Edited at 12:20: 12:00 is a slot of the new schedule, and was none of the old.
        let edited = at_time(&daily, "12:20");
        let moment = |seen: &Observation| Moment::of(&cron_job(&hourly()), seen).unwrap().schedule;
        assert_eq!((made(&hourly(), &edited), moment(&edited)["since"].as_str()), (None, Some("2026-01-01T12:20:00Z")));
        let known = published("0 * * * *", "12:20", "09:00");
        assert_eq!(made(&hourly(), &at_time(&known, "12:59")), None);
        assert_eq!(made(&hourly(), &at_time(&known, "13:05")).as_deref(), Some("2026-01-01T13:00:00Z"));
        // Another zone is another schedule.
        let mut zoned = hourly();
        zoned["timeZone"] = json!("Asia/Kolkata");
        assert_eq!(made(&zoned, &at_time(&known, "13:40")), None);
        // What others wrote holds nothing up: a time that has not come counts as now, and is written so.
        let ahead = at_time(&published("0 * * * *", "23:00", "09:00"), "13:05");
        assert_eq!(moment(&ahead)["since"], "2026-01-01T13:05:00Z");
        for nonsense in
            [json!(7), json!({ "observedSchedule": 7 }), json!({ "observedSchedule": { "schedule": "0 * * * *" } })]
        {
            assert!(made(&hourly(), &at_time(&nonsense, "13:05")).is_some(), "{nonsense}");
        }
    }

    // C11, C12: a run that was never accepted holds up no other, and does not pile up
    #[test]
    fn refused_runs_count_as_failed_and_are_not_active() {
        let forbid = hourly_with("concurrencyPolicy", json!("Forbid"));
        let runs = [refused("09:00"), refused("10:00")];
        let bindings = bindings(&forbid, &seen_after("10:00", "11:00", &runs));
        assert_eq!((bindings.runs.len(), bindings.remove), (1, uids(&["09:00"])));
    }

    // C11
    #[test]
    fn the_oldest_finished_runs_above_the_limits_are_removed() {
        let runs = [
            complete("05:00"),
            complete("02:00"),
            failed("01:00"),
            complete("03:00"),
            failed("06:00"),
            complete("04:00"),
            job("00:30"),
        ];
        let removed = |spec: &Value| bindings(spec, &seen_after("06:00", "06:30", &runs)).remove;
        assert_eq!(removed(&hourly()), uids(&["02:00", "01:00"]));
        let mut none = hourly_with("successfulJobsHistoryLimit", json!(0));
        none["failedJobsHistoryLimit"] = json!(0);
        assert_eq!(removed(&none), uids(&["02:00", "03:00", "04:00", "05:00", "01:00", "06:00"]));
    }

    // C11
    #[test]
    fn a_run_that_is_being_deleted_is_neither_removed_nor_kept() {
        let spec = hourly_with("successfulJobsHistoryLimit", json!(1));
        let runs = [going(complete("02:00")), complete("03:00"), going(complete("04:00"))];
        assert_eq!(bindings(&spec, &seen_after("04:00", "04:30", &runs)).remove, uids(&[]));
    }

    // C11: runs of the kind that the template had before are not of the series
    #[test]
    fn a_run_of_another_kind_is_not_removed_but_is_active() {
        let mut old = other("Job", "tick-1", &json!({}));
        old.key = None;
        for (policy, runs) in [("Replace", 1), ("Forbid", 0)] {
            let mut spec = paddle("kubeflow.org/v1");
            spec["concurrencyPolicy"] = json!(policy);
            let bindings = bindings(&spec, &seen_after("10:00", "11:00", std::slice::from_ref(&old)));
            assert_eq!((bindings.runs.len(), bindings.remove.len()), (runs, 0), "{policy}");
        }
    }

    // C11, C13: with a limit of 0 nothing but the status says that a slot had its run
    #[test]
    fn a_run_is_removed_only_once_the_status_knows_its_slot() {
        let spec = hourly_with("successfulJobsHistoryLimit", json!(0));
        let unknown = seen_after("10:00", "11:20", &[complete("11:00")]);
        let moment_of = |seen| Moment::of(&cron_job(&spec), seen).unwrap().waits_for_record();
        assert_eq!((bindings(&spec, &unknown).remove, moment_of(&unknown)), (uids(&[]), true));
        let known = seen_after("11:00", "11:20", &[complete("11:00")]);
        assert_eq!((bindings(&spec, &known).remove, moment_of(&known)), (uids(&["11:00"]), false));
        assert_eq!(made(&spec, &seen_after("11:00", "11:20", &[])), None);
    }

    /// Returns the slot of the last run, as it is published.
    fn last(status: &Value, now: &str, runs: &[ChildView]) -> Option<i64> {
        let seen = Observation { previous_status: status.to_string(), ..seen(now, runs) };
        Moment::of(&cron_job(&hourly()), &seen).unwrap().last
    }

    // C13
    #[test]
    fn the_last_slot_is_that_of_the_newest_run_or_of_the_status() {
        let status = |time: &str| json!({ "lastScheduleTime": format!("2026-01-01T{time}:00Z") });
        assert_eq!(last(&json!({}), "11:20", &[]), None);
        assert_eq!(last(&json!({}), "11:20", &[job("10:00"), complete("11:00")]), Some(at("11:00")));
        assert_eq!(last(&status("11:00"), "11:20", &[job("10:00")]), Some(at("11:00")));
        assert_eq!(last(&status("09:00"), "11:20", &[job("10:00")]), Some(at("10:00")));
        assert_eq!(last(&json!({}), "11:20", &[annotated("11:00", "yesterday"), job("10:00")]), Some(at("10:00")));
        for nonsense in [json!(7), json!([]), json!({ "lastScheduleTime": 7 }), json!({ "lastScheduleTime": "soon" })] {
            assert_eq!(last(&nonsense, "11:20", &[job("10:00")]), Some(at("10:00")), "{nonsense}");
        }
    }

    // C13: what is ahead of the clock holds nothing up
    #[test]
    fn a_slot_in_the_future_does_not_stop_the_schedule() {
        let future = json!({ "lastScheduleTime": "2999-01-01T00:00:00Z" });
        assert_eq!(last(&future, "11:20", &[]), Some(at("11:20")));
        let far = annotated("09:00", "2999-01-01T00:00:00Z");
        assert_eq!(last(&json!({}), "11:20", std::slice::from_ref(&far)), None);
        assert!(made(&hourly(), &seen_after("10:00", "11:20", &[far])).is_some());
    }

    // C13
    #[test]
    fn a_slot_before_the_creation_is_no_reason_to_have_missed_others() {
        let past = Observation {
            previous_status: json!({ "lastScheduleTime": "1960-01-01T00:00:00Z" }).to_string(),
            ..seen("11:20", &[annotated("09:00", "2001-01-01T00:00:00Z")])
        };
        assert_eq!(made(&hourly(), &past).as_deref(), Some("2026-01-01T11:00:00Z"));
    }

    // C13
    #[test]
    fn a_clock_that_is_set_back_makes_no_run_again() {
        let runs = [complete("10:00"), complete("11:00")];
        assert_eq!(made(&hourly(), &seen_after("11:00", "10:30", &runs)), None);
        // The run of 11:00 is there, and at its slot it keeps its name.
        assert_eq!(made(&hourly(), &seen_after("10:30", "11:00", &runs)), None);
        // A run that is gone is not made again before the time to which the clock was set.
        assert_eq!(made(&hourly(), &seen_after("11:00", "10:30", &[])), None);
    }
}
