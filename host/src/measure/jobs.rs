//! Jobs by phase and by what they wait for, how long they take, and what goes wrong with them.

use super::{Controller, Histograms, OfKind, OfReason, originals::Events};
use crate::job_key::{GroupKind, JobKey};
use decide::{
    Applied, Decision, Report, Snapshot, Write,
    condition::{Condition, Reason},
    ledger::{Finished, Ledger},
    plan::{Answer, Outcome, Plan},
    snapshot::PodPhase,
    status::waiting,
};
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
};
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};
use troupe_plugin::original::Counted;

/// Upper bounds in seconds: from what the host itself takes to a week of training.
const BUCKETS: [f64; 20] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0,
    86_400.0, 259_200.0, 604_800.0,
];

/// The phase of a job, the same for every framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not all of its pods run yet.
    Pending,
    /// All of its pods run, or have run; or it has none, and makes other jobs.
    Running,
    /// Its user has suspended it.
    Suspended,
    /// It has succeeded.
    Succeeded,
    /// It has failed.
    Failed,
    /// Its user has to change it.
    Rejected,
    /// Its plugin gives no answer.
    Faulted,
    /// It is being deleted.
    Deleting,
    /// Another manager runs it.
    External,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Running,
        Self::Suspended,
        Self::Succeeded,
        Self::Failed,
        Self::Rejected,
        Self::Faulted,
        Self::Deleting,
        Self::External,
    ];

    /// Returns the phase as in labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Faulted => "faulted",
            Self::Deleting => "deleting",
            Self::External => "external",
        }
    }
}

/// How far the times of a job are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The host has seen it from its beginning, and not all of its pods are created.
    New,
    /// All of its pods are created, and not all run.
    Made,
    /// Nothing more is measured before its end: all has been, or a part of its time is not the host's.
    Past,
}

/// When a job has reached a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// Not yet.
    Open,
    /// At this time.
    At(Timestamp),
    /// Before this process saw the job.
    Before,
}

impl Reached {
    /// Returns what is known after a pass; `known` is what was known before it, if the host has seen the job before.
    fn after(known: Option<Self>, is_reached: bool, now: Timestamp, is_new: bool) -> Self {
        match known {
            Some(Self::Open) | None if !is_reached => Self::Open,
            Some(Self::Open) => Self::At(now),
            Some(reached) => reached,
            None if is_new => Self::At(now),
            None => Self::Before,
        }
    }

    fn at(self) -> Option<Timestamp> {
        if let Self::At(at) = self { Some(at) } else { None }
    }
}

/// The steps of a job that this process has seen it take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Milestones {
    /// When all of its pods were created.
    pub pods_made: Option<Timestamp>,
    /// When all of its pods ran or had run.
    pub running: Option<Timestamp>,
}

/// What is kept of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct JobState {
    /// Hash of the uid.
    job: u64,
    phase: Phase,
    waits_for: Option<Reason>,
    stage: Stage,
    pods_made: Reached,
    running: Reached,
    /// Whether it has a Job of its own.
    has_launcher: bool,
}

/// The labels of jobs that have ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfOutcome {
    controller: Controller,
    outcome: &'static str,
}

/// How many jobs there are of each kind.
#[derive(Debug, Default)]
pub struct JobCounts {
    /// By phase.
    pub phases: BTreeMap<(GroupKind, Phase), i64>,
    /// By the reason for which they wait; jobs that wait for nothing are left out.
    pub waits: BTreeMap<(GroupKind, &'static str), i64>,
}

/// The results of a pass over a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassResult<'a> {
    pub(crate) now: Timestamp,
    pub(crate) snapshot: &'a Snapshot,
    /// The plugin's answer, if it was asked.
    pub(crate) answer: Option<&'a Answer>,
    pub(crate) decision: &'a Decision,
    pub(crate) applied: &'a Applied,
    /// Whether the status holds what was decided.
    pub(crate) is_published: bool,
}

