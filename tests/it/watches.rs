//! The host's watches on the simulator: connections that break, versions that expire, answers that say when to come
//! again, objects that cannot be read, clocks that are set.

mod events;
mod optional_kinds;

use crate::built_in;
use decide::own_conditions;
use jiff::SignedDuration;
use lab::campaign::{self, HOST};
use parking_lot::Mutex;
use sandbox::Plugins;
use serde_json::{Value, json};
use sim::{ApiError, Faults, Life, Matching, RequestRecord, Sim};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use troupe::{
    clock::Clock,
    control::operator::{Operator, Options},
};

const PADDLE: (&str, &str) = ("batch.paddlepaddle.org/v1", "PaddleJob");
const RHINO: (&str, &str) = ("openrhino.org/v1alpha2", "RhinoJob");
const MPI: (&str, &str) = ("kubeflow.org/v2beta1", "MPIJob");

/// A cluster with one host. Both end with the value.
struct World {
    sim: Sim,
    clock: Clock,
    watches: usize,
    _life: sim::Running,
    host: tokio::task::JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.host.abort();
    }
}

impl World {
    fn new(plugins: &Arc<Plugins>, seed: u64, faults: Faults) -> Self {
        let kinds = campaign::kinds(plugins);
        let life = Life::default().rule("*", "run-for", "3s").rule("held-*", "schedule-after", "forever");
        let sim = Sim::new(sim::Options { seed, kinds, life, faults, ..sim::Options::default() });
        let running = sim.start();
        let clock = Clock::starting_at(sim.now());
        let options = Options::alone(clock.clone(), [7; 32]);
        let mut operator = Operator::new(sim.client(HOST), Arc::clone(plugins), options);
        let watches = operator.context().stores().progress().len();
        let host = tokio::spawn(async move {
            operator.run(std::future::pending()).await;
        });
        Self { sim, clock, watches, _life: running, host }
    }

    fn paddle(&self, name: &str) -> Value {
        let template = json!({ "spec": { "containers": [{ "name": "main", "image": "x" }] } });
        json!({
            "apiVersion": PADDLE.0, "kind": PADDLE.1, "metadata": { "name": name, "namespace": "default" },
            "spec": { "worker": { "replicas": 2, "template": template } },
        })
    }

    /// A launcher that is removed with its Job as soon as it has ended, or a second later.
    fn fleeting(&self, number: u64) -> Value {
        let template = json!({ "spec": { "containers": [{ "name": "main", "image": "x" }] } });
        json!({
            "apiVersion": MPI.0, "kind": MPI.1,
            "metadata": { "name": format!("fleeting-{number}"), "namespace": "default" },
            "spec": {
                "runPolicy": { "cleanPodPolicy": "None", "ttlSecondsAfterFinished": number % 2 },
                "mpiReplicaSpecs": {
                    "Launcher": { "replicas": 1, "restartPolicy": "Never", "template": template },
                    "Worker": { "replicas": 1, "template": template },
                },
            },
        })
    }

    fn status(&self, kind: (&str, &str), name: &str) -> Value {
        let job = self.sim.get(kind.0, kind.1, "default", name);
        job.map(|mut job| job["status"].take()).unwrap_or_default()
    }

    fn condition(&self, kind: (&str, &str), name: &str, condition: &str) -> Option<Value> {
        own_conditions::all(&self.status(kind, name)).find(|one| one["type"] == condition).cloned()
    }

    /// How often the host listed, page by page, for its watches.
    fn lists(&self) -> usize {
        let is_one = |request: &&RequestRecord| request.verb == "list" && request.resource != "events";
        self.sim.requests_of(HOST).iter().filter(is_one).count()
    }

    /// When the host made requests of this verb on this resource, in milliseconds of the simulation.
    fn times(&self, verb: &str, resource: &str) -> Vec<i64> {
        let asked = self.sim.requests_of(HOST).into_iter().filter(|r| r.verb == verb && r.resource == resource);
        asked.map(|request| request.at.as_millisecond()).collect()
    }

