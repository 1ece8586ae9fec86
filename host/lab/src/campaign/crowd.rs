//! What many jobs of one namespace cost a job of another: how long its first pod takes, alone and beside them.

use super::{
    HOST,
    hosts::{Hosts, Program},
    jobs::Config,
    kinds,
    tally::Tally,
};
use parking_lot::Mutex;
use sandbox::Plugins;
use serde_json::{Value, json};
use sim::{Faults, Life, Sim};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::Instant;
use troupe::control::host_ports::Limits;

/// Every request takes up to this long.
const LATENCY: Duration = Duration::from_millis(20);

/// Jobs of the quiet namespace, one after another.
const QUIET: usize = 100;

/// Between two of them: a namespace that submits so many jobs a second is no crowd itself.
const PAUSE: Duration = Duration::from_millis(50);

/// Nobody waits longer for a pod.
const PATIENCE: Duration = Duration::from_secs(120);

/// What was seen.
#[derive(Debug)]
pub struct Seen {
    /// From a job of the quiet namespace to its first pod, the shortest first.
    pub waits: Vec<Duration>,
    /// Jobs of the crowd that still had no pod when the last job of the quiet namespace had one.
    pub crowd_left: usize,
}

impl Seen {
    /// The mean of the waits.
    #[must_use]
    pub fn mean(&self) -> Duration {
        self.waits.iter().sum::<Duration>() / u32::try_from(self.waits.len().max(1)).unwrap_or(u32::MAX)
    }
}

/// When each job's first pod was made, by namespace and name.
type FirstPods = Arc<Mutex<BTreeMap<(String, String), Instant>>>;

/// Submits so many jobs to one namespace at once, and then jobs to another, one after another. Runs in whatever time the
/// runtime has.
pub async fn crowd(jobs: usize, plugins: &Arc<Plugins>) -> Seen {
    let faults = Faults { latency: LATENCY, ..Faults::none() };
    let life = Life::default().rule("*", "run-for", "1h");
    let kinds = kinds(plugins);
    let sim = Sim::new(sim::Options { kinds: kinds.clone(), life, faults, ..sim::Options::default() });
    for namespace in ["crowd", "quiet"] {
        sim.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }));
    }
    let _running = sim.start();
    let first = first_pods(&sim);
    let hosts = Hosts::start(Program {
        sim: sim.clone(),
        plugins: Arc::clone(plugins),
        config: Config::default(),
        kinds,
        host_ports: Limits::default(),
        seed: 1,
        two: false,
        delivers: false,
        tally: Tally::default(),
    });
    while !hosts.are_ready() {
        tokio::time::sleep(PAUSE).await;
    }
    (0..jobs).for_each(|number| drop(sim.create(job("crowd", number))));
    let mut submitted = Vec::new();
    for number in 0..QUIET {
        tokio::time::sleep(PAUSE).await;
        sim.create(job("quiet", number));
        submitted.push(Instant::now());
    }
    let had = |namespace: &str, number: usize| {
        let first = first.lock();
        first.get(&(namespace.to_owned(), name(number))).copied()
    };
    let patience = Instant::now() + PATIENCE;
    while (0..QUIET).any(|number| had("quiet", number).is_none()) && Instant::now() < patience {
        tokio::time::sleep(PAUSE).await;
    }
    let waits =
        submitted.iter().enumerate().map(|(number, at)| had("quiet", number).map_or(PATIENCE, |made| made - *at));
    let mut waits: Vec<_> = waits.collect();
    waits.sort_unstable();
    let crowd_left = (0..jobs).filter(|number| had("crowd", *number).is_none()).count();
    Seen { waits, crowd_left }
}

fn first_pods(sim: &Sim) -> FirstPods {
    let first = FirstPods::default();
    let keep = Arc::clone(&first);
    sim.on_write(move |write, _| {
        let Some(pod) = write.after.as_ref().filter(|_| write.kind == "Pod" && write.created() && write.actor == HOST)
        else {
            return;
        };
        let job = pod["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default();
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let mut first = keep.lock();
        first.entry((namespace.to_owned(), job.to_owned())).or_insert_with(Instant::now);
    });
    first
}

fn name(number: usize) -> String {
    format!("job-{number:04}")
}

fn job(namespace: &str, number: usize) -> Value {
    let role = json!({ "replicas": 2, "template": { "spec": { "containers": [{ "name": "main", "image": "x" }] } } });
    json!({
        "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob",
        "metadata": { "name": name(number), "namespace": namespace }, "spec": { "ps": role, "worker": role },
    })
}
