//! Whose word counts for which digest plans a job: the whole host on the simulator, plugins kept in its own namespace, and
//! tenants who write what they like into their own objects.

mod older;

use crate::built_in::of_campaigns;
use decide::{condition::Condition, grants::Grants, own_conditions::current};
use k8s_openapi::ByteString;
use lab::campaign::{self, marked};
use sandbox::{Plugins, source};
use serde_json::{Value, json};
use sim::{ApiError, Faults, Kind, Life, Matching, Sim};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};
use troupe::{
    clock::Clock,
    control::operator::{Ended, Operator, Options},
    delivery,
};

/// The host's own namespace.
const OWN: &str = "troupe-system";

/// The namespace of a tenant.
const TENANT: &str = "default";

const HOST: &str = "troupe";

const PADDLE: (&str, &str) = ("batch.paddlepaddle.org/v1", "PaddleJob");

const MPI: (&str, &str) = ("kubeflow.org/v2beta1", "MPIJob");

const PLUGIN: (&str, &str) = ("troupe.dev/v1alpha1", "Plugin");

/// By then the host has done what it is going to do, in virtual time.
const SOON: Duration = Duration::from_secs(120);

/// The digest of a component, as statuses have it.
fn digest_of(wasm: &[u8]) -> String {
    source::digest(wasm).to_string()
}

fn built_in(name: &str) -> String {
    digest_of(Plugins::built_in(name).unwrap())
}

/// The built-in component under another digest.
pub(crate) fn version(mark: &str) -> Vec<u8> {
    marked(Plugins::built_in("paddle").unwrap(), mark)
}

/// What the plugin asks for, as a cluster operator who agrees writes it down.
pub(crate) fn grants() -> Grants {
    let (paddle, _) =
        of_campaigns().frameworks().into_iter().find(|(framework, _)| framework.name == "paddle").unwrap();
    paddle.wanted_grants()
}

struct Host(JoinHandle<Ended>);

impl Drop for Host {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct World {
    sim: Sim,
    _running: sim::Running,
}

/// The condition that holds a job, `PluginFaulted` or `Rejected`, null if there is none.
fn fault_of(status: &Value) -> &Value {
    let held = [Condition::PluginFaulted, Condition::Rejected].into_iter().find_map(|it| current(status, it));
    held.unwrap_or(&Value::Null)
}

impl World {
    /// A cluster without a host. Pods run for ever.
    fn new() -> Self {
        let mut kinds = campaign::kinds(&of_campaigns());
        kinds.push(Kind::new(PLUGIN.0, PLUGIN.1, "plugins", false, true));
        let life = Life::default().rule("*", "run-for", "24h");
        let sim = Sim::new(sim::Options { seed: 1, kinds, life, ..sim::Options::default() });
        let running = sim.start();
        let world = Self { sim, _running: running };
        world.make_namespace(OWN);
        world
    }

    fn make_namespace(&self, name: &str) {
        self.sim.create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
    }

    /// A host that has just started, as a new process does.
    fn host(&self) -> Host {
        self.host_in(OWN)
    }

    fn host_in(&self, namespace: &str) -> Host {
        self.host_of(namespace, of_campaigns())
    }

    fn host_of(&self, namespace: &str, plugins: Arc<Plugins>) -> Host {
        let delivery = delivery::Options { namespace: Some(namespace.to_owned()), ..delivery::Options::default() };
        let options =
            Options { delivery: Some(delivery), ..Options::alone(Clock::starting_at(self.sim.now()), [1; 32]) };
        let mut operator = Operator::new(self.sim.client(HOST), plugins, options);
        Host(tokio::spawn(async move { operator.run(std::future::pending()).await }))
    }

