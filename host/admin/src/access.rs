//! Access to the admin port: the API server authenticates bearer tokens (TokenReview) and authorizes their users
//! (SubjectAccessReview), as for the ports of Kubernetes' own components.

use super::tls::Tls;
use axum::{
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{AUTHORIZATION, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use decide::vet::is_label;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::{collections::BTreeMap, time::Duration};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};
use troupe::{api::DEADLINE, error::chain};

/// How long a verdict is cached, as for the API server's own webhooks.
const COUNTS_FOR: Duration = Duration::from_secs(10);

/// The maximum number of cached verdicts, and of cached users.
const MOST_VERDICTS: usize = 1024;

/// The maximum number of concurrent reviews of tokens that the API server has accepted lately, and of others: a flood of
/// tokens does not become a flood of requests to the API server.
const REVIEWS: usize = 4;

/// How many reviews one token causes at once, and then each second, or one user, once the API server has named him; the
/// service accounts of a namespace are one. The API server counts reviews as the host's requests, and whoever asks for one
/// namespace after the other must not slow the host.
const OF_ONE: Rate = Rate { burst: 200.0, per_second: 20.0 };

/// The same of all tokens together that the API server has not accepted lately: whoever makes some up delays nobody who has
/// one.
const OF_STRANGERS: Rate = Rate { burst: 1_000.0, per_second: 100.0 };

/// How long a token counts as accepted for this: longer than any scrape interval.
const ACCEPTED_FOR: Duration = Duration::from_secs(600);

/// The names of service accounts begin with it; their namespace follows.
const SERVICE_ACCOUNTS: &str = "system:serviceaccount:";

/// The maximum length of a token in bytes; the token of a service account has about one KiB.
const LONGEST_TOKEN: usize = 16 << 10;

/// The rule for readers of the admin port.
pub enum Access {
    /// Everybody may read: the port listens on a loopback address.
    Loopback,
    /// The API server authorizes each reader, by TLS and bearer token.
    Reviewed(Box<Reviewer>, Tls),
}

/// A permission to read, in terms of RBAC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Right {
    /// `get` on a non-resource path (`nonResourceURLs`).
    Path(&'static str),
    /// A verb on jobs.
    Jobs { verb: &'static str, group: String, plural: String, namespace: Option<String>, name: Option<String> },
}

/// A user that the API server has named, for what each user has a share of. The service accounts of a namespace are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct User([u8; 32]);

impl User {
    fn named(name: &str) -> Self {
        let of_namespace = name.rsplit_once(':').filter(|_| name.starts_with(SERVICE_ACCOUNTS));
        Self(Sha256::digest(of_namespace.map_or(name, |(namespace, _)| namespace)).into())
    }
}

/// Why a request is denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Denied {
    /// The request has no bearer token that the API server accepts.
    #[error("a bearer token that the API server accepts is needed, such as `kubectl create token` prints")]
    Unauthenticated,
    /// The user lacks the right.
    #[error("{user} may not {right}")]
    Forbidden { user: String, right: String },
    /// The request asks about something that no API server has.
    #[error("{0:?} is no name of a {1}")]
    NoName(String, &'static str),
    /// The reader asks about more than he may for now.
    #[error("too many questions about rights in a short time; try again in some seconds")]
    TooMany,
    /// The API server did not answer.
    #[error("the API server was asked who may read this and did not answer: {0}")]
    Unavailable(String),
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        let text = self.to_string();
        match self {
            Self::Unauthenticated => {
                let challenge = [(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
                (StatusCode::UNAUTHORIZED, challenge, text).into_response()
            }
            Self::Forbidden { .. } => (StatusCode::FORBIDDEN, text).into_response(),
            Self::NoName(..) => (StatusCode::BAD_REQUEST, text).into_response(),
            Self::TooMany => (StatusCode::TOO_MANY_REQUESTS, text).into_response(),
            Self::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, text).into_response(),
        }
    }
}

impl Access {
    /// Returns who is authorized, if that is known.
    ///
    /// # Errors
    /// The reason for the denial.
    pub(super) async fn check(&self, headers: &HeaderMap, right: &Right) -> Result<Option<User>, Denied> {
        right.has_names()?;
        match self {
            Self::Loopback => Ok(None),
            Self::Reviewed(reviewer, _) => {
                reviewer.check(token(headers).ok_or(Denied::Unauthenticated)?, right).await.map(Some)
            }
        }
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    let is_token = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= LONGEST_TOKEN;
    is_token.then_some(token)
}

/// How many reviews are made at once, and then each second.
#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: f64,
    per_second: f64,
}

/// What is left of a rate. It refills continuously.
#[derive(Debug, Clone, Copy)]
struct Left {
    reviews: f64,
    at: Instant,
}

impl Left {
    fn at(self, now: Instant, rate: Rate) -> f64 {
        let refilled = now.duration_since(self.at).as_secs_f64() * rate.per_second;
        (self.reviews + refilled).min(rate.burst)
    }
}

/// The reviews that are left, of each token or user and of all strangers.
struct Rates {
    strangers: Left,
    /// Only of tokens and users that have used some lately.
    each: BTreeMap<[u8; 32], Left>,
    /// Whose token each is that the API server has accepted lately.
    accepted: Cached<User>,
}

impl Rates {
    fn new() -> Self {
        let strangers = Left { reviews: OF_STRANGERS.burst, at: Instant::now() };
        Self { strangers, each: BTreeMap::new(), accepted: Cached::default() }
    }

    /// Records that the API server accepts this token, of a user with this name.
    fn accept(&mut self, token: [u8; 32], name: &str) {
        self.accepted.remember(token, User::named(name), ACCEPTED_FOR);
    }

    /// Takes one review of this token, if there is one left. Returns whether the API server has accepted the token lately.
    fn take(&mut self, token: [u8; 32]) -> Option<bool> {
        let now = Instant::now();
        if self.each.len() >= MOST_VERDICTS {
            self.each.retain(|_, left| left.at(now, OF_ONE) < OF_ONE.burst);
        }
        let user = self.accepted.known(&token);
        let whose = user.map_or(token, |User(user)| user);
        let own = self.each.get(&whose).map_or(OF_ONE.burst, |left| left.at(now, OF_ONE));
        let of_strangers = self.strangers.at(now, OF_STRANGERS);
        if own < 1.0 || user.is_none() && of_strangers < 1.0 {
            return None;
        }
        if user.is_none() {
            self.strangers = Left { reviews: of_strangers - 1.0, at: now };
        }
        if self.each.len() < MOST_VERDICTS || self.each.contains_key(&whose) {
            self.each.insert(whose, Left { reviews: own - 1.0, at: now });
        }
        Some(user.is_some())
    }
}

/// Sends reviews to the API server and caches the verdicts.
pub struct Reviewer {
    client: Client,
    known: Semaphore,
    strangers: Semaphore,
    rates: Mutex<Rates>,
    verdicts: Mutex<Cached<Result<User, Denied>>>,
    /// The user of each token; `None` where the API server accepts none.
    users: Mutex<Cached<Option<UserInfo>>>,
}

/// The results of reviews, each until it counts no longer.
struct Cached<T>(BTreeMap<[u8; 32], (Instant, T)>);

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Clone> Cached<T> {
    fn known(&self, key: &[u8; 32]) -> Option<T> {
        self.0.get(key).filter(|(until, _)| Instant::now() < *until).map(|(_, result)| result.clone())
    }

    fn remember(&mut self, key: [u8; 32], result: T, lifetime: Duration) {
        let now = Instant::now();
        if self.0.len() >= MOST_VERDICTS {
            self.0.retain(|_, (until, _)| now < *until);
        }
        if self.0.len() < MOST_VERDICTS || self.0.contains_key(&key) {
            self.0.insert(key, (now + lifetime, result));
        }
    }
}

impl Reviewer {
    /// Returns a reviewer that uses this client. The client's user must be allowed to create both kinds of review.
    #[must_use]
    pub fn new(client: Client) -> Self {
        let ([known, strangers], rates) = ([REVIEWS; 2].map(Semaphore::new), Mutex::new(Rates::new()));
        Self { client, known, strangers, rates, verdicts: Mutex::default(), users: Mutex::default() }
    }

    async fn check(&self, token: &str, right: &Right) -> Result<User, Denied> {
        // Tokens are secrets: cache only their hashes.
        let key = Sha256::new().chain_update(token).chain_update([0]).chain_update(format!("{right:?}")).finalize();
        if let Some(passes) = self.verdicts.lock().known(&key.into()) {
            return passes;
        }
        let is_known = self.rates.lock().take(Sha256::digest(token).into()).ok_or(Denied::TooMany)?;
        let seats = if is_known { &self.known } else { &self.strangers };
        let Ok(_seat) = seats.acquire().await else {
            return Err(Denied::Unavailable("the host is ending".into()));
        };
        let passes = match timeout(DEADLINE, self.review(token, right)).await {
            Ok(Ok(passes)) => passes,
            Ok(Err(error)) => return Err(Denied::Unavailable(chain(&error))),
            Err(_) => return Err(Denied::Unavailable(format!("no answer after {} s", DEADLINE.as_secs()))),
        };
        self.verdicts.lock().remember(key.into(), passes.clone(), COUNTS_FOR);
        passes
    }

    async fn review(&self, token: &str, right: &Right) -> Result<Result<User, Denied>, kube::Error> {
        let Some(user) = self.user(token).await? else { return Ok(Err(Denied::Unauthenticated)) };
        let name = user.username.clone().unwrap_or_default();
        let review = SubjectAccessReview { spec: right.asked_for(user), ..SubjectAccessReview::default() };
        let answer = Api::all(self.client.clone()).create(&PostParams::default(), &review).await?;
        let is_allowed = answer.status.is_some_and(|status| status.allowed);
        Ok(if is_allowed {
            Ok(User::named(&name))
        } else {
            Err(Denied::Forbidden { user: name, right: right.to_string() })
        })
    }

    /// Returns the user of the token, if the API server accepts it.
    async fn user(&self, token: &str) -> Result<Option<UserInfo>, kube::Error> {
        let key = Sha256::digest(token).into();
        if let Some(user) = self.users.lock().known(&key) {
            return Ok(user);
        }
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let answer = Api::all(self.client.clone()).create(&PostParams::default(), &review).await?;
        let status = answer.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        if let Some(user) = &user {
            self.rates.lock().accept(key, user.username.as_deref().unwrap_or_default());
        }
        self.users.lock().remember(key, user.clone(), COUNTS_FOR);
        Ok(user)
    }
}

impl Right {
    /// Returns without an error if an API server could have what this right is about.
    fn has_names(&self) -> Result<(), Denied> {
        let Self::Jobs { namespace, name, .. } = self else { return Ok(()) };
        let refused = |text: &String, what| Err(Denied::NoName(text.chars().take(64).collect(), what));
        match (namespace, name) {
            (Some(namespace), _) if !is_label(namespace) => refused(namespace, "namespace"),
            (_, Some(name)) if !is_subdomain(name) => refused(name, "job"),
            _ => Ok(()),
        }
    }

    fn asked_for(&self, user: UserInfo) -> SubjectAccessReviewSpec {
        let who = SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            ..SubjectAccessReviewSpec::default()
        };
        match self {
            Self::Path(path) => {
                let attributes = NonResourceAttributes { path: Some((*path).into()), verb: Some("get".into()) };
                SubjectAccessReviewSpec { non_resource_attributes: Some(attributes), ..who }
            }
            Self::Jobs { verb, group, plural, namespace, name } => {
                let attributes = ResourceAttributes {
                    verb: Some((*verb).into()),
                    group: Some(group.clone()),
                    resource: Some(plural.clone()),
                    namespace: namespace.clone(),
                    name: name.clone(),
                    ..ResourceAttributes::default()
                };
                SubjectAccessReviewSpec { resource_attributes: Some(attributes), ..who }
            }
        }
    }
}

/// Returns whether the API server takes this name for an object: RFC 1123's name of a subdomain.
fn is_subdomain(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    !name.is_empty() && name.len() <= 253 && name.bytes().all(inner)
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(path) => write!(f, "get the path {path} (nonResourceURLs of a ClusterRole)"),
            Self::Jobs { verb, group, plural, namespace: Some(namespace), .. } => {
                write!(f, "{verb} {plural}.{group} in namespace {namespace}")
            }
            Self::Jobs { verb, group, plural, namespace: None, .. } => {
                write!(f, "{verb} {plural}.{group} in all namespaces; ask for one by ?namespace=")
            }
        }
    }
}
