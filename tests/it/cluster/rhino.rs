//! RhinoJobs with a real Job controller: R01, R02, R04 and R05.

use super::{
    objects::{BATCH_JOBS, Kind, PODS, at, text},
    world::World,
};

use serde_json::{Value, json};

const RHINO_JOBS: Kind = Kind::new("apis/openrhino.org/v1alpha2", "rhinojobs");
const OLDER: Kind = Kind::new("apis/openrhino.org/v1alpha1", "rhinojobs");

fn rhino(version: &str, name: &str, ttl: u32) -> Value {
    json!({
        "apiVersion": format!("openrhino.org/{version}"),
        "kind": "RhinoJob",
        "metadata": { "name": name },
        "spec": { "image": "docker.io/local/mpi:1", "appExec": "/app/mpi-func", "appArgs": ["1", "10"], "parallelism": 2, "ttl": ttl },
    })
}

impl World {
    /// The running pods of a Job, once there are so many.
    async fn pods_of(&self, job: &str, count: usize) -> Vec<String> {
        let found = harness::until(super::objects::SOON, format!("{count} running pods of {job}"), || async {
            let mut pods = self.list(&PODS).await?;
            pods.retain(|pod| {
                text(pod, "/metadata/ownerReferences/0/name") == job && at(pod, "/status/phase") == "Running"
            });
            Ok((pods.len() == count).then(|| pods.iter().map(|pod| text(pod, "/metadata/name").to_owned()).collect()))
        });
        found.await.unwrap()
    }

    async fn status_is(&self, kind: &Kind, name: &str, status: &str) -> Value {
        self.is(kind, name, status, |job| at(job, "/status/jobStatus") == status).await
    }

    async fn succeed(&self, pods: &[String]) {
        let now = json!({ "metadata": { "annotations": { (harness::RUN_FOR): "0s" } } });
        for pod in pods {
            self.patch(&PODS, pod, &now).await;
        }
    }
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn workers_follow_their_launcher_and_the_job_ends_with_both() {
    let world = World::shared("rhino").await;
    let operator = world.operator().await;
    let job = world.create(&RHINO_JOBS, &rhino("v1alpha2", "sample", 1)).await;
    let uid: String = text(&job, "/metadata/uid").chars().take(5).collect();
    let (launcher, workers) = (format!("sample-{uid}-launcher"), format!("sample-{uid}-workers"));
    let launchers = world.pods_of(&launcher, 1).await;
    let ip = text(&world.get(&PODS, &launchers[0]).await.unwrap(), "/status/podIP").to_owned();
    let made = world.is(&BATCH_JOBS, &workers, "there", |_| true).await;
    let call = text(&made, "/spec/template/spec/containers/0/args/1");
    assert!(call.contains(&format!("--control-port {ip}:20000")), "{call}");
    assert_eq!((at(&made, "/spec/completions"), text(&made, "/spec/completionMode")), (&json!(2), "Indexed"));
    world.status_is(&RHINO_JOBS, "sample", "Running").await;
    let running = world.pods_of(&workers, 2).await;
    world.succeed(&running).await;
    world.is(&BATCH_JOBS, &workers, "succeeded", |job| at(job, "/status/succeeded") == 2).await;
    world.succeed(&launchers).await;
    // R05, Better: the time to live counts from the end. With the job go its Jobs.
    world.is_gone(&RHINO_JOBS, "sample").await;
    world.is_gone(&BATCH_JOBS, &launcher).await;
    operator.stop().await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_job_of_the_older_version_runs_and_is_seen_in_both() {
    let world = World::shared("rhino-older").await;
    let operator = world.operator().await;
    let job = world.create(&OLDER, &rhino("v1alpha1", "grape", 0)).await;
    let uid: String = text(&job, "/metadata/uid").chars().take(5).collect();
    let launchers = world.pods_of(&format!("grape-{uid}-launcher"), 1).await;
    world.status_is(&OLDER, "grape", "Running").await;
    let workers = world.pods_of(&format!("grape-{uid}-workers"), 2).await;
    world.succeed(&workers).await;
    world.succeed(&launchers).await;
    let done = world.status_is(&OLDER, "grape", "Completed").await;
    assert!(!at(&done, "/status/troupe/finished").is_null(), "what is remembered is kept in both versions");
    operator.stop().await;
}
