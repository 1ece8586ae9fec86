//! The whole host on the simulator: what users do by hand while the API server refuses and pods take their time.

use serde_json::{Value, json};
use sim::{ApiError, Life, Matching, Sim};
use std::{sync::Arc, time::Duration};
use troupe::{
    campaign::{self, HOST},
    clock::Clock,
    operator::{Ended, Operator, Options},
};

const PADDLE: (&str, &str) = ("batch.paddlepaddle.org/v1", "PaddleJob");
const MPI: (&str, &str) = ("kubeflow.org/v2beta1", "MPIJob");

/// A cluster with a host in it.
struct World {
    sim: Sim,
    _running: sim::Running,
    host: tokio::task::JoinHandle<Ended>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.host.abort();
    }
}

impl World {
    fn new(life: Life) -> Self {
        let plugins = campaign::plugins().unwrap();
        let kinds = campaign::kinds(&plugins);
        let sim = Sim::new(sim::Options { seed: 1, kinds, life, ..sim::Options::default() });
        let running = sim.start();
        let options = Options::alone(Clock::starting_at(sim.now()), [1; 32]);
        let mut operator = Operator::new(sim.client(HOST), Arc::clone(&plugins), options);
        let host = tokio::spawn(async move { operator.run(std::future::pending()).await });
        Self { sim, _running: running, host }
    }

    /// Virtual time passes until it is so.
    async fn until(&self, what: &str, is_so: impl Fn(&Sim) -> bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(120);
        while !is_so(&self.sim) {
            assert!(tokio::time::Instant::now() < deadline, "in two minutes it did not come to this: {what}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn edit(&self, (version, kind): (&str, &str), name: &str, patch: Value) {
        self.sim.patch(version, kind, "default", name, patch).unwrap();
    }
}

fn run(story: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(story);
}

fn job((version, kind): (&str, &str), name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name, "namespace": "default" }, "spec": spec })
}

fn role(replicas: u32) -> Value {
    json!({ "replicas": replicas, "template": { "spec": { "containers": [{ "name": "main", "image": "x" }] } } })
}

fn mpi_job(run_policy: &Value) -> Value {
    let spec = json!({ "runPolicy": run_policy, "mpiReplicaSpecs": { "Launcher": role(1), "Worker": role(1) } });
    job(MPI, "pi", &spec)
}

fn pods(sim: &Sim, prefix: &str) -> Vec<String> {
    let names =
        sim.list("v1", "Pod", "default").into_iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

fn uid_of_launcher(sim: &Sim) -> Option<String> {
    Some(sim.get("batch/v1", "Job", "default", "pi-launcher")?["metadata"]["uid"].as_str()?.to_owned())
}

fn condition(sim: &Sim, (version, kind): (&str, &str), name: &str, condition: &str) -> Option<Value> {
    let job = sim.get(version, kind, "default", name)?;
    let conditions = job["status"]["conditions"].as_array()?;
    conditions.iter().find(|it| it["type"] == condition).cloned()
}

#[test]
fn pods_that_are_too_many_go_although_a_quota_refuses_all_that_are_missing() {
    run(async {
        let world = World::new(Life { run: None, ..Life::default() });
        world.sim.create(job(PADDLE, "wide", &json!({ "ps": role(2), "worker": role(1) })));
        world.until("three pods", |sim| pods(sim, "wide-").len() == 3).await;
        let quota = ApiError::quota("pods", "wide-worker", "compute");
        world.sim.refuse(Matching::create("pods"), quota);
        world.edit(PADDLE, "wide", json!({ "spec": { "ps": { "replicas": 1 }, "worker": { "replicas": 40 } } }));
        world.until("the server that is too many is gone", |sim| pods(sim, "wide-ps-").len() == 1).await;
    });
}

#[test]
fn a_launcher_that_was_deleted_by_hand_is_made_again_when_its_pods_are_gone() {
    run(async {
        let life = Life { run: None, ..Life::default() }.rule("pi-launcher-*", "terminate-after", "20s");
        let world = World::new(life);
        world.sim.create(mpi_job(&json!({ "ttlSecondsAfterFinished": 0 })));
        let runs = |sim: &Sim| condition(sim, MPI, "pi", "Running").is_some_and(|it| it["status"] == "True");
        world.until("the job runs", runs).await;
        let first = uid_of_launcher(&world.sim).unwrap();
        world.sim.delete("batch/v1", "Job", "default", "pi-launcher").unwrap();
        let begun = tokio::time::Instant::now();
        world.until("another launcher", |sim| uid_of_launcher(sim).is_some_and(|uid| uid != first)).await;
        let of_first = |view: &sim::View<'_>| view.owned_by(&first).len();
        assert_eq!(world.sim.view(of_first), 0, "the pod of the first is still there");
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(22), "{took:?}: its pods were gone after 20 s");
        assert_eq!(condition(&world.sim, MPI, "pi", "Failed"), None);
        world.until("the job runs with the other", |sim| pods(sim, "pi-launcher-").len() == 1).await;
    });
}