    /// The ConfigMap that the Plugin of [`Self::plugin`] has for its source.
    fn source(&self, wasm: &[u8]) {
        let bytes = serde_json::to_value(ByteString(wasm.to_vec())).unwrap();
        drop(self.sim.delete("v1", "ConfigMap", OWN, "paddle"));
        self.sim.create(json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "paddle", "namespace": OWN }, "binaryData": { source::KEY: bytes } }));
    }

    fn plugin(&self, upgrade: &Value) {
        self.sim.create(json!({ "apiVersion": PLUGIN.0, "kind": PLUGIN.1, "metadata": { "name": "paddle" },
            "spec": { "source": { "configMap": { "name": "paddle" } }, "upgrade": upgrade, "grants": grants() } }));
    }

    async fn plugin_is(&self, what: &str, seen: impl Fn(&Value) -> bool) {
        until(what, || {
            let plugin = self.sim.get(PLUGIN.0, PLUGIN.1, "", "paddle").unwrap();
            seen(&plugin["status"]).then_some(()).ok_or(plugin["status"].clone())
        })
        .await;
    }

    /// The job `old` runs, planned by the first of these versions; new jobs are planned by the second.
    async fn upgraded() -> (Self, Host, String, String) {
        let world = Self::new();
        let host = world.host();
        let (one, two) = (version("one"), version("two"));
        for wasm in [&one, &two] {
            world.source(wasm);
            if wasm == &one {
                world.plugin(&json!({}));
            }
            let digest = digest_of(wasm);
            world.plugin_is("served", |status| status["digest"] == digest).await;
            if wasm == &one {
                world.submit("old");
                world.job_is("old", "running", |status| status["phase"] == "Running").await;
            }
        }
        (world, host, digest_of(&one), digest_of(&two))
    }

    fn submit(&self, name: &str) {
        self.submit_with(name, &json!([{ "name": "main", "image": "x" }]));
    }

    /// Its status is subject to nothing, as before the admission policy was applied.
    fn submit_with(&self, name: &str, containers: &Value) -> String {
        let template = json!({ "spec": { "containers": containers } });
        let job = self.sim.create(json!({ "apiVersion": PADDLE.0, "kind": PADDLE.1,
            "metadata": { "name": name, "namespace": TENANT }, "spec": { "worker": { "replicas": 1, "template": template } } }));
        job["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// A job whose status says from its first moment that this digest plans it.
    fn submit_pinned(&self, name: &str, digest: &str) {
        // Submitted while no host is there to be first.
        let uid = self.submit_with(name, &json!([{ "name": "main", "image": "x" }]));
        let ledger = json!({ "uid": uid, "digest": digest, "headline": "Running" });
        self.sim.patch_status(PADDLE.0, PADDLE.1, TENANT, name, json!({ "status": { "troupe": ledger } })).unwrap();
    }

    fn status(&self, job: &str) -> Value {
        self.sim.get(PADDLE.0, PADDLE.1, TENANT, job).unwrap()["status"].clone()
    }

    async fn job_is(&self, job: &str, what: &str, seen: impl Fn(&Value) -> bool) -> Value {
        until(&format!("{job} {what}"), || {
            let status = self.status(job);
            if seen(&status) { Ok(status) } else { Err(status) }
        })
        .await
    }

    async fn planned_by(&self, job: &str, digest: &str) {
        self.job_is(job, "planned", |status| status["phase"] == "Running" && status["troupe"]["digest"] == digest)
            .await;
    }

    async fn held(&self, job: &str, reason: &str) -> Value {
        self.job_is(job, reason, |status| fault_of(status)["reason"] == reason).await
    }

    fn pods_of(&self, job: &str) -> usize {
        let pods = self.sim.list("v1", "Pod", TENANT);
        pods.iter().filter(|pod| pod["metadata"]["ownerReferences"][0]["name"] == job).count()
    }

    /// The mark of acceptance on what is kept of a digest.
    fn mark_of(&self, digest: &str) -> Value {
        let kept = self.sim.get("v1", "ConfigMap", OWN, &map_of(digest)).unwrap();
        serde_json::from_str(kept["metadata"]["annotations"]["troupe.dev/accepted"].as_str().unwrap()).unwrap()
    }

    /// Whoever may write into the host's namespace may say so; no job may.
    fn grant_nothing_but_pods(&self, digest: &str) {
        let mut mark = self.mark_of(digest);
        mark["grants"] = json!({ "kinds": ["Pod"] });
        let less = json!({ "metadata": { "annotations": { "troupe.dev/accepted": mark.to_string() } } });
        self.sim.patch("v1", "ConfigMap", OWN, &map_of(digest), less).unwrap();
    }

    /// Reads of single ConfigMaps by the host so far.
    fn reads_of_maps(&self) -> usize {
        let requests = self.sim.requests_of(HOST);
        requests.iter().filter(|request| request.verb == "get" && request.resource == "configmaps").count()
    }
}

/// The first ConfigMap of what is kept of a digest.
fn map_of(digest: &str) -> String {
    format!("troupe-plugin-{}-0", &digest[..12])
}

async fn until<T>(what: &str, look: impl Fn() -> Result<T, Value>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if Instant::now() > deadline => panic!("not {what}: {seen:#}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

fn in_virtual_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

#[test]
fn a_digest_that_only_a_child_of_the_job_names_plans_nothing() {
    in_virtual_time(async {
        let world = World::new();
        let two = version("two");
        let _host = world.host();
        world.source(&two);
        world.plugin(&json!({ "strategy": "Manual" }));
        world.plugin_is("a candidate", |status| status["candidate"]["state"] == "Waiting").await;

        // A job that is refused has no ledger, so its children are asked for the digest.
        let uid = world.submit_with("sly", &json!([]));
        world.held("sly", "ValidationError").await;
        let owner = json!({ "apiVersion": PADDLE.0, "kind": PADDLE.1, "name": "sly", "uid": uid, "controller": true });
        world.sim.create(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "mine",
            "namespace": TENANT, "ownerReferences": [owner],
            "annotations": { "troupe.dev/plugin-digest": digest_of(&two) } } }));
        let template = json!({ "spec": { "containers": [{ "name": "main", "image": "x" }] } });
        let spec = json!({ "spec": { "worker": { "template": template } } });
        world.sim.patch(PADDLE.0, PADDLE.1, TENANT, "sly", spec).unwrap();
        world.planned_by("sly", &built_in("paddle")).await;
    });
}

