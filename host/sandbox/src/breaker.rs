//! Decides when a plugin is not asked: after several faults in a row, for a while; then once, to see whether it answers.
//!
//! Each job has a circuit, so that a job which its plugin cannot digest costs little. Each namespace has one for each
//! digest, which opens when several of its jobs fail. Each digest has one too, which opens only when several namespaces see
//! faults and none was answered of late: one tenant's odd jobs do not stop a framework, and one who sees it work proves
//! that it does. What one namespace's jobs caused is told to that namespace alone. Time is an argument.

mod circuit;

use super::call::NoPlan;
use circuit::{Circuit, Pause, Rule, later};
use decide::{
    plan::{Fault, Rejection, Scope},
    snapshot::Job,
};
use jiff::{SignedDuration, Timestamp};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

const OF_JOB: Rule =
    Rule { faults: 3, of_one: 3, first: SignedDuration::from_mins(1), longest: SignedDuration::from_mins(15) };

/// Of several jobs.
const OF_NAMESPACE: Rule =
    Rule { faults: 6, of_one: 2, first: SignedDuration::from_mins(1), longest: SignedDuration::from_mins(5) };

/// Of several namespaces. Shorter than theirs at first, so that one without faults of its own is let through.
const OF_PLUGIN: Rule =
    Rule { faults: 6, of_one: 2, first: SignedDuration::from_secs(30), longest: SignedDuration::from_mins(5) };

/// A digest that has answered anybody within this time works: faults are those of who sees them.
const WORKS: SignedDuration = SignedDuration::from_mins(1);

/// Circuits are kept of so many jobs, and of so many namespaces; those that will be asked soonest are forgotten first.
const MOST: usize = 4096;

/// What a namespace is told of faults that others saw.
const OF_OTHERS: &str = "the faults were seen in other namespaces, and the log of the host has them";

/// Of a digest, for conditions and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerState {
    /// The plugin's name.
    pub plugin: String,
    /// Its digest.
    pub digest: String,
    /// Whether it is asked.
    pub position: Position,
    /// Jobs that it is not asked about, each for its own faults.
    pub jobs: usize,
    /// Namespaces that it is not asked about, each for the faults of its own jobs.
    pub namespaces: usize,
}

/// Whether a plugin is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// Yes.
    Closed,
    /// By one namespace, to see whether it answers again.
    HalfOpen,
    /// Not before this time.
    Open {
        /// When it is asked again.
        until: Timestamp,
        /// The last fault before that.
        cause: String,
    },
}

/// Who asks what, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) plugin: &'a str,
    pub(super) digest: &'a str,
    pub(super) job: &'a Job,
    pub(super) now: Timestamp,
    /// The job is so large that it may be why there is no answer in time.
    pub(super) is_heavy: bool,
}

/// The circuits of a host.
#[derive(Debug, Default)]
pub(super) struct Breakers(Mutex<Circuits>);

/// A digest, and the uid of a job or the name of a namespace.
type Key = (String, String);

/// Only those with faults since their last success.
#[derive(Debug, Default)]
struct Circuits {
    /// By digest.
    plugins: BTreeMap<String, Circuit>,
    namespaces: BTreeMap<Key, Circuit>,
    /// With the generation: a job that was changed is another question.
    jobs: BTreeMap<Key, (i64, Circuit)>,
    /// When a digest answered last.
    answered: BTreeMap<String, Timestamp>,
}

impl Breakers {
    /// Lets a question pass, unless the plugin failed too often.
    ///
    /// # Errors
    /// When it is asked again, and why it is not now; or the rejection that every answer about this job was.
    pub(super) fn admit(&self, case: &Case<'_>) -> Result<(), NoPlan> {
        self.lock().admit(case)
    }

    /// Notes an answer: what failed before is forgotten.
    pub(super) fn answered(&self, case: &Case<'_>) {
        self.lock().answered(case);
    }

    /// Notes that there was no answer, and returns why: the fault itself, or that the plugin is not asked for a while.
    pub(super) fn unanswered(&self, case: &Case<'_>, no_plan: NoPlan) -> NoPlan {
        let mut circuits = self.lock();
        match Blame::of(case, &no_plan) {
            Blame::Nobody => {
                circuits.answered(case);
                return no_plan;
            }
            Blame::Job => circuits.faulted_job(case, &no_plan),
            Blame::Plugin => circuits.faulted(case, &no_plan),
        }
        circuits.admit(case).err().unwrap_or(no_plan)
    }

