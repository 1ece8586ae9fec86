//! The built binary, a real kubelet, and real Open MPI.

use crate::{
    cluster::{
        jobs::mpi,
        objects::{MPI_JOBS, Namespace, PODS, at, text},
    },
    operator::Operator,
};
use cluster::{ControlPlane, Need, Node, Options, images::Image, require::missing, until};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};

/// Real pods start slower than played ones.
const PATIENCE: Duration = Duration::from_secs(180);

// M01 to M04 with nothing played: the ranks must be on different hosts, since with a wrong environment Open MPI runs
// every rank in the launcher and the job still succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn an_mpi_job_runs_real_open_mpi_on_two_hosts() {
    if missing(Need::Node) {
        return;
    }
    let image = tokio::task::spawn_blocking(Image::openmpi).await.unwrap().unwrap();
    let plane = ControlPlane::start(Options::default().scheduler().crds(troupe::crds::all())).await.unwrap();
    let node = Node::start(&plane).await.unwrap();
    node.import_image(image.archive()).unwrap();
    let operator = Operator::start(&plane, &[]).await;
    let namespace = Namespace::create_in(plane.client("user").await.unwrap(), "real").await;

    let mut job = mpi("pi").cleaned().on_image(image.name());
    let command = json!(["mpirun", "--allow-run-as-root", "-n", "2", "/usr/local/bin/pi"]);
    job.manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"] = command;
    let start = std::time::Instant::now();
    namespace.create(&MPI_JOBS, &job.manifest).await;
    let done = until(PATIENCE, "mpijob/pi to end", || async {
        let job = namespace.get(&MPI_JOBS, "pi").await?;
        Ok(["Succeeded", "Failed"].into_iter().find(|end| is(&job, end)).map(|end| (end, job.clone())))
    });
    let ended = done.await;
    let log = launcher_log(&node, &namespace).await;
    let (end, _) = ended.unwrap_or_else(|error| panic!("{error:#}\nthe launcher said:\n{log}\n{}", operator.log()));
    assert_eq!(end, "Succeeded", "the launcher said:\n{log}");
    eprintln!("an MPIJob of two workers on a real node took {:.1} s", start.elapsed().as_secs_f64());

    let hosts: BTreeSet<_> =
        log.lines().filter_map(|line| line.split_once(" on ")).map(|(_, host)| host.trim()).collect();
    assert_eq!(hosts, BTreeSet::from(["pi-worker-0", "pi-worker-1"]), "{log}");
    assert!(log.contains("pi is approximately 3.14"), "{log}");
    for worker in ["pi-worker-0", "pi-worker-1"] {
        namespace.is_gone(&PODS, worker).await;
    }
    operator.stop().await;
    node.stop().await.unwrap();
}

fn is(job: &Value, condition: &str) -> bool {
    let mut conditions = at(job, "/status/conditions").as_array().into_iter().flatten();
    conditions.any(|one| text(one, "/type") == condition && text(one, "/status") == "True")
}

async fn launcher_log(node: &Node, namespace: &Namespace) -> String {
    let pods = namespace.list(&PODS).await.unwrap();
    let launchers =
        pods.into_iter().filter(|pod| at(pod, "/metadata/labels/training.kubeflow.org~1job-role") == "launcher");
    let logs = launchers.map(|pod| {
        let pod: Pod = serde_json::from_value(pod).unwrap();
        node.logs(&pod, "launcher").unwrap_or_else(|error| format!("{error:#}"))
    });
    logs.collect()
}
