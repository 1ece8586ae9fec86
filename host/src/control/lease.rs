//! One host at a time: a Lease by client-go's rule (leaderelection), and a gate at the socket that lets no write pass once
//! the lease may be another's. Our own for the gate: the crates that we know inform their caller that a lease
//! is lost when a write of it may be on its way.
//!
//! The host that waits watches nothing: what it lists after it was given the lease is newer than all that the one before
//! it has written.

use crate::clock::Clock;
use futures::future::{self, Either, Ready};
use http::{Method, Request};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use parking_lot::Mutex;
use std::{
    sync::Arc,
    task::{self, Poll},
    time::Duration,
};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};
use tracing::{debug, info, warn};

/// A holder that has not renewed for this long has lost the lease.
const DURATION: Duration = Duration::from_secs(15);

/// A holder that could not renew for this long stops; it writes nothing from then on.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// How often a holder renews and the others look.
const RETRY: Duration = Duration::from_secs(2);

/// A renewal or a release that has not been answered after this long has failed.
const ANSWER: Duration = Duration::from_secs(5);

/// Whose lease, and where it is.
#[derive(Debug, Clone)]
pub struct LeaseName {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Who asks for it: unique among all hosts.
    pub identity: String,
}

/// Until when writes may pass. A closed gate lets reads pass, and what is said of leases.
#[derive(Debug, Clone, Default)]
pub struct WriteGate(Arc<Mutex<Option<Instant>>>);

impl WriteGate {
    /// No write passes before the first lease is taken.
    #[must_use]
    pub fn closed() -> Self {
        Self::default()
    }

    fn open_until(&self, deadline: Instant) {
        *self.0.lock() = Some(deadline);
    }

    fn close(&self) {
        *self.0.lock() = None;
    }

    fn is_open(&self) -> bool {
        self.0.lock().is_some_and(|deadline| Instant::now() < deadline)
    }

    fn lets_pass<B>(&self, request: &Request<B>) -> bool {
        *request.method() == Method::GET
            || request.uri().path().starts_with("/apis/coordination.k8s.io/")
            || self.is_open()
    }
}

/// A write that came too late.
#[derive(Debug, thiserror::Error)]
#[error("the lease is not this host's any more, so nothing is written")]
struct NotTheHolder;

impl<S> Layer<S> for WriteGate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { gate: self.clone(), inner }
    }
}

/// See [`WriteGate`].
#[derive(Debug, Clone)]
pub struct Gated<S> {
    gate: WriteGate,
    inner: S,
}

impl<S, B> Service<Request<B>> for Gated<S>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Either<future::ErrInto<S::Future, BoxError>, Ready<Result<S::Response, BoxError>>>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if self.gate.lets_pass(&request) {
            Either::Left(future::TryFutureExt::err_into(self.inner.call(request)))
        } else {
            Either::Right(future::ready(Err(NotTheHolder.into())))
        }
    }
}

/// What has come of an attempt to take or renew the lease.
enum Tried {
    /// This host has it.
    Held,
    /// Another host has it.
    OfAnother,
    /// That is not known: there was no answer, or another write was faster, which may be one of this host's own whose answer
    /// was lost.
    InDoubt,
}

/// Seeks one lease, and keeps it.
pub struct Election {
    leases: Api<Lease>,
    lease: LeaseName,
    clock: Clock,
    gate: WriteGate,
    /// The version that another's lease had, and when it was first seen: clocks of other machines are not compared.
    seen: Option<(String, Instant)>,
}

impl Election {
    /// An election in which this host takes part. `gate` is the one that the client's writes pass.
    #[must_use]
    pub fn new(client: Client, lease: LeaseName, clock: Clock, gate: WriteGate) -> Self {
        Self { leases: Api::namespaced(client, &lease.namespace), lease, clock, gate, seen: None }
    }

    /// Returns the name of the lease.
    pub(crate) fn name(&self) -> &str {
        &self.lease.name
    }

    /// Returns once this host has the lease.
    pub async fn won(&mut self) {
        info!(lease = self.lease.name, namespace = self.lease.namespace, "waiting for the lease");
        while !matches!(self.tried().await, Tried::Held) {
            tokio::time::sleep(RETRY).await;
        }
        info!(identity = self.lease.identity, "this host has the lease");
    }

    /// Renews the lease. Returns once it is lost: from then on the gate is closed.
    pub async fn lost(&mut self) {
        loop {
            tokio::time::sleep(RETRY).await;
            match self.tried().await {
                Tried::Held => {}
                // Somebody has emptied or deleted it, and another host need not wait for the end of this one's.
                Tried::OfAnother => {
                    self.gate.close();
                    warn!("another host has the lease");
                    return;
                }
                Tried::InDoubt if self.gate.is_open() => {}
                Tried::InDoubt => {
                    warn!("the lease could not be renewed in time");
                    return;
                }
            }
        }
    }

    /// Gives the lease back, so that the next host need not wait for its end. Returns in time, whatever the API server
    /// does.
    pub async fn give_back(&self) {
        if tokio::time::timeout(ANSWER, self.release()).await.is_err() {
            debug!("the API server did not answer about the lease, which expires by itself");
        }
    }

