//! Real Kueue beside the host, for a kind of job that Kueue does not know and for those that it does.

use super::{
    jobs::{Paddle, paddle},
    objects::{Kind, MPI_JOBS, PADDLE_JOBS, PODS, SOON, at, condition_of, text},
    played,
    world::World,
};
use crate::operator::Operator;
use harness::{Integrations, Kueue, RUN_FOR, until};
use serde_json::{Value, json};

const WORKLOADS: Kind = Kind::new("apis/kueue.x-k8s.io/v1beta2", "workloads");
const LOCAL_QUEUES: Kind = Kind::new("apis/kueue.x-k8s.io/v1beta2", "localqueues");
const CLUSTER_QUEUES: Kind = Kind::new("apis/kueue.x-k8s.io/v1beta2", "clusterqueues");
const FLAVORS: Kind = Kind::new("apis/kueue.x-k8s.io/v1beta2", "resourceflavors");
const PRIORITIES: Kind = Kind::new("apis/kueue.x-k8s.io/v1beta2", "workloadpriorityclasses");

fn of(kind: &str, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": { "name": name }, "spec": spec })
}

/// Room for two CPUs of one flavor, where jobs of higher priority preempt others.
async fn room_for_two(world: &World) {
    let flavor = json!({ "nodeLabels": { "kubernetes.io/os": "linux" }, "tolerations": [{ "key": "spot", "operator": "Exists" }] });
    world.create_in_cluster(&FLAVORS, &of("ResourceFlavor", "spot", &flavor)).await;
    let priority = json!({ "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
        "metadata": { "name": "urgent" }, "value": 100, "description": "" });
    world.create_in_cluster(&PRIORITIES, &priority).await;
    // A job whose containers ask for cpu alone asks for nothing else.
    let quota = json!({ "name": "spot", "resources": [{ "name": "cpu", "nominalQuota": "2" }] });
    let queue = json!({
        "namespaceSelector": {},
        "preemption": { "withinClusterQueue": "LowerPriority" },
        "resourceGroups": [{ "coveredResources": ["cpu"], "flavors": [quota] }],
    });
    world.create_in_cluster(&CLUSTER_QUEUES, &of("ClusterQueue", "all", &queue)).await;
    world.create(&LOCAL_QUEUES, &of("LocalQueue", "ours", &json!({ "clusterQueue": "all" }))).await;
}

/// A job of two workers with one CPU each, whose pods the test plays.
fn job(name: &str, labels: &[(&str, &str)]) -> Value {
    let Paddle { mut manifest, .. } = paddle(name).worker(2).policy("Never").by_hand();
    manifest["metadata"]["labels"] =
        labels.iter().copied().collect::<std::collections::BTreeMap<_, _>>().into_iter().collect();
    let container = &mut manifest["spec"]["worker"]["template"]["spec"]["containers"][0];
    container["resources"] = json!({ "requests": { "cpu": "1" } });
    manifest
}

/// The Workload of a job once it is as wanted.
async fn workload(world: &World, job: &str, what: &str, seen: impl Fn(&Value) -> bool) -> Value {
    let found = until(SOON, format!("the Workload of {job} {what}"), || async {
        let all = world.list(&WORKLOADS).await?;
        let own = all.into_iter().find(|one| text(one, "/metadata/ownerReferences/0/name") == job);
        Ok(own.filter(&seen))
    });
    found.await.unwrap()
}

fn has(object: &Value, kind: &str) -> bool {
    let conditions = at(object, "/status/conditions").as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == kind && it["status"] == "True")
}

/// Plays both pods of a job until they have succeeded.
async fn succeed(world: &World, job: &str) {
    for pod in [0, 1].map(|index| format!("{job}-worker-{index}")) {
        world.is(&PODS, &pod, "there", |_| true).await;
        world.set_status(&PODS, &pod, &played::addressed("10.0.0.9")).await;
        world.set_status(&PODS, &pod, &played::succeeded()).await;
    }
    world.is(&PADDLE_JOBS, job, "Completed", |job| at(job, "/status/phase") == "Completed").await;
}

