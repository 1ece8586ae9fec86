//! The Python package of Kubeflow's users, which knows the jobs' pods by their labels alone.

use super::world::{World, built};
use crate::cluster::objects::PODS;
use harness::{Python, images::Image};
use serde_json::{Map, Value, json};

const PROGRAM: &str = include_str!("sdk.py");

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_node, ignore = "needs Go, openssl, apt and root")]
async fn the_published_kubeflow_training_makes_follows_reads_and_deletes_a_job_of_each_kind() {
    let image = built(Image::busybox).await;
    // No init container: the image's nslookup knows no short names.
    let settings = json!({ "pytorch-init-container-image": "" });
    let world = World::start(vec![image.clone()], Some(("kubeflow", settings))).await;
    let answers = world.asks(image).await;
    for (kind, master, others) in [
        ("TFJob", "chief-0", vec!["ps-0", "worker-0", "worker-1"]),
        ("PyTorchJob", "master-0", vec!["worker-0", "worker-1"]),
        ("XGBoostJob", "master-0", vec!["worker-0", "worker-1"]),
        ("JAXJob", "worker-0", vec!["worker-1"]),
        ("PaddleJob", "master-0", vec!["worker-0", "worker-1"]),
    ] {
        assert_eq!(answers[kind], expected(kind, master, &others), "{kind}");
    }
    world.are(&PODS, &[]).await;
    world.stop("a job of each kind by kubeflow-training").await;
}

/// What the package tells of a job that has succeeded and was deleted then.
fn expected(kind: &str, master: &str, others: &[&str]) -> Value {
    let job = kind.to_lowercase();
    let pod = |replica: &str| format!("{job}-{replica}");
    let pods: Vec<_> = [master].iter().chain(others).map(|replica| pod(replica)).collect();
    let log = |pod: &String| (pod.clone(), format!("hello from {pod}\n").into());
    let logs = |pods: &[String]| Value::from(pods.iter().map(log).collect::<Map<_, _>>());
    let mut events: Vec<_> = pods.iter().map(|pod| format!("pod/{pod}")).chain([format!("{job}/{job}")]).collect();
    events.sort();
    json!({
        "listed": [job],
        "created": true,
        "running": false,
        "restarting": false,
        "succeeded": true,
        "failed": false,
        "pods": pods,
        "master": [pods[0]],
        "workers": [pod("worker-0"), pod("worker-1")],
        "worker 1": [pod("worker-1")],
        "log of the master": logs(&pods[..1]),
        "logs": logs(&pods),
        "has events of": events,
        "left": [],
    })
}

impl World {
    /// What the program prints last.
    async fn asks(&self, image: Image) -> Value {
        let (kubeconfig, namespace) = (self.kubeconfig(), self.name.clone());
        let run = move || {
            let arguments = [kubeconfig.to_str().unwrap(), &namespace, image.name()];
            Python::kubeflow_training()?.run(PROGRAM, &arguments)
        };
        let printed = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
        serde_json::from_str(printed.lines().last().unwrap_or_default()).unwrap()
    }
}
