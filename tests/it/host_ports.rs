//! Ports of the nodes: jobs of one namespace leave some to others, and a ledger is believed only as far as it hurts nobody.

use crate::built_in;
use decide::{condition::Condition, own_conditions::current};
use lab::campaign::{self, HOST};
use sandbox::{Plugins, source};
use serde_json::{Value, json};
use sim::{ApiError, Life, Matching, Refusal, Running, Sim};
use std::{ops::RangeInclusive, sync::Arc, time::Duration};
use tokio::task::JoinHandle;
use troupe::{
    clock::Clock,
    control::{
        host_ports::Limits,
        operator::{Ended, Operator, Options},
        reconcile::Context,
    },
};

const PADDLE: (&str, &str) = ("batch.paddlepaddle.org/v1", "PaddleJob");
const MPI: (&str, &str) = ("kubeflow.org/v2beta1", "MPIJob");

/// A host on a simulated cluster whose pods run until they are removed.
struct World {
    sim: Sim,
    plugins: Arc<Plugins>,
    ports: RangeInclusive<u32>,
    host: Option<(JoinHandle<Ended>, Arc<Context>)>,
    _running: Running,
}

impl World {
    fn new(ports: RangeInclusive<u32>) -> Self {
        let plugins = built_in::of_campaigns();
        let life = Life::default().rule("*", "run-for", "1h");
        let sim = Sim::new(sim::Options { kinds: campaign::kinds(&plugins), life, ..sim::Options::default() });
        for namespace in ["greedy", "modest"] {
            sim.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }));
        }
        let running = sim.start();
        Self { sim, plugins, ports, host: None, _running: running }
    }

    /// Each of two jobs has pods on its ports: `liar` from 35000 on, and `one` from 35020 on.
    async fn of_two_jobs_whose_host_crashed() -> Self {
        let mut world = Self::new(35_000..=35_059);
        world.starts();
        world.job("greedy", "liar", 1);
        a_while().await;
        world.job("modest", "one", 1);
        a_while().await;
        assert_eq!((world.port("greedy", "liar"), world.port("modest", "one")), (Some(35_000), Some(35_020)));
        world.crashes();
        world
    }

    fn starts(&mut self) {
        let options = Options {
            host_ports: Limits::new(self.ports.clone(), None),
            ..Options::alone(Clock::starting_at(self.sim.now()), [1; 32])
        };
        let mut operator = Operator::new(self.sim.client(HOST), Arc::clone(&self.plugins), options);
        let context = operator.context();
        self.host = Some((tokio::spawn(async move { operator.run(std::future::pending()).await }), context));
    }

    fn crashes(&mut self) {
        self.host.take().unwrap().0.abort();
    }

    fn job(&self, namespace: &str, name: &str, workers: u32) {
        self.sim.create(json!({
            "apiVersion": PADDLE.0, "kind": PADDLE.1, "metadata": { "name": name, "namespace": namespace },
            "spec": { "intranet": "Host", "worker": { "replicas": workers, "template": {
                "spec": { "containers": [{ "name": "main", "image": "x" }] } } } },
        }));
    }

    fn workers(&self, namespace: &str, name: &str, workers: u32) {
        let spec = json!({ "spec": { "worker": { "replicas": workers } } });
        self.sim.patch(PADDLE.0, PADDLE.1, namespace, name, spec).unwrap();
    }

    /// Whoever may write the status of a job may write this.
    fn claims(&self, (version, kind): (&str, &str), namespace: &str, name: &str, first: u32, count: u32) {
        let uid = self.sim.get(version, kind, namespace, name).unwrap()["metadata"]["uid"].clone();
        let ledger = json!({ "uid": uid, "hostPorts": { "first": first, "count": count } });
        self.sim.patch_status(version, kind, namespace, name, json!({ "status": { "troupe": ledger } })).unwrap();
    }

    /// The port that the job's first worker has on its node; None while there is no such pod.
    fn port(&self, namespace: &str, name: &str) -> Option<u64> {
        let pod = self.sim.get("v1", "Pod", namespace, &format!("{name}-worker-0"))?;
        Some(pod["spec"]["containers"][0]["ports"][0]["hostPort"].as_u64().unwrap())
    }

    fn waits_for(&self, namespace: &str, name: &str) -> String {
        let job = self.sim.get(PADDLE.0, PADDLE.1, namespace, name).unwrap();
        let waiting = current(&job["status"], Condition::Waiting);
        waiting.and_then(|waiting| waiting["message"].as_str()).unwrap_or_default().to_owned()
    }
}

/// Long enough for a job that was refused ports to have asked again.
async fn a_while() {
    tokio::time::sleep(Duration::from_secs(30)).await;
}

fn in_virtual_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

#[test]
fn jobs_without_replicas_have_no_ports() {
    in_virtual_time(async {
        let mut world = World::new(35_000..=35_099);
        world.starts();
        (0..10).for_each(|number| world.job("greedy", &format!("idle-{number}"), 0));
        a_while().await;
        world.job("modest", "one", 1);
        a_while().await;
        assert_eq!(world.port("modest", "one"), Some(35_000));
    });
}

