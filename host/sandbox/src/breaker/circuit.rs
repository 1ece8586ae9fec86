//! One circuit: closed while calls are answered, open after several faults in a row, half open while one caller probes.

use super::Position;
use crate::call::NoPlan;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// Time that a prober has for its answer. After that, another caller may probe.
const PROBE: SignedDuration = SignedDuration::from_secs(30);

/// When a circuit opens, and for how long.
pub(super) struct Rule {
    /// Number of faults in a row that opens the circuit.
    pub(super) faults: u32,
    /// Maximum number of faults of one caller that count.
    pub(super) of_one: u32,
    /// The first pause. Each failed probe doubles it.
    pub(super) first: SignedDuration,
    /// The longest pause.
    pub(super) longest: SignedDuration,
}

#[derive(Debug, Clone)]
pub(super) enum Circuit {
    /// With the number of faults in a row, by caller.
    Closed(BTreeMap<String, u32>),
    Open(Pause),
    HalfOpen {
        prober: String,
        since: Timestamp,
        pause: Pause,
    },
}

/// The pause of an open circuit: the `times`th in a row.
#[derive(Debug, Clone)]
pub(super) struct Pause {
    /// The end of the pause.
    pub(super) until: Timestamp,
    times: u32,
    /// The last error before the pause.
    pub(super) cause: NoPlan,
    /// The caller that got this error.
    pub(super) seen_by: String,
}

impl Default for Circuit {
    fn default() -> Self {
        Self::Closed(BTreeMap::new())
    }
}

impl Circuit {
    /// Admits a call. After the pause of an open circuit, the caller becomes its prober.
    ///
    /// # Errors
    /// Returns the pause if the circuit is open. While another caller probes, the pause ends with the time for its
    /// answer.
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

    /// Records a call that was not answered.
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
            // The call began before the circuit opened.
            Self::Open(_) => return,
        };
        let factor = 2_i32.saturating_pow(times - 1);
        let pause = rule.first.checked_mul(factor).unwrap_or(rule.longest).min(rule.longest);
        let (cause, seen_by) = (cause.clone(), who.to_owned());
        *self = Self::Open(Pause { until: later(now, pause), times, cause, seen_by });
    }

    /// Returns whether the circuit admits calls.
    pub(super) fn position(&self, now: Timestamp) -> Position {
        match self {
            Self::Closed(_) => Position::Closed,
            Self::Open(pause) if now < pause.until => {
                Position::Open { until: pause.until, cause: pause.cause.to_string() }
            }
            Self::Open(_) | Self::HalfOpen { .. } => Position::HalfOpen,
        }
    }

    /// Returns the time from which the circuit admits a call.
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
