//! Valid jobs that have, together, every field of every kind.

use crate::cluster::objects::{
    CRON_JOBS, INDEXED_JOBS, JAX_JOBS, KUBEFLOW_PADDLE_JOBS, Kind, MPI_JOBS, PADDLE_JOBS, PYTORCH_JOBS, RHINO_JOBS,
    TF_JOBS, XGBOOST_JOBS,
};
use serde_json::{Map, Value, json};

/// A kind, and jobs of it that its users may write.
pub(crate) struct Samples {
    pub(crate) kind: Kind,
    pub(crate) jobs: Vec<Sample>,
}

/// A valid job.
pub(crate) struct Sample {
    pub(crate) job: Value,
    /// The field of it of which every such job is warned.
    pub(crate) warned: Option<&'static str>,
}

/// Returns the samples of every kind that is served.
pub(crate) fn samples() -> Vec<Samples> {
    vec![paddle(), mpi(), rhino(), indexed(), cron(), tf(), pytorch(), xgboost(), jax(), kubeflow_paddle()]
}

fn of(kind: Kind, version: &str, word: &str, specs: impl IntoIterator<Item = Value>) -> Samples {
    let job = |spec| json!({ "apiVersion": version, "kind": word, "metadata": {}, "spec": spec });
    Samples { kind, jobs: specs.into_iter().map(|spec| Sample { job: job(spec), warned: None }).collect() }
}

impl Samples {
    /// The last of the jobs is warned of this field.
    fn last_is_warned_of(mut self, field: &'static str) -> Self {
        self.jobs.last_mut().unwrap().warned = Some(field);
        self
    }
}

/// A template whose pods no scheduler takes.
fn template(container: &str) -> Value {
    let container = json!({ "name": container, "image": "docker.io/local/train:1", "command": ["train"] });
    json!({ "spec": { "containers": [container] } })
}

fn replicas(count: u32, container: &str) -> Value {
    json!({ "replicas": count, "restartPolicy": "OnFailure", "template": template(container) })
}

fn scheduling_policy() -> Value {
    json!({ "minAvailable": 1, "queue": "q", "priorityClass": "high", "minResources": { "cpu": 1 } })
}

fn paddle() -> Samples {
    let role = || json!({ "replicas": 1, "requests": 1, "limits": 1, "template": template("paddle") });
    let servers = json!({ "cleanPodPolicy": "Never", "intranet": "Service", "withGloo": 1,
        "schedulingPolicy": scheduling_policy(), "ps": role(), "worker": role(), "heter": role() });
    let elastic = json!({ "elastic": 1, "worker": role() });
    of(PADDLE_JOBS, "batch.paddlepaddle.org/v1", "PaddleJob", [servers, elastic]).last_is_warned_of("spec.elastic")
}

/// `runPolicy` of Kubeflow's kinds.
fn run_policy(manager: &str) -> Value {
    let mut scheduling = scheduling_policy();
    scheduling["scheduleTimeoutSeconds"] = json!(60);
    json!({ "cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 60, "activeDeadlineSeconds": 600, "backoffLimit": 3,
        "suspend": false, "managedBy": manager, "schedulingPolicy": scheduling })
}

fn mpi() -> Samples {
    let spec = json!({ "slotsPerWorker": 1, "runLauncherAsWorker": false, "sshAuthMountPath": "/root/.ssh",
        "launcherCreationPolicy": "AtStartup", "mpiImplementation": "OpenMPI", "runPolicy": run_policy("kubeflow.org/mpi-operator"),
        "mpiReplicaSpecs": { "Launcher": replicas(1, "main"), "Worker": replicas(1, "main") } });
    of(MPI_JOBS, "kubeflow.org/v2beta1", "MPIJob", [spec])
}

fn rhino() -> Samples {
    let spec = json!({ "image": "docker.io/local/mpich:4", "appExec": "/usr/local/bin/pi", "appArgs": ["1"], "parallelism": 1,
        "ttl": 600, "dataServer": "nfs.example", "dataPath": "/data", "memoryAllocationMode": "FixedTotalMemory",
        "memoryAllocationSize": 1 });
    of(RHINO_JOBS, "openrhino.org/v1alpha2", "RhinoJob", [spec])
}

