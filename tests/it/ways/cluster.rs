//! What the API server, the scheduler and the controllers let a job hang on.

use super::{Views, guard::Guard};
use crate::{
    cluster::{
        jobs::{Paddle, paddle},
        objects::{Kind, Namespace, PADDLE_JOBS, PODS, PYTORCH_JOBS, at, condition_of, text},
        played,
        world::World,
    },
    operator::Operator,
};
use anyhow::ensure;
use harness::{ControlPlane, Options, until};
use install::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{ResourceExt, api::PostParams};
use serde_json::{Value, json};
use troupe::clock::Clock;

const QUOTAS: Kind = Kind::new("api/v1", "resourcequotas");
const NODES: Kind = Kind::new("api/v1", "nodes");
const WEBHOOKS: Kind = Kind::new("apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations");
const POLICIES: Kind = Kind::new("apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies");
const BINDINGS: Kind = Kind::new("apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings");

/// A job of one worker that nobody schedules.
fn by_hand(name: &str) -> Value {
    paddle(name).worker(1).by_hand().manifest
}

/// A job of one worker, whose pod's spec has these fields, too.
fn with(name: &str, fields: &Value) -> Value {
    let Paddle { mut manifest, .. } = paddle(name).worker(1);
    let spec = manifest.pointer_mut("/spec/worker/template/spec").unwrap();
    spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    manifest
}

/// A PyTorchJob of one pod that nobody schedules.
fn torch(name: &str) -> Value {
    let container = json!({ "name": "pytorch", "image": "docker.io/local/any:1" });
    let template = json!({ "spec": { "schedulerName": "nobody", "containers": [container] } });
    json!({ "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": { "name": name },
        "spec": { "pytorchReplicaSpecs": { "Master": { "replicas": 1, "template": template } } } })
}

/// Has a job that this manifest makes hang in this way in a namespace of the shared control plane.
async fn hangs(world: &World, kind: &Kind, job: &Value, way: &str) -> Value {
    let host = world.operator().await;
    let views = Views::of(world, world.plane.kubeconfig("user").unwrap(), &host).await;
    world.create(kind, job).await;
    let job = views.tell(kind, text(job, "/metadata/name"), way).await;
    host.stop().await;
    job
}

/// Returns when the API server refuses any pod in this namespace with these words; none is made.
async fn refuses(namespace: &Namespace, words: &str) {
    let container = json!({ "name": "main", "image": "docker.io/local/any:1" });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "probe" },
        "spec": { "containers": [container] } });
    let only_asked = PostParams { dry_run: true, ..PostParams::default() };
    let asked = || async {
        let request = PODS.requests(&namespace.name).create(&only_asked, pod.to_string().into_bytes())?;
        let answer = namespace.client.request::<Value>(request).await;
        let refusal = answer.err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(refusal.contains(words), "{refusal:?}");
        Ok(Some(()))
    };
    until(super::PATIENCE, format!("pods to be refused with {words:?}"), asked).await.unwrap();
}

