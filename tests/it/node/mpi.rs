//! Real Open MPI over ssh.

use super::world::{World, built, hosts, is};
use crate::cluster::{
    jobs::mpi,
    objects::{BATCH_JOBS, MPI_JOBS, PODS, at, condition_of, text},
};
use harness::images::Image;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path};

const WORKERS: [&str; 2] = ["pi-worker-0", "pi-worker-1"];

// M01 to M04 with nothing played: the ranks must be on different hosts, since with a wrong environment Open MPI runs
// every rank in the launcher and the job still succeeds.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_node, ignore = "needs Go, openssl, apt and root")]
async fn an_mpi_job_runs_real_open_mpi_on_two_hosts() {
    let image = built(Image::openmpi).await;
    let world = World::start(vec![image.clone()], None).await;
    world.create(&MPI_JOBS, &pi(&image, None)).await;
    let log = world.succeeds().await;
    assert!(log.contains("pi is approximately 3.14"), "{log}");
    for worker in WORKERS {
        world.is_gone(&PODS, worker).await;
    }
    world.stop("an MPIJob of two workers").await;
}

// M10, M09: the ranks are in the middle of their work, which only the pods' end ends.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_node, ignore = "needs Go, openssl, apt and root")]
async fn a_suspended_mpi_job_leaves_the_node_and_runs_to_its_end_when_it_is_resumed() {
    let image = built(Image::openmpi).await;
    let world = World::start(vec![image.clone()], None).await;
    let gate = world.gate();
    world.create(&MPI_JOBS, &pi(&image, Some(&gate))).await;
    let before = world.computes(0).await;
    let running = world.becomes(&MPI_JOBS, "pi", "Running", |job| is(job, "Running")).await;

    world.patch(&MPI_JOBS, "pi", &json!({ "spec": { "runPolicy": { "suspend": true } } })).await;
    world.are(&PODS, &[]).await;
    let suspended = |job: &Value| is(job, "Suspended") && !is(job, "Running");
    let job = world.becomes(&MPI_JOBS, "pi", "Suspended", suspended).await;
    assert_eq!(at(&job, "/status/startTime"), at(&running, "/status/startTime"));
    let batch = world.get(&BATCH_JOBS, "pi-launcher").await.unwrap();
    assert_eq!((at(&batch, "/spec/suspend"), at(&batch, "/status/failed")), (&json!(true), &Value::Null));

    fs::write(&gate, "").unwrap();
    world.patch(&MPI_JOBS, "pi", &json!({ "spec": { "runPolicy": { "suspend": false } } })).await;
    let log = world.succeeds().await;
    assert!(log.contains("pi is approximately 3.14") && !log.contains("computing until"), "{log}");
    let after: BTreeSet<_> = world.launchers().await.iter().map(|pod| text(pod, "/metadata/uid").to_owned()).collect();
    assert_eq!((after.len(), after.contains(text(&before, "/metadata/uid"))), (1, false), "one launcher, another");
    let job = world.get(&MPI_JOBS, "pi").await.unwrap();
    assert_eq!(reason(&job, "Suspended"), "MPIJobResumed");
    world.stop("suspending and resuming an MPIJob").await;
}

// M15: the pod comes back, but Open MPI takes no daemon back: the run that lost it fails, and the launcher's container
// runs again, with both hosts.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_node, ignore = "needs Go, openssl, apt and root")]
async fn a_worker_deleted_in_mid_run_comes_back_and_the_launcher_runs_again() {
    let image = built(Image::openmpi).await;
    let world = World::start(vec![image.clone()], None).await;
    let gate = world.gate();
    world.create(&MPI_JOBS, &pi(&image, Some(&gate))).await;
    world.computes(0).await;
    let killed = world.get(&PODS, WORKERS[1]).await.unwrap();

    world.delete(&PODS, WORKERS[1]).await;
    let another = |pod: &Value| !pod.is_null() && text(pod, "/metadata/uid") != text(&killed, "/metadata/uid");
    world.becomes(&PODS, WORKERS[1], "another pod", another).await;
    // More than once if the name of the new pod is not yet served.
    world.computes(1).await;
    fs::write(&gate, "").unwrap();
    let log = world.succeeds().await;
    assert!(log.contains("pi is approximately 3.14"), "{log}");
    assert_eq!(world.launchers().await.len(), 1, "the same pod");
    let job = world.get(&MPI_JOBS, "pi").await.unwrap();
    assert_eq!(at(&job, "/status/replicaStatuses/Launcher"), &json!({ "succeeded": 1 }));
    world.stop("an MPIJob that lost a worker").await;
}

/// Two ranks on two workers, until there is a file if one is named.
pub(super) fn pi(image: &Image, gate: Option<&Path>) -> Value {
    let mut command = vec!["mpirun", "--allow-run-as-root", "-n", "2", "/usr/local/bin/pi"];
    command.extend(gate.map(|_| "/gate/open"));
    let mut job = mpi("pi").cleaned().on_image(image.name()).manifest;
    let roles = &mut job["spec"]["mpiReplicaSpecs"];
    roles["Launcher"]["template"]["spec"]["containers"][0]["command"] = json!(command);
    if let Some(folder) = gate.and_then(Path::parent) {
        let pod = &mut roles["Worker"]["template"]["spec"];
        pod["volumes"] = json!([{ "name": "gate", "hostPath": { "path": folder } }]);
        pod["containers"][0]["volumeMounts"] = json!([{ "name": "gate", "mountPath": "/gate" }]);
    }
    job
}

impl World {
    async fn launchers(&self) -> Vec<Value> {
        self.pods("training.kubeflow.org/job-role", "launcher").await
    }

    /// The launcher's pod, once its container was started again so often, and the ranks are at work on both hosts.
    pub(super) async fn computes(&self, restarts: u64) -> Value {
        let again = |pod: &Value| at(pod, "/status/containerStatuses/0/restartCount").as_u64() >= Some(restarts);
        let pod = self.comes("both ranks to be at work", async || {
            let pod = self.launchers().await.into_iter().next();
            Ok(pod.filter(|pod| again(pod) && self.said(pod).ends_with("computing until there is /gate/open\n")))
        });
        let pod = pod.await;
        assert_on_both_hosts(&self.said(&pod));
        pod
    }

    /// What the last launcher of the job said, which succeeds.
    pub(super) async fn succeeds(&self) -> String {
        let ended = |job: &Value| is(job, "Succeeded") || is(job, "Failed");
        let job = self.becomes(&MPI_JOBS, "pi", "at its end", ended).await;
        let log = self.launchers().await.last().map(|pod| self.said(pod)).unwrap_or_default();
        assert!(is(&job, "Succeeded"), "{:#}\nthe launcher said:\n{log}", job["status"]);
        assert_on_both_hosts(&log);
        log
    }
}

fn assert_on_both_hosts(log: &str) {
    let on: BTreeSet<_> = hosts(log).into_iter().collect();
    assert_eq!(on, BTreeSet::from(WORKERS), "{log}");
}

fn reason<'a>(job: &'a Value, condition: &str) -> &'a str {
    condition_of(job, condition).map(|one| text(one, "/reason")).unwrap_or_default()
}
