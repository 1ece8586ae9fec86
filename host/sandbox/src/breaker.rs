//! Circuit breakers: after several faults in a row they pause the calls of a plugin, then admit one call as a probe.
//!
//! Each job has a circuit, so that a job that its plugin cannot handle costs little. Each namespace has one circuit per
//! digest, which opens when several of its jobs fail. Each digest has a circuit too, which opens only when several
//! namespaces see faults and no call was answered recently: one tenant's odd jobs do not stop a framework, since an
//! answer to another tenant proves that the plugin works. Only the namespace that caused a fault gets its message. The
//! caller passes the current time. Our own: the crates that we know have one circuit and read the clock.

mod circuit;

use super::call::NoPlan;
use circuit::{Circuit, Pause, Rule, later};
use decide::{
    Digest,
    plan::{Budget, Fault, Rejection, Scope},
    snapshot::Job,
};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::collections::BTreeMap;

const OF_JOB: Rule =
    Rule { faults: 3, of_one: 3, first: SignedDuration::from_mins(1), longest: SignedDuration::from_mins(15) };

/// Counts faults of several jobs.
const OF_NAMESPACE: Rule =
    Rule { faults: 6, of_one: 2, first: SignedDuration::from_mins(1), longest: SignedDuration::from_mins(5) };

/// Counts faults of several namespaces. Its first pause is shorter than theirs, so that it admits a namespace without
/// faults.
const OF_PLUGIN: Rule =
    Rule { faults: 6, of_one: 2, first: SignedDuration::from_secs(30), longest: SignedDuration::from_mins(5) };

/// A digest that has answered any call within this time works: a fault then counts only for its job and namespace.
const WORKS: SignedDuration = SignedDuration::from_mins(1);

/// Maximum number of circuits of jobs, and of namespaces. The circuit that admits a call soonest is evicted first.
const MOST: usize = 4096;

/// The message that a namespace gets for faults in other namespaces.
const OF_OTHERS: &str = "the faults were seen in other namespaces, and the log of the host has them";

/// The state of a digest's breaker, for conditions and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerState {
    /// The plugin's name.
    pub plugin: String,
    /// The plugin's digest.
    pub digest: Digest,
    /// Whether calls are admitted.
    pub position: Position,
    /// Number of jobs whose calls are paused, each for its own faults.
    pub jobs: usize,
    /// Number of namespaces whose calls are paused, each for the faults of its own jobs.
    pub namespaces: usize,
}

/// Whether calls of a plugin are admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// Calls are admitted.
    Closed,
    /// One namespace's calls are admitted, as a probe.
    HalfOpen,
    /// No call is admitted before a time.
    Open {
        /// When calls are admitted again.
        until: Timestamp,
        /// The last fault before the pause.
        cause: String,
    },
}

/// The plugin, the job and the time of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) plugin: &'a str,
    pub(super) digest: &'a Digest,
    pub(super) job: &'a Job,
    pub(super) now: Timestamp,
    /// Whether the job is so large that its size may be the reason for a timeout.
    pub(super) is_heavy: bool,
}

/// The circuits of a host.
#[derive(Debug, Default)]
pub(super) struct Breakers(Mutex<Circuits>);

/// A digest, and the uid of a job or the name of a namespace.
type Key = (Digest, String);

/// Holds only circuits with faults since their last success.
#[derive(Debug, Default)]
struct Circuits {
    /// By digest.
    plugins: BTreeMap<Digest, Circuit>,
    namespaces: BTreeMap<Key, Circuit>,
    /// With the generation: a changed job gets a new circuit.
    jobs: BTreeMap<Key, (i64, Circuit)>,
    /// The time of the last answer, by digest.
    answered: BTreeMap<Digest, Timestamp>,
}