    async fn until(&self, what: &str, seconds: u64, is: impl Fn(&Self) -> bool) {
        for _ in 0..seconds * 20 {
            if is(self) {
                return;
            }
            after(Duration::from_millis(50)).await;
        }
        panic!("waited {seconds} s for {what}");
    }
}

async fn after(time: Duration) {
    tokio::time::sleep(time).await;
}

fn in_virtual_time<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test)
}

/// A value within so many maps.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("bottom"), |inner, _| json!({ "x": inner }))
}

fn condition_of(status: &Value, kind: &str) -> bool {
    own_conditions::all(status).any(|one| one["type"] == kind && one["status"] == "True")
}

// Section 4: of Services the host keeps only that they are there, so it asks for no more.
#[test]
fn services_are_listed_by_their_metadata_and_pods_in_full() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        let container = json!({ "name": "main", "image": "x" });
        for (kind, spec) in [("Service", json!({ "clusterIP": "None" })), ("Pod", json!({ "containers": [container] }))]
        {
            let labels = json!({ "paddle-res-type": "worker" });
            let metadata = json!({ "name": "held-there", "namespace": "default", "labels": labels });
            world.sim.create(json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec }));
        }
        let listed: Arc<Mutex<BTreeMap<String, bool>>> = Arc::default();
        let note = Arc::clone(&listed);
        world.sim.on_delivery(move |delivery| {
            if delivery.actor == HOST && delivery.object["metadata"]["name"] == "held-there" {
                note.lock().insert(delivery.kind.to_owned(), delivery.object["spec"].is_object());
            }
        });
        world.until("both are listed", 5, |_| listed.lock().len() == 2).await;
        assert_eq!(*listed.lock(), BTreeMap::from([("Pod".into(), true), ("Service".into(), false)]));
    });
}

#[test]
fn a_job_that_is_nested_too_deep_is_reported_so_and_hides_no_other() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        let mut deep = world.paddle("deep");
        deep["spec"]["worker"]["template"]["spec"]["extra"] = nested(140);
        // One is there before the host lists, the other comes while it watches.
        world.sim.create(deep.clone());
        after(Duration::from_secs(2)).await;
        deep["metadata"]["name"] = json!("later");
        world.sim.create(deep);
        world.sim.create(world.paddle("healthy"));
        world.until("the healthy job to end", 20, |it| it.status(PADDLE, "healthy")["phase"] == "Completed").await;
        for name in ["deep", "later"] {
            let rejected = world.condition(PADDLE, name, "Rejected").unwrap();
            let message = rejected["message"].as_str().unwrap();
            assert!(message.contains("spec.worker.template.spec.extra.x"), "{message}");
            assert!(message.contains("nested"), "{message}");
            assert_eq!(world.sim.get("v1", "Pod", "default", &format!("{name}-worker-0")), None);
            let events = world.sim.list("v1", "Event", "default");
            let told = events.iter().filter(|event| event["involvedObject"]["name"] == name);
            assert_eq!(told.count(), 1, "one event");
        }
        // Each list is of one kind, and none came twice.
        assert_eq!(world.lists(), world.watches);
        let writes = |it: &World| it.sim.requests_of(HOST).iter().filter(|request| request.is_write()).count();
        let before = writes(&world);
        after(Duration::from_secs(120)).await;
        assert_eq!(writes(&world), before, "it is told once");
        let mended = json!({ "spec": { "worker": { "template": { "spec": { "extra": null } } } } });
        world.sim.patch(PADDLE.0, PADDLE.1, "default", "deep", mended).unwrap();
        world.until("the mended job to end", 20, |it| it.status(PADDLE, "deep")["phase"] == "Completed").await;
        assert_eq!(world.condition(PADDLE, "deep", "Rejected"), None);
    });
}

