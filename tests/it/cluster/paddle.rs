//! PaddleJobs behave as those of paddle-operator v0.3.5: acceptance cases A1 to A8.

use super::{
    jobs::{Paddle, paddle},
    objects::{CONFIG_MAPS, Kind, PADDLE_JOBS, PODS, SERVICES, SOON, at, env, owner, text},
    played::{addressed, coordinating, failed, running, succeeded, unready},
    world::World,
};
use crate::operator::Operator;
use harness::until;
use serde_json::{Value, json};

const WIDE_PODS: [&str; 4] = ["wide-ps-0", "wide-ps-1", "wide-worker-0", "wide-worker-1"];

impl World {
    async fn submit(&self, job: &Paddle) -> Value {
        self.create(&PADDLE_JOBS, &job.manifest).await
    }

    async fn paddle_is(&self, name: &str, phase: &str) -> Value {
        self.is(&PADDLE_JOBS, name, phase, |job| at(job, "/status/phase") == phase).await
    }

    /// Once the counters of its roles (without the references to pods) are these.
    async fn counts_are(&self, name: &str, ps: &Value, worker: &Value) -> Value {
        let counted = |role: &Value| {
            let mut counters = role.clone();
            counters.as_object_mut().map(|fields| fields.remove("refs"));
            counters
        };
        let what = format!("counted as {ps} and {worker}");
        let seen = |job: &Value| counted(at(job, "/status/ps")) == *ps && counted(at(job, "/status/worker")) == *worker;
        self.is(&PADDLE_JOBS, name, &what, seen).await
    }

    async fn play(&self, pod: &str, status: &Value) {
        self.set_status(&PODS, pod, status).await;
    }
}

/// Returns when the operator has seen this many pods of the job with an address.
async fn addresses_are_seen(operator: &Operator, world: &World, job: &str, count: usize) {
    let seen = || async {
        let pass = operator.pass(PADDLE_JOBS.plural(), &world.name, job).await?.unwrap_or_default();
        let pods = at(&pass, "/snapshot/pods").as_array().cloned().unwrap_or_default();
        let with_address = pods.iter().filter(|pod| pod["ips"].as_array().is_some_and(|ips| !ips.is_empty()));
        Ok((with_address.count() == count).then_some(()))
    };
    until(SOON, format!("{count} addresses of {job} to be seen"), seen).await.unwrap();
}

