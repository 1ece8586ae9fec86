//! Decides when a plugin is not asked: after several faults in a row, for a while; then once, to see whether it answers.
//!
//! Each job has a circuit, so that a job which its plugin cannot digest costs little. Each digest has one too, which only
//! opens when several jobs fail: one user's odd job does not stop a framework. Time is an argument.

use super::call::NoPlan;
use decide::{
    plan::{Fault, Scope},
    snapshot::Job,
};
use jiff::{SignedDuration, Timestamp};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// When a circuit opens, and for how long.
struct Rule {
    /// After so many faults in a row.
    faults: u32,
    /// No more than so many of one job count.
    of_one_job: u32,
    /// How long the first time; twice as long each time after that.
    first: SignedDuration,
    /// How long at most.
    longest: SignedDuration,
}

const OF_JOB: Rule =
    Rule { faults: 3, of_one_job: 3, first: SignedDuration::from_mins(1), longest: SignedDuration::from_mins(15) };

const OF_PLUGIN: Rule =
    Rule { faults: 6, of_one_job: 2, first: SignedDuration::from_secs(30), longest: SignedDuration::from_mins(5) };

/// The one that is let through has so long to answer before another is.
const PROBE: SignedDuration = SignedDuration::from_secs(30);

/// Circuits are kept of so many jobs; those that will be asked soonest are forgotten first.
const MOST_JOBS: usize = 4096;

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
}

/// Whether a plugin is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// Yes.
    Closed,
    /// By one job, to see whether it answers again.
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
}

/// The circuits of a host.
#[derive(Debug, Default)]
pub(super) struct Breakers(Mutex<Circuits>);

/// Only those with faults since their last success.
#[derive(Debug, Default)]
struct Circuits {
    /// By digest.
    plugins: BTreeMap<String, Circuit>,
    /// By digest and uid, with the generation: a job that was changed is another question.
    jobs: BTreeMap<(String, String), (i64, Circuit)>,
}

#[derive(Debug)]
enum Circuit {
    /// With the faults in a row, by job.
    Closed(BTreeMap<String, u32>),
    Open(Pause),
    HalfOpen {
        prober: String,
        since: Timestamp,
        pause: Pause,
    },
}

/// The `times`th in a row.
#[derive(Debug, Clone)]
struct Pause {
    until: Timestamp,
    times: u32,
    cause: String,
}

impl Default for Circuit {
    fn default() -> Self {
        Self::Closed(BTreeMap::new())
    }
}

impl Circuit {
    /// Whether this job may ask now, or else until when it may not, and why.
    fn admit(&mut self, job: &str, now: Timestamp) -> Result<(), (Timestamp, String)> {
        let pause = match self {
            Self::Closed(_) => return Ok(()),
            Self::HalfOpen { prober, since, pause } => {
                let patience = later(*since, PROBE);
                if prober != job && now < patience {
                    return Err((patience, pause.cause.clone()));
                }
                pause.clone()
            }
            Self::Open(pause) if now < pause.until => return Err((pause.until, pause.cause.clone())),
            Self::Open(pause) => pause.clone(),
        };
        *self = Self::HalfOpen { prober: job.to_owned(), since: now, pause };
        Ok(())
    }

    fn faulted(&mut self, rule: &Rule, job: &str, now: Timestamp, cause: &str) {
        let times = match self {
            Self::Closed(faults) => {
                let of_job = faults.entry(job.to_owned()).or_default();
                *of_job = of_job.saturating_add(1).min(rule.of_one_job);
                if faults.values().sum::<u32>() < rule.faults {
                    return;
                }
                1
            }
            Self::HalfOpen { pause, .. } => pause.times.saturating_add(1),
            // Asked before it opened.
            Self::Open(_) => return,
        };
        let factor = 2_i32.saturating_pow(times - 1);
        let pause = rule.first.checked_mul(factor).unwrap_or(rule.longest).min(rule.longest);
        *self = Self::Open(Pause { until: later(now, pause), times, cause: cause.to_owned() });
    }

