//! A suspended MPIJob, as Kueue uses it: M08 to M11 with a real Job controller, which has rules of its own about what may
//! change in a Job.

use super::{
    jobs::mpi,
    objects::{BATCH_JOBS, MPI_JOBS, PODS, at, condition_of, text},
    played::{launcher_pods, running},
    world::World,
};

use serde_json::{Value, json};

const LAUNCHER: &str = "/spec/template/spec";

/// What Kueue writes when it admits the job: directives, and the resumption, in one update.
fn admitted(accelerator: &str) -> Value {
    json!({ "spec": {
        "runPolicy": { "suspend": false },
        "mpiReplicaSpecs": { "Launcher": { "template": {
            "metadata": { "labels": { "foo": "bar" }, "annotations": { "kueue.x-k8s.io/workload": "w" } },
            "spec": {
                "nodeSelector": { "example.com/accelerator": accelerator },
                "tolerations": [{ "key": "gpu", "operator": "Exists" }],
            },
        } } },
    } })
}

fn suspended() -> Value {
    json!({ "spec": { "runPolicy": { "suspend": true } } })
}

impl World {
    async fn launcher_is(&self, what: &str, seen: impl Fn(&Value) -> bool) -> Value {
        self.is(&BATCH_JOBS, "pi-launcher", what, seen).await
    }
}

// M08, M09 with its second round, M10
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_launcher_is_resumed_with_the_scheduling_that_its_job_has_by_then() {
    let world = World::shared("suspension").await;
    let operator = world.operator().await;
    world.create(&MPI_JOBS, &mpi("pi").run_policy("suspend", json!(true)).by_hand().manifest).await;
    let is_suspended = |job: &Value| condition_of(job, "Suspended").is_some_and(|it| it["status"] == "True");
    world.is(&MPI_JOBS, "pi", "suspended", is_suspended).await;
    world.are(&PODS, &[]).await;
    assert_eq!(world.names(&BATCH_JOBS).await.unwrap(), Vec::<String>::new(), "the launcher comes with the resumption");

    world.patch(&MPI_JOBS, "pi", &admitted("m")).await;
    let launcher = world.launcher_is("made", |_| true).await;
    assert_eq!(at(&launcher, "/spec/suspend"), false);
    assert_eq!(text(&launcher, "/spec/template/metadata/labels/foo"), "bar");
    assert_eq!(text(&launcher, "/spec/template/metadata/labels/training.kubeflow.org~1job-role"), "launcher");
    assert_eq!(text(&launcher, "/spec/template/metadata/annotations/kueue.x-k8s.io~1workload"), "w");
    assert_eq!(at(&launcher, &format!("{LAUNCHER}/nodeSelector")), &json!({ "example.com/accelerator": "m" }));
    assert_eq!(text(&launcher, &format!("{LAUNCHER}/tolerations/0/key")), "gpu");

    // It has started by the time it is suspended: only a Job that counts as not started takes new directives.
    let pod = &launcher_pods(&world, "pi", 1).await[0];
    world.set_status(&PODS, pod, &running("launcher")).await;
    world.launcher_is("started", |job| !at(job, "/status/startTime").is_null()).await;
    world.patch(&MPI_JOBS, "pi", &suspended()).await;
    world.launcher_is("suspended", |job| at(job, "/spec/suspend") == true).await;
    world.is_gone(&PODS, pod).await;
    world.are(&PODS, &[]).await;
    world.patch(&MPI_JOBS, "pi", &admitted("n")).await;
    let launcher = world.launcher_is("resumed", |job| at(job, "/spec/suspend") == false).await;
    assert_eq!(at(&launcher, &format!("{LAUNCHER}/nodeSelector")), &json!({ "example.com/accelerator": "n" }));
    let again = &launcher_pods(&world, "pi", 1).await[0];
    assert_ne!(again, pod);
    operator.stop().await;
}
