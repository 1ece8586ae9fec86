//! Jobs that the original operators have begun are taken over: acceptance case A23, and the same for MPI.
//!
//! Every object is made by the test as the originals make it, with nothing of ours on it.

mod training;

use super::{
    objects::{
        BATCH_JOBS, CONFIG_MAPS, Kind, MPI_JOBS, PADDLE_JOBS, PODS, SECRETS, SERVICES, at, condition_of, owner, text,
    },
    played::launcher_pods,
    world::World,
};

use serde_json::{Value, json};
use std::collections::BTreeMap;

const FINALIZER: &str = "finalizers.paddlepaddle.org";
/// The port that the original drew.
const PORT: u32 = 54081;

/// Uid and resource version of objects, by kind and name.
type Versions = BTreeMap<(&'static str, String), (String, String)>;

impl World {
    async fn versions(&self, kinds: &[Kind]) -> Versions {
        let mut versions = Versions::new();
        for kind in kinds {
            for object in self.list(kind).await.unwrap() {
                let field = |name: &str| text(&object, &format!("/metadata/{name}")).to_owned();
                versions.insert((kind.plural(), field("name")), (field("uid"), field("resourceVersion")));
            }
        }
        versions
    }

    async fn pod_runs(&self, name: &str) -> Value {
        self.is(&PODS, name, "Running", |pod| at(pod, "/status/phase") == "Running").await
    }

    /// Returns when the operator has written down that the job is its own.
    async fn is_served(&self, kind: &Kind, job: &str) {
        self.is(kind, job, "served", |job| !at(job, "/status/troupe/headline").is_null()).await;
    }

    /// The pod succeeds.
    async fn ends(&self, pod: &str) {
        let now = json!({ "metadata": { "annotations": { (harness::RUN_FOR): "0s" } } });
        self.patch(&PODS, pod, &now).await;
    }

    /// The operator's writes to these kinds, whatever came of them.
    fn writes_to(&self, kinds: &[Kind]) -> BTreeMap<String, usize> {
        let mut table = self.requests().without_watches().table();
        table.retain(|what, _| {
            let (verb, target) = what.split_once(' ').unwrap();
            verb != "list" && kinds.iter().any(|kind| kind.plural() == target)
        });
        table
    }
}

fn metadata(name: &str, job: &Value, labels: &Value) -> Value {
    json!({ "name": name, "labels": labels, "ownerReferences": owner(job) })
}

pub(super) mod paddle_operator {
    //! What paddle-operator v0.3.5 makes.

    use super::{FINALIZER, PORT, metadata};
    use serde_json::{Value, json};

    pub(crate) fn job() -> Value {
        let container = json!({ "name": "paddle", "image": "docker.io/local/paddle:1" });
        let template = json!({ "spec": { "containers": [container] } });
        let role = json!({ "replicas": 2, "template": template });
        json!({
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": { "name": "wide", "finalizers": [FINALIZER] },
            "spec": { "withGloo": 1, "cleanPodPolicy": "Never", "ps": role, "worker": role },
        })
    }

    pub(crate) fn pod(job: &Value, role: &str, index: u32) -> Value {
        let name = format!("wide-{role}-{index}");
        let training = if role == "ps" { "PSERVER" } else { "TRAINER" };
        let mut metadata = metadata(&name, job, &json!({ "paddle-res-name": name, "paddle-res-type": role }));
        metadata["annotations"] = json!({ "paddle-resource": role });
        let address = json!({ "fieldRef": { "apiVersion": "v1", "fieldPath": "status.podIP" } });
        let walk = format!("for i in 0 1; do nslookup wide-{role}-$i; done; sleep 2");
        let init = json!({
            "name": "coord-paddle",
            "image": "docker.io/library/alpine:3.10",
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", walk],
            "resources": { "requests": { "cpu": "10m", "memory": "10m" } },
        });
        let container = json!({
            "name": "paddle",
            "image": "docker.io/local/paddle:1",
            "env": [
                { "name": "POD_IP", "valueFrom": address },
                { "name": "PADDLE_TRAINER_ID", "value": index.to_string() },
                { "name": "TRAINING_ROLE", "value": training },
                { "name": "PADDLE_TRAINING_ROLE", "value": training },
            ],
            "envFrom": [{ "configMapRef": { "name": "wide" } }],
        });
        let spec = json!({
            "hostname": name,
            "subdomain": name,
            "restartPolicy": "Never",
            "initContainers": [init],
            "containers": [container],
        });
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
    }

    pub(crate) fn service(job: &Value, pod: &str) -> Value {
        let mut metadata = metadata(pod, job, &Value::Null);
        metadata.as_object_mut().unwrap().remove("labels");
        let ports: Vec<_> = (0..20).map(|n| json!({ "name": format!("p-{n}"), "port": 36000 + n })).collect();
        let spec = json!({
            "clusterIP": "None",
            "selector": { "paddle-res-name": pod },
            "ports": ports,
            "publishNotReadyAddresses": true,
        });
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec })
    }

    /// With the gloo endpoint that is ps 0's own, which was a mistake.
    pub(crate) fn config_map(job: &Value, ps: &[String], workers: &[String]) -> Value {
        let endpoints = |ips: &[String]| ips.iter().map(|ip| format!("{ip}:{PORT}")).collect::<Vec<_>>().join(",");
        let data = json!({
            "TRAINER_PORTS_NUM": "20",
            "PADDLE_PORT": PORT.to_string(),
            "PADDLE_PSERVERS_IP_PORT_LIST": endpoints(ps),
            "PADDLE_TRAINER_ENDPOINTS": endpoints(workers),
            "PADDLE_TRAINERS": workers.join(","),
            "PADDLE_TRAINERS_NUM": "2",
            "PADDLE_WITH_GLOO": "1",
            "PADDLE_GLOO_RENDEZVOUS": "3",
            "PADDLE_GLOO_HTTP_ENDPOINT": format!("{}:{PORT}", ps[0]),
        });
        let metadata = metadata("wide", job, &json!({ "paddle-res-name": "wide" }));
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
    }

    /// Of the running job; its references carry resource versions.
    pub(crate) fn status(pods: &[Value]) -> Value {
        let reference = |pod: &Value| {
            let field = |name: &str| pod["metadata"][name].clone();
            json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": field("namespace"),
                "name": field("name"),
                "uid": field("uid"),
                "resourceVersion": field("resourceVersion"),
            })
        };
        let role = |pods: &[Value]| json!({ "running": 2, "refs": pods.iter().map(reference).collect::<Vec<_>>() });
        json!({
            "phase": "Running",
            "mode": "PS",
            "ps": role(&pods[..2]),
            "worker": role(&pods[2..]),
            "startTime": "2026-01-02T03:04:05Z",
        })
    }
}

