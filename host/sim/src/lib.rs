//! A Kubernetes API in memory: a real `kube::Client` on top, pods, Jobs and garbage collection behind, under one seed.
//!
//! Requests go through a tower service instead of a socket, so the code under test is the code that runs in production.
//! Time is tokio's: virtual in a paused runtime, where the same seed gives the same [`Sim::log_hash`], and real otherwise.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! use sim::{Kind, Options, Sim};
//!
//! let sim = Sim::new(Options { kinds: vec![Kind::custom("example.com/v1", "Tale", "tales")], ..Options::default() });
//! let _running = sim.start();
//! let client: kube::Client = sim.client("me");
//! assert_eq!(client.apiserver_version().await.unwrap().minor, "36");
//! assert_eq!(sim.requests()[0].verb, "get");
//! # }
//! ```
#![forbid(unsafe_code)]

mod api;
mod asked;
mod backdoor;
mod controllers;
mod defaults;
mod delete;
mod dice;
mod discovery;
mod error;
mod fate;
mod faults;
mod gc;
mod job_sync;
mod jobs;
mod kind;
mod kubelet;
mod labels;
mod life;
mod names;
mod paint;
mod patch;
mod record;
mod schema;
mod selector;
mod serve;
mod shape;
mod store;
mod trouble;
mod validate;
mod verbs;
mod watch;
mod world;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use jiff::Timestamp;

pub use error::ApiError;
pub use faults::{Crash, Faults, Matching, When};
pub use kind::Kind;
pub use life::Life;
pub use record::{Delivery, RequestRecord, View, Write};

pub use api::Server;
use fate::FaultState;
use kubelet::LifeState;
use store::Store;
use world::World;

/// What a simulation begins with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Decides every uid, generated name, jitter and fault.
    pub seed: u64,
    /// Kinds served besides the built-in ones. A CustomResourceDefinition created later adds its kind as well.
    pub kinds: Vec<Kind>,
    /// What goes wrong.
    pub faults: Faults,
    /// How pods live.
    pub life: Life,
    /// The time at which the simulation begins; 2026-01-01T00:00:00Z unless told otherwise, so that runs repeat.
    /// A live demonstration passes the current time.
    pub base: Timestamp,
    /// How many changes watches can be resumed over before they are refused with 410.
    pub window: usize,
    /// What uids look like.
    pub uids: Uids,
}

/// What uids look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uids {
    /// As the API server makes them, from the seed.
    #[default]
    Random,
    /// `uid-1`, `uid-2` and so on for what lives in a namespace and is no Event, in the order in which it was created: for
    /// texts that people read and compare. Everything else has one from the seed.
    Counted,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            kinds: Vec::new(),
            faults: Faults::none(),
            life: Life::default(),
            base: Timestamp::constant(1_767_225_600, 0),
            window: 100_000,
            uids: Uids::Random,
        }
    }
}

/// A simulated cluster; clones are the same cluster.
#[derive(Clone)]
pub struct Sim {
    world: Arc<Mutex<World>>,
}

/// Keeps scheduler, kubelets, Job controller and garbage collector at work until it is dropped.
#[must_use = "the controllers stop when this is dropped"]
pub struct Running(tokio::task::JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A refusal under way; [`Sim::lift`] ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal(u64);

impl Sim {
    /// A cluster with the usual namespaces and nothing else. Call it in the runtime whose time it shall live by.
    pub fn new(options: Options) -> Self {
        let mut store = Store::default();
        store.window = options.window;
        for kind in kind::builtins().into_iter().chain(options.kinds) {
            store.add_kind(kind);
        }
        let (faults, life) = (FaultState::new(options.faults), LifeState::new(options.life));
        let world = World::new(options.seed, options.base, options.uids, store, faults, life);
        let sim = Self { world: Arc::new(Mutex::new(world)) };
        for namespace in world::first_namespaces() {
            sim.create(namespace);
        }
        sim
    }

    /// Starts scheduler, kubelets, Job controller and garbage collector; call it in a runtime.
    pub fn start(&self) -> Running {
        self.world().relist();
        Running(tokio::spawn(controllers::run(self.clone())))
    }

    /// A client whose requests are recorded under this name. Faults spare the actor `user`.
    ///
    /// One call is one process: after a crash, the clients it had get no answers, and new ones do.
    pub fn client(&self, actor: &str) -> kube::Client {
        self.client_through(actor, &tower::layer::util::Identity::new())
    }

    /// The same with a layer next to the server.
    pub fn client_through<L, B>(&self, actor: &str, layer: &L) -> kube::Client
    where
        L: tower::Layer<Server>,
        L::Service: tower::Service<Request<kube::client::Body>, Response = Response<B>> + Clone + Send + 'static,
        <L::Service as tower::Service<Request<kube::client::Body>>>::Future: Send,
        <L::Service as tower::Service<Request<kube::client::Body>>>::Error: Into<tower::BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        let client = self.world().new_client(actor);
        let server = Server { sim: self.clone(), actor: actor.into(), client };
        kube::Client::new(layer.layer(server), "default")
    }

    /// Every request so far, in the order of their effects.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.world().requests.clone()
    }

    /// The requests of one actor so far.
    pub fn requests_of(&self, actor: &str) -> Vec<RequestRecord> {
        self.world().requests.iter().filter(|request| request.actor == actor).cloned().collect()
    }

    /// A hash over every request, its response code, and every change of a stored object, in order.
    pub fn log_hash(&self) -> u64 {
        self.world().hash.0
    }

    /// The time of the simulated cluster.
    pub fn now(&self) -> Timestamp {
        self.world().now()
    }

    /// How long the simulation has run.
    pub fn elapsed(&self) -> Duration {
        self.world().elapsed()
    }

    /// The resource version of the last change.
    pub fn version(&self) -> u64 {
        self.world().store.version
    }

    /// Has `hook` called in the middle of every successful write by anybody, with the state after it.
    ///
    /// The hook must not call the `Sim`, which is locked meanwhile; the [`View`] shows what it holds. A panic in it ends
    /// whatever wrote, which may be a controller, so a check had better collect what it finds.
    pub fn on_write(&self, hook: impl FnMut(&Write, &View<'_>) + Send + 'static) {
        self.world().hooks.push(Box::new(hook));
    }

    /// Has `hook` called for every object that a list or a watch has shown a client, in the state that it was shown in.
    ///
    /// The hook must not call the `Sim`, which is locked meanwhile.
    pub fn on_delivery(&self, hook: impl FnMut(&Delivery<'_>) + Send + 'static) {
        self.world().delivery_hooks.push(Box::new(hook));
    }

    /// Looks at the stored objects as a hook of [`Sim::on_write`] does.
    pub fn view<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        look(&View { store: &self.world().store })
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
