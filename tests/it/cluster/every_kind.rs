//! A small job of each kind that is served.

use super::objects::{
    CRON_JOBS, INDEXED_JOBS, JAX_JOBS, KUBEFLOW_PADDLE_JOBS, Kind, MPI_JOBS, PADDLE_JOBS, PYTORCH_JOBS, RHINO_JOBS,
    TF_JOBS, XGBOOST_JOBS,
};
use harness::RUN_FOR;
use serde_json::{Value, json};

/// Returns a valid job of each kind, whose pods run for a second on fake nodes. Their names differ.
pub(crate) fn every_kind() -> Vec<(Kind, Value)> {
    let job = |kind: Kind, version: &str, word: &str, spec: Value| {
        let name = kind.resource().replace('.', "-");
        let object = json!({ "apiVersion": version, "kind": word, "metadata": { "name": name }, "spec": spec });
        (kind, object)
    };
    let training = |kind: Kind, word: &str, field: &str, roles: Value| {
        job(kind, "kubeflow.org/v1", word, json!({ field: roles, "runPolicy": {} }))
    };
    let run = json!({ "schedule": "0 2 1 1 *", "template": {
        "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "spec": { "worker": role(1, "paddle") } } });
    vec![
        job(
            PADDLE_JOBS,
            "batch.paddlepaddle.org/v1",
            "PaddleJob",
            json!({ "ps": role(1, "paddle"), "worker": role(2, "paddle") }),
        ),
        job(
            MPI_JOBS,
            "kubeflow.org/v2beta1",
            "MPIJob",
            json!({ "runPolicy": {}, "mpiReplicaSpecs": { "Launcher": role(1, "main"), "Worker": role(2, "main") } }),
        ),
        job(
            RHINO_JOBS,
            "openrhino.org/v1alpha2",
            "RhinoJob",
            json!({ "image": "docker.io/local/mpich:4", "appExec": "/usr/local/bin/pi", "parallelism": 2, "ttl": 600 }),
        ),
        job(
            INDEXED_JOBS,
            "batch.troupe.dev/v1alpha1",
            "IndexedJob",
            json!({ "completions": 2, "parallelism": 2, "template": template("main", "Never") }),
        ),
        job(CRON_JOBS, "batch.tutorial.kubebuilder.io/v1", "CronJob", run),
        training(
            TF_JOBS,
            "TFJob",
            "tfReplicaSpecs",
            json!({ "Chief": role(1, "tensorflow"), "Worker": role(1, "tensorflow") }),
        ),
        training(
            PYTORCH_JOBS,
            "PyTorchJob",
            "pytorchReplicaSpecs",
            json!({ "Master": role(1, "pytorch"), "Worker": role(1, "pytorch") }),
        ),
        training(
            XGBOOST_JOBS,
            "XGBoostJob",
            "xgbReplicaSpecs",
            json!({ "Master": role(1, "xgboost"), "Worker": role(1, "xgboost") }),
        ),
        training(JAX_JOBS, "JAXJob", "jaxReplicaSpecs", json!({ "Worker": role(2, "jax") })),
        training(KUBEFLOW_PADDLE_JOBS, "PaddleJob", "paddleReplicaSpecs", json!({ "Worker": role(2, "paddle") })),
    ]
}

fn role(replicas: u32, container: &str) -> Value {
    json!({ "replicas": replicas, "template": template(container, "OnFailure") })
}

fn template(container: &str, restart_policy: &str) -> Value {
    json!({
        "metadata": { "annotations": { RUN_FOR: "1s" } },
        "spec": {
            "restartPolicy": restart_policy,
            "containers": [{ "name": container, "image": "docker.io/local/train:1", "command": ["train"] }],
        },
    })
}