// A1 to A4.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_paddle_job_is_made_of_the_originals_objects_and_goes_through_its_phases() {
    let world = World::shared("paddle-phases").await;
    let operator = world.operator().await;
    let wide = paddle("wide").ps(2).worker(2).gloo().policy("Never").by_hand();
    let job = world.submit(&wide).await;

    // A1: without addresses.
    let pending = world.counts_are("wide", &json!({ "pending": 2 }), &json!({ "pending": 2 })).await;
    assert_eq!((at(&pending, "/status/phase"), at(&pending, "/status/mode")), (&json!("Pending"), &json!("PS")));
    assert_eq!(at(&pending, "/status/startTime"), &Value::Null);
    assert_eq!(world.names(&PODS).await.unwrap(), WIDE_PODS);
    assert_eq!(world.names(&SERVICES).await.unwrap(), WIDE_PODS);
    let no_config_map = || async { assert_eq!(world.get(&CONFIG_MAPS, "wide").await.unwrap(), Value::Null) };
    no_config_map().await;
    for (number, name) in WIDE_PODS.into_iter().enumerate() {
        let pod = world.get(&PODS, name).await.unwrap();
        assert_pod(&pod, &job, number);
        let reference =
            at(&pending, &format!("/status/{}/refs/{}", if number < 2 { "ps" } else { "worker" }, number % 2));
        let uid = &pod["metadata"]["uid"];
        assert_eq!(
            *reference,
            json!({ "apiVersion": "v1", "kind": "Pod", "namespace": world.name, "name": name, "uid": uid })
        );
        assert_service(&world.get(&SERVICES, name).await.unwrap(), &job, name);
    }

    // A2: the ConfigMap comes with the last address.
    let rest = [("wide-worker-1", "10.0.0.21"), ("wide-ps-1", "10.0.0.11"), ("wide-ps-0", "10.0.0.10")];
    for (name, ip) in rest {
        world.play(name, &addressed(ip)).await;
    }
    addresses_are_seen(&operator, &world, "wide", 3).await;
    no_config_map().await;
    world.play("wide-worker-0", &addressed("10.0.0.20")).await;
    let map = world.is(&CONFIG_MAPS, "wide", "there", |_| true).await;
    assert_eq!(map["metadata"]["labels"], json!({ "paddle-res-name": "wide" }));
    assert_eq!(map["metadata"]["ownerReferences"], owner(&job));
    let port = text(&map, "/data/PADDLE_PORT");
    let rendezvous: u16 = port.parse::<u16>().unwrap() + 18;
    assert_eq!(
        map["data"],
        json!({
            "TRAINER_PORTS_NUM": "20",
            "PADDLE_PORT": port,
            "PADDLE_PSERVERS_IP_PORT_LIST": format!("10.0.0.10:{port},10.0.0.11:{port}"),
            "PADDLE_TRAINER_ENDPOINTS": format!("10.0.0.20:{port},10.0.0.21:{port}"),
            "PADDLE_TRAINERS": "10.0.0.20,10.0.0.21",
            "PADDLE_TRAINERS_NUM": "2",
            "PADDLE_WITH_GLOO": "1",
            "PADDLE_GLOO_RENDEZVOUS": "3",
            "PADDLE_GLOO_HTTP_ENDPOINT": format!("10.0.0.10:{rendezvous}"),
        })
    );

    // A3: start and run.
    for name in WIDE_PODS {
        world.play(name, &coordinating()).await;
    }
    let starting = world.counts_are("wide", &json!({ "starting": 2 }), &json!({ "starting": 2 })).await;
    assert_eq!(
        (at(&starting, "/status/phase"), at(&starting, "/status/startTime")),
        (&json!("Starting"), &Value::Null)
    );
    for name in WIDE_PODS {
        world.play(name, &running("paddle")).await;
    }
    let run = world.paddle_is("wide", "Running").await;
    world.counts_are("wide", &json!({ "running": 2 }), &json!({ "running": 2 })).await;
    let start = text(&run, "/status/startTime");
    assert!(!start.is_empty());
    world.play("wide-worker-0", &unready("paddle")).await;
    let again = world.counts_are("wide", &json!({ "running": 2 }), &json!({ "running": 1, "starting": 1 })).await;
    assert_eq!(at(&again, "/status/phase"), "Starting");
    assert_eq!((text(&again, "/status/startTime"), at(&again, "/status/completionTime")), (start, &Value::Null));

    // A4: some ended, then all.
    world.play("wide-worker-0", &running("paddle")).await;
    world.paddle_is("wide", "Running").await;
    for name in &WIDE_PODS[2..] {
        world.play(name, &succeeded()).await;
    }
    let partly = world.counts_are("wide", &json!({ "running": 2 }), &json!({ "succeeded": 2 })).await;
    assert_eq!(at(&partly, "/status/phase"), "Running");
    for name in &WIDE_PODS[..2] {
        world.play(name, &succeeded()).await;
    }
    let ended = world.paddle_is("wide", "Completed").await;
    assert!(!text(&ended, "/status/completionTime").is_empty());
    assert_eq!(at(&ended, "/status/worker/succeeded"), 2);

    // A1: deleting the job is enough to remove everything; until then the policy Never has kept it all.
    assert_eq!(world.names(&PODS).await.unwrap(), WIDE_PODS);
    assert_eq!(world.names(&SERVICES).await.unwrap(), WIDE_PODS);
    world.delete(&PADDLE_JOBS, "wide").await;
    for kind in [PODS, SERVICES, CONFIG_MAPS] {
        world.are(&kind, &[]).await;
    }
    let deletes =
        world.audit().unwrap().into_iter().filter(|record| record.user == "troupe" && record.verb == "delete");
    assert_eq!(deletes.count(), 0);
    operator.stop().await;
}

