//! What training-operator v1.9.3 makes of a PyTorchJob, as it was seen to.

use super::metadata;
use crate::cluster::{
    objects::{PODS, PYTORCH_JOBS, SERVICES, condition_of, text},
    world::World,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const TIME: &str = "2026-01-02T03:04:05Z";

fn job() -> Value {
    let template = json!({ "spec": { "containers": [{ "name": "pytorch", "image": "docker.io/local/pytorch:1" }] } });
    let replicas = |count: u32| json!({ "replicas": count, "template": template });
    json!({
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": { "name": "pt" },
        "spec": { "pytorchReplicaSpecs": { "Master": replicas(1), "Worker": replicas(2) } },
    })
}

fn labels(role: &str, index: u32) -> Value {
    json!({
        "training.kubeflow.org/job-name": "pt",
        "training.kubeflow.org/operator-name": "pytorchjob-controller",
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": index.to_string(),
    })
}

fn pod(job: &Value, role: &str, index: u32) -> Value {
    let mut labels = labels(role, index);
    if role == "master" {
        labels["training.kubeflow.org/job-role"] = json!("master");
    }
    let rank = if role == "master" { index } else { index + 1 }.to_string();
    let env = [
        ("PYTHONUNBUFFERED", "1"),
        ("MASTER_PORT", "23456"),
        ("PET_MASTER_PORT", "23456"),
        ("MASTER_ADDR", "pt-master-0"),
        ("PET_MASTER_ADDR", "pt-master-0"),
        ("WORLD_SIZE", "3"),
        ("RANK", &rank),
        ("PET_NODE_RANK", &rank),
        ("PET_NPROC_PER_NODE", "auto"),
        ("PET_NNODES", "3"),
    ];
    let container = json!({
        "name": "pytorch",
        "image": "docker.io/local/pytorch:1",
        "ports": [{ "name": "pytorchjob-port", "containerPort": 23456, "protocol": "TCP" }],
        "env": env.map(|(name, value)| json!({ "name": name, "value": value })),
    });
    let mut spec = json!({ "restartPolicy": "OnFailure", "containers": [container] });
    if role == "worker" {
        let init = json!({
            "name": "init-pytorch",
            "image": "alpine:3.10",
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", "until nslookup pt-master-0; do sleep 2; done"],
            "resources": {
                "limits": { "cpu": "100m", "memory": "20Mi" },
                "requests": { "cpu": "50m", "memory": "10Mi" },
            },
        });
        spec["initContainers"] = json!([init]);
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata(&name(role, index), job, &labels), "spec": spec })
}

fn name(role: &str, index: u32) -> String {
    format!("pt-{role}-{index}")
}

fn service(job: &Value, role: &str, index: u32) -> Value {
    let labels = labels(role, index);
    let ports = json!([{ "name": "pytorchjob-port", "port": 23456, "protocol": "TCP", "targetPort": 23456 }]);
    let spec = json!({ "clusterIP": "None", "selector": labels, "ports": ports });
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata(&name(role, index), job, &labels), "spec": spec })
}

/// Of the running job.
fn status() -> Value {
    let condition = |kind: &str, message: &str| {
        json!({
            "type": kind,
            "status": "True",
            "reason": format!("PyTorchJob{kind}"),
            "message": message,
            "lastUpdateTime": TIME,
            "lastTransitionTime": TIME,
        })
    };
    let count = |role: &str, active: u32| {
        let labels = ["job-name=pt", "operator-name=pytorchjob-controller", &format!("replica-type={role}")];
        let selector = labels.map(|label| format!("training.kubeflow.org/{label}")).join(",");
        json!({ "active": active, "selector": selector })
    };
    json!({
        "conditions": [
            condition("Created", "PyTorchJob pt is created."),
            condition("Running", "PyTorchJob pt is running."),
        ],
        "replicaStatuses": { "Master": count("master", 1), "Worker": count("worker", 2) },
        "startTime": TIME,
    })
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_running_training_job_of_the_original_operator_is_taken_over_as_it_is() {
    let world = World::shared("training-adopted").await;
    let job = world.create(&PYTORCH_JOBS, &job()).await;
    let replicas = [("master", 0), ("worker", 0), ("worker", 1)];
    for (role, index) in replicas {
        world.create(&PODS, &pod(&job, role, index)).await;
        world.create(&SERVICES, &service(&job, role, index)).await;
    }
    for (role, index) in replicas {
        world.pod_runs(&name(role, index)).await;
    }
    world.set_status(&PYTORCH_JOBS, "pt", &status()).await;
    let children = [PODS, SERVICES];
    let before = world.versions(&children).await;

    let operator = world.operator().await;
    world.is_served(&PYTORCH_JOBS, "pt").await;
    assert_eq!(world.versions(&children).await, before);
    let mut taken_over = world.get(&PYTORCH_JOBS, "pt").await.unwrap()["status"].clone();
    taken_over.as_object_mut().unwrap().remove("troupe");
    assert_eq!(taken_over, status(), "nothing of the status is another");

    world.ends("pt-master-0").await;
    let succeeded = |job: &Value| condition_of(job, "Succeeded").is_some();
    let done = world.is(&PYTORCH_JOBS, "pt", "Succeeded", succeeded).await;
    assert_eq!(text(&done, "/status/startTime"), TIME);
    assert_eq!(text(condition_of(&done, "Created").unwrap(), "/lastTransitionTime"), TIME);
    assert_eq!(world.writes_to(&children), BTreeMap::new());
    operator.stop().await;
}