#[test]
fn a_pod_whose_status_cannot_be_read_costs_its_own_job_a_condition() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        world.sim.create(world.paddle("held"));
        world.until("pods", 10, |it| it.sim.get("v1", "Pod", "default", "held-worker-1").is_some()).await;
        let status = json!({ "status": { "initContainerStatuses": [{ "name": "x", "restartCount": -1 }] } });
        world.sim.patch_status("v1", "Pod", "default", "held-worker-1", status).unwrap();
        world.sim.create(world.paddle("healthy"));
        world.until("the healthy job to end", 20, |it| it.status(PADDLE, "healthy")["phase"] == "Completed").await;
        let rejected = world.condition(PADDLE, "held", "Rejected").unwrap();
        assert!(rejected["message"].as_str().unwrap().contains("Pod held-worker-1"), "{rejected}");
        assert_eq!(world.lists(), world.watches);
        let mended = json!({ "status": { "initContainerStatuses": null } });
        world.sim.patch_status("v1", "Pod", "default", "held-worker-1", mended).unwrap();
        (0..2).for_each(|index| world.sim.set_succeeded("default", &format!("held-worker-{index}")));
        world.until("the mended job to end", 20, |it| it.status(PADDLE, "held")["phase"] == "Completed").await;
    });
}

#[test]
fn broken_connections_are_resumed_and_nothing_is_listed_again() {
    let plugins = built_in::of_campaigns();
    for seed in 0..20 {
        in_virtual_time(async {
            let faults = Faults { watch_drop: 0.3, watch_lag: Duration::from_millis(50), ..Faults::none() };
            let world = World::new(&plugins, seed, faults);
            for number in 0..5 {
                world.sim.create(world.paddle(&format!("a-{number}")));
            }
            let done = |it: &World| (0..5).all(|n| it.status(PADDLE, &format!("a-{n}"))["phase"] == "Completed");
            world.until("all jobs to end", 120, done).await;
            let opened = world.times("watch", "pods").len();
            assert!(opened > 5, "seed {seed}: connections were meant to break, and pods were watched {opened} times");
            assert_eq!(world.lists(), world.watches, "seed {seed}");
        });
    }
}

#[test]
fn a_launcher_that_is_gone_at_once_is_seen_to_succeed_however_often_watches_break() {
    let plugins = built_in::of_campaigns();
    let mut lost = vec![];
    for seed in 0..60 {
        in_virtual_time(async {
            let faults = Faults { watch_drop: 0.3, watch_lag: Duration::from_secs(1), ..Faults::none() };
            let world = World::new(&plugins, seed, faults);
            world.sim.create(world.fleeting(seed));
            let name = format!("fleeting-{seed}");
            let ended = |it: &World| !it.status(MPI, &name)["troupe"]["finished"].is_null();
            world.until("the job to end", 120, ended).await;
            if !condition_of(&world.status(MPI, &name), "Succeeded") {
                lost.push(seed);
            }
        });
    }
    assert!(lost.is_empty(), "{} of 60 runs failed: seeds {lost:?}", lost.len());
}

#[test]
fn a_silent_watch_is_opened_again_where_it_was() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        after(Duration::from_secs(5)).await;
        let opened = world.times("watch", "pods").len();
        // The connections stay open and nothing comes, as behind a gateway that has forgotten them.
        world.sim.freeze(HOST);
        after(Duration::from_secs(200)).await;
        world.sim.thaw(HOST);
        world.sim.create(world.paddle("after"));
        world.until("the job to end", 60, |it| it.status(PADDLE, "after")["phase"] == "Completed").await;
        assert!(world.times("watch", "pods").len() > opened);
        assert_eq!(world.lists(), world.watches);
    });
}

