//! Gangs with real Volcano, for a kind of each plugin that asks for them.

use super::{
    jobs::paddle,
    objects::{Kind, MPI_JOBS, Namespace, PADDLE_JOBS, PODS, PYTORCH_JOBS, SOON, at, text},
};
use crate::operator::Operator;
use harness::{ControlPlane, Options, Volcano, until};
use serde_json::{Value, json};
use std::fs;

const POD_GROUPS: Kind = Kind::new("apis/scheduling.volcano.sh/v1beta1", "podgroups");
const QUEUES: Kind = Kind::new("apis/scheduling.volcano.sh/v1beta1", "queues");

/// More than half of what a fake node has: one pod fits on a node, and two nodes are there.
const A_NODE: &str = "600";

fn filler() -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "filler" }, "spec": pod("filler") })
}

/// The spec of a pod that takes a node, and ends after a second.
fn pod(container: &str) -> Value {
    let resources = json!({ "requests": { "cpu": A_NODE } });
    json!({ "containers": [{ "name": container, "image": "docker.io/local/train:1", "resources": resources }] })
}

fn template(container: &str) -> Value {
    json!({ "metadata": { "annotations": { "troupe.dev/run-for": "1s" } }, "spec": pod(container) })
}

fn paddle_job() -> Value {
    let mut job = paddle("wide").worker(2).policy("Never").runs("1s").manifest;
    job["spec"]["worker"]["template"] = template("paddle");
    job
}

fn mpi_job() -> Value {
    let role = |replicas: u32| json!({ "replicas": replicas, "template": template("main") });
    json!({ "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": { "name": "wide" },
        "spec": { "runLauncherAsWorker": false, "mpiReplicaSpecs": { "Launcher": role(1), "Worker": role(1) } } })
}

fn pytorch_job() -> Value {
    let role = json!({ "replicas": 1, "restartPolicy": "Never", "template": template("pytorch") });
    json!({ "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": { "name": "wide" },
        "spec": { "pytorchReplicaSpecs": { "Master": role, "Worker": role } } })
}

fn is_bound(pod: &Value) -> bool {
    !text(pod, "/spec/nodeName").is_empty()
}

/// The job has succeeded, in the words of its kind.
fn is_over(job: &Value) -> bool {
    let succeeded = |condition: &Value| condition["type"] == "Succeeded" && condition["status"] == "True";
    at(job, "/status/phase") == "Completed"
        || at(job, "/status/conditions").as_array().is_some_and(|all| all.iter().any(succeeded))
}

/// With the filler on one of the two nodes, no pod of the job is bound; without it all are, and the job runs to its end.
async fn starts_as_a_whole_or_not_at_all(namespace: &Namespace, kind: &Kind, job: Value) {
    namespace.create(&PODS, &filler()).await;
    namespace.is(&PODS, "filler", "bound", is_bound).await;
    namespace.create(kind, &job).await;
    let group = namespace.is(&POD_GROUPS, "wide", "seen by Volcano", |group| !text(group, "/status/phase").is_empty());
    let group = group.await;
    assert_eq!(at(&group, "/spec/minMember"), &json!(2), "{group:#}");
    // Volcano says so of the group once it has tried.
    let tried = |group: &Value| {
        let conditions = at(group, "/status/conditions").as_array();
        conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Unschedulable" && one["status"] == "True"))
    };
    let group = namespace.is(&POD_GROUPS, "wide", "found to have no room", tried).await;
    let pods = namespace.list(&PODS).await.unwrap();
    let bound: Vec<_> = pods.iter().filter(|pod| is_bound(pod)).map(|pod| text(pod, "/metadata/name")).collect();
    assert_eq!(bound, ["filler"], "one of the two would have fitted: {}", at(&group, "/status"));
    let waits = |job: &Value| {
        let mut conditions = at(job, "/status/conditions").as_array().into_iter().flatten();
        conditions.any(|one| one["type"] == "Waiting" && one["status"] == "True")
    };
    let waiting = namespace.is(kind, "wide", "waiting", waits).await;
    assert!(!text(&waiting, "/status/conditions/0/message").is_empty());
    namespace.delete(&PODS, "filler").await;
    namespace.is(kind, "wide", "succeeded", is_over).await;
    namespace.is_gone(&POD_GROUPS, "wide").await;
    namespace.delete(kind, "wide").await;
    namespace.is_gone(kind, "wide").await;
    until(SOON, "the pods to be gone".to_owned(), || async {
        Ok(namespace.list(&PODS).await?.is_empty().then_some(()))
    })
    .await
    .unwrap();
}

// A14, M20, AC-20
#[tokio::test]
#[cfg_attr(any(lacks_cluster, lacks_ecosystem), ignore = "needs TROUPE_REQUIRE=ecosystem")]
async fn volcano_starts_all_pods_of_a_job_or_none() {
    let options = Options::default().fake_nodes(2).crds(troupe::install::crds::all());
    let plane = ControlPlane::start(options).await.unwrap();
    let volcano = Volcano::start(&plane).await.unwrap();
    let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "gangs").await;
    let setting = |plugin: &str, setting: &str| {
        let file = plane.dir().join(format!("{plugin}.yaml"));
        fs::write(&file, format!("{setting}: volcano\n")).unwrap();
        format!("--plugin-config={plugin}={}", file.display())
    };
    let settings = [
        setting("paddle", "scheduling"),
        setting("mpi", "gang-scheduling"),
        setting("kubeflow", "gang-scheduler-name"),
    ];
    let arguments = [&["--namespace", &namespace.name][..], &settings.each_ref().map(String::as_str)].concat();
    let operator = Operator::start(&plane, &arguments).await;
    starts_as_a_whole_or_not_at_all(&namespace, &PADDLE_JOBS, paddle_job()).await;
    starts_as_a_whole_or_not_at_all(&namespace, &MPI_JOBS, mpi_job()).await;
    starts_as_a_whole_or_not_at_all(&namespace, &PYTORCH_JOBS, pytorch_job()).await;

    // A queue without room: the group stays Pending, which the job says. Volcano has the reason in an event of the group alone.
    let queue = json!({ "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": { "name": "small" },
        "spec": { "weight": 1, "capability": { "cpu": "100" } } });
    namespace.create_in_cluster(&QUEUES, &queue).await;
    let mut job = paddle_job();
    job["spec"]["schedulingPolicy"] = json!({ "queue": "small" });
    namespace.create(&PADDLE_JOBS, &job).await;
    let says = |job: &Value| at(job, "/status/conditions").to_string().contains("it has Pending");
    namespace.is(&PADDLE_JOBS, "wide", "waiting for its queue", says).await;
    namespace.are(&PODS, &[]).await;
    operator.stop().await;
    drop(volcano);
}