#[test]
fn a_ledger_that_names_a_candidate_that_waits_for_approval_holds_its_job() {
    in_virtual_time(async {
        let world = World::new();
        let two = version("two");
        world.source(&two);
        world.plugin(&json!({ "strategy": "Manual" }));
        world.submit_pinned("sly", &digest_of(&two));
        let _host = world.host();
        world.plugin_is("a candidate", |status| status["candidate"]["state"] == "Waiting").await;
        world.held("sly", "PluginNotAccepted").await;
        assert_eq!(world.pods_of("sly"), 0);
    });
}

#[test]
fn a_digest_that_this_host_never_accepted_costs_no_request_and_holds_its_own_job_alone() {
    in_virtual_time(async {
        let world = World::new();
        for number in 0..30 {
            world.submit_pinned(&format!("sly-{number}"), &digest_of(&[number]));
        }
        let _host = world.host();
        for number in 0..30 {
            world.held(&format!("sly-{number}"), "PluginNotAccepted").await;
            assert_eq!(world.pods_of(&format!("sly-{number}")), 0);
        }
        world.submit("honest");
        world.planned_by("honest", &built_in("paddle")).await;
        // One for each plugin that comes with the host, to see whether it is kept.
        assert_eq!(world.reads_of_maps(), of_campaigns().frameworks().len());
    });
}

