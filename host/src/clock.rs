//! What time it is: the system's clock, or tokio's, which a test may pause.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A source of time.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The system's.
    System,
    /// `base` at `start`, running with tokio's clock.
    Virtual {
        /// The time at `start`.
        base: Timestamp,
        /// When the clock was started.
        start: Instant,
    },
}

impl Clock {
    /// A clock that starts now, in tokio's time, at `base`.
    #[must_use]
    pub fn starting_at(base: Timestamp) -> Self {
        Self::Virtual { base, start: Instant::now() }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match self {
            #[expect(clippy::disallowed_methods, reason = "this is where the clock is read")]
            Self::System => Timestamp::now(),
            Self::Virtual { base, start } => {
                let passed = SignedDuration::try_from(start.elapsed()).unwrap_or(SignedDuration::ZERO);
                base.checked_add(passed).unwrap_or(*base)
            }
        }
    }

    /// The tokio instant at which this clock will say `at`; now, if that has passed.
    #[must_use]
    pub fn instant(&self, at: Timestamp) -> Instant {
        let ahead = at.duration_since(self.now());
        Instant::now() + ahead.try_into().unwrap_or_default()
    }
}