impl Breakers {
    /// Returns the circuits of this digest and job as they are now. What becomes of the copies changes nothing here.
    pub(super) fn copy_of(&self, digest: &Digest, job: &Job) -> Self {
        let circuits = self.0.lock();
        let of = |name: &String| (digest.clone(), name.clone());
        Self(Mutex::new(Circuits {
            plugins: only(&circuits.plugins, digest),
            namespaces: only(&circuits.namespaces, &of(&job.namespace)),
            jobs: only(&circuits.jobs, &of(&job.uid)),
            answered: only(&circuits.answered, digest),
        }))
    }

    /// Admits a call unless one of its circuits is open.
    ///
    /// # Errors
    /// Returns the end and the cause of the pause, or the rejection that opened the job's circuit.
    pub(super) fn admit(&self, case: &Case<'_>) -> Result<(), NoPlan> {
        self.0.lock().admit(case)
    }

    /// Records an answer and resets the circuits of its job, namespace and digest that are not open.
    pub(super) fn answered(&self, case: &Case<'_>) {
        self.0.lock().answered(case);
    }

    /// Records a call without an answer. Returns its error, or the pause if a circuit is open now.
    pub(super) fn unanswered(&self, case: &Case<'_>, no_plan: NoPlan) -> NoPlan {
        let mut circuits = self.0.lock();
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

    /// Returns the state of a digest's breaker.
    pub(super) fn state(&self, plugin: &str, digest: &Digest, now: Timestamp) -> BreakerState {
        let circuits = self.0.lock();
        let is_paused = |circuit: &Circuit| circuit.position(now) != Position::Closed;
        let jobs = circuits.jobs.iter().filter(|((of, _), (_, circuit))| of == digest && is_paused(circuit));
        let namespaces = circuits.namespaces.iter().filter(|((of, _), circuit)| of == digest && is_paused(circuit));
        BreakerState {
            plugin: plugin.to_owned(),
            digest: digest.clone(),
            position: circuits.plugins.get(digest).map_or(Position::Closed, |circuit| circuit.position(now)),
            jobs: jobs.count(),
            namespaces: namespaces.count(),
        }
    }
}

/// What a missing answer counts against.
enum Blame {
    /// Nothing: a rejection is an answer.
    Nobody,
    /// The job only: its calls exceed their limits.
    Job,
    Plugin,
}

impl Blame {
    fn of(case: &Case<'_>, no_plan: &NoPlan) -> Self {
        match no_plan {
            NoPlan::Rejected(Rejection::TooMuch(_)) => Self::Job,
            NoPlan::Rejected(_) => Self::Nobody,
            NoPlan::Faulted(Fault::OutOfBudget { budget: Budget::Instances, .. }) => Self::Job,
            NoPlan::Faulted(Fault::OutOfBudget { budget: Budget::Time, .. }) if case.is_heavy => Self::Job,
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
        self.answered.insert(case.digest.clone(), case.now);
        self.jobs.remove(&key(case, &case.job.uid));
        // An answer to a call from before the circuit opened does not prove that the plugin works now.
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
            let of_plugin = self.plugins.entry(case.digest.clone()).or_default();
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

/// Returns the map with nothing but this key.
fn only<K: Clone + Ord, V: Clone>(map: &BTreeMap<K, V>, key: &K) -> BTreeMap<K, V> {
    map.get(key).map(|value| (key.clone(), value.clone())).into_iter().collect()
}

/// Evicts the circuit that admits a call soonest, if there is no room for another.
fn make_room<T>(circuits: &mut BTreeMap<Key, T>, another: &Key, asked_again: impl Fn(&T) -> Timestamp) {
    if circuits.len() < MOST || circuits.contains_key(another) {
        return;
    }
    let soonest = circuits.iter().min_by_key(|(_, circuit)| asked_again(circuit)).map(|(key, _)| key.clone());
    if let Some(soonest) = soonest {
        circuits.remove(&soonest);
    }
}

/// Returns the error that a job gets while its calls are paused.
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
    (case.digest.clone(), of.to_owned())
}

#[cfg(test)]
mod tests;