const QUEUE: (&str, &str) = ("kueue.x-k8s.io/queue-name", "ours");

#[tokio::test]
#[cfg_attr(any(lacks_cluster, lacks_ecosystem), ignore = "needs TROUPE_REQUIRE=ecosystem")]
async fn kueue_queues_admits_preempts_and_resumes_a_job_of_a_kind_that_it_does_not_know() {
    let world = World::alone("kueue").await;
    let kueue = Kueue::start(&world.plane, Integrations::All).await.unwrap();
    room_for_two(&world).await;
    let operator = Operator::start(&world.plane, &["--namespace", &world.name]).await;

    world.create(&PADDLE_JOBS, &job("first", &[QUEUE])).await;
    let pod = world.is(&PODS, "first-worker-0", "there", |_| true).await;
    assert_eq!(text(&pod, "/spec/nodeSelector/kubernetes.io~1os"), "linux");
    let tolerations = at(&pod, "/spec/tolerations").as_array().unwrap();
    assert!(tolerations.iter().any(|one| one["key"] == "spot"), "{tolerations:?}");
    world.is(&PODS, "first-worker-1", "there", |_| true).await;
    for pod in ["first-worker-0", "first-worker-1"] {
        world.set_status(&PODS, pod, &played::running(pod)).await;
    }
    workload(&world, "first", "to say that its pods are ready", |one| has(one, "PodsReady")).await;

    world.create(&PADDLE_JOBS, &job("second", &[QUEUE])).await;
    let waits = |job: &Value| text(job, "/status/troupe/conditions/0/message").contains("insufficient");
    let second = world.is(&PADDLE_JOBS, "second", "waiting for quota in the queue's words", waits).await;
    assert_eq!(text(&second, "/status/troupe/conditions/0/reason"), "NotAdmitted");
    world.are(&PODS, &["first-worker-0", "first-worker-1"]).await;

    world.create(&PADDLE_JOBS, &job("urgent", &[QUEUE, ("kueue.x-k8s.io/priority-class", "urgent")])).await;
    world.is(&PODS, "urgent-worker-0", "there", |_| true).await;
    world.are(&PODS, &["urgent-worker-0", "urgent-worker-1"]).await;
    let first = workload(&world, "first", "to be without quota", |one| !has(one, "QuotaReserved")).await;
    assert!(has(&first, "Evicted") && at(&first, "/status/admission").is_null(), "{first}");

    succeed(&world, "urgent").await;
    workload(&world, "urgent", "to be finished", |one| has(one, "Finished")).await;
    succeed(&world, "first").await;
    workload(&world, "first", "to be finished", |one| has(one, "Finished")).await;
    succeed(&world, "second").await;

    operator.stop().await;
    kueue.stop(&world.plane).await.unwrap();
}

/// A kind that Kueue queues by its own integration, and what its jobs of two pods say of these.
struct Known {
    kind: Kind,
    word: &'static str,
    roles: Value,
    /// Whether the job ends with the pods of this role.
    ends_with: fn(&str) -> bool,
}

impl Known {
    fn all() -> [Self; 6] {
        let role = |replicas: u32, container: &str| {
            let pod = json!({ "name": container, "image": "docker.io/local/train:1", "resources": { "requests": { "cpu": "600m" } } });
            json!({ "replicas": replicas, "restartPolicy": "Never", "template": { "spec": { "containers": [pod] } } })
        };
        let led = |leader: &str, container| json!({ leader: role(1, container), "Worker": role(1, container) });
        let training = |plural, word, field: &str, roles: Value| Self {
            kind: Kind::new("apis/kubeflow.org/v1", plural),
            word,
            roles: json!({ field: roles }),
            ends_with: |_| true,
        };
        [
            Self {
                kind: MPI_JOBS,
                word: "MPIJob",
                roles: json!({ "mpiReplicaSpecs": led("Launcher", "main") }),
                ends_with: |role| role == "launcher",
            },
            training("tfjobs", "TFJob", "tfReplicaSpecs", led("Chief", "tensorflow")),
            training("pytorchjobs", "PyTorchJob", "pytorchReplicaSpecs", led("Master", "pytorch")),
            training("xgboostjobs", "XGBoostJob", "xgbReplicaSpecs", led("Master", "xgboost")),
            training("jaxjobs", "JAXJob", "jaxReplicaSpecs", json!({ "Worker": role(2, "jax") })),
            training("paddlejobs", "PaddleJob", "paddleReplicaSpecs", json!({ "Worker": role(2, "paddle") })),
        ]
    }

