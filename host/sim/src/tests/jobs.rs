//! Tests of the Job controller.

use super::*;

fn job(spec: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "j" },
        "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "i:1" }] } } },
    });
    json_patch::merge(&mut job["spec"], spec);
    job
}

fn start(life: Life, spec: &Value) -> (Sim, crate::Running) {
    let sim = with(life, Faults::none());
    let running = sim.start();
    sim.create(job(spec));
    (sim, running)
}

fn life() -> Life {
    Life { run: Some(Duration::from_secs(2)), ..Life::default() }
}

fn status(sim: &Sim) -> Value {
    sim.get("batch/v1", "Job", "default", "j").unwrap()["status"].clone()
}

fn pods(sim: &Sim) -> Vec<Value> {
    sim.list("v1", "Pod", "default")
}

fn conditions(sim: &Sim) -> Vec<String> {
    let status = status(sim);
    let list = status["conditions"].as_array().into_iter().flatten();
    list.map(|condition| {
        format!(
            "{}={} {}",
            condition["type"].as_str().unwrap(),
            condition["status"].as_str().unwrap(),
            condition["reason"].as_str().unwrap()
        )
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_its_pod_counts_it_and_is_complete() {
    let (sim, _running) = start(life(), &json!({}));
    after(1000).await;
    assert_eq!(status(&sim)["active"], 1);
    assert_eq!(status(&sim)["ready"], 1);
    let pod = pods(&sim).remove(0);
    let name = pod["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("j-") && name.len() == 7, "{name}");
    assert_eq!(pod["metadata"]["labels"]["job-name"], "j");
    assert_eq!(
        pod["metadata"]["labels"]["batch.kubernetes.io/controller-uid"],
        pod["metadata"]["ownerReferences"][0]["uid"]
    );
    assert_eq!(pod["metadata"]["finalizers"], json!(["batch.kubernetes.io/job-tracking"]));
    after(3000).await;
    assert_eq!(conditions(&sim), ["SuccessCriteriaMet=True CompletionsReached", "Complete=True CompletionsReached"]);
    assert_eq!(status(&sim)["succeeded"], 1);
    assert!(status(&sim)["completionTime"].is_string());
    assert!(pods(&sim)[0]["metadata"]["finalizers"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_job_keeps_its_parallelism_until_its_completions() {
    let (sim, _running) = start(life(), &json!({ "parallelism": 2, "completions": 5 }));
    after(1000).await;
    assert_eq!(pods(&sim).len(), 2);
    after(30_000).await;
    assert_eq!(pods(&sim).len(), 5);
    assert_eq!(status(&sim)["succeeded"], 5);
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_names_labels_and_numbers_its_pods() {
    let (sim, _running) = start(life(), &json!({ "parallelism": 3, "completions": 3, "completionMode": "Indexed" }));
    after(1000).await;
    let pod = pods(&sim).remove(1);
    assert!(pod["metadata"]["name"].as_str().unwrap().starts_with("j-1-"));
    assert_eq!(pod["spec"]["hostname"], "j-1");
    assert_eq!(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"], "1");
    assert_eq!(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"], "1");
    assert_eq!(pod["spec"]["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
    after(5000).await;
    assert_eq!(status(&sim)["completedIndexes"], "0-2");
}

#[tokio::test(start_paused = true)]
async fn a_job_past_its_backoff_limit_fails_and_says_why() {
    let life = life().rule("*", "exit-code", "1");
    let (sim, _running) = start(life, &json!({ "backoffLimit": 2 }));
    after(5000).await;
    assert_eq!((pods(&sim).len(), &status(&sim)["failed"]), (1, &json!(1)));
    after(60_000).await;
    assert_eq!(pods(&sim).len(), 3);
    assert_eq!(conditions(&sim), ["FailureTarget=True BackoffLimitExceeded", "Failed=True BackoffLimitExceeded"]);
    assert_eq!(status(&sim)["conditions"][1]["message"], "Job has reached the specified backoff limit");
}

#[tokio::test(start_paused = true)]
async fn with_on_failure_it_is_the_restarts_in_place_that_count() {
    let mut spec = json!({ "backoffLimit": 2 });
    spec["template"]["spec"]["restartPolicy"] = json!("OnFailure");
    let (sim, _running) = start(life().rule("*", "exit-code", "1"), &spec);
    after(60_000).await;
    assert_eq!(conditions(&sim), ["FailureTarget=True BackoffLimitExceeded", "Failed=True BackoffLimitExceeded"]);
    assert!(pods(&sim).iter().all(|pod| pod["status"]["phase"] != "Running"));
}

#[tokio::test(start_paused = true)]
async fn a_job_active_longer_than_its_deadline_fails() {
    let life = Life { run: None, ..Life::default() };
    let (sim, _running) = start(life, &json!({ "activeDeadlineSeconds": 5 }));
    after(4000).await;
    assert_eq!(conditions(&sim), Vec::<String>::new());
    after(4000).await;
    assert_eq!(conditions(&sim), ["FailureTarget=True DeadlineExceeded", "Failed=True DeadlineExceeded"]);
    assert_eq!(status(&sim)["conditions"][1]["message"], "Job was active longer than specified deadline");
    assert!(pods(&sim).is_empty());
}

#[tokio::test(start_paused = true)]
async fn suspending_deletes_the_pods_and_resuming_starts_the_clock_anew() {
    let life = Life { run: None, ..Life::default() };
    let (sim, _running) = start(life, &json!({ "parallelism": 2, "completions": 2 }));
    after(1000).await;
    sim.patch("batch/v1", "Job", "default", "j", json!({ "spec": { "suspend": true } })).unwrap();
    after(2000).await;
    assert!(pods(&sim).is_empty());
    assert_eq!(conditions(&sim), ["Suspended=True JobSuspended"]);
    assert!(status(&sim)["startTime"].is_null());
    sim.patch("batch/v1", "Job", "default", "j", json!({ "spec": { "suspend": false } })).unwrap();
    after(1000).await;
    assert_eq!(conditions(&sim), ["Suspended=False JobResumed"]);
    assert_eq!(status(&sim)["startTime"], "2026-01-01T00:00:03Z");
    assert_eq!(pods(&sim).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_is_deleted_after_its_time_to_live_with_its_pods() {
    let (sim, _running) = start(life(), &json!({ "ttlSecondsAfterFinished": 10 }));
    after(8000).await;
    assert_eq!(pods(&sim).len(), 1);
    after(10_000).await;
    assert!(sim.get("batch/v1", "Job", "default", "j").is_none());
    assert!(pods(&sim).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lost_pod_of_a_job_is_replaced() {
    let life = Life { run: None, ..Life::default() };
    let (sim, _running) = start(life, &json!({}));
    after(1000).await;
    let first = pods(&sim)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    sim.delete("v1", "Pod", "default", &first).unwrap();
    after(200).await;
    assert_eq!(pods(&sim).len(), 2);
    after(20_000).await;
    let left = pods(&sim);
    assert_eq!(left.len(), 1);
    assert_ne!(left[0]["metadata"]["name"], first.as_str());
}

#[tokio::test(start_paused = true)]
async fn a_job_deleted_in_the_background_takes_its_pods_along() {
    let life = Life { run: None, ..Life::default() };
    let (sim, _running) = start(life, &json!({}));
    after(1000).await;
    sim.delete("batch/v1", "Job", "default", "j").unwrap();
    after(2000).await;
    assert!(pods(&sim).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_template_of_a_job_is_immutable() {
    let sim = sim();
    sim.create(job(&json!({})));
    let patch = json!({ "spec": { "template": { "spec": { "hostname": "x" } } } });
    let error = sim.patch("batch/v1", "Job", "default", "j", patch).unwrap_err();
    assert_eq!(error.code, 422);
    assert!(error.message.contains("spec.template: Invalid value"), "{error}");
}