#[test]
fn a_job_that_is_held_for_its_digest_is_planned_anew_once_it_was_suspended() {
    in_virtual_time(async {
        let world = World::new();
        let template = json!({ "spec": { "containers": [{ "name": "main", "image": "x" }] } });
        let job = world.sim.create(json!({ "apiVersion": MPI.0, "kind": MPI.1,
            "metadata": { "name": "held", "namespace": TENANT },
            "spec": { "mpiReplicaSpecs": { "Launcher": { "replicas": 1, "template": template } } } }));
        let ledger = json!({ "uid": job["metadata"]["uid"], "digest": digest_of(b"?"), "headline": "Running" });
        world.sim.patch_status(MPI.0, MPI.1, TENANT, "held", json!({ "status": { "troupe": ledger } })).unwrap();
        let _host = world.host();
        let is = async |what: &str, seen: &dyn Fn(&Value) -> bool| {
            until(what, || {
                let status = world.sim.get(MPI.0, MPI.1, TENANT, "held").unwrap()["status"].clone();
                if seen(&status) { Ok(()) } else { Err(status) }
            })
            .await;
        };
        is("held", &|status| fault_of(status)["reason"] == "PluginNotAccepted").await;
        let suspend = |suspend: bool| json!({ "spec": { "runPolicy": { "suspend": suspend } } });
        world.sim.patch(MPI.0, MPI.1, TENANT, "held", suspend(true)).unwrap();
        is("let go", &|status| status["troupe"]["digest"] == "").await;
        world.sim.patch(MPI.0, MPI.1, TENANT, "held", suspend(false)).unwrap();
        is("planned anew", &|status| status["troupe"]["digest"] == built_in("mpi")).await;
    });
}

#[test]
fn a_digest_that_does_not_serve_the_kind_or_is_none_is_ignored() {
    in_virtual_time(async {
        let world = World::new();
        world.submit_pinned("by-mpi", &built_in("mpi"));
        world.submit_pinned("by-nonsense", "../../secrets");
        let _host = world.host();
        world.planned_by("by-mpi", &built_in("paddle")).await;
        world.planned_by("by-nonsense", &built_in("paddle")).await;
    });
}

#[test]
fn an_end_in_the_ledger_has_no_plugin_of_another_kind_asked() {
    in_virtual_time(async {
        let world = World::new();
        let template = json!({ "spec": { "containers": [{ "name": "main", "image": "x" }] } });
        let job = world.sim.create(json!({ "apiVersion": MPI.0, "kind": MPI.1,
            "metadata": { "name": "sly", "namespace": TENANT },
            "spec": { "mpiReplicaSpecs": { "Launcher": { "replicas": 1, "template": template } } } }));
        // The plugin is asked about a job that has ended while its pods are counted.
        let end = json!({ "at": "2026-01-01T00:00:00Z", "outcome": "failed", "clean": "keep", "counting": true });
        let ledger = json!({ "uid": job["metadata"]["uid"], "digest": built_in("kubeflow"), "headline": "Failed",
            "finished": end });
        world.sim.patch_status(MPI.0, MPI.1, TENANT, "sly", json!({ "status": { "troupe": ledger } })).unwrap();
        let plugins = of_campaigns();
        let _host = world.host_of(OWN, Arc::clone(&plugins));
        world.submit("honest");
        world.planned_by("honest", &built_in("paddle")).await;
        let calls = plugins.calls();
        let plans = |of: &str| calls.iter().any(|(plugin, function, _)| plugin == of && function == "plan");
        assert!(plans("paddle") && !plans("kubeflow"), "{calls:?}");
    });
}

#[test]
fn a_status_of_a_plugin_does_not_grow_with_what_jobs_say() {
    in_virtual_time(async {
        let (world, host, one, two) = World::upgraded().await;
        drop(host);
        for number in 0..5 {
            world.submit_pinned(&format!("sly-{number}"), &digest_of(&[number]));
        }
        let _host = world.host();
        world.held("sly-4", "PluginNotAccepted").await;
        world.submit("new");
        world.planned_by("new", &two).await;
        let counts = json!({ &one[..12]: 1, &two[..12]: 1 });
        world.plugin_is("counted", |status| status["jobs"] == 7 && status["jobsByDigest"] == counts).await;
    });
}