// A23.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_running_paddle_job_of_the_original_operator_is_taken_over_as_it_is() {
    let world = World::shared("paddle-adopted").await;
    let job = world.create(&PADDLE_JOBS, &paddle_operator::job()).await;
    let mut names = vec![];
    for (role, index) in [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1)] {
        let name = format!("wide-{role}-{index}");
        world.create(&PODS, &paddle_operator::pod(&job, role, index)).await;
        world.create(&SERVICES, &paddle_operator::service(&job, &name)).await;
        names.push(name);
    }
    let mut pods = vec![];
    for name in &names {
        pods.push(world.pod_runs(name).await);
    }
    let ips: Vec<_> = pods.iter().map(|pod| text(pod, "/status/podIP").to_owned()).collect();
    let map = paddle_operator::config_map(&job, &ips[..2], &ips[2..]);
    let map = world.create(&CONFIG_MAPS, &map).await;
    world.set_status(&PADDLE_JOBS, "wide", &paddle_operator::status(&pods)).await;
    let children = [PODS, SERVICES, CONFIG_MAPS];
    let before = world.versions(&children).await;

    let operator = world.operator().await;
    world.is_served(&PADDLE_JOBS, "wide").await;
    assert_eq!(world.versions(&children).await, before);
    for name in &names {
        world.ends(name).await;
    }
    let completed = |job: &Value| at(job, "/status/phase") == "Completed";
    let done = world.is(&PADDLE_JOBS, "wide", "Completed", completed).await;
    assert_eq!(text(&done, "/status/startTime"), "2026-01-02T03:04:05Z");
    assert_eq!(done["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(world.get(&CONFIG_MAPS, "wide").await.unwrap(), map);
    assert_eq!(world.writes_to(&children), BTreeMap::new());

    // The finalizer, which nobody else would remove, does not keep the job.
    world.delete(&PADDLE_JOBS, "wide").await;
    world.is_gone(&PADDLE_JOBS, "wide").await;
    for kind in children {
        world.are(&kind, &[]).await;
    }
    operator.stop().await;
}

mod mpi_operator {
    //! What mpi-operator v0.8.2 makes.

    use super::metadata;
    use serde_json::{Value, json};

    pub(super) fn job() -> Value {
        let template = |name: &str| {
            let container = json!({ "name": name, "image": "docker.io/local/openmpi:1" });
            json!({ "spec": { "containers": [container] } })
        };
        let replicas = json!({
            "Launcher": { "replicas": 1, "template": template("launcher") },
            "Worker": { "replicas": 2, "template": template("worker") },
        });
        json!({
            "apiVersion": "kubeflow.org/v2beta1",
            "kind": "MPIJob",
            "metadata": { "name": "pi" },
            "spec": { "runPolicy": { "cleanPodPolicy": "Running" }, "mpiReplicaSpecs": replicas },
        })
    }

    fn labels(role: &str) -> Value {
        json!({
            "training.kubeflow.org/operator-name": "mpi-operator",
            "training.kubeflow.org/job-name": "pi",
            "training.kubeflow.org/job-role": role,
        })
    }

    pub(super) fn service(job: &Value) -> Value {
        let selector =
            json!({ "training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "pi" });
        let metadata = metadata("pi", job, &json!({ "app": "pi" }));
        let spec = json!({ "clusterIP": "None", "selector": selector });
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec })
    }

    pub(super) fn config_map(job: &Value, namespace: &str, running: &[u32]) -> Value {
        let host = |index: u32| format!("pi-worker-{index}.pi.{namespace}.svc");
        let hostfile: String = (0..2).map(|index| format!("{} slots=1\n", host(index))).collect();
        let discover: String = running.iter().map(|index| format!("echo {}\n", host(*index))).collect();
        let data = json!({ "hostfile": hostfile, "discover_hosts.sh": format!("#!/bin/sh\n{discover}") });
        let metadata = metadata("pi-config", job, &json!({ "app": "pi" }));
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
    }

    pub(super) fn secret(job: &Value) -> Value {
        let data = json!({ "ssh-privatekey": "made by the original", "ssh-publickey": "made by the original" });
        let metadata = metadata("pi-ssh", job, &json!({ "app": "pi" }));
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "kubernetes.io/ssh-auth",
            "stringData": data,
        })
    }

    fn ssh_auth() -> Value {
        let items = json!([
            { "key": "ssh-privatekey", "path": "id_rsa" },
            { "key": "ssh-publickey", "path": "id_rsa.pub" },
            { "key": "ssh-publickey", "path": "authorized_keys" },
        ]);
        json!({ "name": "ssh-auth", "secret": { "secretName": "pi-ssh", "defaultMode": 0o600, "items": items } })
    }

    pub(super) fn worker(job: &Value, namespace: &str, index: u32) -> Value {
        let name = format!("pi-worker-{index}");
        let mut labels = labels("worker");
        labels["training.kubeflow.org/replica-index"] = json!(index.to_string());
        let container = json!({
            "name": "worker",
            "image": "docker.io/local/openmpi:1",
            "command": ["/usr/sbin/sshd", "-De"],
            "env": [{ "name": "K_MPI_JOB_ROLE", "value": "worker" }],
            "volumeMounts": [{ "name": "ssh-auth", "mountPath": "/root/.ssh" }],
        });
        let spec = json!({
            "hostname": name,
            "subdomain": "pi",
            "restartPolicy": "Never",
            "dnsConfig": { "searches": [format!("pi.{namespace}.svc.cluster.local")] },
            "containers": [container],
            "volumes": [ssh_auth()],
        });
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata(&name, job, &labels), "spec": spec })
    }

    pub(super) fn launcher(job: &Value) -> Value {
        let env = |name: &str, value: &str| json!({ "name": name, "value": value });
        let container = json!({
            "name": "launcher",
            "image": "docker.io/local/openmpi:1",
            "env": [
                env("K_MPI_JOB_ROLE", "launcher"),
                env("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
                env("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"),
                env("OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"),
                env("OMPI_MCA_orte_set_default_slots", "1"),
                env("NVIDIA_VISIBLE_DEVICES", ""),
                env("NVIDIA_DRIVER_CAPABILITIES", ""),
            ],
            "volumeMounts": [
                { "name": "ssh-auth", "mountPath": "/root/.ssh" },
                { "name": "mpi-job-config", "mountPath": "/etc/mpi" },
            ],
        });
        let items = json!([
            { "key": "hostfile", "path": "hostfile", "mode": 0o444 },
            { "key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555 },
        ]);
        let config = json!({ "name": "mpi-job-config", "configMap": { "name": "pi-config", "items": items } });
        let pod = json!({
            "hostname": "pi-launcher",
            "subdomain": "pi",
            "restartPolicy": "OnFailure",
            "containers": [container],
            "volumes": [ssh_auth(), config],
        });
        let template = json!({ "metadata": { "labels": labels("launcher") }, "spec": pod });
        let spec = json!({ "podReplacementPolicy": "Failed", "template": template });
        let metadata = metadata("pi-launcher", job, &json!({ "app": "pi" }));
        json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec })
    }

    /// Of the running job.
    pub(super) fn status(namespace: &str) -> Value {
        let time = "2026-01-02T03:04:05Z";
        let condition = |kind: &str, message: String| {
            json!({
                "type": kind,
                "status": "True",
                "reason": format!("MPIJob{kind}"),
                "message": message,
                "lastUpdateTime": time,
                "lastTransitionTime": time,
            })
        };
        json!({
            "conditions": [
                condition("Created", format!("MPIJob {namespace}/pi is created.")),
                condition("Running", format!("MPIJob {namespace}/pi is running.")),
            ],
            "replicaStatuses": { "Launcher": { "active": 1 }, "Worker": { "active": 2 } },
            "startTime": time,
        })
    }
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_running_mpi_job_of_the_original_operator_is_taken_over_as_it_is() {
    let world = World::shared("mpi-adopted").await;
    let job = world.create(&MPI_JOBS, &mpi_operator::job()).await;
    world.create(&SERVICES, &mpi_operator::service(&job)).await;
    world.create(&CONFIG_MAPS, &mpi_operator::config_map(&job, &world.name, &[0, 1])).await;
    world.create(&SECRETS, &mpi_operator::secret(&job)).await;
    for index in 0..2 {
        world.create(&PODS, &mpi_operator::worker(&job, &world.name, index)).await;
    }
    for index in 0..2 {
        world.pod_runs(&format!("pi-worker-{index}")).await;
    }
    world.create(&BATCH_JOBS, &mpi_operator::launcher(&job)).await;
    world.set_status(&MPI_JOBS, "pi", &mpi_operator::status(&world.name)).await;
    let launcher = &launcher_pods(&world, "pi", 1).await[0];
    world.pod_runs(launcher).await;
    let ready = |job: &Value| at(job, "/status/ready") == 1;
    world.is(&BATCH_JOBS, "pi-launcher", "ready", ready).await;
    let children = [PODS, SERVICES, CONFIG_MAPS, SECRETS, BATCH_JOBS];
    let before = world.versions(&children).await;

    let operator = world.operator().await;
    world.is_served(&MPI_JOBS, "pi").await;
    assert_eq!(world.versions(&children).await, before);
    world.ends(launcher).await;
    let succeeded = |job: &Value| condition_of(job, "Succeeded").is_some();
    let done = world.is(&MPI_JOBS, "pi", "Succeeded", succeeded).await;
    assert_eq!(text(&done, "/status/startTime"), "2026-01-02T03:04:05Z");
    assert_eq!(text(condition_of(&done, "Created").unwrap(), "/lastTransitionTime"), "2026-01-02T03:04:05Z");
    for worker in ["pi-worker-0", "pi-worker-1"] {
        world.is_gone(&PODS, worker).await;
    }
    let kept = [SERVICES, CONFIG_MAPS, SECRETS];
    let left: Versions = before.into_iter().filter(|((kind, _), _)| !["pods", "jobs"].contains(kind)).collect();
    assert_eq!(world.versions(&kept).await, left);
    let writes = world.writes_to(&[PODS, SERVICES, CONFIG_MAPS, BATCH_JOBS]);
    assert_eq!(writes, BTreeMap::from([("delete pods".to_owned(), 2)]));
    // Nobody watches Secrets: that there is one is found by trying to make it.
    assert!(world.requests().that("create", "secrets").iter().all(|record| record.code == 409));
    operator.stop().await;
}
