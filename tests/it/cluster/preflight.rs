//! `troupe preflight` against a cluster that an original operator serves: it tells all that is in the way, and nothing once
//! what it told to do was done.

use super::{
    adoption::paddle_operator,
    deploy,
    jobs::mpi,
    objects::{DEPLOYMENTS, Kind, LEASES, MPI_JOBS, Namespace, PADDLE_JOBS, PODS, SERVICES, SOON, at, text},
    played,
};
use crate::operator::{binary, command};
use harness::{ControlPlane, Options, until};
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use std::process::Output;

const DEFINITION: &str = "paddlejobs.batch.paddlepaddle.org";

const MULTI_KUEUE: &str = "kueue.x-k8s.io/multikueue";

/// The definition of PaddleJobs without what the original's lacks, and no other.
fn old_definitions() -> Vec<CustomResourceDefinition> {
    let ours = install::crds::all().into_iter().find(|crd| crd.metadata.name.as_deref() == Some(DEFINITION));
    let mut definition = serde_json::to_value(ours.unwrap()).unwrap();
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let status = definition.pointer_mut(status).unwrap().as_object_mut().unwrap();
    assert!(status.remove("troupe").is_some());
    vec![serde_json::from_value(definition).unwrap()]
}

/// The Deployment of paddle-operator v0.3.5 as it is published, but with another name, and the Lease that it holds.
async fn install_original(system: &Namespace) {
    let labels = json!({ "control-plane": "controller-manager" });
    let container = json!({
        "name": "manager",
        "image": "registry.baidubce.com/paddlecloud/controller:v0.3.5",
        "command": ["/manager"],
        "args": ["--leader-elect"],
    });
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "training" },
        "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": template },
    });
    system.create(&DEPLOYMENTS, &deployment).await;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": "b2a304f2.paddlepaddle.org" },
        "spec": { "holderIdentity": "training-0", "leaseDurationSeconds": 3600, "renewTime": micro_time() },
    });
    system.create(&LEASES, &lease).await;
}

fn micro_time() -> String {
    #[expect(clippy::disallowed_methods, reason = "the API server and the binary know no other time")]
    let now = Timestamp::now();
    format!("{now:.6}")
}