// Seed 72477 of the campaign: the answer to the write was lost, the host crashed, and the next one listed from the past.
#[test]
fn a_job_whose_status_names_the_ports_that_it_is_given_goes_on() {
    in_virtual_time(async {
        let mut world = World::new(35_000..=35_099);
        world.starts();
        a_while().await;
        world.job("modest", "one", 1);
        let uid = world.sim.get(PADDLE.0, PADDLE.1, "modest", "one").unwrap()["metadata"]["uid"].clone();
        let digest = source::digest(Plugins::built_in("paddle").unwrap());
        let ports = json!({ "first": 35_000, "count": 20 });
        let ledger = json!({ "uid": uid, "digest": digest, "headline": "Pending", "hostPorts": ports });
        let status = json!({ "mode": "Collective", "phase": "Pending", "troupe": ledger });
        world.sim.patch_status(PADDLE.0, PADDLE.1, "modest", "one", json!({ "status": status })).unwrap();
        a_while().await;
        assert_eq!(world.port("modest", "one"), Some(35_000));
    });
}

#[test]
fn a_job_that_is_scaled_to_nothing_gives_its_ports_back_and_is_given_some_again() {
    in_virtual_time(async {
        let mut world = World::new(35_000..=35_019);
        world.starts();
        world.job("greedy", "one", 1);
        a_while().await;
        world.job("modest", "two", 1);
        a_while().await;
        assert_eq!((world.port("greedy", "one"), world.port("modest", "two")), (Some(35_000), None));
        world.workers("greedy", "one", 0);
        a_while().await;
        assert_eq!((world.port("greedy", "one"), world.port("modest", "two")), (None, Some(35_000)));
        let map = world.sim.get("v1", "ConfigMap", "greedy", "one").unwrap();
        assert_eq!(map["data"]["PADDLE_PORT"], Value::Null, "the port is another job's");
        world.workers("greedy", "one", 1);
        world.workers("modest", "two", 0);
        a_while().await;
        assert_eq!((world.port("greedy", "one"), world.port("modest", "two")), (Some(35_000), None));
    });
}

#[test]
fn a_refused_job_gives_its_ports_back_with_its_last_pod_and_is_given_some_again_once_it_is_put_right() {
    in_virtual_time(async {
        let mut world = World::new(35_000..=35_019);
        world.starts();
        world.job("greedy", "one", 1);
        a_while().await;
        let refused = json!({ "spec": { "worker": { "replicas": -1 } } });
        world.sim.patch(PADDLE.0, PADDLE.1, "greedy", "one", refused).unwrap();
        world.job("modest", "two", 1);
        a_while().await;
        assert_eq!((world.port("greedy", "one"), world.port("modest", "two")), (Some(35_000), None));
        world.sim.delete("v1", "Pod", "greedy", "one-worker-0").unwrap();
        a_while().await;
        assert!(world.sim.get("v1", "ConfigMap", "greedy", "one").is_some(), "it stays, and uses no port");
        assert_eq!((world.port("greedy", "one"), world.port("modest", "two")), (None, Some(35_000)));
        world.workers("modest", "two", 0);
        world.workers("greedy", "one", 1);
        a_while().await;
        assert_eq!((world.port("greedy", "one"), world.port("modest", "two")), (Some(35_000), None));
    });
}

#[test]
fn the_ledger_of_a_job_that_asks_for_no_ports_takes_none() {
    in_virtual_time(async {
        let mut world = World::new(35_000..=35_019);
        let container = json!({ "template": { "spec": { "containers": [{ "name": "main", "image": "x" }] } } });
        world.sim.create(json!({
            "apiVersion": MPI.0, "kind": MPI.1, "metadata": { "name": "liar", "namespace": "greedy" },
            "spec": { "mpiReplicaSpecs": { "Launcher": container, "Worker": container } },
        }));
        world.claims(MPI, "greedy", "liar", 35_000, 20);
        world.starts();
        world.job("modest", "one", 1);
        a_while().await;
        assert_eq!(world.port("modest", "one"), Some(35_000));
    });
}

impl World {
    /// The API server forbids the hosts to list this kind until the refusal is lifted.
    fn forbids(&self, resource: &str) -> Refusal {
        let error = ApiError::new(403, "Forbidden", format!("{resource} is forbidden"));
        self.sim.refuse(Matching::verb("list", resource), error)
    }

    fn is_ready(&self) -> bool {
        self.host.as_ref().unwrap().1.is_ready()
    }
}

// A Plugin may serve a kind that nobody has granted the host.
#[test]
fn a_kind_of_job_that_the_host_may_not_list_costs_others_half_a_minute_at_most() {
    in_virtual_time(async {
        let mut world = World::new(35_000..=35_099);
        let _forbidden = world.forbids("mpijobs");
        world.starts();
        world.job("modest", "one", 1);
        tokio::time::sleep(Duration::from_secs(25)).await;
        assert_eq!((world.port("modest", "one"), world.is_ready()), (None, false), "the API server may just start");
        a_while().await;
        assert_eq!((world.port("modest", "one"), world.is_ready()), (Some(35_000), true));
    });
}