    fn job(&self, name: &str, labels: &[(&str, &str)]) -> Value {
        let labels: serde_json::Map<_, _> =
            labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let mut spec = self.roles.clone();
        spec["runPolicy"] = json!({ "cleanPodPolicy": "All" });
        let version = if self.kind.resource() == MPI_JOBS.resource() { "v2beta1" } else { "v1" };
        json!({ "apiVersion": format!("kubeflow.org/{version}"), "kind": self.word,
            "metadata": { "name": name, "labels": labels }, "spec": spec })
    }

    /// With room for one job the second waits; an urgent one takes the place of the first, which begins again after it.
    async fn is_queued(&self, world: &World) {
        let [first, second, urgent] =
            ["first", "second", "urgent"].map(|name| format!("{name}-{}", self.kind.plural()));
        world.create(&self.kind, &self.job(&first, &[QUEUE])).await;
        for pod in run(world, &first).await {
            assert_eq!(text(&pod, "/spec/nodeSelector/kubernetes.io~1os"), "linux", "{pod:#}");
            let tolerations = at(&pod, "/spec/tolerations").as_array().unwrap();
            assert!(tolerations.iter().any(|one| one["key"] == "spot"), "{tolerations:?}");
        }

        // Kueue puts the label of the queue on the templates of pods of a job that it admits.
        let admitted = world.get(&self.kind, &first).await.unwrap();
        assert_eq!(condition_of(&admitted, "Warned"), None, "{admitted:#}");

        world.create(&self.kind, &self.job(&second, &[QUEUE])).await;
        let waits = |one: &Value| at(one, "/status/conditions").to_string().contains("insufficient");
        workload(world, &second, "to wait for quota", waits).await;
        assert_eq!(at(&world.get(&self.kind, &second).await.unwrap(), "/spec/runPolicy/suspend"), true);
        assert_eq!(pods_of(world, &second).await.unwrap(), Vec::<Value>::new());

        world.create(&self.kind, &self.job(&urgent, &[QUEUE, ("kueue.x-k8s.io/priority-class", "urgent")])).await;
        run(world, &urgent).await;
        let evicted = workload(world, &first, "to be without quota", |one| !has(one, "QuotaReserved")).await;
        assert!(has(&evicted, "Evicted"), "{evicted:#}");
        self.succeeds(world, &urgent).await;
        // Kueue has them in the order in which they were created, which is counted in seconds.
        let mut left = vec![&first, &second];
        while !left.is_empty() {
            let next = until(SOON, format!("one of {left:?} to run"), || async {
                for (at, job) in left.iter().enumerate() {
                    if running(world, job).await?.is_some() {
                        return Ok(Some(at));
                    }
                }
                Ok(None)
            });
            let job = left.remove(next.await.unwrap());
            self.succeeds(world, job).await;
        }
        for job in [&first, &second, &urgent] {
            world.delete(&self.kind, job).await;
            world.is_gone(&self.kind, job).await;
        }
        world.are(&PODS, &[]).await;
    }

