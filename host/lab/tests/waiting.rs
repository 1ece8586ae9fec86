//! How soon a job says what its pod waits for, by a whole host on a simulated cluster in virtual time.

#![expect(clippy::unwrap_used, reason = "a test says by its panic what is wrong")]

use decide::{condition::Condition, own_conditions::current_true};
use lab::campaign;
use serde_json::{Value, json};
use sim::Sim;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use troupe::{
    clock::Clock,
    control::operator::{Operator, Options},
};

/// The first word about what is in the way comes within this time of it.
const SOON: Duration = Duration::from_secs(2);

/// Other numbers or words for the same reason come within this time.
const REWORDED: Duration = Duration::from_secs(6);

const PATIENCE: Duration = Duration::from_secs(60);

fn job() -> Value {
    let template = json!({ "spec": { "containers": [{ "name": "main", "image": "example.com/train:1" }] } });
    json!({
        "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob",
        "metadata": { "name": "held-mnist", "namespace": "default" },
        "spec": { "worker": { "replicas": 1, "template": template } },
    })
}

/// Waits until the job's condition Waiting has this reason and message; returns how long that took.
async fn says(sim: &Sim, reason: &str, message: &str) -> Duration {
    let began = Instant::now();
    loop {
        let job = sim.get("batch.paddlepaddle.org/v1", "PaddleJob", "default", "held-mnist").unwrap();
        let says = |it: &Value| it["reason"] == reason && it["message"].as_str().unwrap().contains(message);
        if current_true(&job["status"], Condition::Waiting).is_some_and(says) {
            return began.elapsed();
        }
        assert!(began.elapsed() < PATIENCE, "{reason} {message:?}: {:#}", job["status"]);
        sleep(Duration::from_millis(10)).await;
    }
}

/// The pod is in the way like this; returns how long the job took to say so.
async fn blocked(sim: &Sim, status: Value, reason: &str, message: &str) -> Duration {
    sim.patch_status("v1", "Pod", "default", "held-mnist-worker-0", json!({ "status": status })).unwrap();
    says(sim, reason, message).await
}

fn unschedulable(message: &str) -> Value {
    json!({ "conditions": [
        { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message },
    ] })
}

fn not_started(reason: &str, message: &str) -> Value {
    let container = json!({
        "name": "main", "image": "example.com/train:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": reason, "message": message } },
    });
    json!({ "conditions": [{ "type": "PodScheduled", "status": "True" }], "containerStatuses": [container] })
}

#[tokio::test(start_paused = true)]
async fn a_job_says_within_two_seconds_what_its_pod_waits_for() {
    let plugins = campaign::plugins().unwrap().fork();
    let life = sim::Life::default().rule("held-*", "schedule-after", "forever");
    let sim = Sim::new(sim::Options { kinds: campaign::kinds(&plugins), life, ..sim::Options::default() });
    let _running = sim.start();
    let options = Options::alone(Clock::starting_at(sim.now()), [7; 32]);
    let mut operator = Operator::new(sim.client("troupe"), Arc::new(plugins), options);
    let host = tokio::spawn(async move {
        let _ended = operator.run(std::future::pending()).await;
    });
    sim.create(job());
    while sim.get("v1", "Pod", "default", "held-mnist-worker-0").is_none() {
        sleep(Duration::from_millis(10)).await;
    }

    let full = "0/4 nodes are available: 4 Insufficient cpu.";
    let took = blocked(&sim, unschedulable(full), "Unschedulable", full).await;
    assert!(took <= SOON, "{took:?}");
    let fewer = "0/3 nodes are available: 3 Insufficient cpu.";
    let took = blocked(&sim, unschedulable(fewer), "Unschedulable", fewer).await;
    assert!(took <= REWORDED, "the numbers go stale for {took:?}");
    for (cause, message, reason) in [
        ("ErrImagePull", "not found", "ImagePull"),
        ("CreateContainerConfigError", "secret \"registry-token\" not found", "ContainerNotStarted"),
        ("ImagePullBackOff", "Back-off pulling image", "ImagePull"),
    ] {
        let took = blocked(&sim, not_started(cause, message), reason, message).await;
        assert!(took <= SOON, "{reason}: {took:?}");
    }
    host.abort();
}
