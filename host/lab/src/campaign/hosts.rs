//! The hosts of a campaign: one, or two that take turns by a lease. A host lives until it is dropped, as a process that
//! crashes does, and comes back.

use super::{deliveries::Deliveries, jobs::Config, tally::Tally};
use jiff::SignedDuration;
use sandbox::Plugins;
use sim::{Crash, Kind, RequestRecord, Sim};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;
use troupe::{
    clock::Clock,
    control::{
        host_ports::Limits,
        lease::{Election, LeaseName, WriteGate},
        operator::{Ended, Operator, Options},
        reconcile::Context,
    },
    record::passes::Latest,
};

/// A host that crashed comes back after this.
const COMES_BACK: Duration = Duration::from_millis(500);

/// What is noted when a host has lost its lease, and starts again.
pub(super) const LEASE_LOST: &str = "lease lost";

/// Who writes as a host.
pub(super) const ACTORS: [&str; 2] = [super::HOST, "troupe-2"];

/// The writes are a host's.
pub(super) fn is_host(actor: &str) -> bool {
    ACTORS.contains(&actor)
}

/// The writes of all hosts so far, but what they say of the lease.
pub(super) fn writes(sim: &Sim) -> usize {
    let of_jobs =
        |request: &&RequestRecord| is_host(&request.actor) && request.is_write() && request.resource != "leases";
    sim.requests().iter().filter(of_jobs).count()
}

/// What every life of a host begins with.
#[derive(Clone)]
pub(super) struct Program {
    pub(super) sim: Sim,
    pub(super) plugins: Arc<Plugins>,
    pub(super) config: Config,
    /// The kinds of job there are.
    pub(super) kinds: Vec<Kind>,
    /// The ports of the nodes that jobs may hold.
    pub(super) host_ports: Limits,
    pub(super) seed: u64,
    /// Two take turns.
    pub(super) two: bool,
    /// Plugins are delivered to them.
    pub(super) delivers: bool,
    pub(super) tally: Tally,
}

/// The hosts of a run.
pub(super) struct Hosts {
    program: Program,
    running: Vec<Host>,
    lives: u64,
    /// What went wrong in those that are over.
    found: Vec<String>,
    passes: Vec<Latest>,
    /// How many watches they had.
    watches: usize,
}

/// What is known of hosts that are over.
pub(super) struct Over {
    /// What they found wrong with themselves.
    pub(super) found: Vec<String>,
    /// Their latest passes.
    pub(super) passes: Vec<Latest>,
    /// How many watches they had, in all lives.
    pub(super) watches: usize,
}

struct Host {
    actor: &'static str,
    task: JoinHandle<Ended>,
    context: Arc<Context>,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hosts {
    /// Starts as many as there are.
    pub(super) fn start(program: Program) -> Self {
        let mut hosts = Self { program, running: vec![], lives: 0, found: vec![], passes: vec![], watches: 0 };
        let count = if hosts.program.two { 2 } else { 1 };
        ACTORS.iter().take(count).for_each(|actor| hosts.begin(actor));
        hosts
    }

    /// Ends one process, of which nothing is left but what it wrote, and starts it again after a while. Counts the lives.
    pub(super) async fn crash(&mut self, crash: &Crash, life: &AtomicU32) {
        life.fetch_add(1, Ordering::Relaxed);
        let (over, running) = std::mem::take(&mut self.running).into_iter().partition(|host| host.actor == crash.actor);
        self.running = running;
        self.note(over);
        tokio::time::sleep(COMES_BACK).await;
        life.fetch_add(self.come_back(), Ordering::Relaxed);
    }

    /// Starts those that are not there; returns how many had lost their lease.
    pub(super) fn come_back(&mut self) -> u32 {
        let (over, running) = std::mem::take(&mut self.running).into_iter().partition(|host| host.task.is_finished());
        self.running = running;
        let lost = Vec::len(&over);
        if self.program.two && lost > 0 {
            self.program.sim.note_trouble(LEASE_LOST);
        }
        self.note(over);
        let count = if self.program.two { 2 } else { 1 };
        for actor in ACTORS.iter().take(count) {
            if self.running.iter().all(|host| host.actor != *actor) {
                self.begin(actor);
            }
        }
        u32::try_from(lost).unwrap_or(u32::MAX)
    }

    /// Each of them has listed all that it watches.
    pub(super) fn are_ready(&self) -> bool {
        self.running.iter().all(|host| host.context.is_ready())
    }

    /// Sets their clocks forward, or back. The clock of one that starts later is right.
    pub(super) fn set_clocks_by(&self, step: SignedDuration) {
        let what = if step.is_negative() { "clock set back" } else { "clock set forward" };
        self.program.tally.add(what, self.running.len() as u64);
        self.running.iter().for_each(|host| host.context.clock().set_by(step));
    }

    /// Ends them all. S14: the queues of those that still run keep nothing of jobs that are gone.
    pub(super) fn end(mut self) -> Over {
        let running = std::mem::take(&mut self.running);
        let Program { sim, kinds, .. } = &self.program;
        let jobs = kinds.iter().map(|kind| sim.list(&kind.api_version(), &kind.kind, "").len()).sum();
        let kept = running
            .iter()
            .filter(|host| !host.task.is_finished())
            .map(|host| host.context.queue().jobs())
            .filter(|kept| *kept > jobs);
        self.found.extend(
            kept.map(|kept| format!("S14: the queue keeps something of {kept} jobs, of which there are {jobs}")),
        );
        self.note(running);
        Over { found: self.found, passes: self.passes, watches: self.watches }
    }

    fn note(&mut self, over: Vec<Host>) {
        for host in over {
            let restarts: u64 = host.context.restarts().read().iter().map(|(_, restarts)| restarts).sum();
            let panics = host.context.panics() + restarts;
            if panics > 0 {
                self.found.push(format!("S8: the host panicked {panics} times"));
            }
            self.passes.push(host.context.passes().latest());
            self.watches += host.context.stores().progress().len();
        }
    }

    fn begin(&mut self, actor: &'static str) {
        let host = self.program.start(actor, self.lives);
        self.running.push(host);
        self.lives += 1;
    }
}

impl Program {
    /// A host as its process starts: nothing is left of an earlier life.
    fn start(&self, actor: &'static str, life: u64) -> Host {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&(self.seed + life).to_le_bytes());
        let clock = Clock::starting_at(self.sim.now());
        let gate = WriteGate::closed();
        let client = if self.two { self.sim.client_through(actor, &gate) } else { self.sim.client(actor) };
        let election = self.two.then(|| {
            let lease = LeaseName { namespace: "default".into(), name: "troupe".into(), identity: actor.into() };
            Election::new(client.clone(), lease, clock.clone(), gate)
        });
        let delivery = self.delivers.then(Deliveries::options);
        let host_ports = self.host_ports.clone();
        let options = Options { election, delivery, host_ports, ..Options::alone(clock, bytes) };
        let mut operator = Operator::new(client, self.plugins(), options);
        let context = operator.context();
        Host { actor, task: tokio::spawn(async move { operator.run(std::future::pending()).await }), context }
    }

    fn plugins(&self) -> Arc<Plugins> {
        let plugins = self.plugins.fork();
        for (name, config) in self.config.of_plugins() {
            plugins.configure(name, &config).expect("it comes with the host, and the config is of its schema");
        }
        Arc::new(plugins)
    }
}
