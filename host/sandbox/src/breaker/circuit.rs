//! One circuit: closed while questions are answered, open after several faults in a row, half open while one asks again.

use super::Position;
use crate::call::NoPlan;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// The one that is let through has so long to answer before another is.
const PROBE: SignedDuration = SignedDuration::from_secs(30);

/// When a circuit opens, and for how long.
pub(super) struct Rule {
    /// After so many faults in a row.
    pub(super) faults: u32,
    /// No more than so many of one asker count.
    pub(super) of_one: u32,
    /// How long the first time; twice as long each time after that.
    pub(super) first: SignedDuration,
    /// How long at most.
    pub(super) longest: SignedDuration,
}

#[derive(Debug)]
pub(super) enum Circuit {
    /// With the faults in a row, by who asked.
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
pub(super) struct Pause {
    /// When it is asked again.
    pub(super) until: Timestamp,
    times: u32,
    /// The last of those that led to this.
    pub(super) cause: NoPlan,
    /// Whose question that was.
    pub(super) seen_by: String,
}

impl Default for Circuit {
    fn default() -> Self {
        Self::Closed(BTreeMap::new())
    }
}

impl Circuit {
    /// Lets one ask.
    ///
    /// # Errors
    /// The pause that there is instead. One who comes while another is let through waits for that answer.
    pub(super) fn admit(&mut self, who: &str, now: Timestamp) -> Result<(), Box<Pause>> {
        let pause = match self {
            Self::Closed(_) => return Ok(()),
            Self::HalfOpen { prober, since, pause } => {
                let patience = later(*since, PROBE);
                if prober != who && now < patience {
                    return Err(Box::new(Pause { until: patience, ..pause.clone() }));
                }
                pause.clone()
            }
            Self::Open(pause) if now < pause.until => return Err(Box::new(pause.clone())),
            Self::Open(pause) => pause.clone(),
        };
        *self = Self::HalfOpen { prober: who.to_owned(), since: now, pause };
        Ok(())
    }

    /// Notes that a question was not answered.
    pub(super) fn faulted(&mut self, rule: &Rule, who: &str, now: Timestamp, cause: &NoPlan) {
        let times = match self {
            Self::Closed(faults) => {
                let of_one = faults.entry(who.to_owned()).or_default();
                *of_one = of_one.saturating_add(1).min(rule.of_one);
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
        let (cause, seen_by) = (cause.clone(), who.to_owned());
        *self = Self::Open(Pause { until: later(now, pause), times, cause, seen_by });
    }

    /// Whether it lets questions pass.
    pub(super) fn position(&self, now: Timestamp) -> Position {
        match self {
            Self::Closed(_) => Position::Closed,
            Self::Open(pause) if now < pause.until => {
                Position::Open { until: pause.until, cause: pause.cause.to_string() }
            }
            Self::Open(_) | Self::HalfOpen { .. } => Position::HalfOpen,
        }
    }

    /// When somebody may ask again.
    pub(super) fn asked_again(&self) -> Timestamp {
        match self {
            Self::Closed(_) => Timestamp::MIN,
            Self::Open(pause) | Self::HalfOpen { pause, .. } => pause.until,
        }
    }
}

pub(super) fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
