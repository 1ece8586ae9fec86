//! Real PaddlePaddle, by the environment that a pod gets and nothing else.

use super::world::{World, built, hosts};
use crate::cluster::{
    jobs::{Paddle, paddle},
    objects::{PADDLE_JOBS, at, text},
};
use harness::images::Image;
use serde_json::{Value, json};

// A1 to A4, A8 with nothing played: Paddle's own launcher finds the other pod, and both get the sum.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_frameworks, ignore = "TROUPE_REQUIRE does not name frameworks")]
async fn a_collective_job_adds_up_over_real_gloo() {
    let image = built(Image::paddle_collective).await;
    let world = world(image.clone()).await;
    let command = ["python3", "-m", "paddle.distributed.launch", "/srv/train.py"];
    let job = world.completes(paddle("sum").worker(2).of(&image, &command)).await;
    assert_eq!(at(&job, "/status/mode"), "Collective");

    for (rank, log) in world.logs("worker").await.iter().enumerate() {
        assert!(log.contains(&format!("rank {rank} of 2 on sum-worker-{rank}: sum 3.0")), "{log}");
    }
    world.stop("a collective PaddleJob").await;
}

// A1 to A4 with gloo, with nothing played: each trainer is taught half of the words, and knows all of them from the
// servers after the barrier. Invariants I1 to I5 of what Paddle reads.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_frameworks, ignore = "TROUPE_REQUIRE does not name frameworks")]
async fn trainers_learn_from_each_other_by_real_parameter_servers() {
    let image = built(Image::paddle_servers).await;
    let world = world(image.clone()).await;
    let job = world.completes(paddle("words").ps(2).worker(2).gloo().of(&image, &["python3", "/srv/train.py"])).await;
    assert_eq!(at(&job, "/status/mode"), "PS");

    let mut after = vec![];
    for (rank, log) in world.logs("worker").await.iter().enumerate() {
        assert_eq!(hosts(log), [format!("words-worker-{rank}")], "{log}");
        let (_, losses) = log.split_once(": loss ").unwrap_or_else(|| panic!("no loss: {log}"));
        let losses: Vec<f64> = losses.split([' ', '\n']).filter_map(|word| word.parse().ok()).take(2).collect();
        assert!(losses[0] > 20.0 && losses[1] < 1.0, "{losses:?}");
        after.push(losses[1]);
    }
    assert!((after[0] - after[1]).abs() < f64::EPSILON, "both know the same: {after:?}");
    for (rank, log) in world.logs("ps").await.iter().enumerate() {
        assert!(log.contains(&format!("server {rank} of 2 is done")), "{log}");
    }
    world.stop("a PaddleJob with parameter servers").await;
}

/// Where the init container is of an image that the node has.
async fn world(image: Image) -> World {
    let settings = json!({ "initImage": image.name() });
    World::start(vec![image], Some(("paddle", settings))).await
}

impl World {
    /// The job that is made, once it is completed. Its pods stay for their logs.
    async fn completes(&self, job: Paddle) -> Value {
        let job = job.policy("Never");
        self.create(&PADDLE_JOBS, &job.manifest).await;
        let ended = |job: &Value| ["Completed", "Failed"].contains(&text(job, "/status/phase"));
        let job = self.becomes(&PADDLE_JOBS, &job.name, "at its end", ended).await;
        let logs = [self.logs("ps").await, self.logs("worker").await].concat().join("\n====\n");
        assert_eq!(text(&job, "/status/phase"), "Completed", "{:#}\n{logs}", job["status"]);
        job
    }

    /// What the pods of a role have said, by index.
    async fn logs(&self, role: &str) -> Vec<String> {
        let mut pods = self.pods("paddle-res-type", role).await;
        pods.sort_by_key(|pod| text(pod, "/metadata/name").to_owned());
        pods.iter().map(|pod| self.said(pod)).collect()
    }
}
