//! Fault plans: seeded faults per request and per watch, and the faults that a test aims itself.

use std::time::Duration;

use wildmatch::WildMatch;

use crate::fate::About;

/// The probabilities of faults. They are per request, per opened watch, or per watch event.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// Per request: refused with 500, 503 or 429 before it is applied.
    pub error: f64,
    /// Per request: applied, but the response is lost (a connection error).
    pub reply_lost: f64,
    /// Per request: the connection breaks before it is applied.
    pub connection: f64,
    /// Per request: delayed by 1 s to `slow_for`, before it is applied or before the response.
    pub slow: f64,
    /// The maximum delay of a slow request.
    pub slow_for: Duration,
    /// The maximum latency of every request before it is applied, so that concurrent requests overtake each other.
    pub latency: Duration,
    /// Per patch or update: refused with 409.
    pub conflict: f64,
    /// The maximum constant lag of each watch; each event adds a jitter, so that kinds overtake each other.
    pub watch_lag: Duration,
    /// Per watch event: the watch ends instead, cleanly or with a connection error.
    pub watch_drop: f64,
    /// Per watch event: an ERROR event 410 is sent instead.
    pub watch_gone: f64,
    /// Per opened watch: the response is an ERROR event 410.
    pub reopen_gone: f64,
    /// Per watch event: it is sent twice.
    pub watch_twice: f64,
    /// Per opened watch: after up to half a minute no more events are sent, but the connection stays open.
    pub watch_silent: f64,
    /// Watches get no bookmarks.
    pub no_bookmarks: bool,
    /// Per request: the client's process crashes before or after it is applied, and gets no response.
    pub crash: f64,
    /// The virtual time after which no faults happen, so that liveness can be checked.
    pub until: Option<Duration>,
    /// Mixed into the seed of the run, so that the same run can have other faults.
    pub seed: u64,
}

impl Faults {
    /// Returns a plan without faults and latency.
    pub fn none() -> Self {
        Self {
            error: 0.0,
            reply_lost: 0.0,
            connection: 0.0,
            slow: 0.0,
            slow_for: Duration::from_secs(5),
            latency: Duration::ZERO,
            conflict: 0.0,
            watch_lag: Duration::ZERO,
            watch_drop: 0.0,
            watch_gone: 0.0,
            reopen_gone: 0.0,
            watch_twice: 0.0,
            watch_silent: 0.0,
            no_bookmarks: false,
            crash: 0.0,
            until: None,
            seed: 0,
        }
    }

    /// Returns the plan of an ordinary bad day: a few percent of everything, no crashes.
    pub fn light(seed: u64) -> Self {
        Self {
            error: 0.01,
            reply_lost: 0.01,
            connection: 0.01,
            slow: 0.005,
            latency: Duration::from_millis(5),
            conflict: 0.01,
            watch_lag: Duration::from_millis(50),
            watch_drop: 0.005,
            watch_gone: 0.002,
            reopen_gone: 0.02,
            watch_twice: 0.005,
            seed,
            ..Self::none()
        }
    }

    /// Returns a plan in which every fault is frequent, crashes included.
    pub fn heavy(seed: u64) -> Self {
        Self {
            error: 0.08,
            reply_lost: 0.05,
            connection: 0.04,
            slow: 0.03,
            slow_for: Duration::from_secs(15),
            latency: Duration::from_millis(50),
            conflict: 0.05,
            watch_lag: Duration::from_secs(2),
            watch_drop: 0.03,
            watch_gone: 0.01,
            reopen_gone: 0.1,
            watch_twice: 0.03,
            crash: 0.01,
            seed,
            ..Self::none()
        }
    }

    /// Limits the faults to the time before `end` (virtual time).
    #[must_use]
    pub fn until(self, end: Duration) -> Self {
        Self { until: Some(end), ..self }
    }

    /// Adds watches that fall silent, and removes the bookmarks by which the host would notice.
    #[must_use]
    pub fn silent(self) -> Self {
        Self { watch_silent: 0.2, no_bookmarks: true, ..self }
    }

    /// Makes watches lag by up to this, as behind several API servers whose caches differ in age.
    #[must_use]
    pub fn lagging(self, lag: Duration) -> Self {
        Self { watch_lag: lag, ..self }
    }

    /// Adds crashes: per request, with this probability.
    #[must_use]
    pub fn crashing(self, crash: f64) -> Self {
        Self { crash, ..self }
    }

    /// Removes crashes, for hosts that are not restarted.
    #[must_use]
    pub fn without_crashes(self) -> Self {
        Self { crash: 0.0, ..self }
    }
}

/// The side of a request's effect on which a fault happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The request is not applied.
    Before,
    /// The request is applied, and its response is lost.
    After,
}

/// A process that crashed at an API boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// The name given to [`crate::Sim::client`].
    pub actor: String,
    /// The request at which the process crashed, for example `create pods/default/a`.
    pub request: String,
    /// Whether that request was applied.
    pub when: When,
}

/// The requests that a refusal matches; every `Some` must match.
#[derive(Debug, Clone, Default)]
pub struct Matching {
    /// The verb.
    pub verb: Option<String>,
    /// The plural.
    pub resource: Option<String>,
    /// The subresource; `Some("")` for none.
    pub subresource: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The name, or a pattern in which `*` is any text.
    pub name: Option<String>,
    /// The actor; every one but `user` by default.
    pub actor: Option<String>,
    /// The name under which [`crate::Sim::troubles`] counts the refusals.
    pub called: Option<&'static str>,
}

impl Matching {
    /// Matches creates of a resource in any namespace.
    pub fn create(resource: &str) -> Self {
        Self { verb: Some("create".into()), resource: Some(resource.into()), ..Self::default() }
    }

    /// Matches requests with a verb on a resource.
    pub fn verb(verb: &str, resource: &str) -> Self {
        Self { verb: Some(verb.into()), resource: Some(resource.into()), ..Self::default() }
    }

    /// Limits the match to names that match the pattern, in which `*` is any text.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Counts the refusals under this name.
    #[must_use]
    pub fn called(self, name: &'static str) -> Self {
        Self { called: Some(name), ..self }
    }

    /// Limits the match to this namespace.
    #[must_use]
    pub fn within(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    pub(crate) fn matches(&self, about: &About<'_>) -> bool {
        let same = |want: &Option<String>, have: &str| want.as_deref().is_none_or(|want| want == have);
        same(&self.verb, about.verb)
            && same(&self.resource, about.resource)
            && same(&self.subresource, about.subresource)
            && same(&self.namespace, about.namespace)
            && self.name.as_deref().is_none_or(|want| WildMatch::new(want).matches(about.name))
            && self.actor.as_deref().map_or(about.actor != "user", |want| want == about.actor)
    }
}