/// Counters and times of jobs, and the state of each.
#[derive(Debug)]
pub struct Jobs {
    states: Mutex<BTreeMap<JobKey, JobState>>,
    /// Jobs that the host has seen from their beginning.
    pub created: Family<OfKind, Counter>,
    /// Seconds from the creation of a job until all of its pods are created.
    pub until_pods: Histograms<OfKind>,
    /// Seconds from the creation of a job until all of its pods run or have run.
    pub until_running: Histograms<OfKind>,
    /// Seconds from the creation of a job until its end.
    pub until_end: Histograms<OfOutcome>,
    /// Failed pods that were counted, to be replaced.
    pub replaced: Family<OfKind, Counter>,
    /// Writes that failed, by the reason that the job's condition has for them.
    pub failed_writes: Family<OfReason, Counter>,
    /// Passes that ended in a rejection of the job.
    pub rejections: Family<OfReason, Counter>,
    /// Passes that ended in a fault of the plugin.
    pub faults: Family<OfReason, Counter>,
    /// What original operators count.
    pub events: Events,
}

impl Default for Jobs {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        Self {
            states: Mutex::default(),
            created: Family::default(),
            until_pods: Family::new_with_constructor(histogram),
            until_running: Family::new_with_constructor(histogram),
            until_end: Family::new_with_constructor(histogram),
            replaced: Family::default(),
            failed_writes: Family::default(),
            rejections: Family::default(),
            faults: Family::default(),
            events: Events::default(),
        }
    }
}

impl Jobs {
    /// Measures a pass over a job.
    pub(crate) fn record(&self, key: &JobKey, pass: &PassResult<'_>) {
        let kind = OfKind::new(&key.kind);
        self.advance(key, &kind, pass);
        self.count_failures(&kind, pass);
        if deletes_job(pass) {
            self.events.add(key, Counted::Deleted, 1);
        }
        if let Report::Verdict { ledger, .. } = &pass.decision.report
            && pass.is_published
        {
            self.count_published(key, kind, pass, ledger);
        }
    }

    /// Forgets a job that is gone.
    pub(crate) fn forget(&self, key: &JobKey) {
        self.states.lock().remove(key);
    }

    /// Returns how many jobs of each kind there are, by phase and by what they wait for.
    #[must_use]
    pub fn count(&self) -> JobCounts {
        let mut counts = JobCounts::default();
        for (key, state) in self.states.lock().iter() {
            *counts.phases.entry((key.kind.clone(), state.phase)).or_default() += 1;
            if let Some(reason) = state.waits_for {
                *counts.waits.entry((key.kind.clone(), reason.as_str())).or_default() += 1;
            }
        }
        counts
    }

    /// Returns the jobs of this kind that have a Job of their own.
    #[must_use]
    pub fn with_launchers(&self, kind: &GroupKind) -> Vec<JobKey> {
        let states = self.states.lock();
        let of_kind = states.iter().filter(|(key, state)| key.kind == *kind && state.has_launcher);
        of_kind.map(|(key, _)| key.clone()).collect()
    }

    /// Returns the phase of a job after the last pass over it; `None` before the first one.
    #[must_use]
    pub fn phase(&self, key: &JobKey, uid: &str) -> Option<Phase> {
        self.states.lock().get(key).filter(|state| state.job == hash(uid)).map(|state| state.phase)
    }

    /// Returns the steps that this process has seen the job take.
    #[must_use]
    pub fn milestones(&self, key: &JobKey, uid: &str) -> Milestones {
        let states = self.states.lock();
        let state = states.get(key).filter(|state| state.job == hash(uid));
        state.map_or_else(Milestones::default, |state| Milestones {
            pods_made: state.pods_made.at(),
            running: state.running.at(),
        })
    }