/// What a webhook or a policy is asked about: pods that are made in this namespace.
fn pods_of(namespace: &str) -> (Value, Value) {
    let rule = json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] });
    (json!({ "matchLabels": { "kubernetes.io/metadata.name": namespace } }), json!([rule]))
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_quota_is_full() {
    let world = World::shared("ways-quota").await;
    let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "team" },
        "spec": { "hard": { "pods": "0" } } });
    world.create(&QUOTAS, &quota).await;
    world.is(&QUOTAS, "team", "counted", |it| at(it, "/status/hard/pods") == "0").await;
    hangs(&world, &PADDLE_JOBS, &by_hand("mnist"), "A quota is full").await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn an_admission_policy_refuses_the_pods() {
    let world = World::shared("ways-policy").await;
    let (namespaces, rules) = pods_of(&world.name);
    let validation = json!({ "expression": "object.spec.containers.all(c, c.image.startsWith('registry.example.org/'))",
        "message": "images come from registry.example.org" });
    let version = "admissionregistration.k8s.io/v1";
    let policy = json!({ "apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": { "name": "images" },
        "spec": { "matchConstraints": { "namespaceSelector": namespaces, "resourceRules": rules },
            "validations": [validation] } });
    let binding = json!({ "apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": "images" }, "spec": { "policyName": "images", "validationActions": ["Deny"] } });
    world.create_in_cluster(&POLICIES, &policy).await;
    world.create_in_cluster(&BINDINGS, &binding).await;
    refuses(&world, "images come from registry.example.org").await;
    hangs(&world, &PADDLE_JOBS, &by_hand("mnist"), "An admission policy refuses the pods").await;
    world.delete_in_cluster(&BINDINGS, "images").await;
    world.delete_in_cluster(&POLICIES, "images").await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_webhook_does_not_answer() {
    let world = World::shared("ways-webhook").await;
    let service = json!({ "service": { "name": "guard", "namespace": "security" } });
    world.create_in_cluster(&WEBHOOKS, &webhook("guard", &world.name, &service)).await;
    refuses(&world, "failed calling webhook").await;
    hangs(&world, &PADDLE_JOBS, &by_hand("mnist"), "A webhook does not answer").await;
    world.delete_in_cluster(&WEBHOOKS, "guard").await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_webhook_refuses_the_pods() {
    let world = World::shared("ways-signed").await;
    let guard = Guard::refusing("the image is not signed").await;
    world.create_in_cluster(&WEBHOOKS, &webhook("signatures", &world.name, &guard.client_config)).await;
    refuses(&world, "the image is not signed").await;
    hangs(&world, &PADDLE_JOBS, &by_hand("mnist"), "A webhook refuses the pods").await;
    world.delete_in_cluster(&WEBHOOKS, "signatures").await;
}

/// Pods that are made in this namespace need a webhook's consent.
fn webhook(name: &str, namespace: &str, client: &Value) -> Value {
    let (namespaces, rules) = pods_of(namespace);
    let webhook = json!({
        "name": format!("pods.{name}.example.org"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Fail", "timeoutSeconds": 5, "namespaceSelector": namespaces, "rules": rules,
        "clientConfig": client,
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": name }, "webhooks": [webhook],
    })
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_name_of_a_pod_is_taken() {
    let world = World::shared("ways-name").await;
    let container = json!({ "name": "main", "image": "docker.io/local/any:1" });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "mnist-worker-0" },
        "spec": { "schedulerName": "nobody", "containers": [container] } });
    world.create(&PODS, &pod).await;
    hangs(&world, &PADDLE_JOBS, &by_hand("mnist"), "The name of a pod is taken").await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn no_node_has_the_labels_of_the_node_selector() {
    let world = World::shared("ways-selector").await;
    let job = with("mnist", &json!({ "nodeSelector": { "gpu": "h100" } }));
    hangs(&world, &PADDLE_JOBS, &job, "No node has the labels of the node selector").await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn no_node_has_what_the_pod_requests() {
    let world = World::shared("ways-requests").await;
    let mut job = with("mnist", &json!({}));
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] =
        json!({ "requests": { "cpu": "100000" } });
    hangs(&world, &PADDLE_JOBS, &job, "No node has what a pod requests").await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_claim_does_not_exist() {
    let world = World::shared("ways-claim").await;
    let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "training-data" } });
    let job = with("mnist", &json!({ "volumes": [volume] }));
    hangs(&world, &PADDLE_JOBS, &job, "A volume claim does not exist").await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_pod_has_a_scheduling_gate() {
    let world = World::shared("ways-gate").await;
    let job = with("mnist", &json!({ "schedulingGates": [{ "name": "example.org/quota" }] }));
    let job = hangs(&world, &PADDLE_JOBS, &job, "A pod has a scheduling gate").await;
    // The pod says so from the beginning, and the job within 2 s, as `host/lab/tests/waiting.rs` shows in virtual time; more
    // is allowed for here, since other tests run.
    let pod = world.get(&PODS, "mnist-worker-0").await.unwrap();
    let [gated, told] =
        [(&pod, "/metadata/creationTimestamp"), (&job, "/status/troupe/conditions/0/lastTransitionTime")]
            .map(|(object, at)| text(object, at).parse::<jiff::Timestamp>().unwrap());
    let after = told.duration_since(gated);
    assert!(after <= jiff::SignedDuration::from_secs(10), "{after}");
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_deadline_has_passed() {
    let world = World::shared("ways-deadline").await;
    let mut job = torch("mnist");
    job["spec"]["runPolicy"] = json!({ "activeDeadlineSeconds": 2 });
    hangs(&world, &PYTORCH_JOBS, &job, "The job's deadline has passed").await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_plugin_refuses_the_job() {
    let world = World::shared("ways-refused").await;
    let mut job = torch("mnist");
    job["metadata"]["annotations"] = json!({ "kubeflow.troupe.dev/restart-scope": "Group" });
    hangs(&world, &PYTORCH_JOBS, &job, "The plugin refuses the job").await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_ports_of_the_nodes_are_taken() {
    let world = World::shared("ways-ports").await;
    let arguments = ["--namespace", &world.name, "--host-port-range", "36000-36029"];
    let host = Operator::start(&world.plane, &arguments).await;
    let views = Views::of(&world, world.plane.kubeconfig("user").unwrap(), &host).await;
    let job = |name: &str| {
        let mut job = by_hand(name);
        job["spec"]["intranet"] = json!("Host");
        job
    };
    world.create(&PADDLE_JOBS, &job("first")).await;
    world.is(&PODS, "first-worker-0", "there", |_| true).await;
    world.create(&PADDLE_JOBS, &job("mnist")).await;
    views.tell(&PADDLE_JOBS, "mnist", "The ports of the nodes are taken").await;
    host.stop().await;
}

/// Host mode writes the ports down before it makes pods, and a definition of an original operator drops what it writes.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_definition_of_the_kind_is_too_old() {
    let prunes = |crd: CustomResourceDefinition| {
        let mut crd = serde_json::to_value(crd).unwrap();
        let status = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties");
        status.unwrap().as_object_mut().unwrap().remove("troupe").unwrap();
        serde_json::from_value(crd).unwrap()
    };
    let old = |crd: &CustomResourceDefinition| crd.name_any() == "paddlejobs.batch.paddlepaddle.org";
    let crds = crds::all().into_iter().map(|crd| if old(&crd) { prunes(crd) } else { crd });
    let plane = ControlPlane::start(Options::default().crds(crds)).await.unwrap();
    let jobs = Namespace::create_in(plane.client("user").await.unwrap(), "ways-pruned").await;
    let host = Operator::start(&plane, &[]).await;
    let views = Views::of(&jobs, plane.kubeconfig("user").unwrap(), &host).await;
    let mut job = by_hand("mnist");
    job["spec"]["intranet"] = json!("Host");
    jobs.create(&PADDLE_JOBS, &job).await;
    views.tell_by_event(&PADDLE_JOBS, "mnist", "The definition of the kind is too old").await;
    host.stop().await;
}

/// The node lifecycle controller finds that nobody reports the node any more, and a person deletes the pod.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_node_is_gone() {
    let world = World::shared("ways-node").await;
    let host = world.operator().await;
    let views = Views::of(&world, world.plane.kubeconfig("user").unwrap(), &host).await;
    let now = Clock::system().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let ready = json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "gpu-7" },
        "status": { "conditions": [ready] } });
    world.create_in_cluster(&NODES, &node).await;
    world.create(&PADDLE_JOBS, &with("mnist", &json!({ "nodeName": "gpu-7" }))).await;
    world.is(&PODS, "mnist-worker-0", "there", |_| true).await;
    world.set_status(&PODS, "mnist-worker-0", &played::addressed("10.0.0.9")).await;
    world.set_status(&PODS, "mnist-worker-0", &played::running("paddle")).await;
    let proceeds = |job: &Value| condition_of(job, "Waiting").is_some_and(|it| it["status"] == "False");
    world.is(&PADDLE_JOBS, "mnist", "waiting for nothing", proceeds).await;

    views.tell(&PADDLE_JOBS, "mnist", "The node of a pod is gone").await;
    world.delete(&PODS, "mnist-worker-0").await;
    views.tell(&PADDLE_JOBS, "mnist", "A pod is being deleted on a node that is gone").await;
    world.delete_in_cluster(&NODES, "gpu-7").await;
    host.stop().await;
}