#[test]
fn a_running_job_stays_with_its_digest_when_requests_fail_while_the_host_starts() {
    in_virtual_time(async {
        let (world, host, one, two) = World::upgraded().await;
        drop(host);
        let unavailable =
            ApiError::new(503, "ServiceUnavailable", "the server is currently unable to handle the request");
        let maps = |verb| Matching { actor: Some(HOST.into()), ..Matching::verb(verb, "configmaps") };
        for verb in ["get", "list", "create", "patch"] {
            world.sim.refuse_times(maps(verb), unavailable.clone(), 9);
        }
        let _host = world.host();
        world.submit("new");
        world.planned_by("new", &two).await;
        world.sim.patch(PADDLE.0, PADDLE.1, TENANT, "old", json!({ "metadata": { "labels": { "a": "b" } } })).unwrap();
        tokio::time::sleep(SOON).await;
        let status = world.status("old");
        assert_eq!(status["troupe"]["digest"], one, "{status:#}");
        assert_eq!(*fault_of(&status), Value::Null, "{status:#}");
    });
}

#[test]
fn whatever_fails_while_a_host_starts_no_job_gets_another_digest() {
    in_virtual_time(async {
        let (world, mut host, one, two) = World::upgraded().await;
        for seed in 0..5 {
            drop(host);
            let end = world.sim.elapsed() + Duration::from_secs(10);
            world.sim.set_faults(Faults { error: 0.4, ..Faults::heavy(seed).without_crashes() }.until(end));
            host = world.host();
            let name = format!("new-{seed}");
            world.submit(&name);
            world.planned_by(&name, &two).await;
            let status = world.status("old");
            assert_eq!(status["troupe"]["digest"], one, "seed {seed}: {status:#}");
        }
    });
}

#[test]
fn nothing_is_planned_by_what_cannot_be_kept_and_it_is_kept_as_soon_as_it_can_be() {
    in_virtual_time(async {
        let world = World::new();
        let _host = world.host_in("nowhere");
        world.submit("early");
        let held = world.held("early", "PluginNotKept").await;
        assert!(fault_of(&held)["message"].as_str().unwrap().contains("namespaces \"nowhere\" not found"), "{held:#}");
        assert_eq!(world.pods_of("early"), 0);
        world.make_namespace("nowhere");
        world.planned_by("early", &built_in("paddle")).await;
    });
}

#[test]
fn a_pinned_digest_whose_config_does_not_fit_any_more_gets_no_more_than_it_was_granted() {
    in_virtual_time(async {
        let (world, host, one, two) = World::upgraded().await;
        drop(host);
        // Its job makes a ConfigMap.
        world.grant_nothing_but_pods(&one);
        world.grant_nothing_but_pods(&two);
        let spec = json!({ "spec": { "config": { "no-such-setting": true } } });
        world.sim.patch(PLUGIN.0, PLUGIN.1, "", "paddle", spec).unwrap();
        let _host = world.host();
        let held = world.held("old", "UnacceptableAnswer").await;
        assert_eq!(held["troupe"]["digest"], one);
        assert!(fault_of(&held)["message"].as_str().unwrap().contains("`spec.grants."), "{held:#}");
    });
}

#[test]
fn what_is_kept_remembers_what_it_was_granted_when_its_plugin_is_gone() {
    in_virtual_time(async {
        let (world, host, one, _) = World::upgraded().await;
        drop(host);
        let mark = world.mark_of(&one);
        assert_eq!(mark["kinds"], json!(["PaddleJob.batch.paddlepaddle.org"]));
        assert!(mark["by"].as_str().unwrap().starts_with("Plugin paddle"), "{mark:#}");
        world.grant_nothing_but_pods(&one);
        world.sim.delete(PLUGIN.0, PLUGIN.1, "", "paddle").unwrap();
        let _host = world.host();
        world.held("old", "UnacceptableAnswer").await;
    });
}
