//! A framework whose driver makes executors by itself and whose users name ConfigMaps and Secrets, on the whole host on the
//! simulator: `tests/driver`.

use crate::{built_in, hostile::built};
use decide::grants::{Grants, missing};
use lab::campaign::{self, HOST};
use serde_json::{Value, json};
use sim::{ApiError, Life, Matching, Running, Sim};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};
use troupe::{
    clock::Clock,
    control::operator::{Ended, Operator, Options},
};

const DRIVER_JOB: (&str, &str) = ("example.org/v1", "DriverJob");

const NAMESPACE: &str = "default";

/// By then the host has done what it is going to do, in virtual time.
const SOON: Duration = Duration::from_secs(180);

/// A host on a simulated cluster whose pods run until they are removed.
struct World {
    sim: Sim,
    host: JoinHandle<Ended>,
    _running: Running,
}

impl Drop for World {
    fn drop(&mut self) {
        self.host.abort();
    }
}

impl World {
    fn new() -> Self {
        let plugins = built_in::plugins();
        plugins.load("driver", &built("driver", "")).unwrap();
        let plugins = Arc::new(plugins);
        let life = Life::default().rule("*", "run-for", "24h");
        let sim = Sim::new(sim::Options { kinds: campaign::kinds(&plugins), life, ..sim::Options::default() });
        let running = sim.start();
        let options = Options::alone(Clock::starting_at(sim.now()), [1; 32]);
        let mut operator = Operator::new(sim.client(HOST), plugins, options);
        let host = tokio::spawn(async move { operator.run(std::future::pending()).await });
        Self { sim, host, _running: running }
    }

    fn submit(&self, others: &Value) {
        let template = json!({ "spec": { "containers": [{ "name": "main", "image": "x" }] } });
        let mut spec = json!({ "settings": "settings", "workers": 2, "template": template });
        spec.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        self.sim.create(json!({ "apiVersion": DRIVER_JOB.0, "kind": DRIVER_JOB.1,
            "metadata": { "name": "j", "namespace": NAMESPACE }, "spec": spec }));
    }

    fn settings(&self, mode: &str) {
        drop(self.sim.delete("v1", "ConfigMap", NAMESPACE, "settings"));
        self.sim.create(json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "settings", "namespace": NAMESPACE }, "data": { "mode": mode } }));
    }

    fn pod(&self, name: &str) -> Option<Value> {
        self.sim.get("v1", "Pod", NAMESPACE, name)
    }

    fn pods(&self) -> Vec<String> {
        let pods = self.sim.list("v1", "Pod", NAMESPACE);
        pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    fn status(&self) -> Value {
        self.sim.get(DRIVER_JOB.0, DRIVER_JOB.1, NAMESPACE, "j").unwrap()["status"].clone()
    }

    /// The value of a variable of a pod's container; "" if there is no such pod or variable.
    fn variable(&self, pod: &str, name: &str) -> String {
        let pod = self.pod(pod).unwrap_or_default();
        let variables = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
        let found = variables.iter().find(|variable| variable["name"] == name);
        found.and_then(|variable| variable["value"].as_str()).unwrap_or_default().to_owned()
    }

    /// A pod that the driver makes.
    fn executor(&self, name: &str, owner: &str) {
        let uid = self.pod(owner).unwrap()["metadata"]["uid"].clone();
        let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": owner, "uid": uid, "controller": true });
        self.sim.create(json!({ "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "example.org/executor": "1" },
                "ownerReferences": [owner] },
            "spec": { "containers": [{ "name": "main", "image": "x" }] } }));
    }

    async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + SOON;
        while !is(self) {
            assert!(Instant::now() < deadline, "not {what}: {:?} {:#}", self.pods(), self.status());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn all_run(&self) {
        self.until("all running", |world| {
            ["j-driver-0", "j-worker-0", "j-worker-1"]
                .iter()
                .all(|pod| world.pod(pod).is_some_and(|pod| pod["status"]["phase"] == "Running"))
        })
        .await;
    }
}

fn in_virtual_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

