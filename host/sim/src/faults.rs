//! What goes wrong: seeded faults per request and per watch, and the faults a test aims itself.

use std::time::Duration;

use crate::fate::About;
use crate::life::fits;

/// How often things go wrong. Probabilities are per request, per watch opened, or per watch event.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// Per request: refused with 500, 503 or 429 before it is applied.
    pub error: f64,
    /// Per request: applied, but the answer is lost (a connection error).
    pub reply_lost: f64,
    /// Per request: the connection breaks before it is applied.
    pub connection: f64,
    /// Per request: 1 s to `slow_for` pass, before it is applied or before the answer.
    pub slow: f64,
    /// The longest a slow request takes.
    pub slow_for: Duration,
    /// Every request takes up to this long before it is applied, so that concurrent ones overtake each other.
    pub latency: Duration,
    /// Per patch or update: refused with 409.
    pub conflict: f64,
    /// Each watch lags by its own constant of up to this, plus a jitter per event, so that kinds overtake each other.
    pub watch_lag: Duration,
    /// Per watch event: the watch ends instead, cleanly or with a connection error.
    pub watch_drop: f64,
    /// Per watch event: an ERROR event 410 comes instead.
    pub watch_gone: f64,
    /// Per watch opened: it is answered with an ERROR event 410.
    pub reopen_gone: f64,
    /// Per watch event: it comes twice.
    pub watch_twice: f64,
    /// Per watch opened: after up to half a minute nothing comes on it any more, though the connection stays.
    pub watch_silent: f64,
    /// Watches get no bookmarks.
    pub no_bookmarks: bool,
    /// Per list or get at resourceVersion 0: answered from the past, up to `stale_by` changes ago.
    pub stale: f64,
    /// How many changes a stale answer may lack.
    pub stale_by: u64,
    /// Per request: the asking process crashes before or after it is applied, and gets no answer.
    pub crash: f64,
    /// From this virtual time on nothing goes wrong any more, so that liveness can be checked.
    pub until: Option<Duration>,
    /// Mixed into the seed of the run, so that the same run can meet other faults.
    pub seed: u64,
}

impl Faults {
    /// Nothing goes wrong, and requests take no time.
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
            stale: 0.0,
            stale_by: 0,
            crash: 0.0,
            until: None,
            seed: 0,
        }
    }

    /// A cluster on an ordinary bad day: a few percent of everything, no crashes.
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
            stale: 0.1,
            stale_by: 5,
            seed,
            ..Self::none()
        }
    }

    /// Everything often, crashes included.
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
            stale: 0.5,
            stale_by: 30,
            crash: 0.01,
            seed,
            ..Self::none()
        }
    }

    /// The same, but only up to this virtual time.
    #[must_use]
    pub fn until(self, end: Duration) -> Self {
        Self { until: Some(end), ..self }
    }

    /// The same with watches that fall silent, and without the bookmarks by which that would be noticed.
    #[must_use]
    pub fn silent(self) -> Self {
        Self { watch_silent: 0.2, no_bookmarks: true, ..self }
    }

    /// The same with watches that lag by up to this, as behind several API servers whose caches are not equally new.
    #[must_use]
    pub fn lagging(self, lag: Duration) -> Self {
        Self { watch_lag: lag, ..self }
    }

    /// The same without crashes, for hosts that are not restarted.
    #[must_use]
    pub fn without_crashes(self) -> Self {
        Self { crash: 0.0, ..self }
    }
}

/// On which side of a request's effect something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The request is not applied.
    Before,
    /// The request is applied, and its answer is lost.
    After,
}

/// A process that crashed at an API boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// The name given to [`crate::Sim::client`].
    pub actor: String,
    /// The request at which it crashed, for example `create pods/default/a`.
    pub request: String,
    /// Whether that request was applied.
    pub when: When,
}

/// What a refused request must look like; every `Some` must match.
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
    /// The name, or a pattern of it, in which `*` is any text.
    pub name: Option<String>,
    /// The actor; every one but `user` by default.
    pub actor: Option<String>,
    /// What its refusals are counted as in [`crate::Sim::troubles`].
    pub called: Option<&'static str>,
}

impl Matching {
    /// Creations of a resource, in any namespace.
    pub fn create(resource: &str) -> Self {
        Self { verb: Some("create".into()), resource: Some(resource.into()), ..Self::default() }
    }

    /// Any request of a verb on a resource.
    pub fn verb(verb: &str, resource: &str) -> Self {
        Self { verb: Some(verb.into()), resource: Some(resource.into()), ..Self::default() }
    }

    /// The same, of this name only, in which `*` is any text.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// The same, counted under this name.
    #[must_use]
    pub fn called(self, name: &'static str) -> Self {
        Self { called: Some(name), ..self }
    }

    /// The same, in this namespace only.
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
            && self.name.as_deref().is_none_or(|want| fits(want, about.name))
            && self.actor.as_deref().map_or(about.actor != "user", |want| want == about.actor)
    }
}
