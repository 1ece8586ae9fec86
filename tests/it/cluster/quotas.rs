//! What pods ask for is what their users ask for: a real API server's quotas, limits and QoS classes.

use super::{
    objects::{Kind, MPI_JOBS, PADDLE_JOBS, PODS, PYTORCH_JOBS, RHINO_JOBS, SOON, at, text},
    world::World,
};
use harness::until;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const QUOTAS: Kind = Kind::new("api/v1", "resourcequotas");
const LIMITS: Kind = Kind::new("api/v1", "limitranges");

/// Kinds whose jobs say no container: their pods are the plugin's, or those of the jobs that they make.
const WITHOUT_CONTAINERS: [&str; 2] = ["rhinojobs.openrhino.org", "cronjobs.batch.tutorial.kubebuilder.io"];

/// A job of each kind, called by its plural, of two pods whose containers all have these resources.
fn jobs(resources: &Value) -> Vec<(Kind, Value)> {
    let job = |group: &'static str, plural: &'static str, kind: &str, spec: Value| {
        let version = group.strip_prefix("apis/").unwrap();
        let name = format!("{plural}-{}", version.split(['.', '/']).next().unwrap());
        (
            Kind::new(group, plural),
            json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name }, "spec": spec }),
        )
    };
    let template = |name: &str| {
        let container = |name| json!({ "name": name, "image": "docker.io/local/train:1", "resources": resources });
        let containers = [container(name), container("side")];
        json!({ "metadata": { "annotations": { harness::RUN_FOR: "1h" } }, "spec": { "containers": containers } })
    };
    let role = |replicas: u32, name: &str| json!({ "replicas": replicas, "template": template(name) });
    let led = |by: &str, name: &str| json!({ by: role(1, name), "Worker": role(1, name) });
    let training = "apis/kubeflow.org/v1";
    let mut part = template("main");
    part["spec"]["restartPolicy"] = json!("Never");
    vec![
        job(
            "apis/batch.paddlepaddle.org/v1",
            PADDLE_JOBS.plural(),
            "PaddleJob",
            json!({ "ps": role(1, "main"), "worker": role(1, "main") }),
        ),
        job(
            "apis/kubeflow.org/v2beta1",
            MPI_JOBS.plural(),
            "MPIJob",
            json!({ "mpiReplicaSpecs": led("Launcher", "main") }),
        ),
        job(training, PYTORCH_JOBS.plural(), "PyTorchJob", json!({ "pytorchReplicaSpecs": led("Master", "pytorch") })),
        job(training, "tfjobs", "TFJob", json!({ "tfReplicaSpecs": led("Chief", "tensorflow") })),
        job(training, "xgboostjobs", "XGBoostJob", json!({ "xgbReplicaSpecs": led("Master", "xgboost") })),
        job(training, "jaxjobs", "JAXJob", json!({ "jaxReplicaSpecs": { "Worker": role(2, "jax") } })),
        job(training, "paddlejobs", "PaddleJob", json!({ "paddleReplicaSpecs": { "Worker": role(2, "paddle") } })),
        job(
            "apis/batch.troupe.dev/v1alpha1",
            "indexedjobs",
            "IndexedJob",
            json!({ "completions": 2, "parallelism": 2, "template": part }),
        ),
    ]
}

/// The pods of the namespace once there are at least this many.
async fn pods(world: &World, count: usize) -> Vec<Value> {
    let all = || async { Ok(Some(world.list(&PODS).await?).filter(|pods| pods.len() >= count)) };
    until(SOON, format!("{count} pods in {}", world.name), all).await.unwrap()
}

/// The init containers of the namespace that are not the user's.
fn added(pods: &[Value]) -> BTreeSet<&str> {
    let containers = pods.iter().filter_map(|pod| at(pod, "/spec/initContainers").as_array()).flatten();
    containers.map(|container| text(container, "/name")).collect()
}

#[test]
fn there_is_a_job_of_each_kind_whose_jobs_say_containers() {
    let of_jobs: BTreeSet<_> = jobs(&json!({})).iter().map(|(kind, _)| kind.resource()).collect();
    let crds = install::crds::all();
    let names: BTreeSet<_> =
        crds.iter().map(ResourceExt::name_any).filter(|name| name != "plugins.troupe.dev").collect();
    let others: BTreeSet<_> = names.difference(&of_jobs).map(String::as_str).collect();
    assert_eq!(others, WITHOUT_CONTAINERS.into_iter().collect());
}

// A27, AC-28
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_quota_and_limits_that_the_users_containers_meet_are_met_and_guaranteed_pods_stay_so() {
    let world = World::shared("quotas").await;
    let operator = world.operator().await;
    let amounts = json!({ "cpu": "1", "memory": "1Gi" });
    let jobs = jobs(&json!({ "requests": amounts, "limits": amounts }));
    let (count, containers) = (2 * jobs.len(), 4 * jobs.len());
    let (cpu, memory) = (containers.to_string(), format!("{containers}Gi"));
    let hard = json!({
        "requests.cpu": cpu,
        "limits.cpu": cpu,
        "requests.memory": memory,
        "limits.memory": memory,
        "pods": count.to_string(),
    });
    let quota =
        json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "all" }, "spec": { "hard": hard } });
    world.create(&QUOTAS, &quota).await;
    let limit = json!({ "type": "Container", "min": amounts, "max": amounts, "maxLimitRequestRatio": { "cpu": "1" } });
    let limits = json!({ "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "all" }, "spec": { "limits": [limit] } });
    world.create(&LIMITS, &limits).await;
    world.is(&QUOTAS, "all", "in force", |quota| at(quota, "/status/hard") == &hard).await;
    for (kind, job) in &jobs {
        world.create(kind, job).await;
    }
    let pods = pods(&world, count).await;
    for pod in &pods {
        assert_eq!(text(pod, "/status/qosClass"), "Guaranteed", "{pod:#}");
    }
    // These do add one: without it the test would say nothing.
    assert_eq!(added(&pods), BTreeSet::from(["coord-paddle", "init-pytorch", "init-xgboost"]));
    world.is(&QUOTAS, "all", "used up and no more", |quota| at(quota, "/status/used") == &hard).await;
    operator.stop().await;
}

// A27, AC-28
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn pods_of_users_who_ask_for_nothing_ask_for_nothing() {
    let world = World::shared("best-effort").await;
    let operator = world.operator().await;
    let mut jobs = jobs(&json!({}));
    let rhino = json!({ "apiVersion": "openrhino.org/v1alpha2", "kind": "RhinoJob", "metadata": { "name": "rhino" },
        "spec": { "image": "docker.io/local/mpich:4", "appExec": "/bin/pi", "parallelism": 1 } });
    jobs.push((RHINO_JOBS, rhino));
    for (kind, job) in &jobs {
        world.create(kind, job).await;
    }
    let launched = |pods: &[Value]| pods.iter().any(|pod| text(pod, "/metadata/name").starts_with("rhino"));
    let pods = pods(&world, 2 * jobs.len() - 1).await;
    assert!(launched(&pods));
    for pod in &pods {
        assert_eq!(text(pod, "/status/qosClass"), "BestEffort", "{pod:#}");
    }
    operator.stop().await;
}