    /// What is known of a digest.
    pub(super) fn state(&self, plugin: &str, digest: &str, now: Timestamp) -> BreakerState {
        let circuits = self.lock();
        let is_paused = |circuit: &Circuit| circuit.position(now) != Position::Closed;
        let jobs = circuits.jobs.iter().filter(|((of, _), (_, circuit))| of == digest && is_paused(circuit));
        let namespaces = circuits.namespaces.iter().filter(|((of, _), circuit)| of == digest && is_paused(circuit));
        BreakerState {
            plugin: plugin.to_owned(),
            digest: digest.to_owned(),
            position: circuits.plugins.get(digest).map_or(Position::Closed, |circuit| circuit.position(now)),
            jobs: jobs.count(),
            namespaces: namespaces.count(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Circuits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who is held to account for an answer that there is not.
enum Blame {
    /// A refusal is an answer.
    Nobody,
    /// The job alone: it burns what a call may burn.
    Job,
    Plugin,
}

impl Blame {
    fn of(case: &Case<'_>, no_plan: &NoPlan) -> Self {
        match no_plan {
            NoPlan::Rejected(Rejection::TooMuch(_)) => Self::Job,
            NoPlan::Rejected(_) => Self::Nobody,
            NoPlan::Faulted(Fault::OutOfBudget { budget, .. }) if budget == "instances" => Self::Job,
            NoPlan::Faulted(Fault::OutOfBudget { budget, .. }) if budget == "time" && case.is_heavy => Self::Job,
            NoPlan::Faulted(_) => Self::Plugin,
        }
    }
}

impl Circuits {
    fn admit(&mut self, case: &Case<'_>) -> Result<(), NoPlan> {
        let (job, namespace, now) = (&case.job.uid, &case.job.namespace, case.now);
        if let Some((generation, circuit)) = self.jobs.get_mut(&key(case, job))
            && *generation == case.job.generation
        {
            circuit.admit(job, now).map_err(|pause| paused(case, Scope::Job, *pause))?;
        }
        if let Some(circuit) = self.namespaces.get_mut(&key(case, namespace)) {
            circuit.admit(job, now).map_err(|pause| paused(case, Scope::Namespace, *pause))?;
        }
        if let Some(circuit) = self.plugins.get_mut(case.digest) {
            circuit.admit(namespace, now).map_err(|pause| paused(case, Scope::Plugin, *pause))?;
        }
        Ok(())
    }

    fn answered(&mut self, case: &Case<'_>) {
        self.answered.insert(case.digest.to_owned(), case.now);
        self.jobs.remove(&key(case, &case.job.uid));
        // One that was asked before it opened says nothing of what came after.
        let of_namespace = key(case, &case.job.namespace);
        if !matches!(self.namespaces.get(&of_namespace), Some(Circuit::Open(_))) {
            self.namespaces.remove(&of_namespace);
        }
        if !matches!(self.plugins.get(case.digest), Some(Circuit::Open(_))) {
            self.plugins.remove(case.digest);
        }
    }

    fn faulted(&mut self, case: &Case<'_>, cause: &NoPlan) {
        let (job, namespace, now) = (&case.job.uid, &case.job.namespace, case.now);
        if self.answered.get(case.digest).is_none_or(|at| later(*at, WORKS) <= now) {
            let of_plugin = self.plugins.entry(case.digest.to_owned()).or_default();
            of_plugin.faulted(&OF_PLUGIN, namespace, now, cause);
        }
        let of_namespace = key(case, namespace);
        make_room(&mut self.namespaces, &of_namespace, Circuit::asked_again);
        self.namespaces.entry(of_namespace).or_default().faulted(&OF_NAMESPACE, job, now, cause);
        self.faulted_job(case, cause);
    }

    fn faulted_job(&mut self, case: &Case<'_>, cause: &NoPlan) {
        let of_job = key(case, &case.job.uid);
        make_room(&mut self.jobs, &of_job, |(_, circuit)| circuit.asked_again());
        let (generation, circuit) = self.jobs.entry(of_job).or_default();
        if *generation != case.job.generation {
            (*generation, *circuit) = (case.job.generation, Circuit::default());
        }
        circuit.faulted(&OF_JOB, &case.job.uid, case.now, cause);
    }
}

/// Forgets the one that will be asked soonest, if there is no room for another.
fn make_room<T>(circuits: &mut BTreeMap<Key, T>, another: &Key, asked_again: impl Fn(&T) -> Timestamp) {
    if circuits.len() < MOST || circuits.contains_key(another) {
        return;
    }
    let soonest = circuits.iter().min_by_key(|(_, circuit)| asked_again(circuit)).map(|(key, _)| key.clone());
    if let Some(soonest) = soonest {
        circuits.remove(&soonest);
    }
}

/// What a job is told while its plugin is not asked about it.
fn paused(case: &Case<'_>, scope: Scope, pause: Pause) -> NoPlan {
    let Pause { until, cause, seen_by, .. } = pause;
    let cause = match (scope, cause) {
        (Scope::Job, rejected @ NoPlan::Rejected(_)) => return rejected,
        (Scope::Plugin, _) if seen_by != case.job.namespace => OF_OTHERS.to_owned(),
        (_, cause) => cause.to_string(),
    };
    Fault::BreakerOpen { plugin: case.plugin.to_owned(), scope, until, cause }.into()
}

fn key(case: &Case<'_>, of: &str) -> Key {
    (case.digest.to_owned(), of.to_owned())
}

#[cfg(test)]
mod tests;
