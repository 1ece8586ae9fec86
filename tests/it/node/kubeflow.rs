//! The frameworks of Kubeflow's training jobs, by the environment that a pod gets and nothing else.

use super::world::{World, built, is};
use crate::cluster::objects::{Kind, PODS, text};
use anyhow::Result;
use harness::images::Image;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A kind of job with two processes.
struct Pair {
    kind: &'static str,
    objects: Kind,
    /// The field of its replicas.
    field: &'static str,
    container: &'static str,
    /// The types of its two replicas.
    types: [&'static str; 2],
}

const PYTORCH: Pair = Pair {
    kind: "PyTorchJob",
    objects: Kind::new("apis/kubeflow.org/v1", "pytorchjobs"),
    field: "pytorchReplicaSpecs",
    container: "pytorch",
    types: ["Master", "Worker"],
};

const JAX: Pair = Pair {
    kind: "JAXJob",
    objects: Kind::new("apis/kubeflow.org/v1", "jaxjobs"),
    field: "jaxReplicaSpecs",
    container: "jax",
    types: ["Worker", "Worker"],
};

const XGBOOST: Pair = Pair {
    kind: "XGBoostJob",
    objects: Kind::new("apis/kubeflow.org/v1", "xgboostjobs"),
    field: "xgbReplicaSpecs",
    container: "xgboost",
    types: ["Master", "Worker"],
};

const TENSORFLOW: Pair = Pair {
    kind: "TFJob",
    objects: Kind::new("apis/kubeflow.org/v1", "tfjobs"),
    field: "tfReplicaSpecs",
    container: "tensorflow",
    types: ["Worker", "Worker"],
};

// AC-05: the worker waits for the master's name, and DDP averages the gradients of both.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_frameworks, ignore = "TROUPE_REQUIRE does not name frameworks")]
async fn a_pytorch_job_averages_gradients_by_real_ddp_over_gloo() {
    PYTORCH.prints(Image::pytorch, |rank, host| format!("rank {rank} of 2 on {host}: sum 3.0 gradient 1.5")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_frameworks, ignore = "TROUPE_REQUIRE does not name frameworks")]
async fn a_jax_job_adds_up_over_two_real_processes() {
    JAX.prints(Image::jax, |rank, host| format!("rank {rank} of 2 on {host}: sum 3.0")).await;
}

// Each has half of the points, and both have the same model.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_frameworks, ignore = "TROUPE_REQUIRE does not name frameworks")]
async fn an_xgboost_job_trains_one_model_by_a_real_tracker() {
    let logs = XGBOOST.prints(Image::xgboost, |rank, host| format!("rank {rank} of 2 on {host}: sum 3.0 model ")).await;
    let model = |log: &String| log.lines().find_map(|line| Some(line.split_once(" model ")?.1.to_owned()));
    assert_eq!(model(&logs[0]), model(&logs[1]), "{logs:?}");
}

// Of two workers both decide, as `MultiWorkerMirroredStrategy` ends in both.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_frameworks, ignore = "TROUPE_REQUIRE does not name frameworks")]
async fn a_tensorflow_job_adds_up_by_a_real_multi_worker_strategy() {
    TENSORFLOW.prints(Image::tensorflow, |rank, host| format!("rank {rank} of 2 on {host}: sum 3.0")).await;
}

// AC-06: the agents of `torchrun` meet at the first worker's name. The one that is left goes on, and takes the pod that comes
// instead of the lost one back in.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_frameworks, ignore = "TROUPE_REQUIRE does not name frameworks")]
async fn an_elastic_pytorch_job_loses_a_worker_takes_another_and_finishes() {
    let image = built(Image::pytorch).await;
    let settings = json!({ "pytorch-init-container-image": image.name() });
    let world = World::start(vec![image.clone()], Some(("kubeflow", settings))).await;
    let gate = world.gate();
    world.create(&PYTORCH.objects, &elastic(&image, gate.parent().unwrap())).await;
    let [first, second] = ["elastic-worker-0", "elastic-worker-1"];
    // Which process has which rank is up to the agents.
    let joins = async |pod: &str, times: usize| {
        let says = async || {
            let pod = world.get(&PODS, pod).await?;
            if pod.is_null() {
                return Ok(None);
            }
            let lines = world.said(&pod).lines().filter(|line| line.contains(" of 2 on ")).count();
            Ok((lines >= times).then_some(pod))
        };
        world.comes(&format!("{pod} to be one of two"), says).await
    };
    joins(first, 1).await;
    let lost = joins(second, 1).await;
    world.delete(&PODS, second).await;
    let another = |pod: &Value| !pod.is_null() && text(pod, "/metadata/uid") != text(&lost, "/metadata/uid");
    world.becomes(&PODS, second, "another pod", another).await;
    joins(second, 1).await;
    let stays = joins(first, 2).await;
    std::fs::write(&gate, "").unwrap();
    let ended = |job: &Value| is(job, "Succeeded") || is(job, "Failed");
    let job = world.becomes(&PYTORCH.objects, "elastic", "at its end", ended).await;
    let log = world.said(&stays);
    assert!(is(&job, "Succeeded") && log.contains(" of 2 is done: sum 2.0"), "{:#}\n{log}", job["status"]);
    world.stop("an elastic PyTorchJob that lost a worker").await;
}

/// One or two workers, which find the gate in this folder.
fn elastic(image: &Image, folder: &Path) -> Value {
    let torchrun = [
        "python3",
        "-m",
        "torch.distributed.run",
        "--no_python",
        "--redirects",
        "1",
        "--tee",
        "1",
        "python3",
        "-c",
        include_str!("elastic.py"),
    ];
    let container = json!({
        "name": PYTORCH.container,
        "image": image.name(),
        "imagePullPolicy": "Never",
        "command": torchrun,
        "volumeMounts": [{ "name": "gate", "mountPath": "/gate" }],
    });
    let spec = json!({
        "containers": [container],
        "volumes": [{ "name": "gate", "hostPath": { "path": folder } }],
    });
    json!({
        "apiVersion": "kubeflow.org/v1",
        "kind": PYTORCH.kind,
        "metadata": { "name": "elastic" },
        "spec": {
            "nprocPerNode": "1",
            "elasticPolicy": { "rdzvBackend": "c10d", "minReplicas": 1, "maxReplicas": 2, "maxRestarts": 5 },
            "runPolicy": { "cleanPodPolicy": "None" },
            PYTORCH.field: {
                "Worker": { "replicas": 2, "restartPolicy": "OnFailure", "template": { "spec": spec } },
            },
        },
    })
}

impl Pair {
    /// Runs the image's program to the job's end, and returns what the replicas have said: each the line that is wanted of its rank.
    async fn prints(
        &self,
        image: impl FnOnce() -> Result<Image> + Send + 'static,
        line: impl Fn(usize, &str) -> String,
    ) -> Vec<String> {
        let image = built(image).await;
        let settings = json!({ "pytorch-init-container-image": image.name() });
        let world = World::start(vec![image.clone()], Some(("kubeflow", settings))).await;
        world.create(&self.objects, &self.job(&image)).await;
        let ended = |job: &Value| is(job, "Succeeded") || is(job, "Failed");
        let job = world.becomes(&self.objects, "pair", "at its end", ended).await;
        let mut logs = vec![];
        for pod in self.pods() {
            // Of a job that has succeeded, another process than the one that decides may still run.
            let ended = |pod: &Value| ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"));
            logs.push(world.said(&world.becomes(&PODS, &pod, "at its end", ended).await));
        }
        assert!(is(&job, "Succeeded"), "{:#}\n{}", job["status"], logs.join("\n====\n"));
        for (rank, (log, pod)) in logs.iter().zip(self.pods()).enumerate() {
            assert!(log.contains(&line(rank, &pod)), "{log}");
        }
        world.stop(&format!("a {} of two processes", self.kind)).await;
        logs
    }

    /// The names of its pods, by rank.
    fn pods(&self) -> [String; 2] {
        let [first, second] = self.types;
        [(first, 0), (second, u8::from(first == second))]
            .map(|(of, index)| format!("pair-{}-{index}", of.to_lowercase()))
    }

    fn job(&self, image: &Image) -> Value {
        let container = json!({
            "name": self.container,
            "image": image.name(),
            "imagePullPolicy": "Never",
            "command": ["python3", "/srv/train.py"],
        });
        let mut replicas = Map::new();
        for of in self.types {
            let count = self.types.iter().filter(|other| **other == of).count();
            let template = json!({ "spec": { "containers": [container] } });
            replicas.insert(of.into(), json!({ "replicas": count, "restartPolicy": "Never", "template": template }));
        }
        json!({
            "apiVersion": "kubeflow.org/v1",
            "kind": self.kind,
            "metadata": { "name": "pair" },
            "spec": { "runPolicy": { "cleanPodPolicy": "None" }, self.field: replicas },
        })
    }
}