    fn position(&self, now: Timestamp) -> Position {
        match self {
            Self::Closed(_) => Position::Closed,
            Self::Open(pause) if now < pause.until => Position::Open { until: pause.until, cause: pause.cause.clone() },
            Self::Open(_) | Self::HalfOpen { .. } => Position::HalfOpen,
        }
    }

    /// When a job may ask again.
    fn asked_again(&self) -> Timestamp {
        match self {
            Self::Closed(_) => Timestamp::MIN,
            Self::Open(pause) | Self::HalfOpen { pause, .. } => pause.until,
        }
    }
}

impl Breakers {
    /// Lets a question pass, unless the plugin failed too often.
    ///
    /// # Errors
    /// When it is asked again, and why it is not now.
    pub(super) fn admit(&self, case: &Case<'_>) -> Result<(), Fault> {
        self.lock().admit(case)
    }

    /// Notes an answer: what failed before is forgotten.
    pub(super) fn answered(&self, case: &Case<'_>) {
        self.lock().answered(case);
    }

    /// Notes that there was no answer, and returns why: the fault itself, or that the plugin is not asked for a while.
    pub(super) fn unanswered(&self, case: &Case<'_>, no_plan: NoPlan) -> NoPlan {
        let NoPlan::Faulted(fault) = no_plan else {
            self.answered(case);
            return no_plan;
        };
        let mut circuits = self.lock();
        circuits.faulted(case, &fault.to_string());
        circuits.admit(case).err().unwrap_or(fault).into()
    }

    /// What is known of a digest.
    pub(super) fn state(&self, plugin: &str, digest: &str, now: Timestamp) -> BreakerState {
        let circuits = self.lock();
        let of_digest = circuits.jobs.iter().filter(|((of, _), _)| of == digest);
        BreakerState {
            plugin: plugin.to_owned(),
            digest: digest.to_owned(),
            position: circuits.plugins.get(digest).map_or(Position::Closed, |circuit| circuit.position(now)),
            jobs: of_digest.filter(|(_, (_, circuit))| circuit.position(now) != Position::Closed).count(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Circuits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Circuits {
    fn admit(&mut self, case: &Case<'_>) -> Result<(), Fault> {
        let (job, now) = (case.job.uid.as_str(), case.now);
        let open = |scope, (until, cause)| Fault::BreakerOpen { plugin: case.plugin.to_owned(), scope, until, cause };
        if let Some((generation, circuit)) = self.jobs.get_mut(&key(case))
            && *generation == case.job.generation
        {
            circuit.admit(job, now).map_err(|pause| open(Scope::Job, pause))?;
        }
        match self.plugins.get_mut(case.digest) {
            Some(circuit) => circuit.admit(job, now).map_err(|pause| open(Scope::Plugin, pause)),
            None => Ok(()),
        }
    }

    fn answered(&mut self, case: &Case<'_>) {
        self.jobs.remove(&key(case));
        // One that was asked before it opened says nothing of what came after.
        if !matches!(self.plugins.get(case.digest), Some(Circuit::Open(_))) {
            self.plugins.remove(case.digest);
        }
    }

    fn faulted(&mut self, case: &Case<'_>, cause: &str) {
        let (job, now) = (case.job.uid.as_str(), case.now);
        let of_plugin = self.plugins.entry(case.digest.to_owned()).or_default();
        of_plugin.faulted(&OF_PLUGIN, job, now, cause);
        if !self.jobs.contains_key(&key(case)) {
            self.make_room();
        }
        let (generation, of_job) = self.jobs.entry(key(case)).or_default();
        if *generation != case.job.generation {
            (*generation, *of_job) = (case.job.generation, Circuit::default());
        }
        of_job.faulted(&OF_JOB, job, now, cause);
    }

    fn make_room(&mut self) {
        if self.jobs.len() >= MOST_JOBS {
            let soonest = self.jobs.iter().min_by_key(|(_, (_, circuit))| circuit.asked_again());
            if let Some(soonest) = soonest.map(|(key, _)| key.clone()) {
                self.jobs.remove(&soonest);
            }
        }
    }
}

fn key(case: &Case<'_>) -> (String, String) {
    (case.digest.to_owned(), case.job.uid.clone())
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
