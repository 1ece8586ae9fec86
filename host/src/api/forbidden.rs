//! How long the API server has forbidden something. One that starts forbids everything until it has read its roles, so a
//! single 403 says nothing of the host's rights.

use std::time::Duration;
use tokio::time::Instant;

/// What the API server has forbidden for this long, and nothing else answered, the host has no right to.
const FOR_GOOD: Duration = Duration::from_secs(30);

/// A row of forbidden attempts. Any other answer ends it.
#[derive(Debug, Default)]
pub(crate) struct Forbidden {
    since: Option<Instant>,
}

impl Forbidden {
    /// Records an attempt that was forbidden at `now`.
    pub(crate) fn again(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Records any other answer, or none.
    pub(crate) fn ended(&mut self) {
        self.since = None;
    }

    /// Records the failed attempt at `now`. Returns whether the host has no right to what it asks for.
    pub(crate) fn is_for_good(&mut self, error: &kube::Error, now: Instant) -> bool {
        if is_forbidden(error) {
            self.again(now);
        } else {
            self.ended();
        }
        self.lacks_right_in(now).is_zero()
    }

    /// Returns how long after `now` nothing but further forbidden attempts show that the host has no right: zero once they
    /// have.
    pub(crate) fn lacks_right_in(&self, now: Instant) -> Duration {
        self.since.map_or(FOR_GOOD, |since| (since + FOR_GOOD).saturating_duration_since(now))
    }
}

/// Returns whether the API server forbids the request (403).
pub(crate) fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn refused(code: u16) -> kube::Error {
        kube::Error::Api(Status::failure("", "").with_code(code).boxed())
    }

    #[test]
    fn half_a_minute_of_nothing_but_403_shows_that_the_host_has_no_right() {
        let (mut row, first) = (Forbidden::default(), Instant::now());
        assert!(!row.is_for_good(&refused(403), first));
        assert!(!row.is_for_good(&refused(403), first + FOR_GOOD - Duration::from_secs(1)));
        assert!(row.is_for_good(&refused(403), first + FOR_GOOD));
        assert!(!row.is_for_good(&refused(503), first + FOR_GOOD));
        assert!(!row.is_for_good(&refused(403), first + FOR_GOOD), "the row begins anew");
    }
}