#[test]
fn an_expired_version_is_listed_again_and_not_in_a_hurry() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults { reopen_gone: 1.0, ..Faults::none() });
        after(Duration::from_secs(60)).await;
        let lists = world.times("list", "cronjobs").len();
        assert!((2..20).contains(&lists), "{lists} lists of CronJobs in a minute");
        world.sim.set_faults(Faults::none());
        world.sim.create(world.paddle("after"));
        world.until("the job to end", 60, |it| it.status(PADDLE, "after")["phase"] == "Completed").await;
    });
}

/// What an overloaded API server says.
fn too_many(seconds: u32) -> ApiError {
    let mut error = ApiError::new(429, "TooManyRequests", "the server has received too many requests");
    error.details = Some(json!({ "retryAfterSeconds": seconds }));
    error
}

#[test]
fn who_is_asked_to_come_again_later_does_not_come_before() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        after(Duration::from_secs(2)).await;
        for (verb, resource) in [("create", "pods"), ("patch", "paddlejobs")] {
            world.sim.refuse_times(Matching::verb(verb, resource), too_many(7), 2);
        }
        world.sim.create(world.paddle("pushed"));
        world.until("the job to end", 60, |it| it.status(PADDLE, "pushed")["phase"] == "Completed").await;
        for (verb, resource) in [("create", "pods"), ("patch", "paddlejobs")] {
            let times = world.times(verb, resource);
            let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(gaps.iter().any(|gap| (7000..10_000).contains(gap)), "{verb} {resource}: {gaps:?}");
            assert!(!gaps.iter().any(|gap| (100..900).contains(gap)) || resource != "pods", "{verb}: {gaps:?}");
        }
    });
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        world.sim.refuse_times(Matching::verb("list", "cronjobs"), too_many(7), 2);
        world.sim.refuse_times(Matching::verb("watch", "cronjobs"), too_many(9), 1);
        world.sim.create(world.paddle("pushed"));
        world.until("the job to end", 60, |it| it.status(PADDLE, "pushed")["phase"] == "Completed").await;
        after(Duration::from_secs(40)).await;
        let lists = world.times("list", "cronjobs");
        assert_eq!(lists.len(), 3);
        assert!(lists.windows(2).all(|pair| (7000..12_000).contains(&(pair[1] - pair[0]))), "{lists:?}");
        let watches = world.times("watch", "cronjobs");
        assert!((9000..14_000).contains(&(watches[1] - watches[0])), "{watches:?}");
    });
}

#[test]
fn a_job_whose_creates_are_put_off_for_long_says_what_it_waits_for() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        after(Duration::from_secs(2)).await;
        let busy = world.sim.refuse(Matching::create("services"), too_many(5));
        world.sim.create(world.paddle("held"));
        after(Duration::from_secs(9)).await;
        assert_eq!(world.times("patch", "paddlejobs").len(), 0, "an API server that is busy for a moment is spared");
        let waits = |it: &World| condition_of(&it.status(PADDLE, "held"), "Waiting");
        world.until("the condition", 20, waits).await;
        let message = world.condition(PADDLE, "held", "Waiting").unwrap()["message"].clone();
        assert!(message.as_str().unwrap().contains("service/held-worker-0"), "{message}");
        after(Duration::from_secs(120)).await;
        let patches = world.times("patch", "paddlejobs").len();
        world.sim.lift(busy);
        let service = |it: &World| it.sim.get("v1", "Service", "default", "held-worker-1").is_some();
        world.until("the Services", 60, service).await;
        after(Duration::from_secs(5)).await;
        assert!(patches <= 4, "{patches} writes of a status that says the same");
        let events = world.sim.list("v1", "Event", "default");
        let created = events.iter().filter(|event| event["reason"] == "Created");
        let created: Vec<_> = created.filter_map(|event| event["message"].as_str()).collect();
        assert_eq!(created, ["created pod/held-worker-0, pod/held-worker-1"], "an event is about pods");
    });
}