    /// With Kueue's integration for the kind off, the host queues the job, which is never suspended: one at a time runs, where
    /// its flavor says.
    async fn is_queued_by_host(&self, world: &World) {
        let [first, second] = ["first", "second"].map(|name| format!("{name}-{}", self.kind.plural()));
        world.create(&self.kind, &self.job(&first, &[QUEUE])).await;
        for pod in run(world, &first).await {
            assert_eq!(text(&pod, "/spec/nodeSelector/kubernetes.io~1os"), "linux", "{pod:#}");
        }
        world.create(&self.kind, &self.job(&second, &[QUEUE])).await;
        let waits = |job: &Value| {
            condition_of(job, "Waiting")
                .is_some_and(|it| text(it, "/reason") == "NotAdmitted" && text(it, "/message").contains("insufficient"))
        };
        let waiting = world.is(&self.kind, &second, "waiting for quota in the queue's words", waits).await;
        assert_ne!(at(&waiting, "/spec/runPolicy/suspend"), true, "the host holds it, not Kueue");
        assert_eq!(pods_of(world, &second).await.unwrap(), Vec::<Value>::new());
        self.succeeds(world, &first).await;
        run(world, &second).await;
        self.succeeds(world, &second).await;
        for job in [&first, &second] {
            world.delete(&self.kind, job).await;
            world.is_gone(&self.kind, job).await;
        }
        world.are(&PODS, &[]).await;
    }

    /// Ends the pods of a job that runs; returns when the job has succeeded and Kueue knows.
    async fn succeeds(&self, world: &World, job: &str) {
        for pod in run(world, job).await {
            let labels = at(&pod, "/metadata/labels");
            let role = ["job-role", "replica-type"].map(|it| labels[format!("training.kubeflow.org/{it}")].as_str());
            if (self.ends_with)(role.into_iter().flatten().next().unwrap_or_default()) {
                let ends = json!({ "metadata": { "annotations": { RUN_FOR: "0s" } } });
                world.patch(&PODS, text(&pod, "/metadata/name"), &ends).await;
            }
        }
        world.is(&self.kind, job, "succeeded", |job| has(job, "Succeeded")).await;
        workload(world, job, "to be finished", |one| has(one, "Finished")).await;
    }
}

async fn pods_of(world: &World, job: &str) -> anyhow::Result<Vec<Value>> {
    let mut pods = world.list(&PODS).await?;
    pods.retain(|pod| at(pod, "/metadata/labels/training.kubeflow.org~1job-name") == job);
    Ok(pods)
}

/// The two pods of a job, if they run.
async fn running(world: &World, job: &str) -> anyhow::Result<Option<Vec<Value>>> {
    let pods = pods_of(world, job).await?;
    let both = pods.len() == 2 && pods.iter().all(|pod| at(pod, "/status/phase") == "Running");
    Ok(both.then_some(pods))
}

/// The two pods of a job once they run.
async fn run(world: &World, job: &str) -> Vec<Value> {
    until(SOON, format!("the pods of {job} to run"), || running(world, job)).await.unwrap()
}

#[tokio::test]
#[cfg_attr(any(lacks_cluster, lacks_ecosystem), ignore = "needs TROUPE_REQUIRE=ecosystem")]
async fn kueue_queues_preempts_and_resumes_the_kinds_that_it_knows_by_its_own_integrations() {
    plays_known_kinds("kueue-known", Integrations::All).await;
}

#[tokio::test]
#[cfg_attr(any(lacks_cluster, lacks_ecosystem), ignore = "needs TROUPE_REQUIRE=ecosystem")]
async fn the_host_queues_the_kinds_that_kueue_has_off_as_it_is_installed() {
    plays_known_kinds("kueue-installed", Integrations::AsInstalled).await;
}

/// Plays each kind that Kueue knows with these of its integrations on: the host queues those that are off.
async fn plays_known_kinds(name: &str, integrations: Integrations) {
    let world = World::alone(name).await;
    let kueue = Kueue::start(&world.plane, integrations).await.unwrap();
    room_for_two(&world).await;
    let operator = Operator::start(&world.plane, &["--namespace", &world.name]).await;
    for known in Known::all() {
        match (integrations, known.word) {
            (Integrations::All, _) | (Integrations::AsInstalled, "MPIJob") => known.is_queued(&world).await,
            (Integrations::AsInstalled, _) => known.is_queued_by_host(&world).await,
        }
    }
    operator.stop().await;
    kueue.stop(&world.plane).await.unwrap();
}
