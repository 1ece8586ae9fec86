//! Several hosts on the simulator: one serves, the next takes over, and nobody writes without the lease.

use crate::built_in;
use jiff::SignedDuration;
use lab::campaign;
use sandbox::Plugins;
use serde_json::json;
use sim::{Life, Sim};
use std::{sync::Arc, time::Duration};
use tokio::{sync::oneshot, task::JoinHandle};
use troupe::{
    clock::Clock,
    control::{
        lease::{Election, LeaseName, WriteGate},
        operator::{Ended, Operator, Options},
    },
};

struct World {
    sim: Sim,
    plugins: Arc<Plugins>,
}

struct Host {
    task: JoinHandle<Ended>,
    clock: Clock,
    stop: Option<oneshot::Sender<()>>,
}

impl World {
    fn new() -> Self {
        let plugins = built_in::of_campaigns();
        let kinds = campaign::kinds(&plugins);
        let life = Life::default().rule("*", "run-for", "30s");
        let sim = Sim::new(sim::Options { seed: 1, kinds, life, ..sim::Options::default() });
        Self { sim, plugins }
    }

    fn host(&self, name: &str) -> Host {
        let gate = WriteGate::closed();
        let client = self.sim.client_through(name, &gate);
        let lease = LeaseName { namespace: "default".into(), name: "troupe".into(), identity: name.into() };
        let clock = Clock::starting_at(self.sim.now());
        let election = Some(Election::new(client.clone(), lease, clock.clone(), gate));
        let options = Options { election, ..Options::alone(clock.clone(), [1; 32]) };
        let mut operator = Operator::new(client, Arc::clone(&self.plugins), options);
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move { operator.run(async { drop(stopped.await) }).await });
        Host { task, clock, stop: Some(stop) }
    }

    fn submit(&self, name: &str) {
        let template = json!({ "spec": { "containers": [{ "name": "main", "image": "x" }] } });
        self.sim.create(json!({
            "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob",
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "worker": { "replicas": 2, "template": template } },
        }));
    }

    fn phase(&self, name: &str) -> String {
        let job = self.sim.get("batch.paddlepaddle.org/v1", "PaddleJob", "default", name).unwrap();
        job["status"]["phase"].as_str().unwrap_or_default().to_owned()
    }

    /// Requests of a host that are not about the lease.
    fn work_of(&self, name: &str) -> usize {
        self.sim.requests_of(name).iter().filter(|request| request.resource != "leases").count()
    }
}

fn in_virtual_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

async fn after(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

// S9
#[test]
fn the_next_host_takes_over_when_the_first_is_gone_and_makes_nothing_twice() {
    in_virtual_time(async {
        let world = World::new();
        let _running = world.sim.start();
        let first = world.host("first");
        after(1).await;
        let second = world.host("second");
        world.submit("long");
        after(10).await;
        assert_eq!((world.phase("long").as_str(), world.work_of("second")), ("Running", 0));
        first.task.abort();
        after(12).await;
        assert_eq!(world.work_of("second"), 0, "the first host may still hold the lease");
        after(60).await;
        assert_eq!(world.phase("long"), "Completed");
        let creates = |name: &str| {
            let made = world.sim.requests_of(name).into_iter().filter(|r| r.verb == "create" && r.resource == "pods");
            made.count()
        };
        assert_eq!((creates("first"), creates("second")), (2, 0));
        assert!(!second.task.is_finished());
    });
}

#[test]
fn a_host_that_is_asked_to_stop_gives_the_lease_back() {
    in_virtual_time(async {
        let world = World::new();
        let _running = world.sim.start();
        let mut first = world.host("first");
        after(1).await;
        let _second = world.host("second");
        after(4).await;
        first.stop.take();
        assert_eq!(first.task.await.unwrap(), Ended::AsAsked);
        world.submit("later");
        after(4).await;
        assert!(world.work_of("second") > 0, "it need not wait for the end of the lease");
        assert_eq!(world.phase("later"), "Running");
    });
}

#[test]
fn a_host_that_is_asked_to_stop_does_not_wait_for_an_api_server_that_hangs() {
    in_virtual_time(async {
        let world = World::new();
        let _running = world.sim.start();
        let mut first = world.host("first");
        after(4).await;
        world.sim.freeze("first");
        first.stop.take();
        let ended = tokio::time::timeout(Duration::from_secs(10), first.task).await;
        assert_eq!(ended.expect("it stops in time").unwrap(), Ended::AsAsked);
    });
}

// S9: the lease of a host that was away is another's by the time it comes back
#[test]
fn a_host_that_lost_the_lease_stops_and_says_so() {
    in_virtual_time(async {
        let world = World::new();
        let _running = world.sim.start();
        let first = world.host("first");
        after(5).await;
        // Somebody takes it, as another host does from one that was not heard of.
        let theirs = json!({ "spec": { "holderIdentity": "another" } });
        world.sim.patch("coordination.k8s.io/v1", "Lease", "default", "troupe", theirs).unwrap();
        after(12).await;
        world.submit("never");
        let before = world.work_of("first");
        after(30).await;
        assert_eq!(first.task.await.unwrap(), Ended::LeaseLost);
        assert_eq!(world.work_of("first"), before, "nothing is read or written without the lease");
        assert_eq!(world.sim.get("v1", "Pod", "default", "never-worker-0"), None);
    });
}

// A clock tells the time that has passed since it was read last a tenth slower at most: so it has to be read.
#[test]
fn a_host_that_waits_for_the_lease_does_not_believe_a_clock_that_is_set_back() {
    in_virtual_time(async {
        let world = World::new();
        let _running = world.sim.start();
        let _first = world.host("first");
        after(1).await;
        let second = world.host("second");
        after(600).await;
        second.clock.set_by(SignedDuration::from_secs(-3600));
        after(1).await;
        let behind = world.sim.now().duration_since(second.clock.now());
        assert!(behind < SignedDuration::from_secs(1), "{behind}");
    });
}