// The pass that is asked to wait writes no event, and the next one finds the pods.
#[test]
fn the_event_of_a_job_names_the_pods_that_were_made_before_the_host_was_asked_to_wait() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        after(Duration::from_secs(2)).await;
        world.sim.refuse_times(Matching::verb("create", "services"), too_many(3), 2);
        world.sim.create(world.paddle("held"));
        let service =
            |it: &World, index: usize| it.sim.get("v1", "Service", "default", &format!("held-worker-{index}"));
        world.until("both Services", 60, |it| (0..2).all(|index| service(it, index).is_some())).await;
        after(Duration::from_secs(60)).await;
        let asked = ["pods", "services"].map(|resource| world.times("create", resource).len());
        assert_eq!(asked, [2, 4], "the pods were made at once, the Services at the second attempt");
        let events = world.sim.list("v1", "Event", "default");
        let told = events.iter().filter(|event| event["reason"] == "Created");
        let told: Vec<_> = told.map(|event| event["message"].as_str().unwrap()).collect();
        let made = ["pod/held-worker-0", "pod/held-worker-1", "service/held-worker-0", "service/held-worker-1"];
        assert_eq!(told, [format!("created {}", made.join(", "))]);
    });
}

#[test]
fn a_host_whose_token_has_expired_asks_with_back_off_and_goes_on_once_it_has_another() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        // Watches that break have to be opened again, with the token.
        let faults = Faults { watch_drop: 0.5, ..Faults::none() };
        let world = World::new(&plugins, 1, faults);
        let phase = |it: &World, name: &str| it.status(PADDLE, name)["phase"].clone();
        world.sim.create(world.paddle("before"));
        world.until("the job to run", 30, |it| phase(it, "before") == "Running").await;
        let of_the_host = Matching { actor: Some(HOST.into()), ..Matching::default() };
        let expired = world.sim.refuse(of_the_host, ApiError::new(401, "Unauthorized", "Unauthorized"));
        let (asked, lists) = (world.sim.requests_of(HOST).len(), world.lists());
        world.sim.create(world.paddle("during"));
        after(Duration::from_secs(120)).await;
        let refused = world.sim.requests_of(HOST).len() - asked;
        assert!(refused > 0 && refused < 40 * world.watches, "{refused} requests in two minutes");
        assert_eq!(phase(&world, "before"), "Running", "nothing is written");
        assert!(world.sim.get("v1", "Pod", "default", "before-worker-0").is_some(), "its pods stay");
        assert!(world.sim.get("v1", "Pod", "default", "during-worker-0").is_none());
        world.sim.lift(expired);
        let done = |it: &World| ["before", "during"].iter().all(|name| phase(it, name) == "Completed");
        world.until("both jobs to end", 120, done).await;
        let again = world.lists() - lists;
        assert!(again <= world.watches, "what a watch has missed meanwhile is listed once: {again} lists");
    });
}

#[test]
fn an_absurd_time_to_come_again_is_cut_short() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        world.sim.refuse_times(Matching::verb("list", "pods"), too_many(u32::MAX), 1);
        world.sim.create(world.paddle("pushed"));
        world.until("the job to end", 90, |it| it.status(PADDLE, "pushed")["phase"] == "Completed").await;
    });
}

#[test]
fn a_clock_that_is_set_back_delays_nothing() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        world.sim.create(json!({
            "apiVersion": RHINO.0, "kind": RHINO.1, "metadata": { "name": "short", "namespace": "default" },
            "spec": { "image": "x", "appExec": "/app/f", "parallelism": 2, "ttl": 10 },
        }));
        let set_back = || world.clock.set_by(SignedDuration::from_hours(-1));
        let is = |it: &World, status: &str| it.status(RHINO, "short")["jobStatus"] == status;
        world.until("the job to run", 20, |it| is(it, "Running")).await;
        set_back();
        world.until("the job to end", 20, |it| is(it, "Completed")).await;
        set_back();
        world.until("the job to be gone", 15, |it| it.sim.get(RHINO.0, RHINO.1, "default", "short").is_none()).await;
    });
}
