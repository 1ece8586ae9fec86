//! What a job's user reads while a real scheduler or kubelet cannot go on.

use super::world::{World, built, is};
use crate::{
    cluster::{
        objects::{PODS, PYTORCH_JOBS, at},
        top,
    },
    kubectl::Kubectl,
    ways::Views,
};
use harness::images::Image;
use serde_json::{Value, json};

/// A job of one pod, whose spec has these fields on top of a container that ends well.
fn job(name: &str, image: &Image, pod: &Value, container: &Value) -> Value {
    let mut main = json!({
        "name": "pytorch",
        "image": image.name(),
        "imagePullPolicy": "Never",
        "command": ["true"],
    });
    let mut spec = json!({});
    for (fields, onto) in [(container, &mut main), (pod, &mut spec)] {
        onto.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    }
    spec["containers"] = json!([main]);
    json!({
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": { "name": name },
        "spec": {
            "runPolicy": { "cleanPodPolicy": "None" },
            "pytorchReplicaSpecs": {
                "Master": { "replicas": 1, "restartPolicy": "OnFailure", "template": { "spec": spec } },
            },
        },
    })
}

/// The line of the page on conditions that waits for the pods of a job to run.
const RUNS: &str = "kubectl wait pytorchjob/mnist --for=condition=Running --timeout=10m";

/// Runs every other command that the page shows, of this job, which has ended, instead of its own.
fn shown(user: &Kubectl, job: &str) -> String {
    let page = include_str!("../../../docs/conditions.md");
    let lines = page.lines().filter(|line| line.starts_with("kubectl ") && *line != RUNS);
    lines.map(|line| user.run_line(line, job).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_node, ignore = "needs Go, openssl, apt and root")]
async fn a_job_says_what_is_in_the_way_of_its_pod_and_keeps_what_failed_first() {
    let image = built(Image::busybox).await;
    let prepares =
        json!({ "name": "fetch", "image": image.name(), "imagePullPolicy": "Never", "command": ["sleep", "3600"] });
    let init = json!({ "initContainers": [prepares] });
    let world = World::start(vec![image.clone()], None).await;
    let none = json!({});
    let claim = json!({ "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "training-data" } }] });
    let secret = json!({ "env": [{
        "name": "TOKEN", "valueFrom": { "secretKeyRef": { "name": "registry-token", "key": "token" } },
    }] });
    let cases = [
        ("image", none.clone(), json!({ "image": "docker.io/local/nowhere:1" }), "An image cannot be pulled"),
        ("secret", none.clone(), secret, "A Secret does not exist"),
        ("loop", none.clone(), json!({ "command": ["false"] }), "A container crashes again and again"),
        ("init", init, none.clone(), "An init container does not end"),
        ("claim", claim, none.clone(), "A volume claim does not exist"),
        (
            "gate",
            json!({ "schedulingGates": [{ "name": "example.org/quota" }] }),
            // Long enough for `kubectl wait` to see it Running, however busy the machine is.
            json!({ "command": ["sleep", "20"] }),
            "A pod has a scheduling gate",
        ),
    ];
    for (name, pod, container, ..) in &cases {
        world.create(&PYTORCH_JOBS, &job(name, &image, pod, container)).await;
    }
    let views = Views::of(&world, world.kubeconfig(), world.operator()).await;
    for (name, .., way) in &cases {
        views.tell(&PYTORCH_JOBS, name, way).await;
    }

    let user = Kubectl::of(world.kubeconfig(), &world.name).await;
    let waits = tokio::task::spawn_blocking({
        let user = Kubectl::of(world.kubeconfig(), &world.name).await;
        move || user.run_line(RUNS, "gate")
    });
    let printed = user.troupe(&["explain", "pytorchjob/claim"]).unwrap();
    let rows: Vec<_> = printed.lines().filter(|line| line.contains("\"training-data\" not found")).collect();
    let begins = |start: &str| rows.iter().any(|row| row.starts_with(start));
    assert!(
        begins("waits for pod/claim-master-0") && begins("Waiting  ") && begins("claim-master-0  Pending"),
        "{printed}"
    );
    assert!(printed.contains("SuccessfulCreatePod") && printed.contains("FailedScheduling"), "{printed}");
    assert!(!waits.is_finished(), "its pod has a gate");
    let refused = |arguments: &[&str]| user.troupe(arguments).unwrap_err().to_string();
    let printed = refused(&["explain", "claims"]);
    assert!(printed.contains("there is no job claims in namespace"), "{printed}");
    let printed = refused(&["logs", "claim"]);
    assert!(printed.contains("no container of pytorchjob/claim has started"), "{printed}");

    // What was in the way is taken away.
    world.patch(&PODS, "gate-master-0", &json!({ "spec": { "schedulingGates": null } })).await;
    world.becomes(&PYTORCH_JOBS, "gate", "at its end", |job| is(job, "Succeeded")).await;
    assert!(waits.await.unwrap().unwrap().contains("condition met"));

    let printed = user.troupe(&["wait", "gate", "--timeout", "60"]).unwrap();
    assert!(printed.contains("pytorchjob/gate Succeeded"), "{printed}");

    let command = ["sh", "-c", "echo reading; echo the data set is empty > /dev/termination-log; exit 3"];
    let mut failing = job("failing", &image, &json!({}), &json!({ "command": command }));
    failing["spec"]["pytorchReplicaSpecs"]["Master"]["restartPolicy"] = json!("Never");
    world.create(&PYTORCH_JOBS, &failing).await;
    let job = world.becomes(&PYTORCH_JOBS, "failing", "failed", |job| is(job, "Failed")).await;
    let mut first = at(&job, "/status/troupe/firstFailure").clone();
    assert!(first["node"].take().is_string(), "{:#}", job["status"]);
    assert_eq!(
        first,
        json!({
            "pod": "failing-master-0", "container": "pytorch", "exitCode": 3, "reason": "Error",
            "message": "the data set is empty\n", "node": null,
        })
    );
    let first = "container pytorch of pod/failing-master-0 failed first with exit code 3: Error: the data set is empty";
    views.tell_of(&PYTORCH_JOBS, &job, first).await;
    let printed = refused(&["wait", "failing"]);
    assert!(printed.contains(&format!("pytorchjob/failing Failed: {first}")), "{printed}");
    user.troupe(&["wait", "failing", "--for", "ended"]).unwrap();
    assert_eq!(user.troupe(&["logs", "failing"]).unwrap(), "failing-master-0 | reading\n");
    top::install(&world).await;
    top::measure(&world, "gate-master-0", "1m", "1Mi").await;
    let printed = shown(&user, "gate");
    assert!(printed.contains("pytorchjob/gate Succeeded") && printed.contains("the data set is empty"), "{printed}");
    let printed = user.run(&["get", "troupe"]).unwrap();
    assert!(printed.contains("failing"), "{printed}");
    world.stop("seven jobs that wait or fail").await;
}