    async fn release(&self) {
        let Ok(Some(mut held)) = self.leases.get_opt(&self.lease.name).await else { return };
        if held.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()) != Some(&self.lease.identity) {
            return;
        }
        self.gate.close();
        if let Some(spec) = &mut held.spec {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
        }
        if let Err(error) = self.leases.replace(&self.lease.name, &PostParams::default(), &held).await {
            debug!(%error, "failed to release the lease, which expires by itself");
        }
    }

    /// Takes or renews the lease if that may be done; opens the gate if it is this host's.
    async fn tried(&mut self) -> Tried {
        let asked = Instant::now();
        match tokio::time::timeout(ANSWER, self.ask()).await {
            Ok(Ok(tried)) => {
                if matches!(tried, Tried::Held) {
                    self.gate.open_until(asked + RENEW_DEADLINE);
                }
                tried
            }
            Ok(Err(error)) => {
                warn!(%error, "the lease cannot be read or written");
                Tried::InDoubt
            }
            Err(_) => {
                warn!("the API server did not answer about the lease");
                Tried::InDoubt
            }
        }
    }

    async fn ask(&mut self) -> Result<Tried, kube::Error> {
        // While this host waits nobody else asks for the time, and a clock that is set back would be believed.
        let _now = self.clock.now();
        let Some(there) = self.leases.get_opt(&self.lease.name).await? else {
            let spec = self.spec(None);
            let metadata = ObjectMeta { name: Some(self.lease.name.clone()), ..ObjectMeta::default() };
            return taken(self.leases.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await);
        };
        if !self.is_free(&there) {
            return Ok(Tried::OfAnother);
        }
        let spec = self.spec(there.spec.as_ref());
        let lease = Lease { metadata: there.metadata, spec: Some(spec) };
        taken(self.leases.replace(&self.lease.name, &PostParams::default(), &lease).await)
    }

    /// It is this host's, nobody's, or was not renewed for as long as its holder said.
    fn is_free(&mut self, there: &Lease) -> bool {
        let spec = there.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.unwrap_or_default();
        if holder.is_empty() || holder == self.lease.identity {
            return true;
        }
        let version = there.metadata.resource_version.clone().unwrap_or_default();
        let since = match &self.seen {
            Some((seen, since)) if *seen == version => *since,
            _ => {
                self.seen = Some((version, Instant::now()));
                return false;
            }
        };
        let lasts = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        since.elapsed() >= lasts.map_or(DURATION, Duration::from_secs)
    }

    fn spec(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(self.clock.now());
        let kept = before.filter(|spec| spec.holder_identity.as_deref() == Some(&self.lease.identity));
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.lease.identity.clone()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            acquire_time: kept.and_then(|spec| spec.acquire_time.clone()).or(Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if kept.is_some() || before.is_none() { transitions } else { transitions + 1 }),
            ..before.cloned().unwrap_or_default()
        }
    }
}

/// A conflict means that another write was faster.
fn taken(written: Result<Lease, kube::Error>) -> Result<Tried, kube::Error> {
    match written {
        Ok(_) => Ok(Tried::Held),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(Tried::InDoubt),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use kube::client::Body;
    use serde_json::json;
    use std::convert::Infallible;

    /// Returns for how many seconds the host `me` holds a lease that has this holder and that no write changes, since each
    /// meets a conflict.
    async fn holds(holder: &'static str) -> u64 {
        let server = tower::service_fn(move |request: Request<Body>| {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": { "name": "troupe", "namespace": "default", "resourceVersion": "7" },
                "spec": { "holderIdentity": holder },
            });
            let conflict = json!({ "kind": "Status", "apiVersion": "v1", "reason": "Conflict", "code": 409 });
            let (code, body) = if request.method() == Method::GET { (200_u16, lease) } else { (409, conflict) };
            let response = http::Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
            async { Ok::<_, Infallible>(response.expect("its parts are valid")) }
        });
        let (gate, start) = (WriteGate::closed(), Instant::now());
        let lease = LeaseName { namespace: "default".into(), name: "troupe".into(), identity: "me".into() };
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let mut election = Election::new(Client::new(server, "default"), lease, clock, gate.clone());
        gate.open_until(start + RENEW_DEADLINE);
        election.lost().await;
        assert!(!gate.is_open());
        start.elapsed().as_secs()
    }

    // Somebody empties the lease by hand, and a host that waits takes it at once.
    #[tokio::test(start_paused = true)]
    async fn a_host_that_sees_another_in_the_lease_stops_at_once() {
        assert_eq!(holds("another").await, RETRY.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_conflict_may_be_with_a_write_of_the_host_itself_so_it_holds_the_lease_to_its_end() {
        assert_eq!(holds("me").await, RENEW_DEADLINE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_deadline_only_reads_and_leases_pass_the_gate() {
        let (gate, now) = (WriteGate::closed(), Instant::now());
        let passes = |method: Method, path: &str| {
            gate.lets_pass(&Request::builder().method(method).uri(path).body(()).expect("it is a path"))
        };
        let pods = "/api/v1/namespaces/default/pods";
        let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/troupe";
        let all = || [passes(Method::GET, pods), passes(Method::PATCH, lease), passes(Method::POST, pods)];
        assert_eq!(all(), [true, true, false], "before the first lease");
        gate.open_until(now + RENEW_DEADLINE);
        assert_eq!(all(), [true; 3]);
        tokio::time::advance(RENEW_DEADLINE).await;
        assert_eq!(all(), [true, true, false]);
        assert!(RENEW_DEADLINE < DURATION, "nobody else takes the lease before");
    }
}