#[test]
fn a_plan_depends_on_the_content_of_what_the_user_names() {
    in_virtual_time(async {
        let world = World::new();
        world.sim.create(json!({ "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "key", "namespace": NAMESPACE }, "data": { "token": "aHVudGVyMg==" } }));
        world.submit(&json!({ "token": "key" }));
        let refused = "spec.settings: there is no ConfigMap settings in the job's namespace";
        world.until("refused", |world| world.status().to_string().contains(refused)).await;
        assert!(world.pods().is_empty());
        // Nothing tells the host of it: it looks again within a minute.
        world.settings("fast");
        world.all_run().await;
        assert_eq!(world.variable("j-driver-0", "MODE"), "fast");
        // printf hunter2 | sha256sum
        let hash = "f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7";
        assert_eq!(world.variable("j-driver-0", "TOKEN_HASH"), hash);
        // A change reaches the pods that are made from then on.
        world.settings("slow");
        tokio::time::sleep(Duration::from_secs(130)).await;
        world.sim.delete("v1", "Pod", NAMESPACE, "j-driver-0").unwrap();
        world.until("made again", |world| world.variable("j-driver-0", "MODE") == "slow").await;
        let requests = world.sim.requests_of(HOST);
        let reads = requests.iter().filter(|it| it.verb == "get" && it.resource == "configmaps").count();
        assert!((2..=12).contains(&reads), "it is read at most once a minute: {reads}");
    });
}

#[test]
fn what_is_no_name_is_never_asked_for() {
    in_virtual_time(async {
        for name in ["?watch=true", "../secrets/key", "a b", "A", "a/b"] {
            let world = World::new();
            world.submit(&json!({ "settings": name }));
            world
                .until("refused", |world| world.status().to_string().contains("spec.settings: must be the name"))
                .await;
            let requests = world.sim.requests_of(HOST);
            assert_eq!(requests.iter().filter(|it| it.verb == "get").count(), 0, "{name}");
        }
    });
}

#[test]
fn an_object_that_is_too_large_is_read_again_when_it_may_be_smaller() {
    in_virtual_time(async {
        let world = World::new();
        world.settings(&"x".repeat(300_000));
        world.submit(&json!({}));
        let refused = "ConfigMap settings has more than 262144 bytes of data";
        world.until("refused", |world| world.status().to_string().contains(refused)).await;
        world.settings("fast");
        world.all_run().await;
    });
}

#[test]
fn what_was_read_counts_while_the_api_server_gives_no_answer() {
    in_virtual_time(async {
        let world = World::new();
        world.settings("fast");
        world.submit(&json!({}));
        world.all_run().await;
        let maps = Matching { resource: Some("configmaps".into()), ..Matching::default() };
        let _refusal = world.sim.refuse(maps, ApiError::new(503, "ServiceUnavailable", "away"));
        tokio::time::sleep(Duration::from_secs(120)).await;
        world.sim.delete("v1", "Pod", NAMESPACE, "j-worker-1").unwrap();
        world.all_run().await;
        assert!(!world.status().to_string().contains("PluginFaulted"), "{:#}", world.status());
    });
}

#[test]
fn what_a_pod_of_the_job_has_made_is_seen_and_left_alone() {
    in_virtual_time(async {
        let world = World::new();
        world.settings("fast");
        world.submit(&json!({}));
        world.all_run().await;
        world.executor("executor-1", "j-driver-0");
        world.executor("executor-2", "j-driver-0");
        // Of a pod that is nobody's, with the same label.
        world.sim.create(
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "alien", "namespace": NAMESPACE },
            "spec": { "containers": [{ "name": "main", "image": "x" }] } }),
        );
        world.executor("executor-3", "alien");
        world.until("seen", |world| world.status()["running"] == 2).await;
        assert_eq!(world.status()["of"], json!(["j-driver-0", "j-driver-0"]));
        world.sim.delete("v1", "Pod", NAMESPACE, "executor-1").unwrap();
        world.until("seen", |world| world.status()["executors"] == 1).await;
        let writes = world.sim.requests_of(HOST);
        let of_executors = |it: &&sim::RequestRecord| it.verb != "watch" && it.name.starts_with("executor");
        assert_eq!(writes.iter().filter(of_executors).count(), 0, "the host never writes them");
        // They go with their pod.
        world.sim.delete(DRIVER_JOB.0, DRIVER_JOB.1, NAMESPACE, "j").unwrap();
        world.until("gone", |world| world.pods() == ["alien", "executor-3"]).await;
    });
}

#[test]
fn workers_that_hold_an_old_address_are_made_again() {
    in_virtual_time(async {
        let world = World::new();
        world.settings("fast");
        world.submit(&json!({}));
        world.all_run().await;
        let uid = |pod: &str| world.pod(pod).map(|pod| pod["metadata"]["uid"].clone()).unwrap_or_default();
        let (held, before) =
            (world.variable("j-worker-0", "DRIVER"), [uid("j-driver-0"), uid("j-worker-0"), uid("j-worker-1")]);
        world.sim.delete("v1", "Pod", NAMESPACE, "j-driver-0").unwrap();
        world
            .until("all made again", |_| {
                let now = [uid("j-driver-0"), uid("j-worker-0"), uid("j-worker-1")];
                now.iter().zip(&before).all(|(now, before)| !now.is_null() && now != before)
            })
            .await;
        world.all_run().await;
        let ip = world.pod("j-driver-0").unwrap()["status"]["podIP"].as_str().unwrap().to_owned();
        assert_eq!(world.variable("j-worker-0", "DRIVER"), format!("{ip}:7077"));
        assert_ne!(world.variable("j-worker-0", "DRIVER"), held);
        let after = [uid("j-driver-0"), uid("j-worker-0"), uid("j-worker-1")];
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!([uid("j-driver-0"), uid("j-worker-0"), uid("j-worker-1")], after, "once is enough");
    });
}

#[test]
fn the_replicas_that_are_left_out_go_and_the_others_stay() {
    in_virtual_time(async {
        let world = World::new();
        world.settings("fast");
        world.submit(&json!({ "workers": 3 }));
        world.until("made", |world| world.pods().len() == 4).await;
        let spec = json!({ "spec": { "workers": 2, "leftOut": [[1, 1]] } });
        world.sim.patch(DRIVER_JOB.0, DRIVER_JOB.1, NAMESPACE, "j", spec).unwrap();
        world.until("scaled down", |world| world.pods() == ["j-driver-0", "j-worker-0", "j-worker-2"]).await;
        let spec = json!({ "spec": { "workers": 3 } });
        world.sim.patch(DRIVER_JOB.0, DRIVER_JOB.1, NAMESPACE, "j", spec).unwrap();
        let more = ["j-driver-0", "j-worker-0", "j-worker-2", "j-worker-3"];
        world.until("scaled up", |world| world.pods() == more).await;
    });
}

#[test]
fn reading_is_granted_or_refused() {
    let plugins = built_in::plugins();
    plugins.load("driver", &built("driver", "")).unwrap();
    let (framework, _) = plugins.frameworks().into_iter().find(|(it, _)| it.name == "driver").unwrap();
    let wanted = framework.wanted_grants();
    assert!(wanted.reads.contains("ConfigMap") && wanted.reads.contains("Secret"));
    let less = Grants { reads: ["ConfigMap".to_owned()].into(), ..wanted.clone() };
    assert_eq!(missing(&wanted, &less).reads, ["Secret".to_owned()].into());
}
