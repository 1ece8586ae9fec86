//! The CRDs on a real API server: what is installed, what they keep, and what the operator does while one is missing.

use super::{
    jobs::{mpi, paddle},
    objects::{MPI_JOBS, Namespace, PADDLE_JOBS, PODS, SOON, at, text},
};
use crate::operator::Operator;
use harness::{ControlPlane, Options, until};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, ResourceExt, api::PostParams};
use serde_json::{Value, json};

/// The originals' CRDs run to megabytes; this much `kubectl apply` can keep in an annotation.
const MOST_BYTES: usize = 250_000;

async fn established(client: &Client, name: &str) -> CustomResourceDefinition {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    until(SOON, format!("crd/{name} to be established"), || async {
        let crd = api.get(name).await?;
        let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let is = conditions.clone().any(|one| one.type_ == "Established" && one.status == "True");
        Ok(is.then_some(crd.clone()))
    })
    .await
    .unwrap()
}

/// Returns when the operator has asked for objects of this kind and was told that there is no such kind.
async fn missed(operator: &Operator, plural: &str) {
    let (resource, code) = (format!(r#"resource="{plural}""#), r#"code="404""#);
    let seen = || async {
        let metrics = operator.metrics().await?;
        let mut requests = metrics.lines().filter(|line| line.starts_with("rest_client_requests_total{"));
        Ok(requests.any(|line| line.contains(&resource) && line.contains(code)).then_some(()))
    };
    until(SOON, format!("the operator to miss {plural}"), seen).await.unwrap();
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_operator_waits_for_a_missing_crd_and_installs_them_when_asked() {
    let plane = ControlPlane::start(Options::default()).await.unwrap();
    let client = plane.client("user").await.unwrap();
    let namespace = Namespace::create_in(client.clone(), "crds").await;

    // Ready, since a kind that nobody can submit is nothing to wait with the others for; and it says what is missing.
    let waiting = Operator::start(&plane, &[]).await;
    for plural in ["mpijobs", "paddlejobs"] {
        missed(&waiting, plural).await;
    }
    let of_mpi = install::crds::all().into_iter().find(|crd| crd.name_any() == "mpijobs.kubeflow.org").unwrap();
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    api.create(&PostParams::default(), &of_mpi).await.unwrap();
    established(&client, "mpijobs.kubeflow.org").await;
    namespace.create(&MPI_JOBS, &mpi("pi").manifest).await;
    namespace.is(&PODS, "pi-worker-1", "there", |_| true).await;
    let log = waiting.stop().await;
    for crd in ["mpijobs.kubeflow.org", "paddlejobs.batch.paddlepaddle.org"] {
        let told = |line: &str| line.contains("waiting for the CRD: apply crds/") && line.contains(crd);
        assert!(log.lines().any(told), "{crd}: {log}");
    }

    // Over the one that is there, and beside it.
    let installing = Operator::start(&plane, &["--install-crds"]).await;
    for crd in install::crds::all() {
        let name = crd.name_any();
        let stored = established(&client, &name).await;
        let bytes = serde_json::to_vec(&stored.spec).unwrap().len();
        assert!(bytes <= MOST_BYTES, "{name} has {bytes} bytes");
    }
    namespace.create(&PADDLE_JOBS, &paddle("wide").worker(1).manifest).await;
    namespace.is(&PODS, "wide-worker-0", "there", |_| true).await;

    what_users_write_is_kept(&namespace).await;
    installing.stop().await;
}

/// Integers where quantities are texts, a command that is null, fields of a later Kubernetes, nulls.
async fn what_users_write_is_kept(namespace: &Namespace) {
    let mut job = paddle("odd").ps(1).worker(1).by_hand().manifest;
    let pod = &mut job["spec"]["worker"]["template"]["spec"];
    pod["fieldOfTomorrow"] = json!({ "deep": [1, { "er": true }] });
    pod["nodeSelector"] = Value::Null;
    pod["containers"][0]["resources"] = json!({ "limits": { "cpu": 1, "memory": "1Gi" }, "requests": { "cpu": 0.5 } });
    pod["containers"][0]["command"] = Value::Null;
    pod["containers"][0]["resizeOfTomorrow"] = json!("InPlace");
    pod["containers"][0]["livenessProbe"] = json!({ "httpGet": { "port": "http", "ofTomorrow": 1 } });
    pod["containers"][0]["args"] = json!(["a", null]);
    // The original takes two of one name, and so does Kubernetes: the last one counts.
    pod["containers"][0]["env"] = json!([{ "name": "A", "value": "1" }, { "name": "A", "value": "2" }]);
    pod["volumes"] = json!([{ "name": "shm", "emptyDir": { "sizeLimit": 0.5, "ofTomorrow": true } }]);
    job["spec"]["worker"]["template"]["metadata"]["creationTimestamp"] = Value::Null;
    job["spec"]["elastic"] = Value::Null;
    job["spec"]["schedulingPolicy"] = json!({ "minResources": { "cpu": 7 } });
    job["spec"]["heter"] = Value::Null;
    let stored = namespace.create(&PADDLE_JOBS, &job).await;
    let pod = at(&stored, "/spec/worker/template/spec");
    assert_eq!(pod["fieldOfTomorrow"], json!({ "deep": [1, { "er": true }] }));
    let container = &pod["containers"][0];
    assert_eq!(container["resources"], json!({ "limits": { "cpu": 1, "memory": "1Gi" }, "requests": { "cpu": 0.5 } }));
    assert_eq!(container["resizeOfTomorrow"], "InPlace");
    assert_eq!(at(container, "/livenessProbe/httpGet/ofTomorrow"), 1);
    assert_eq!((&container["args"], at(container, "/env/1/value")), (&json!(["a", null]), &json!("2")));
    assert_eq!(at(pod, "/volumes/0/emptyDir"), &json!({ "sizeLimit": 0.5, "ofTomorrow": true }));
    assert_eq!(at(&stored, "/spec/schedulingPolicy/minResources/cpu"), 7);

    let mut job = mpi("strange").by_hand().manifest;
    let replicas = &mut job["spec"]["mpiReplicaSpecs"];
    replicas["Worker"]["template"]["spec"]["containers"][0]["command"] = Value::Null;
    replicas["Worker"]["template"]["spec"]["containers"][0]["resources"] = json!({ "limits": { "cpu": 1 } });
    replicas["Launcher"]["template"]["spec"]["workloadRefOfTomorrow"] = json!({ "name": "x" });
    replicas["Launcher"]["template"]["spec"]["imagePullSecrets"] = json!([{}]);
    replicas["Launcher"]["template"]["spec"]["containers"][0]["ports"] = json!([{ "containerPort": 80 }]);
    replicas["Launcher"]["restartPolicy"] = Value::Null;
    job["spec"]["slotsPerWorker"] = Value::Null;
    job["spec"]["runPolicy"] = json!({ "suspend": null, "schedulingPolicy": { "minResources": { "cpu": 3 } } });
    let stored = namespace.create(&MPI_JOBS, &job).await;
    assert_eq!(at(&stored, "/spec/slotsPerWorker"), 1, "null is the default");
    let replicas = at(&stored, "/spec/mpiReplicaSpecs");
    assert_eq!(at(replicas, "/Worker/template/spec/containers/0/resources/limits/cpu"), 1);
    assert_eq!(at(replicas, "/Launcher/template/spec/workloadRefOfTomorrow/name"), "x");
    assert_eq!(at(replicas, "/Launcher/template/spec/containers/0/ports/0/protocol"), "TCP");

    // Pods are made of both; there the API server makes texts of the integers and drops what it does not know.
    for name in ["odd-worker-0", "strange-worker-0"] {
        let pod = namespace.is(&PODS, name, "there", |_| true).await;
        assert_eq!(text(&pod, "/spec/containers/0/resources/limits/cpu"), "1");
    }
}
