//! A Kubernetes API in memory for a real `kube::Client`, with pods, Jobs and garbage collection, run from one seed.
//!
//! Requests go through a tower service instead of a socket, so tests run production code. Time is tokio's: in a paused
//! runtime it is virtual and the same seed gives the same [`Sim::log_hash`]; otherwise it is real.
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
mod api_request;
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
mod quota;
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

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
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

/// The options of a simulation.
#[derive(Debug, Clone)]
pub struct Options {
    /// The seed of every uid, generated name, jitter and fault.
    pub seed: u64,
    /// Kinds served besides the built-in ones. A CustomResourceDefinition created later adds its kind as well.
    pub kinds: Vec<Kind>,
    /// The fault plan.
    pub faults: Faults,
    /// The script by which pods run.
    pub life: Life,
    /// The start time; 2026-01-01T00:00:00Z by default, so that runs repeat. A live demonstration passes the current
    /// time.
    pub base: Timestamp,
    /// The number of changes in the history; watches that resume from before are refused with 410.
    pub window: usize,
    /// The form of uids.
    pub uids: Uids,
}

/// The form of uids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Uids {
    /// Random, as the API server makes them, from the seed.
    #[default]
    Random,
    /// `uid-1`, `uid-2` and so on for namespaced objects except Events, in order of creation, for texts that people
    /// read and compare. All other objects get random uids from the seed.
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

/// A simulated cluster; clones share it.
#[derive(Clone)]
pub struct Sim {
    world: Arc<Mutex<World>>,
}

/// Runs scheduler, kubelets, Job controller and garbage collector until it is dropped.
#[must_use = "the controllers stop when this is dropped"]
pub struct Running(tokio::task::JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A refusal in effect; [`Sim::lift`] ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal(u64);

impl Sim {
    /// Creates a cluster with the usual namespaces only. Call it in the runtime whose time it uses.
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

    /// Starts scheduler, kubelets, Job controller and garbage collector. Call it in a runtime.
    pub fn start(&self) -> Running {
        self.world().relist();
        Running(tokio::spawn(controllers::run(self.clone())))
    }

    /// Returns a client whose requests are recorded under this name. The actor `user` is exempt from faults.
    ///
    /// One call is one process: after a crash, its clients get no responses, and new clients do.
    pub fn client(&self, actor: &str) -> kube::Client {
        self.client_through(actor, &tower::layer::util::Identity::new())
    }

    /// Returns such a client with a layer next to the server.
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

    /// Returns every request so far, in the order of their effects.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.world().requests.clone()
    }

    /// Returns the requests of one actor so far.
    pub fn requests_of(&self, actor: &str) -> Vec<RequestRecord> {
        self.world().requests.iter().filter(|request| request.actor == actor).cloned().collect()
    }

    /// Returns a hash over every request, its response code, and every change of a stored object, in order.
    pub fn log_hash(&self) -> u64 {
        self.world().hash.0
    }

    /// Returns the time of the simulated cluster.
    pub fn now(&self) -> Timestamp {
        self.world().now()
    }

    /// Returns how long the simulation has run.
    pub fn elapsed(&self) -> Duration {
        self.world().elapsed()
    }

    /// Returns the resource version of the last change.
    pub fn version(&self) -> u64 {
        self.world().store.version
    }

    /// Registers a hook that is called during every successful write, with the state after it.
    ///
    /// The hook must not call the `Sim`, which is locked; the [`View`] shows its objects. A panic in the hook ends the
    /// writer, which may be a controller, so a check should collect its findings instead.
    pub fn on_write(&self, hook: impl FnMut(&Write, &View<'_>) + Send + 'static) {
        self.world().hooks.push(Box::new(hook));
    }

    /// Registers a hook that is called with every object that a list or a watch delivers, in the delivered state.
    ///
    /// The hook must not call the `Sim`, which is locked.
    pub fn on_delivery(&self, hook: impl FnMut(&Delivery<'_>) + Send + 'static) {
        self.world().delivery_hooks.push(Box::new(hook));
    }

    /// Gives read access to the stored objects, as a hook of [`Sim::on_write`] has it.
    pub fn view<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        look(&View { store: &self.world().store })
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock()
    }
}
