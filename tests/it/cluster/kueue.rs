//! Real Kueue beside the host, for a kind of job that Kueue does not know.

use super::{
    jobs::{Paddle, paddle},
    objects::{Kind, PADDLE_JOBS, PODS, at, text},
    played,
    world::World,
};
use crate::operator::Operator;
use harness::{Kueue, until};
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
    let room = [("cpu", "2"), ("memory", "1Gi")].map(|(name, quota)| json!({ "name": name, "nominalQuota": quota }));
    let quota = json!({ "name": "spot", "resources": room });
    let queue = json!({
        "namespaceSelector": {},
        "preemption": { "withinClusterQueue": "LowerPriority" },
        "resourceGroups": [{ "coveredResources": ["cpu", "memory"], "flavors": [quota] }],
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
    let found = until(super::objects::SOON, format!("the Workload of {job} {what}"), || async {
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
    let kueue = Kueue::start(&world.plane).await.unwrap();
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
    let waits = |job: &Value| text(job, "/status/conditions/0/message").contains("insufficient");
    let second = world.is(&PADDLE_JOBS, "second", "waiting for quota in the queue's words", waits).await;
    assert_eq!(text(&second, "/status/conditions/0/reason"), "NotAdmitted");
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
