//! What a real API server says of typos in pod templates is told on the job; values of another type it refuses at once.

use super::{
    jobs::paddle,
    objects::{PADDLE_JOBS, PODS, PYTORCH_JOBS, SOON, at, condition_of},
    played,
    world::World,
};
use crate::operator::Operator;
use harness::until;
use kube::api::PostParams;
use serde_json::{Value, json};

const UNKNOWN: &str = "unknown field \"spec.containers[0].imagee\"";

fn with_a_typo(name: &str) -> Value {
    let mut job = paddle(name).worker(2).by_hand().manifest;
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["imagee"] = json!("x");
    job
}

/// The message of a condition; "" when there is none.
fn told<'a>(job: &'a Value, kind: &str) -> &'a str {
    condition_of(job, kind).and_then(|condition| condition["message"].as_str()).unwrap_or_default()
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_typo_in_a_pod_template_is_reported_once_and_the_pods_are_made() {
    let world = World::shared("typo-warned").await;
    let _operator = world.operator().await;
    world.create(&PADDLE_JOBS, &with_a_typo("typo")).await;
    let is_warned = |job: &Value| told(job, "Warned").contains(UNKNOWN);
    world.is(&PADDLE_JOBS, "typo", "warned", is_warned).await;
    assert_eq!(world.names(&PODS).await.unwrap(), ["typo-worker-0", "typo-worker-1"]);
    let reports = || async {
        let events = world.events("PaddleJob", "typo").await;
        events.into_iter().filter(|event| event.starts_with("Warning APIServerWarning: ")).collect::<Vec<_>>()
    };
    // The event follows the condition.
    let is_reported = || async { Ok((!reports().await.is_empty()).then_some(())) };
    until(SOON, "the event of the warning", is_reported).await.unwrap();
    // A pass emits its events before the next pass over the job.
    for (status, phase) in [(played::running("paddle"), "Running"), (played::succeeded(), "Completed")] {
        for pod in ["typo-worker-0", "typo-worker-1"] {
            world.set_status(&PODS, pod, &status).await;
        }
        world.is(&PADDLE_JOBS, "typo", phase, |job| at(job, "/status/phase") == phase).await;
    }
    let reports = reports().await;
    assert!(matches!(reports.as_slice(), [report] if report.contains(UNKNOWN)), "{reports:#?}");
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_strict_host_has_the_api_server_refuse_a_typo_in_a_pod_template() {
    let world = World::shared("typo-refused").await;
    let arguments = ["--namespace", "typo-refused", "--field-validation", "strict"];
    let _operator = Operator::start(&world.plane, &arguments).await;
    world.create(&PADDLE_JOBS, &with_a_typo("typo")).await;
    let is_refused = |job: &Value| told(job, "Waiting").contains(UNKNOWN);
    world.is(&PADDLE_JOBS, "typo", "refused", is_refused).await;
    assert!(world.names(&PODS).await.unwrap().is_empty());
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_value_of_another_type_in_a_pod_template_is_refused_at_apply_with_its_field() {
    let world = World::shared("typo-typed").await;
    let mut job = paddle("typo").worker(1).manifest;
    let template = &mut job["spec"]["worker"]["template"];
    template["metadata"]["annotations"] = json!(["x"]);
    template["spec"]["restartPolicy"] = json!(3);
    template["spec"]["containers"][0]["env"] = json!("x");
    let body = serde_json::to_vec(&job).unwrap();
    let request = PADDLE_JOBS.requests("typo-typed").create(&PostParams::default(), body).unwrap();
    let refused = world.client.request::<Value>(request).await.unwrap_err().to_string();
    for field in ["metadata.annotations", "spec.restartPolicy", "spec.containers[0].env"] {
        assert!(refused.contains(&format!("spec.worker.template.{field}: Invalid value")), "{field}: {refused}");
    }
}

// AC-19
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_pod_template_that_the_originals_webhook_refuses_is_refused_at_apply_with_its_field() {
    let world = World::shared("refused-at-apply").await;
    let container = |name: &str, image: &str| json!({ "name": name, "image": image });
    let of = |containers: Value| json!({ "template": { "spec": { "containers": containers } } });
    let at = "spec.pytorchReplicaSpecs[Master]";
    let cases = [
        (json!({}), format!("{at}: Invalid value: must have a template")),
        (json!({ "template": {} }), format!("{at}.template: Invalid value: spec.containers must have at least one")),
        (of(json!([])), format!("{at}.template: Invalid value: spec.containers must have at least one container")),
        (
            of(json!([container("main", "x")])),
            format!("{at}.template.spec.containers: Invalid value: must have a container named pytorch"),
        ),
        (
            of(json!([container("pytorch", "x"), { "name": "side" }])),
            format!("{at}.template.spec.containers: Invalid value: must have an image in each container"),
        ),
    ];
    for (master, expected) in cases {
        let mut master = master;
        master["replicas"] = json!(1);
        let job = json!({ "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": { "name": "wrong" },
            "spec": { "pytorchReplicaSpecs": { "Master": master } } });
        let body = serde_json::to_vec(&job).unwrap();
        let request = PYTORCH_JOBS.requests("refused-at-apply").create(&PostParams::default(), body).unwrap();
        let refused = world.client.request::<Value>(request).await.unwrap_err().to_string();
        // Between both stands the value, as JSON or as its type.
        let (field, message) = expected.split_once(": Invalid value: ").unwrap();
        assert!(
            refused.contains(&format!("{field}: Invalid value")) && refused.contains(message),
            "{expected}: {refused}"
        );
    }
}