fn assert_pod(pod: &Value, job: &Value, number: usize) {
    let (role, name, training) = match number {
        0 | 1 => ("ps", WIDE_PODS[number], "PSERVER"),
        _ => ("worker", WIDE_PODS[number], "TRAINER"),
    };
    assert_eq!(at(pod, "/metadata/labels/paddle-res-name"), name);
    assert_eq!(at(pod, "/metadata/labels/paddle-res-type"), role);
    assert_eq!(at(pod, "/metadata/annotations/paddle-resource"), role);
    assert_eq!(pod["metadata"]["ownerReferences"], owner(job));
    let spec = &pod["spec"];
    assert_eq!((text(spec, "/hostname"), text(spec, "/subdomain")), (name, name));
    assert_eq!(spec["restartPolicy"], "Never");
    assert_eq!(spec["initContainers"].as_array().unwrap().last().unwrap()["name"], "coord-paddle");
    let container = &spec["containers"][0];
    assert_eq!(container["envFrom"].as_array().unwrap().last(), Some(&json!({ "configMapRef": { "name": "wide" } })));
    let expected = [
        "POD_IP<status.podIP".to_owned(),
        format!("PADDLE_TRAINER_ID={}", number % 2),
        format!("TRAINING_ROLE={training}"),
        format!("PADDLE_TRAINING_ROLE={training}"),
    ];
    assert_eq!(env(container), expected);
}

fn assert_service(service: &Value, job: &Value, name: &str) {
    assert_eq!(service["metadata"]["ownerReferences"], owner(job));
    let spec = &service["spec"];
    assert_eq!(spec["clusterIP"], "None");
    assert_eq!(spec["selector"], json!({ "paddle-res-name": name }));
    assert_eq!(spec["publishNotReadyAddresses"], true);
    let ports = spec["ports"].as_array().unwrap();
    let listed: Vec<_> = ports.iter().map(|port| format!("{}:{}", text(port, "/name"), port["port"])).collect();
    let expected: Vec<_> = (0..20).map(|n| format!("p-{n}:{}", 36000 + n)).collect();
    assert_eq!(listed, expected);
}

// A5 and A6.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_finished_paddle_job_is_cleaned_up_as_its_policy_says() {
    let world = World::shared("paddle-clean").await;
    let operator = world.operator().await;
    // Long enough for all four to run at once, which is when the start time is set.
    let wide = paddle("wide").ps(2).worker(2).runs("6s");
    world.submit(&wide).await;
    // The policy, and whether pods go after success and after failure.
    let matrix = [
        ("", true, false),
        ("Always", true, true),
        ("OnCompletion", true, false),
        ("OnFailure", false, true),
        ("Never", false, false),
        ("OnFailed", false, false),
    ];
    let mut kept = vec![];
    let mut ends = vec![];
    for (policy, after_success, after_failure) in matrix {
        let rule = if policy.is_empty() { "absent".to_owned() } else { policy.to_lowercase() };
        for (outcome, phase, cleaned) in [("good", "Completed", after_success), ("bad", "Failed", after_failure)] {
            let name = format!("{rule}-{outcome}");
            let job = paddle(&name).worker(1).runs("500ms");
            let job = if outcome == "bad" { job.fails() } else { job };
            let job = if policy.is_empty() { job } else { job.policy(policy) };
            world.submit(&job).await;
            if !cleaned {
                kept.push(format!("{name}-worker-0"));
            }
            ends.push((name, phase));
        }
    }
    kept.sort();
    let kept: Vec<_> = kept.iter().map(String::as_str).collect();

    // A6: exactly these are left.
    for (name, phase) in &ends {
        world.paddle_is(name, phase).await;
    }
    let ended = world.paddle_is("wide", "Completed").await;
    world.are(&PODS, &kept).await;
    world.are(&SERVICES, &kept).await;

    // A5: what stays of a job that was cleaned up.
    assert!(!world.get(&CONFIG_MAPS, "wide").await.unwrap().is_null());
    let after = world.get(&PADDLE_JOBS, "wide").await.unwrap();
    assert_eq!(after["status"]["mode"], "PS");
    assert_eq!((at(&after, "/status/ps/succeeded"), at(&after, "/status/worker/succeeded")), (&json!(2), &json!(2)));
    for time in ["/status/startTime", "/status/completionTime"] {
        assert!(!text(&after, time).is_empty(), "{after:#}");
        assert_eq!(at(&after, time), at(&ended, time));
    }
    operator.stop().await;
}

