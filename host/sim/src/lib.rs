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
mod controllers;
mod defaults;
mod dice;
mod discovery;
mod error;
mod faults;
mod gc;
mod jobs;
mod life;
mod paint;
mod patch;
mod record;
mod selector;
mod store;
mod validate;
mod verbs;
mod watch;
mod world;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

pub use error::ApiError;
pub use faults::{Crash, Faults, Matching, When};
pub use life::Life;
pub use record::{RequestRecord, View, Write};
pub use store::Kind;

use api::Server;
use faults::FaultState;
use life::LifeState;
use paint::Progress;
use store::{Place, Store, key};
use verbs::{DeleteOptions, Edit, Target};
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
        for kind in store::builtins().into_iter().chain(options.kinds) {
            store.add_kind(kind);
        }
        let (faults, life) = (
            FaultState::new(options.faults),
            LifeState::new(options.life),
        );
        let world = World::new(options.seed, options.base, store, faults, life);
        let sim = Self {
            world: Arc::new(Mutex::new(world)),
        };
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
        let client = self.world().new_client(actor);
        let server = Server {
            sim: self.clone(),
            actor: actor.into(),
            client,
        };
        kube::Client::new(server, "default")
    }

    /// Every request so far, in the order of their effects.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.world().requests.clone()
    }

    /// The requests of one actor so far.
    pub fn requests_of(&self, actor: &str) -> Vec<RequestRecord> {
        self.world()
            .requests
            .iter()
            .filter(|request| request.actor == actor)
            .cloned()
            .collect()
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

    /// Looks at the stored objects as a hook of [`Sim::on_write`] does.
    pub fn view<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        look(&View {
            store: &self.world().store,
        })
    }

    // Faults.

    /// Tells of every crash by the fault plan, [`Sim::crash_at`] or [`Sim::crash`].
    ///
    /// The request of a crashed process gets no answer, ever: whoever runs it drops its tasks and starts it anew.
    pub fn crashes(&self) -> UnboundedReceiver<Crash> {
        self.world().faults.listen()
    }

    /// Has the actor's n-th request from now on (1 is the next) be its last.
    pub fn crash_at(&self, actor: &str, request: u64, when: When) {
        self.world().aim(actor, request, when);
    }

    /// Crashes an actor between two requests.
    pub fn crash(&self, actor: &str) {
        let crash = Crash {
            actor: actor.to_owned(),
            request: String::new(),
            when: When::Before,
        };
        self.world().kill(&crash);
    }

    /// How many requests the actor has begun, so that a test can crash it at each.
    pub fn asked(&self, actor: &str) -> u64 {
        self.world().asked(actor)
    }

    /// Holds the requests and the watches of an actor until [`Sim::thaw`], as if its node were paused.
    pub fn freeze(&self, actor: &str) {
        self.world().faults.frozen.insert(actor.to_owned());
    }

    /// Lets what [`Sim::freeze`] held go on.
    pub fn thaw(&self, actor: &str) {
        self.world().faults.frozen.remove(actor);
    }

    async fn thawed(&self, actor: &str) {
        while self.world().faults.frozen.contains(actor) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Refuses matching requests with this error until it is lifted.
    pub fn refuse(&self, matching: Matching, error: ApiError) -> Refusal {
        Refusal(self.world().refuse(matching, error, None))
    }

    /// Refuses the next `times` matching requests with this error.
    pub fn refuse_times(&self, matching: Matching, error: ApiError, times: u64) -> Refusal {
        Refusal(self.world().refuse(matching, error, Some(times.max(1))))
    }

    /// Ends a refusal.
    pub fn lift(&self, refusal: Refusal) {
        self.world().faults.lift(refusal.0);
    }

    /// Replaces the faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.world().faults.faults = faults;
    }

    /// Forgets all past changes: watches that resume before now are refused with 410.
    pub fn compact(&self) {
        self.world().store.compact();
    }

    // Back door: no requests, no faults; watches see the changes.

    /// One stored object; an empty namespace for cluster-scoped kinds.
    pub fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        self.view(|view| view.get(api_version, kind, namespace, name).cloned())
    }

    /// The objects of a kind in a namespace, or (with an empty one) everywhere, ordered by namespace and name.
    pub fn list(&self, api_version: &str, kind: &str, namespace: &str) -> Vec<Value> {
        self.view(|view| {
            view.list(api_version, kind, namespace)
                .into_iter()
                .cloned()
                .collect()
        })
    }

    /// Creates an object as a user would, and returns it; a missing namespace is created, a given status kept.
    ///
    /// # Panics
    /// If the API server would refuse it.
    pub fn create(&self, object: Value) -> Value {
        match self.try_create(object) {
            Ok(object) => object,
            Err(error) => panic!("the simulator refused to create the object: {error}"),
        }
    }

    /// Creates an object as a user would; a missing namespace is created, a given status kept.
    pub fn try_create(&self, mut object: Value) -> Result<Value, ApiError> {
        let mut world = self.world();
        let kind = kind_of(
            &world,
            store::text(&object["apiVersion"]),
            store::text(&object["kind"]),
        )?;
        if kind.namespaced && store::namespace(&object).is_empty() {
            object["metadata"]["namespace"] = json!("default");
        }
        let target = Target::own("test", &kind, &object);
        let namespace = Place {
            table: "/namespaces".into(),
            key: target.namespace.clone(),
        };
        if kind.namespaced && world.store.get(&namespace).is_none() {
            let namespaces = kind_of(&world, "v1", "Namespace")?;
            let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": target.namespace } });
            world.create(&Target::own("test", &namespaces, &object), object)?;
        }
        let status = object.get("status").cloned();
        let made = world.create(&target, object)?;
        if let Some(status) = status.filter(|status| !status.is_null()) {
            let place = Place::of(&kind, &made);
            world.alter("test", &place, |object| object["status"] = status);
            return Ok(world
                .store
                .get(&place)
                .map(|object| (**object).clone())
                .unwrap_or_default());
        }
        Ok((*made).clone())
    }

    /// Merges a patch into an object, its status excepted where that is a subresource.
    pub fn patch(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Value, ApiError> {
        self.edit(api_version, kind, namespace, name, "", patch)
    }

    /// Merges a patch such as `{"status": {...}}` into an object's status.
    pub fn patch_status(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Value, ApiError> {
        self.edit(api_version, kind, namespace, name, "status", patch)
    }

    fn edit(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        subresource: &str,
        patch: Value,
    ) -> Result<Value, ApiError> {
        let mut world = self.world();
        let target = Target {
            subresource: subresource.to_owned(),
            ..target(&world, api_version, kind, namespace, name)?
        };
        world
            .update(&target, Edit::Merge(patch))
            .map(|(object, _)| (*object).clone())
    }

    /// Deletes an object in the background, with its own grace period.
    pub fn delete(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), ApiError> {
        let mut world = self.world();
        let target = target(&world, api_version, kind, namespace, name)?;
        world
            .delete(&target, &DeleteOptions::background())
            .map(|_| ())
    }

    /// Deletes an object with the given `DeleteOptions`.
    pub fn delete_with(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        options: &Value,
    ) -> Result<(), ApiError> {
        let options = DeleteOptions::parse(options)?;
        let mut world = self.world();
        let target = target(&world, api_version, kind, namespace, name)?;
        world.delete(&target, &options).map(|_| ())
    }

    // Pods by hand.

    /// Gives a pod a node and an address; its containers are still being created.
    pub fn set_pod_ip(&self, namespace: &str, name: &str) {
        self.show(namespace, name, &Progress::Sandbox);
    }

    /// Has all containers of a pod run and be ready.
    pub fn set_running(&self, namespace: &str, name: &str) {
        self.show(namespace, name, &Progress::Running);
    }

    /// Has all containers of a pod exit with 0.
    pub fn set_succeeded(&self, namespace: &str, name: &str) {
        self.show(namespace, name, &Progress::Ended(0));
    }

    /// Has all containers of a pod exit with this code.
    pub fn set_failed(&self, namespace: &str, name: &str, code: i64) {
        self.show(
            namespace,
            name,
            &Progress::Ended(if code == 0 { 1 } else { code }),
        );
    }

    /// Removes a pod at once, as a forced deletion does: its kubelet does not get to end it.
    pub fn remove_pod(&self, namespace: &str, name: &str) -> Result<(), ApiError> {
        self.delete_with(
            "v1",
            "Pod",
            namespace,
            name,
            &json!({ "gracePeriodSeconds": 0 }),
        )
    }

    fn show(&self, namespace: &str, name: &str, progress: &Progress) {
        let place = Place {
            table: "/pods".into(),
            key: key(namespace, name),
        };
        self.world().show_by_hand(&place, progress);
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kind_of(world: &World, api_version: &str, kind: &str) -> Result<Arc<Kind>, ApiError> {
    world.store.kind_of(api_version, kind).ok_or_else(|| {
        ApiError::bad_request(format!("no kind {kind:?} is registered in {api_version:?}"))
    })
}

fn target(
    world: &World,
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Target, ApiError> {
    let kind = kind_of(world, api_version, kind)?;
    let object = json!({ "metadata": { "namespace": namespace, "name": name } });
    Ok(Target::own("test", &kind, &object))
}
