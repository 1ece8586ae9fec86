//! The whole host on the simulator: what users do by hand while the API server refuses and pods take their time.

use crate::built_in;
use decide::own_conditions;
use lab::campaign::{self, HOST};
use serde_json::{Value, json};
use sim::{ApiError, Kind, Life, Matching, Sim};
use std::{sync::Arc, time::Duration};
use troupe::{
    clock::Clock,
    control::operator::{Ended, Operator, Options},
};

const PADDLE: (&str, &str) = ("batch.paddlepaddle.org/v1", "PaddleJob");
const CRON: (&str, &str) = ("batch.tutorial.kubebuilder.io/v1", "CronJob");
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
        Self::with_kinds(life, |kind| kind)
    }

    /// The same with other definitions of the kinds of job.
    fn with_kinds(life: Life, defined: impl FnMut(Kind) -> Kind) -> Self {
        let plugins = built_in::of_campaigns();
        let kinds = campaign::kinds(&plugins).into_iter().map(defined).collect();
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
    own_conditions::all(&job["status"]).find(|it| it["type"] == condition).cloned()
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

#[test]
fn with_a_definition_that_drops_the_ledger_a_failed_worker_that_was_deleted_by_hand_is_made_again() {
    run(async {
        let world = World::with_kinds(Life::manual(), |kind| kind.pruning("troupe"));
        world.sim.create(mpi_job(&json!({})));
        world.until("a worker", |sim| pods(sim, "pi-worker-").len() == 1).await;
        world.sim.set_failed("default", "pi-worker-0", 1);
        let counted = |sim: &Sim| {
            let job = sim.get(MPI.0, MPI.1, "default", "pi").unwrap();
            job["status"]["replicaStatuses"]["Worker"]["failed"] == 1
        };
        world.until("the failure is counted", counted).await;
        world.sim.remove_pod("default", "pi-worker-0").unwrap();
        let pending = |sim: &Sim| {
            sim.get("v1", "Pod", "default", "pi-worker-0").is_some_and(|pod| pod["status"]["phase"] == "Pending")
        };
        world.until("another worker", pending).await;
    });
}

/// As the API server words it; the deletion of what is in the namespace takes its time.
fn namespace_terminates() -> ApiError {
    let cause = json!({ "reason": "NamespaceTerminating", "message": "namespace default is being terminated" });
    ApiError {
        details: Some(json!({ "causes": [cause] })),
        ..ApiError::new(403, "Forbidden", "unable to create new content in namespace default")
    }
}

#[test]
fn a_job_in_a_namespace_that_is_being_deleted_makes_nothing_more() {
    run(async {
        let world = World::new(Life { run: None, ..Life::default() });
        world.sim.create(job(PADDLE, "wide", &json!({ "worker": role(4) })));
        let runs = |sim: &Sim| {
            sim.get(PADDLE.0, PADDLE.1, "default", "wide").is_some_and(|job| job["status"]["phase"] == "Running")
        };
        world.until("it runs", runs).await;
        let any = Matching { verb: Some("create".into()), ..Matching::default() };
        let refusal = world.sim.refuse(any, namespace_terminates());
        let before = world.sim.requests_of(HOST).len();
        let refused = |sim: &Sim| -> Vec<String> {
            let requests = sim.requests_of(HOST);
            requests[before..].iter().filter(|it| it.code == 403).map(sim::RequestRecord::what).collect()
        };
        for index in 0..4 {
            world.sim.delete("v1", "Pod", "default", &format!("wide-worker-{index}")).unwrap();
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(refused(&world.sim), ["create pods"], "one refusal says that nothing can be made any more");
        assert_eq!(condition(&world.sim, PADDLE, "wide", "Waiting").unwrap()["reason"], "NamespaceTerminating");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(refused(&world.sim), ["create pods"; 1 + 4], "one batch is tried a minute later");
        // An API server that has not seen yet that the namespace was made again refuses the same.
        world.sim.lift(refusal);
        world.until("its pods are made again", |sim| pods(sim, "wide-worker-").len() == 4).await;
    });
}

#[test]
fn another_writer_of_the_status_is_reported_and_not_fought_with() {
    run(async {
        let world = World::new(Life { run: None, ..Life::default() });
        world.sim.create(job(PADDLE, "wide", &json!({ "worker": role(1) })));
        let phase = |sim: &Sim| sim.get(PADDLE.0, PADDLE.1, "default", "wide").unwrap()["status"]["phase"].clone();
        world.until("it runs", |sim| phase(sim) == "Running").await;
        let statuses = |sim: &Sim| sim.requests_of(HOST).iter().filter(|it| it.subresource == "status").count();
        let before = statuses(&world.sim);
        // The other one puts its own word there whenever it sees ours.
        for _ in 0..600 {
            if phase(&world.sim) == "Running" {
                let theirs = json!({ "status": { "phase": "Starting", "conditions": null, "troupe": null } });
                world.sim.patch_status(PADDLE.0, PADDLE.1, "default", "wide", theirs).unwrap();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let writes = statuses(&world.sim) - before;
        assert!((3..=8).contains(&writes), "{writes} status writes in a minute");
        let told =
            |sim: &Sim| sim.list("v1", "Event", "default").iter().any(|event| event["reason"] == "AnotherWriter");
        assert!(told(&world.sim));
        let contested = |sim: &Sim| condition(sim, PADDLE, "wide", "Contested").is_some();
        world.until("the other one has stopped, and ours says so", contested).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert!(!contested(&world.sim), "nobody else has written for minutes");
        assert_eq!(phase(&world.sim), "Running");
    });
}

// C12, C15: what the host itself writes of a job that it rejects is what the CronJob goes by.
#[test]
fn a_cron_job_whose_template_is_wrong_says_so_and_goes_on_with_a_mended_one() {
    run(async {
        let world = World::new(Life { run: None, ..Life::default() });
        let template = json!({ "apiVersion": PADDLE.0, "kind": PADDLE.1, "spec": {} });
        let spec = json!({ "schedule": "* * * * *", "concurrencyPolicy": "Forbid", "template": template });
        world.sim.create(job(CRON, "tick", &spec));
        let runs = |sim: &Sim| sim.list(PADDLE.0, PADDLE.1, "default").len();
        let available = |sim: &Sim| condition(sim, CRON, "tick", "Available").unwrap_or_default();
        world.until("the first run is refused", |sim| available(sim)["reason"] == "JobsRefused").await;
        let message = available(&world.sim)["message"].as_str().unwrap().to_owned();
        assert!(message.ends_with("spec: needs at least one of ps, worker and heter"), "{message}");
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert!((1..=2).contains(&runs(&world.sim)), "{} runs are kept", runs(&world.sim));
        }
        let mended = json!({ "spec": { "template": { "spec": { "worker": role(1) } } } });
        world.edit(CRON, "tick", mended);
        world
            .until("a run is active", |sim| condition(sim, CRON, "tick", "Progressing").unwrap()["status"] == "True")
            .await;
        assert_eq!(pods(&world.sim, "tick-").len(), 1);
    });
}