// A7.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_paddle_job_that_has_failed_stays_failed() {
    let world = World::shared("paddle-failed").await;
    let operator = world.operator().await;
    world.submit(&paddle("wide").worker(2).policy("Never").by_hand()).await;
    let none = Value::Null;
    world.counts_are("wide", &none, &json!({ "pending": 2 })).await;
    world.play("wide-worker-0", &running("paddle")).await;
    world.play("wide-worker-1", &failed()).await;
    let before = world.paddle_is("wide", "Failed").await;
    let completion = text(&before, "/status/completionTime");
    assert!(!completion.is_empty());

    // The counters go on until all pods have ended, and then stay.
    world.play("wide-worker-0", &succeeded()).await;
    let at_rest = world.counts_are("wide", &none, &json!({ "succeeded": 1, "failed": 1 })).await;
    world.play("wide-worker-1", &running("paddle")).await;
    // The pod of a job submitted later is seen after what was just played.
    world.submit(&paddle("later").worker(1).by_hand()).await;
    world.counts_are("later", &none, &json!({ "pending": 1 })).await;
    let after = world.get(&PADDLE_JOBS, "wide").await.unwrap();
    assert_eq!((text(&after, "/status/phase"), text(&after, "/status/completionTime")), ("Failed", completion));
    for field in ["/status/worker", "/status/troupe/conditions"] {
        assert_eq!(at(&after, field), at(&at_rest, field));
    }
    operator.stop().await;
}

// A8.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_roles_of_a_paddle_job_decide_its_mode_and_its_keys() {
    let world = World::shared("paddle-modes").await;
    let operator = world.operator().await;
    let jobs = [
        (paddle("single").worker(1), "Single", vec!["single-worker-0"]),
        (paddle("collective").worker(2).gloo(), "Collective", vec!["collective-worker-0", "collective-worker-1"]),
        (paddle("servers").ps(1).worker(1), "PS", vec!["servers-ps-0", "servers-worker-0"]),
    ];
    for (job, mode, pods) in jobs {
        world.submit(&job).await;
        let map = world.is(&CONFIG_MAPS, &job.name, "there", |_| true).await;
        let endpoints = text(&map, "/data/PADDLE_TRAINER_ENDPOINTS").split(',').count();
        let workers = pods.iter().filter(|pod| pod.contains("worker")).count();
        assert_eq!((endpoints, text(&map, "/data/PADDLE_TRAINERS_NUM")), (workers, workers.to_string().as_str()));
        let servers = !text(&map, "/data/PADDLE_PSERVERS_IP_PORT_LIST").is_empty();
        assert_eq!(servers, mode == "PS");
        assert!(!map["data"].as_object().unwrap().keys().any(|key| key.contains("GLOO")), "{map}");
        let run = world.paddle_is(&job.name, "Running").await;
        assert_eq!(text(&run, "/status/mode"), mode);
        let of_job = |kind: Kind| {
            let world = &world;
            let prefix = format!("{}-", job.name);
            async move {
                let mut names = world.names(&kind).await.unwrap();
                names.retain(|name| name.starts_with(&prefix));
                names
            }
        };
        assert_eq!(of_job(PODS).await, pods);
        assert_eq!(of_job(SERVICES).await, pods);
    }
    operator.stop().await;
}
