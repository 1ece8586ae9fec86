//! Seeded campaigns: the real host and the real plugins on the simulator, under faults and crashes, with invariants
//! checked after every write. The same seed gives the same log.

mod crowd;
mod invariants;
mod workload;

use crate::{
    clock::Clock,
    operator::{Ended, Operator, Options},
    passes::Noted,
    plugin::{LoadError, Plugins, Seam},
};
pub use crowd::{Seen, crowd};
use invariants::Invariants;
use sim::{Faults, Kind, Life, Sim};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use workload::Workload;

/// The actor that the host writes as.
pub const HOST: &str = "troupe";

/// Faults stop after this much virtual time; then every job has to come to its end.
const FAULTY: Duration = Duration::from_secs(60);

/// Virtual time by which every job must have ended.
const DEADLINE: Duration = Duration::from_secs(300);

/// Virtual time in which a host at rest must not write.
const REST: Duration = Duration::from_secs(120);

/// A host that crashed comes back after this.
const COMES_BACK: Duration = Duration::from_millis(500);

/// What a seed led to.
#[derive(Debug)]
pub struct Run {
    /// Invariants that did not hold, in words.
    pub violations: Vec<String>,
    /// A hash over every request, answer and change; the same for the same seed.
    pub log_hash: u64,
    /// Every request of the host, a line each.
    pub trace: Vec<String>,
    /// How often the host crashed.
    pub crashes: u32,
    /// Writes of the host.
    pub writes: usize,
    /// The latest passes of each host.
    pub passes: Vec<Arc<Noted>>,
}

/// The built-in plugins, called inline, so that a run is deterministic.
///
/// # Errors
/// When one does not load.
pub fn plugins() -> Result<Arc<Plugins>, LoadError> {
    Plugins::builtin(Seam::Inline).map(Arc::new)
}

/// The kinds of job that these plugins serve, for a simulator.
#[must_use]
pub fn kinds(plugins: &Plugins) -> Vec<Kind> {
    let frameworks = plugins.frameworks();
    let kinds = frameworks.iter().flat_map(|(framework, _)| &framework.kinds);
    kinds.map(|kind| Kind::custom(&kind.api_version(), &kind.kind, &kind.plural)).collect()
}

/// Runs one seed in virtual time.
///
/// # Errors
/// When the runtime cannot be made.
pub fn run(seed: u64, plugins: &Arc<Plugins>) -> std::io::Result<Run> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(campaign(seed, plugins)))
}

/// Every tenth seed runs without faults, and must stay within the write budget.
fn faults(seed: u64) -> Faults {
    match seed % 10 {
        0 => Faults::none(),
        1..=5 => Faults::light(seed).until(FAULTY),
        _ => Faults::heavy(seed).until(FAULTY),
    }
}

async fn campaign(seed: u64, plugins: &Arc<Plugins>) -> Run {
    let kinds = kinds(plugins);
    let life = Life::default().jitter(0.5);
    let sim = Sim::new(sim::Options { seed, kinds, life, faults: faults(seed), ..sim::Options::default() });
    let _running = sim.start();
    let mut crashes = sim.crashes();
    let workload = Workload::drawn(seed);
    let life = Arc::new(AtomicU32::new(0));
    let invariants = Invariants::watching(&sim, workload.foreign_names(), life.clone());

    let (mut seen, mut passes) = (Vec::new(), Vec::new());
    let mut crashed = 0;
    let mut host = Host::start(&sim, plugins, seed);
    let user = tokio::spawn(workload.clone().play(sim.clone()));
    let deadline = tokio::time::Instant::now() + DEADLINE;
    let mut poll = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            biased;
            Some(_) = crashes.recv() => {
                crashed += 1;
                life.store(crashed, Ordering::Relaxed);
                seen.extend(host.panics());
                passes.extend(host.context.passes().latest(None));
                drop(host);
                tokio::time::sleep(COMES_BACK).await;
                host = Host::start(&sim, plugins, seed + u64::from(crashed));
            }
            _ = poll.tick() => {
                let settled = user.is_finished() && sim.elapsed() > FAULTY && workload.unfinished(&sim).is_empty();
                if settled || tokio::time::Instant::now() > deadline {
                    break;
                }
            }
        }
    }
    let late = workload.unfinished(&sim);
    seen.extend(
        late.into_iter()
            .map(|job| format!("L1: {job} has not ended {} s after faults stopped", (DEADLINE - FAULTY).as_secs())),
    );
    // What follows the end of the last job: clean-up, folded counts.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let writes = |sim: &Sim| sim.requests_of(HOST).iter().filter(|request| request.is_write()).count();
    let before = writes(&sim);
    tokio::time::sleep(REST).await;
    let after = writes(&sim);
    if after != before {
        seen.push(format!("S7: {} writes of the host at rest", after - before));
    }
    seen.extend(host.panics());
    passes.extend(host.context.passes().latest(None));
    seen.extend(invariants.found());
    seen.extend(invariants.at_the_end(&sim));
    if seed.is_multiple_of(10) {
        seen.extend(workload.over_budget(&sim));
    }
    let requests = sim.requests_of(HOST);
    let trace =
        requests.iter().map(|r| format!("{} {} {}/{} {}", r.at, r.what(), r.namespace, r.name, r.code)).collect();
    Run { violations: seen, log_hash: sim.log_hash(), trace, crashes: crashed, writes: after, passes }
}

/// A host that ends when dropped, as a crashed process does.
struct Host {
    task: tokio::task::JoinHandle<Ended>,
    context: Arc<crate::reconcile::Context>,
}

impl Host {
    fn start(sim: &Sim, plugins: &Arc<Plugins>, seed: u64) -> Self {
        let base = sim.now();
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let options = Options::alone(Clock::starting_at(base), bytes);
        let mut operator = Operator::new(sim.client(HOST), plugins.clone(), options);
        let context = operator.context();
        Self { task: tokio::spawn(async move { operator.run(std::future::pending()).await }), context }
    }

    fn panics(&self) -> Option<String> {
        let restarts: u64 = self.context.restarts().read().iter().map(|(_, restarts)| restarts).sum();
        let panics = u64::from(self.context.panics()) + restarts;
        (panics > 0).then(|| format!("S8: the host panicked {panics} times"))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.task.abort();
    }
}
