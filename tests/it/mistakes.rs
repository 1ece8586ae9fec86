//! Mistakes in users' pod templates are told on the job, on the simulator: fields that nobody knows, values of another type.

use crate::built_in;
use decide::own_conditions;
use lab::campaign::{self, HOST};
use serde_json::{Value, json};
use sim::{Life, Sim};
use std::{sync::Arc, time::Duration};
use troupe::{
    clock::Clock,
    control::operator::{Operator, Options},
    write::warnings::FieldValidation,
};

/// What there is some time after a job with this container was made.
struct Seen {
    job: Value,
    pods: usize,
    /// Reason and message.
    events: Vec<(String, String)>,
    creates: usize,
}

impl Seen {
    /// Reason and message of a condition.
    fn condition(&self, kind: &str) -> Option<(&str, &str)> {
        let condition = own_conditions::all(&self.job["status"]).find(|condition| condition["type"] == kind)?;
        Some((condition["reason"].as_str()?, condition["message"].as_str()?))
    }

    fn told(&self, reason: &str) -> Vec<&str> {
        let of_reason = self.events.iter().filter(|(told, _)| told == reason);
        of_reason.map(|(_, message)| message.as_str()).collect()
    }
}

fn job(template: &Value) -> Value {
    json!({
        "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": { "name": "typo", "namespace": "default" },
        "spec": { "cleanPodPolicy": "Never", "worker": { "replicas": 40, "template": template } },
    })
}

fn container(more: &Value) -> Value {
    let mut container = json!({ "name": "main", "image": "x" });
    for (name, value) in more.as_object().into_iter().flatten() {
        container[name] = value.clone();
    }
    json!({ "spec": { "containers": [container] } })
}

fn seen(template: &Value, validation: FieldValidation) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let plugins = Arc::new(built_in::plugins());
        let kinds = campaign::kinds(&plugins);
        let life = Life::default().rule("*", "run-for", "1h");
        let sim = Sim::new(sim::Options { seed: 1, kinds, life, ..sim::Options::default() });
        let _running = sim.start();
        let options =
            Options { field_validation: validation, ..Options::alone(Clock::starting_at(sim.now()), [1; 32]) };
        let mut operator = Operator::new(sim.client(HOST), plugins, options);
        let task = tokio::spawn(async move { operator.run(std::future::pending()).await });
        sim.create(job(template));
        // Virtual time.
        tokio::time::sleep(Duration::from_secs(60)).await;
        task.abort();
        let events = sim.list("v1", "Event", "default");
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let creates = sim.requests_of(HOST).into_iter().filter(|request| request.what() == "create pods");
        Seen {
            job: sim.get("batch.paddlepaddle.org/v1", "PaddleJob", "default", "typo").unwrap(),
            pods: sim.list("v1", "Pod", "default").len(),
            events: events.iter().map(|event| (text(event, "reason"), text(event, "message"))).collect(),
            creates: creates.count(),
        }
    })
}

#[test]
fn a_field_that_the_api_server_does_not_know_is_reported_once_by_condition_and_event() {
    let seen = seen(&container(&json!({ "imagee": "y" })), FieldValidation::Warn);
    let told = "pod/typo-worker-0: unknown field \"spec.containers[0].imagee\"";
    assert_eq!(seen.condition("Warned"), Some(("APIServerWarning", told)));
    assert_eq!(seen.told("APIServerWarning"), [told]);
    assert_eq!((seen.pods, seen.creates), (40, 40), "the pods run nevertheless, and each was made by one request");
}

#[test]
fn a_template_without_mistakes_warns_of_nothing() {
    let seen = seen(&container(&json!({ "env": [{ "name": "A", "value": "1" }] })), FieldValidation::Warn);
    assert_eq!((seen.condition("Warned"), seen.told("APIServerWarning")), (None, vec![]));
    assert_eq!(seen.job["status"]["troupe"].get("warned"), None);
    assert_eq!(seen.pods, 40);
}

#[test]
fn a_strict_host_makes_no_pod_of_a_template_with_an_unknown_field() {
    let seen = seen(&container(&json!({ "imagee": "y" })), FieldValidation::Strict);
    let (reason, message) = seen.condition("Waiting").unwrap();
    assert_eq!((seen.pods, reason), (0, "Refused"));
    assert!(message.contains("strict decoding error: unknown field \"spec.containers[0].imagee\""), "{message}");
    assert_eq!(seen.told("Create").len(), 1, "the original's word for a pod that is refused");
}

#[test]
fn a_value_of_another_type_where_the_plugin_writes_is_the_users_error_by_its_field() {
    let cases = [
        (container(&json!({ "env": "x" })), "spec.worker.template.spec.containers[0].env: must be a list"),
        (
            json!({ "metadata": { "annotations": ["x"] }, "spec": container(&json!({}))["spec"] }),
            "spec.worker.template.metadata.annotations: must be an object",
        ),
        (
            json!({ "spec": { "restartPolicy": 3, "containers": [{ "name": "main", "image": "x" }] } }),
            "spec.worker.template.spec.restartPolicy: must be a string",
        ),
    ];
    for (template, words) in cases {
        let seen = seen(&template, FieldValidation::Warn);
        let (reason, message) = seen.condition("Rejected").unwrap();
        assert_eq!((seen.pods, reason), (0, "ValidationError"));
        assert_eq!(message, format!("Found validation errors: {words}"));
        assert_eq!(seen.told("ValidationError"), [message]);
    }
}