// While the owners of pods cannot be looked at, ports that pods declare are their user's word: it counts where they run, up to
// what a namespace may have.
#[test]
fn pods_that_declare_all_ports_take_a_namespaces_share_where_a_kind_of_job_may_not_be_listed() {
    in_virtual_time(async {
        let mut world = World::new(35_000..=37_999);
        let _forbidden = world.forbids("mpijobs");
        world.job("greedy", "liar", 0);
        let uid = world.sim.get(PADDLE.0, PADDLE.1, "greedy", "liar").unwrap()["metadata"]["uid"].clone();
        let port = |port: u32| json!({ "containerPort": port, "hostPort": port });
        let ports: Value = (35_000..=37_999).map(port).collect();
        let owner = json!({ "apiVersion": PADDLE.0, "kind": PADDLE.1, "name": "liar", "uid": uid, "controller": true });
        world.sim.create(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "rogue", "namespace": "greedy", "labels": { "paddle-res-type": "worker" },
                "ownerReferences": [owner] },
            "spec": { "nodeName": "node-1", "containers": [{ "name": "main", "image": "x", "ports": ports }] },
        }));
        world.starts();
        tokio::time::sleep(Duration::from_secs(60)).await;
        world.job("modest", "one", 1);
        a_while().await;
        assert_eq!(world.port("modest", "one"), Some(36_000), "{}", world.waits_for("modest", "one"));
    });
}

#[test]
fn a_host_that_may_not_list_pods_is_not_ready_and_gives_no_ports() {
    in_virtual_time(async {
        let mut world = World::new(35_000..=35_099);
        let forbidden = world.forbids("pods");
        world.starts();
        world.job("modest", "one", 1);
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!((world.port("modest", "one"), world.is_ready()), (None, false));
        world.sim.lift(forbidden);
        a_while().await;
        assert_eq!((world.port("modest", "one"), world.is_ready()), (Some(35_000), true));
    });
}

#[test]
fn what_a_ledger_claims_while_the_host_runs_is_not_believed() {
    in_virtual_time(async {
        let mut world = World::new(35_000..=35_039);
        world.starts();
        world.job("greedy", "liar", 1);
        a_while().await;
        world.claims(PADDLE, "greedy", "liar", 35_020, 20);
        world.job("modest", "one", 1);
        a_while().await;
        assert_eq!((world.port("greedy", "liar"), world.port("modest", "one")), (Some(35_000), Some(35_020)));
        let liar = world.sim.get(PADDLE.0, PADDLE.1, "greedy", "liar").unwrap();
        assert_eq!(liar["status"]["troupe"]["hostPorts"]["first"], 35_000, "the ledger is put right");
    });
}

#[test]
fn pods_that_run_on_ports_keep_them_for_their_job_over_a_restart_whatever_older_jobs_claim() {
    in_virtual_time(async {
        let mut world = World::of_two_jobs_whose_host_crashed().await;
        world.claims(PADDLE, "greedy", "liar", 35_020, 20);
        world.starts();
        a_while().await;
        world.sim.delete("v1", "Pod", "modest", "one-worker-0").unwrap();
        world.job("modest", "two", 1);
        a_while().await;
        assert_eq!(world.port("modest", "one"), Some(35_020), "it is made again where it was");
        let liar = world.sim.get(PADDLE.0, PADDLE.1, "greedy", "liar").unwrap();
        let liars = liar["status"]["troupe"]["hostPorts"]["first"].as_u64();
        assert!(liars != Some(35_020) && liars != world.port("modest", "two"), "{liar:#}");
    });
}

#[test]
fn a_pod_on_one_port_proves_no_claim_on_the_ports_of_another_jobs_pods() {
    in_virtual_time(async {
        let mut world = World::of_two_jobs_whose_host_crashed().await;
        // Of a job that is refused the host keeps what it has.
        world.claims(PADDLE, "greedy", "liar", 35_000, 60);
        let refused = json!({ "spec": { "worker": { "replicas": -1 } } });
        world.sim.patch(PADDLE.0, PADDLE.1, "greedy", "liar", refused).unwrap();
        world.starts();
        a_while().await;
        world.sim.delete("v1", "Pod", "modest", "one-worker-0").unwrap();
        a_while().await;
        assert_eq!(world.port("modest", "one"), Some(35_020), "it is made again where it was");
    });
}

#[test]
fn a_namespace_that_has_its_quota_waits_and_others_do_not() {
    in_virtual_time(async {
        let mut world = World::new(35_000..=38_999);
        world.starts();
        (0..200).for_each(|number| world.job("greedy", &format!("job-{number:03}"), 1));
        a_while().await;
        world.job("modest", "one", 1);
        a_while().await;
        assert!(world.port("modest", "one").is_some(), "{}", world.waits_for("modest", "one"));
        let waits = (0..200).map(|number| world.waits_for("greedy", &format!("job-{number:03}")));
        let quota =
            "20 consecutive ports of the nodes; jobs of this namespace have 1000 of the 1000 that they may have";
        assert_eq!(waits.filter(|waits| waits == quota).count(), 150);
    });
}
