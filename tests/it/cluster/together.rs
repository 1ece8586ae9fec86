//! What each gang scheduler has to show beside the host, for a kind of each plugin that asks for gangs: with room for one of two
//! pods none is bound, with room for both they run to their end.

use super::{
    jobs::paddle,
    objects::{Kind, MPI_JOBS, Namespace, PADDLE_JOBS, PODS, PYTORCH_JOBS, SOON, at, condition_of, text},
};
use crate::operator::Operator;
use harness::{ControlPlane, RUN_FOR, until};
use serde_json::{Value, json};
use std::{cell::RefCell, fs};

/// A gang scheduler.
pub(crate) struct Scheduler {
    /// Its name in the settings of plugins.
    pub(crate) name: &'static str,
    pub(crate) pod_groups: Kind,
    /// Where a PodGroup says how many pods start together.
    pub(crate) count: &'static str,
    /// Whether it has tried to start the gang and found no room, by its PodGroup and the pods.
    pub(crate) turned_away: fn(&Value, &[Value]) -> bool,
}

/// More than half of what a fake node has: one pod fits on a node, and two nodes are there.
const A_NODE: &str = "600";

pub(crate) fn filler() -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "filler" }, "spec": pod("filler") })
}

/// The spec of a pod that takes a node.
fn pod(container: &str) -> Value {
    let resources = json!({ "requests": { "cpu": A_NODE } });
    json!({ "containers": [{ "name": container, "image": "docker.io/local/train:1", "resources": resources }] })
}

/// The template of such pods, which end after a second.
fn template(container: &str) -> Value {
    json!({ "metadata": { "annotations": { RUN_FOR: "1s" } }, "spec": pod(container) })
}

pub(crate) fn paddle_job() -> Value {
    let mut job = paddle("wide").worker(2).policy("Never").manifest;
    job["spec"]["worker"]["template"] = template("paddle");
    job
}

fn mpi_job() -> Value {
    let role = |replicas: u32| json!({ "replicas": replicas, "template": template("main") });
    json!({ "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": { "name": "wide" },
        "spec": { "runLauncherAsWorker": false, "mpiReplicaSpecs": { "Launcher": role(1), "Worker": role(1) } } })
}

pub(crate) fn pytorch_job() -> Value {
    let role = json!({ "replicas": 1, "restartPolicy": "Never", "template": template("pytorch") });
    json!({ "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": { "name": "wide" },
        "spec": { "pytorchReplicaSpecs": { "Master": role, "Worker": role } } })
}

pub(crate) fn is_bound(pod: &Value) -> bool {
    !text(pod, "/spec/nodeName").is_empty()
}

/// The condition is there and its status is True.
pub(crate) fn is_true(object: &Value, condition: &str) -> bool {
    condition_of(object, condition).is_some_and(|found| found["status"] == "True")
}

/// The job has succeeded, in the words of its kind.
fn is_over(job: &Value) -> bool {
    at(job, "/status/phase") == "Completed" || is_true(job, "Succeeded")
}

/// Whether this many pods have a condition in which the scheduler says that it has no node for them.
pub(crate) fn are_without_a_node(pods: &[Value], count: usize) -> bool {
    let without = |pod: &&Value| {
        condition_of(pod, "PodScheduled").is_some_and(|scheduled| scheduled["reason"] == "Unschedulable")
    };
    pods.iter().filter(without).count() == count
}

impl Scheduler {
    /// Starts a host whose plugins have this scheduler in their settings.
    pub(crate) async fn host(&self, plane: &ControlPlane, namespace: &Namespace) -> Operator {
        let settings = [("paddle", "scheduling"), ("mpi", "gang-scheduling"), ("kubeflow", "gang-scheduler-name")];
        let settings = settings.map(|(plugin, setting)| {
            let file = plane.dir().join(format!("{plugin}.yaml"));
            fs::write(&file, format!("{setting}: {}\n", self.name)).unwrap();
            format!("--plugin-config={plugin}={}", file.display())
        });
        let arguments = [&["--namespace", &namespace.name][..], &settings.each_ref().map(String::as_str)].concat();
        Operator::start(plane, &arguments).await
    }

    /// Plays it for a job of each plugin.
    pub(crate) async fn starts_all_pods_or_none(&self, namespace: &Namespace) {
        for (kind, job) in [(PADDLE_JOBS, paddle_job()), (MPI_JOBS, mpi_job()), (PYTORCH_JOBS, pytorch_job())] {
            self.starts_as_a_whole_or_not_at_all(namespace, &kind, &job).await;
        }
    }

    /// With the filler on one of the two nodes, no pod of the job is bound; without it all are, and the job runs to its end.
    async fn starts_as_a_whole_or_not_at_all(&self, namespace: &Namespace, kind: &Kind, job: &Value) {
        namespace.create(&PODS, &filler()).await;
        namespace.is(&PODS, "filler", "bound", is_bound).await;
        namespace.create(kind, job).await;
        let last = RefCell::new((Value::Null, vec![]));
        let turned_away = until(SOON, format!("the gang of {} to be turned away", kind.plural()), || async {
            let (group, pods) = (namespace.get(&self.pod_groups, "wide").await?, namespace.list(&PODS).await?);
            let is_so = (self.turned_away)(&group, &pods);
            last.replace((group, pods));
            Ok(is_so.then_some(()))
        });
        let (told, (group, pods)) = (turned_away.await, last.take());
        assert!(told.is_ok(), "{told:?}\n{group:#}\n{pods:#?}");
        assert_eq!(at(&group, self.count), &json!(2), "{group:#}");
        let bound: Vec<_> = pods.iter().filter(|pod| is_bound(pod)).map(|pod| text(pod, "/metadata/name")).collect();
        assert_eq!(bound, ["filler"], "one of the two would have fitted: {group:#}");
        let waiting = namespace.is(kind, "wide", "waiting", |job| is_true(job, "Waiting")).await;
        assert!(condition_of(&waiting, "Waiting").is_some_and(|waiting| !text(waiting, "/message").is_empty()));

        namespace.delete(&PODS, "filler").await;
        namespace.is(kind, "wide", "succeeded", is_over).await;
        namespace.is_gone(&self.pod_groups, "wide").await;
        namespace.delete(kind, "wide").await;
        namespace.is_gone(kind, "wide").await;
        namespace.are(&PODS, &[]).await;
    }
}