    /// Notes where the job is now, and observes what it has reached.
    fn advance(&self, key: &JobKey, kind: &OfKind, pass: &PassResult<'_>) {
        let job = hash(&pass.snapshot.job.uid);
        let (phase, waits_for) = (phase(pass), waits_for(pass));
        let mut states = self.states.lock();
        let known = states.get(key).filter(|state| state.job == job).copied();
        let (now, is_new) = (pass.now, is_new(pass.snapshot));
        let has = |count: usize| wanted(pass.answer).is_some_and(|wanted| count >= wanted);
        let pods_made = Reached::after(known.map(|it| it.pods_made), has(pods(pass)), now, is_new);
        let running = Reached::after(known.map(|it| it.running), has(begun(pass.snapshot)), now, is_new);
        let stage = match known.map(|state| state.stage) {
            Some(_) if phase == Phase::Suspended => Stage::Past,
            Some(stage) => self.reach(stage, kind, pass),
            None if is_new && !matches!(phase, Phase::Succeeded | Phase::Failed | Phase::External) => {
                self.created.get_or_create(kind).inc();
                self.events.add(key, Counted::Created, 1);
                let is_held = phase == Phase::Suspended;
                if is_held { Stage::Past } else { self.reach(Stage::New, kind, pass) }
            }
            None => Stage::Past,
        };
        let has_launcher = has_launcher(pass);
        let state = JobState { job, phase, waits_for, stage, pods_made, running, has_launcher };
        match states.get_mut(key) {
            Some(kept) => *kept = state,
            None => drop(states.insert(key.clone(), state)),
        }
    }

    fn reach(&self, stage: Stage, kind: &OfKind, pass: &PassResult<'_>) -> Stage {
        let Some(wanted) = wanted(pass.answer) else { return stage };
        let seconds = seconds(pass.snapshot.job.created, pass.now);
        let mut stage = stage;
        if stage == Stage::New && pods(pass) >= wanted {
            self.until_pods.get_or_create(kind).observe(seconds);
            stage = Stage::Made;
        }
        if stage == Stage::Made && begun(pass.snapshot) >= wanted {
            self.until_running.get_or_create(kind).observe(seconds);
            stage = Stage::Past;
        }
        stage
    }

    fn count_failures(&self, kind: &OfKind, pass: &PassResult<'_>) {
        let of = |reason: Reason| OfReason { controller: kind.controller.clone(), reason: reason.as_str() };
        for failure in &pass.applied.failures {
            self.failed_writes.get_or_create(&of(failure.reason())).inc();
        }
        match pass.answer {
            Some(Answer::Rejected(rejection)) => drop(self.rejections.get_or_create(&of(rejection.reason())).inc()),
            Some(Answer::Faulted(fault)) => drop(self.faults.get_or_create(&of(fault.reason())).inc()),
            Some(Answer::Judged { .. }) | None => {}
        }
    }

    /// Counts what the ledger says for the first time.
    fn count_published(&self, key: &JobKey, kind: OfKind, pass: &PassResult<'_>, ledger: &Ledger) {
        let kept = &pass.snapshot.ledger;
        let more = replaced(ledger).saturating_sub(replaced(kept));
        if more > 0 {
            self.replaced.get_or_create(&kind).inc_by(more);
            self.events.add(key, Counted::Restarted, more);
        }
        // A ledger that is pruned says the same again.
        if let (Some(Finished { at, outcome, .. }), None, false) =
            (&ledger.finished, &kept.finished, pass.snapshot.pruned)
        {
            let (outcome, counted) = match outcome {
                Outcome::Succeeded => ("succeeded", Counted::Succeeded),
                _ => ("failed", Counted::Failed),
            };
            self.events.add(key, counted, 1);
            let labels = OfOutcome { controller: kind.controller, outcome };
            self.until_end.get_or_create(&labels).observe(seconds(pass.snapshot.job.created, *at));
        }
    }
}

/// Returns whether the pass has deleted the job itself: its time to live is over.
fn deletes_job(pass: &PassResult<'_>) -> bool {
    let job = &pass.snapshot.job.uid;
    let deletes = |write: &Write| matches!(write, Write::Delete { uid, .. } if uid == job);
    pass.applied.failures.is_empty() && pass.decision.actions.iter().any(|action| deletes(action.write()))
}

/// Returns whether the job has a Job of its own.
fn has_launcher(pass: &PassResult<'_>) -> bool {
    let is_there = pass.snapshot.children.iter().any(|child| child.kind == "Job");
    is_there || pass.applied.created.iter().any(|object| object.starts_with("job/"))
}