fn indexed() -> Samples {
    let codes =
        json!({ "action": "Count", "onExitCodes": { "containerName": "main", "operator": "In", "values": [42] } });
    let conditions =
        json!({ "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] });
    let mut never = template("main");
    never["spec"]["restartPolicy"] = json!("Never");
    let spec = |rule: Value| {
        json!({ "parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 1, "backoffLimitPerIndex": 1,
            "maxFailedIndexes": 1, "activeDeadlineSeconds": 600, "ttlSecondsAfterFinished": 60, "suspend": false,
            "managedBy": "batch.troupe.dev/job-controller", "podReplacementPolicy": "Failed", "podFailurePolicy": { "rules": [rule] },
            "successPolicy": { "rules": [{ "succeededIndexes": "0", "succeededCount": 1 }] }, "template": never })
    };
    of(INDEXED_JOBS, "batch.troupe.dev/v1alpha1", "IndexedJob", [spec(codes), spec(conditions)])
}

fn cron() -> Samples {
    let mut job = json!({ "spec": { "template": template("main") } });
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    let spec = json!({ "schedule": "0 2 1 1 *", "timeZone": "Europe/Berlin", "startingDeadlineSeconds": 600,
        "concurrencyPolicy": "Replace", "suspend": false, "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 1,
        "jobTemplate": job });
    of(CRON_JOBS, "batch.tutorial.kubebuilder.io/v1", "CronJob", [spec])
}

/// A kind of training-operator: its types of replicas and its own fields.
fn training<const N: usize>(kind: Kind, word: &str, field: &str, specs: [(Value, Value); N]) -> Samples {
    let spec = |(roles, own): (Value, Value)| {
        let mut spec: Map<String, Value> = own.as_object().unwrap().clone();
        spec.insert(field.into(), roles);
        spec.insert("runPolicy".into(), run_policy("kubeflow.org/training-operator"));
        spec.into()
    };
    of(kind, "kubeflow.org/v1", word, specs.map(spec))
}

fn tf() -> Samples {
    let pods = |count| replicas(count, "tensorflow");
    let roles = json!({ "Chief": pods(1), "PS": pods(1), "Worker": pods(1), "Evaluator": pods(1) });
    let own = json!({ "successPolicy": "AllWorkers", "enableDynamicWorker": false });
    training(TF_JOBS, "TFJob", "tfReplicaSpecs", [(roles, own)])
}

fn pytorch() -> Samples {
    let pods = || replicas(1, "pytorch");
    let elastic = json!({ "elasticPolicy": { "minReplicas": 1, "maxReplicas": 2, "maxRestarts": 3, "rdzvBackend": "c10d",
        "rdzvPort": 29400, "rdzvHost": "here", "rdzvId": "one", "rdzvConf": [{ "key": "timeout", "value": "60" }],
        "standalone": false, "metrics": [{ "type": "Resource", "resource": { "name": "cpu",
            "target": { "type": "Utilization", "averageUtilization": 80 } } }] } });
    let led = (json!({ "Master": pods(), "Worker": pods() }), json!({ "nprocPerNode": "2" }));
    let old = (json!({ "Worker": pods() }), json!({ "elasticPolicy": { "nProcPerNode": 1 } }));
    training(PYTORCH_JOBS, "PyTorchJob", "pytorchReplicaSpecs", [led, (json!({ "Worker": pods() }), elastic), old])
        .last_is_warned_of("spec.elasticPolicy.nProcPerNode")
}

fn xgboost() -> Samples {
    let pods = || replicas(1, "xgboost");
    let led = json!({ "Master": pods(), "Worker": pods() });
    training(XGBOOST_JOBS, "XGBoostJob", "xgbReplicaSpecs", [(led, json!({}))])
}

fn jax() -> Samples {
    training(JAX_JOBS, "JAXJob", "jaxReplicaSpecs", [(json!({ "Worker": replicas(2, "jax") }), json!({}))])
}

fn kubeflow_paddle() -> Samples {
    let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 } } });
    let elastic =
        json!({ "elasticPolicy": { "minReplicas": 1, "maxReplicas": 2, "maxRestarts": 3, "metrics": [metric] } });
    let workers = json!({ "Worker": replicas(1, "paddle") });
    let led = json!({ "Master": replicas(1, "paddle"), "Worker": replicas(1, "paddle") });
    training(KUBEFLOW_PADDLE_JOBS, "PaddleJob", "paddleReplicaSpecs", [(led, json!({})), (workers, elastic)])
        .last_is_warned_of("spec.elasticPolicy")
}