/// A running job of the original, and one that it has finished.
async fn submit(namespace: &Namespace) {
    let job = namespace.create(&PADDLE_JOBS, &paddle_operator::job()).await;
    let mut pods = vec![];
    for (role, index) in [("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1)] {
        let pod = paddle_operator::pod(&job, role, index);
        let name = text(&namespace.create(&PODS, &pod).await, "/metadata/name").to_owned();
        namespace.create(&SERVICES, &paddle_operator::service(&job, &name)).await;
        pods.push(namespace.set_status(&PODS, &name, &played::running("paddle")).await);
    }
    namespace.set_status(&PADDLE_JOBS, "wide", &paddle_operator::status(&pods)).await;
    let mut done = paddle_operator::job();
    done["metadata"]["name"] = "done".into();
    namespace.create(&PADDLE_JOBS, &done).await;
    let status = json!({ "phase": "Completed", "mode": "PS", "completionTime": "2026-01-02T03:04:05Z" });
    namespace.set_status(&PADDLE_JOBS, "done", &status).await;
    let mut empty = paddle_operator::job();
    empty["metadata"]["name"] = "empty".into();
    empty["spec"] = json!({});
    namespace.create(&PADDLE_JOBS, &empty).await;
}

pub(crate) async fn preflight(plane: &ControlPlane, arguments: &[&str]) -> Output {
    let mut command = command(binary(), &plane.kubeconfig("troupe").unwrap());
    let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
    let run = move || command.arg("preflight").args(arguments).output().unwrap();
    tokio::task::spawn_blocking(run).await.unwrap()
}

pub(crate) fn lines(output: &Output) -> Vec<String> {
    String::from_utf8(output.stdout.clone()).unwrap().lines().map(|line| line.trim().to_owned()).collect()
}

pub(crate) fn has(lines: &[String], expected: &[&str]) {
    for line in expected {
        assert!(lines.iter().any(|there| there == line), "{line:?} is not in {lines:#?}");
    }
}

async fn versions(namespace: &Namespace, kinds: &[&Kind]) -> Vec<Value> {
    let mut versions = vec![];
    for kind in kinds {
        let list = namespace.list(kind).await.unwrap();
        versions.extend(list.iter().map(|object| object["metadata"]["resourceVersion"].clone()));
    }
    versions
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn preflight_reports_what_is_in_the_way_until_it_is_done() {
    let plane = ControlPlane::start(Options::default().crds(old_definitions())).await.unwrap();
    let client = plane.client("user").await.unwrap();
    let system = Namespace::create_in(client.clone(), "paddle-system").await;
    let jobs = Namespace::create_in(client.clone(), "jobs").await;
    install_original(&system).await;
    submit(&jobs).await;
    system.is(&DEPLOYMENTS, "training", "there", |it| at(it, "/status/replicas") == 1).await;
    let kinds = [&PADDLE_JOBS, &PODS, &SERVICES];
    let before = versions(&jobs, &kinds).await;
    let arguments = ["--service-account", "troupe-system/troupe"];

    let output = preflight(&plane, &arguments).await;
    let told = lines(&output);
    assert_eq!(output.status.code(), Some(1), "{told:#?}");
    has(
        &told,
        &[
            "STOP  paddle-operator (recognised by its image): deployment paddle-system/training runs: 1 pods wanted, 1 there",
            "kubectl --namespace paddle-system scale deployment training --replicas 0",
            "STOP  mpijobs.kubeflow.org is missing",
            "STOP  paddlejobs.batch.paddlepaddle.org v1 is too old, it drops status.troupe",
            "troupe crds | kubectl apply -f -",
            "note  1 PaddleJob Running: taken over, pods and other children stay as they are",
            "note  1 PaddleJob Completed: finished, left alone but for their clean-up",
            "note  PaddleJob jobs/empty: Found validation errors: spec: needs at least one of ps, worker and heter",
            "STOP  service account troupe-system/troupe may not list, watch, patch, get, create, delete paddlejobs.batch.paddlepaddle.org",
        ],
    );
    let lease = "STOP  paddle-operator: lease paddle-system/b2a304f2.paddlepaddle.org was renewed ";
    assert!(told.iter().any(|line| line.starts_with(lease) && line.ends_with("s ago by training-0")), "{told:#?}");
    assert!(told.last().unwrap().contains("things stand in the way"), "{told:#?}");

    system.patch(&DEPLOYMENTS, "training", &json!({ "spec": { "replicas": 0 } })).await;
    system.is(&DEPLOYMENTS, "training", "gone", |it| at(it, "/status/replicas").is_null()).await;
    system.patch(&LEASES, "b2a304f2.paddlepaddle.org", &json!({ "spec": { "holderIdentity": "" } })).await;
    install::crds::install(&client).await.unwrap();
    until(SOON, "MPIJobs to be served", || async { Ok(jobs.list(&MPI_JOBS).await.ok()) }).await.unwrap();
    deploy::give_rights(&client).await;
    for (name, field, value) in [("paused", "suspend", json!(true)), ("elsewhere", "managedBy", json!(MULTI_KUEUE))] {
        jobs.create(&MPI_JOBS, &mpi(name).run_policy(field, value).manifest).await;
    }

    let output = preflight(&plane, &arguments).await;
    let told = lines(&output);
    assert_eq!(output.status.code(), Some(0), "{told:#?}");
    has(
        &told,
        &[
            "ok    paddle-operator (recognised by its image): deployment paddle-system/training is scaled to zero",
            "ok    paddlejobs.batch.paddlepaddle.org v1 keeps all fields",
            "ok    rhinojobs.openrhino.org v1alpha2 keeps all fields",
            "note  1 PaddleJob Running: taken over, pods and other children stay as they are",
            "note  1 MPIJob Suspended: stay suspended",
            "note  1 MPIJob managed by another, left alone",
            "ok    the API server does not serve scheduling.k8s.io/v1alpha2",
            "ok    service account troupe-system/troupe may do all that Troupe does",
            "verdict: nothing stands in the way",
        ],
    );

    // Nothing but questions was asked.
    assert_eq!(versions(&jobs, &kinds).await, before);
    let mut asked: Vec<_> = plane.audit().unwrap().into_iter().filter(|record| record.user == "troupe").collect();
    asked.retain(|record| !["get", "list", "watch"].contains(&record.verb.as_str()));
    assert!(!asked.is_empty());
    assert!(asked.iter().all(|record| record.target() == "subjectaccessreviews"), "{asked:?}");
}