fn hash(uid: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    hasher.finish()
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

fn replaced(ledger: &Ledger) -> u64 {
    ledger.failures.values().map(|failures| u64::from(failures.count)).sum()
}

/// Returns whether no pass has left anything of the job yet.
fn is_new(snapshot: &Snapshot) -> bool {
    let ledger = &snapshot.ledger;
    let is_empty = ledger.headline.is_empty() && ledger.made.is_empty() && ledger.host_ports.is_none();
    is_empty && snapshot.pods.is_empty() && !snapshot.pruned
}

/// Returns how many pods the plan wants, those of Jobs included; `None` without a plan that wants any.
fn wanted(answer: Option<&Answer>) -> Option<usize> {
    let of = |plan: &Plan| plan.roles.iter().map(|role| role.replicas as usize).sum();
    match answer {
        Some(Answer::Judged { plan, .. }) => Some(of(plan)).filter(|wanted| *wanted > 0),
        Some(Answer::Rejected(_) | Answer::Faulted(_)) | None => None,
    }
}

/// Returns whether the plan has series: a job without pods of its own has begun as soon as it is judged.
fn makes_jobs(answer: Option<&Answer>) -> bool {
    matches!(answer, Some(Answer::Judged { plan, .. }) if !plan.series.is_empty())
}

fn pods(pass: &PassResult<'_>) -> usize {
    let created = pass.applied.created.iter().filter(|object| object.starts_with("pod/"));
    pass.snapshot.pods.len() + created.count()
}

/// Returns how many pods run or have run.
fn begun(snapshot: &Snapshot) -> usize {
    let has_begun = |phase| matches!(phase, PodPhase::Running | PodPhase::Succeeded | PodPhase::Failed);
    snapshot.pods.iter().filter(|pod| has_begun(pod.phase)).count()
}

fn phase(pass: &PassResult<'_>) -> Phase {
    let snapshot = pass.snapshot;
    let judged = match pass.answer {
        Some(Answer::Judged { verdict, .. }) => verdict.outcome,
        Some(Answer::Rejected(_) | Answer::Faulted(_)) | None => Outcome::Open,
    };
    match snapshot.ledger.finished.as_ref().map_or(judged, |finished| finished.outcome) {
        Outcome::Succeeded => return Phase::Succeeded,
        Outcome::Failed => return Phase::Failed,
        Outcome::Open | Outcome::Succeeding | Outcome::Failing => {}
    }
    match &pass.decision.report {
        _ if snapshot.job.deleting => Phase::Deleting,
        _ if snapshot.managed_by_another() => Phase::External,
        _ if snapshot.suspended() => Phase::Suspended,
        Report::Condition(it) if it.kind == Condition::Rejected => Phase::Rejected,
        Report::Condition(it) if it.kind == Condition::PluginFaulted => Phase::Faulted,
        _ if wanted(pass.answer).is_some_and(|wanted| begun(snapshot) >= wanted) => Phase::Running,
        _ if makes_jobs(pass.answer) => Phase::Running,
        _ => Phase::Pending,
    }
}

/// Returns what the job waits for, or the reason of the condition that says why nothing is done.
fn waits_for(pass: &PassResult<'_>) -> Option<Reason> {
    match &pass.decision.report {
        Report::Condition(it) => Some(it.reason),
        Report::Unchanged | Report::Verdict { .. } => waiting(pass.decision, pass.applied).map(decide::Waiting::reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use decide::{
        decide,
        plan::{Bindings, Series, Verdict},
        testkit,
    };
    use serde_json::json;

    #[test]
    fn a_job_that_makes_other_jobs_runs_as_soon_as_it_is_judged() {
        let snapshot = testkit::snapshot(testkit::job("night", "uid"));
        let series = Series {
            key: "runs".into(),
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            template_at: "/template".into(),
            labels: BTreeMap::new(),
        };
        let phase_of = |series: Vec<Series>| {
            let plan = Plan { series, ..testkit::plan(vec![]) };
            let verdict = Verdict::new(json!({}), "Idle", Outcome::Open);
            let answer = Answer::Judged { plan: plan.into(), bindings: Bindings::default(), verdict };
            let (decision, applied) = (decide(&snapshot, &answer), Applied::default());
            phase(&PassResult {
                now: snapshot.now,
                snapshot: &snapshot,
                answer: Some(&answer),
                decision: &decision,
                applied: &applied,
                is_published: true,
            })
        };
        assert_eq!((phase_of(vec![]), phase_of(vec![series])), (Phase::Pending, Phase::Running));
    }
}
