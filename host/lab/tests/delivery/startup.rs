//! What a host that starts owes to jobs while others have no answer.

use super::*;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Requests that `which` picks have no answer while `is_silent`.
fn silent(
    is_silent: Arc<AtomicBool>,
    which: impl Fn(&Request<Body>) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn(&Request<Body>) -> Meddling + Clone + Send + Sync + 'static {
    move |request: &Request<Body>| match is_silent.load(Relaxed) && which(request) {
        true => std::future::pending().boxed(),
        false => std::future::ready(()).boxed(),
    }
}

/// Where the host has kept a digest: its first ConfigMap.
pub(super) fn kept(wasm: &[u8]) -> String {
    format!("troupe-plugin-{}-0", source::digest(wasm).short())
}

/// A job of a plugin that comes with the host, and that no test changes.
fn of_another_plugin(name: &str) -> Value {
    let template = json!({ "spec": { "containers": [{ "name": "pytorch", "image": "example.com/train:1" }] } });
    let master = json!({ "replicas": 1, "restartPolicy": "OnFailure", "template": template });
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "pytorchReplicaSpecs": { "Master": master } },
    })
}

/// The Plugin `paddle`, which has what comes with the host serve.
fn of_built_in() -> Value {
    let mut paddle = plugin("paddle", &grants("paddle"));
    paddle["spec"]["source"] = json!({ "builtIn": {} });
    paddle
}

impl Stage {
    /// The job of [`of_another_plugin`] with this name has run to its end.
    fn has_succeeded(&self, job: &str) -> bool {
        let job = self.sim.get("kubeflow.org/v1", "PyTorchJob", "default", job).unwrap_or_default();
        let mut conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|it| it["type"] == "Succeeded" && it["status"] == "True")
    }

    fn pods_of(&self, job: &str) -> usize {
        let pods = self.sim.list("v1", "Pod", "default");
        pods.iter().filter(|pod| pod["metadata"]["ownerReferences"][0]["name"] == job).count()
    }

    /// All that comes with the host is kept.
    async fn keeps_the_built_ins(&self) {
        self.until("the built-in plugins to be kept", |stage| {
            let name = |digest: decide::Digest| format!("troupe-plugin-{}-0", digest.short());
            let is_kept = |digest| stage.sim.get("v1", "ConfigMap", NAMESPACE, &name(digest)).is_some();
            Plugins::built_in_digests().all(is_kept).then_some(())
        })
        .await;
    }

    /// A host starts in the silence, in which a job of another plugin has its pods soon, and one of paddle waits for this
    /// digest.
    async fn starts_in_silence(&mut self, is_silent: &AtomicBool, digest: &str) {
        is_silent.store(true, Relaxed);
        self.restart();
        let began = Instant::now();
        self.sim.create(job("hamlet"));
        self.sim.create(of_another_plugin("ophelia"));
        self.until("a pod of ophelia", |stage| (stage.pods_of("ophelia") > 0).then_some(())).await;
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        sleep(Duration::from_secs(5)).await;
        assert_eq!(self.pods_of("hamlet"), 0, "its digest is not known yet");
        is_silent.store(false, Relaxed);
        assert_eq!(self.planner("hamlet").await, digest);
    }
}

#[tokio::test(start_paused = true)]
async fn a_component_that_does_not_come_while_a_host_starts_costs_jobs_of_other_plugins_nothing() {
    let (component, is_silent) = (another("paddle", "one"), Arc::new(AtomicBool::new(false)));
    let archived = kept(&component);
    let reads = move |request: &Request<Body>| request.uri().path().ends_with(&archived);
    let objects = vec![map("paddle", &component), plugin("paddle", &grants("paddle"))];
    let mut stage = Stage::meddled(objects, silent(is_silent.clone(), reads));
    stage.serves("paddle", &component).await;
    stage.keeps_the_built_ins().await;
    stage.starts_in_silence(&is_silent, &digest_of(&component)).await;
}

#[tokio::test(start_paused = true)]
async fn a_built_in_plugin_that_cannot_be_kept_while_a_host_starts_costs_jobs_of_others_nothing() {
    let (component, is_silent) = (Plugins::built_in("paddle").unwrap(), Arc::new(AtomicBool::new(false)));
    let path = format!("/namespaces/{NAMESPACE}/configmaps");
    let creates =
        move |request: &Request<Body>| request.method().as_str() == "POST" && request.uri().path().ends_with(&path);
    let mut stage = Stage::meddled(vec![], silent(is_silent.clone(), creates));
    stage.keeps_the_built_ins().await;
    // As after an upgrade of the host that brings another component.
    stage.sim.delete("v1", "ConfigMap", NAMESPACE, &kept(component)).unwrap();
    stage.starts_in_silence(&is_silent, &digest_of(component)).await;
}

#[tokio::test(start_paused = true)]
async fn a_kept_component_whose_load_panics_while_a_host_starts_is_loaded_again_and_costs_jobs_of_others_nothing() {
    let (component, panics) = (another("paddle", "one"), Arc::new(AtomicBool::new(false)));
    let (once, archived) = (panics.clone(), kept(&component));
    let objects = vec![map("paddle", &component), plugin("paddle", &grants("paddle"))];
    let mut stage = Stage::meddled(objects, move |request| {
        let panics = request.uri().path().ends_with(&archived) && once.swap(false, Relaxed);
        async move { assert!(!panics, "as the test asks") }.boxed()
    });
    stage.serves("paddle", &component).await;
    stage.keeps_the_built_ins().await;
    panics.store(true, Relaxed);
    stage.restart();
    let began = Instant::now();
    stage.sim.create(job("hamlet"));
    stage.sim.create(of_another_plugin("ophelia"));
    stage.until("a pod of ophelia", |stage| (stage.pods_of("ophelia") > 0).then_some(())).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(stage.planner("hamlet").await, digest_of(&component));
    assert_eq!(stage.restarts(), [("attempt", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_built_in_plugin_serves_its_jobs_once_the_settings_of_its_plugin_can_be_read_and_others_meanwhile() {
    let (component, is_silent) = (Plugins::built_in("paddle").unwrap(), Arc::new(AtomicBool::new(false)));
    let archived = kept(component);
    let reads = move |request: &Request<Body>| request.uri().path().ends_with(&archived);
    let mut stage = Stage::meddled(vec![of_built_in()], silent(is_silent.clone(), reads));
    stage.serves("paddle", component).await;
    stage.keeps_the_built_ins().await;
    stage.starts_in_silence(&is_silent, &digest_of(component)).await;
}

/// A host starts while `first` may answer what is asked about the bytes that it keeps of a built-in plugin, whose Plugin
/// gave it settings by which no job can run. Jobs of others run meanwhile.
async fn has_the_settings_of_its_plugin(
    first: impl Fn() -> BoxFuture<'static, Option<Answer>> + Clone + Send + Sync + 'static,
) {
    let (component, is_starting) = (Plugins::built_in("paddle").unwrap(), Arc::new(AtomicBool::new(false)));
    let (starts, archived) = (is_starting.clone(), kept(component));
    let mut stage = Stage::answered(vec![of_built_in()], move |request| {
        match starts.load(Relaxed) && request.uri().path().ends_with(&archived) {
            true => first(),
            false => std::future::ready(None).boxed(),
        }
    });
    stage.serves("paddle", component).await;
    // Its pod finds no node.
    stage.sim.create(job("held-hamlet"));
    stage
        .until("held-hamlet to be planned", |stage| {
            let job = stage.sim.get(JOBS.0, JOBS.1, "default", "held-hamlet")?;
            (job["status"]["troupe"]["digest"] == digest_of(component).as_str() && stage.pods_of("held-hamlet") == 1)
                .then_some(())
        })
        .await;
    // By these no job can run.
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": { "limits": { "fuel": 1 } } })).unwrap();
    stage
        .until("the second generation", |stage| {
            (stage.plugin("paddle")["status"]["observedGeneration"] == 2).then_some(())
        })
        .await;
    let pods = stage.sim.list("v1", "Pod", "default");
    let pod = pods[0]["metadata"]["name"].as_str().unwrap();
    stage.sim.delete("v1", "Pod", "default", pod).unwrap();
    is_starting.store(true, Relaxed);
    stage.restart();
    stage.sim.create(of_another_plugin("ophelia"));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(stage.pods_of("held-hamlet"), 0, "made by a pass with other settings");
    assert!(stage.has_succeeded("ophelia"), "it waited for the settings of another plugin");
}

#[tokio::test(start_paused = true)]
async fn what_comes_with_the_host_has_the_settings_of_its_plugin_before_any_pass() {
    let late = || async { sleep(Duration::from_secs(4)).await };
    has_the_settings_of_its_plugin(move || late().map(|()| None).boxed()).await;
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_be_read_hold_the_jobs_of_their_plugin_alone() {
    let unavailable = || std::future::ready(Some(refusal(503, &json!("unavailable"))));
    has_the_settings_of_its_plugin(move || unavailable().boxed()).await;
    has_the_settings_of_its_plugin(|| std::future::pending().boxed()).await;
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_be_read_at_first_are_asked_for_again_before_any_pass() {
    let refused = Arc::new(AtomicU32::new(0));
    let times = refused.clone();
    has_the_settings_of_its_plugin(move || {
        let answer = match times.fetch_add(1, Relaxed) {
            0 => Some(refusal(503, &json!("unavailable"))),
            1 => Some(busy(5)),
            _ => None,
        };
        std::future::ready(answer).boxed()
    })
    .await;
    assert!(refused.load(Relaxed) > 2, "they were not asked for again");
}

// The pods of a kind that nothing else serves are listed together with those of other kinds, before it is known.
#[tokio::test(start_paused = true)]
async fn pods_of_a_kind_that_is_loaded_late_are_seen() {
    let (component, is_silent) = (campaign::of_poodles("poodla"), Arc::new(AtomicBool::new(false)));
    let archived = kept(&component);
    let reads = move |request: &Request<Body>| request.uri().path().ends_with(&archived);
    let objects = vec![map("poodla", &component), plugin("poodla", &grants("paddle"))];
    let mut stage = Stage::meddled(objects, silent(is_silent.clone(), reads));
    stage.serves("poodla", &component).await;
    stage.keeps_the_built_ins().await;
    stage.submit_poodle("hamlet").await;
    stage.until("hamlet to run", |stage| (stage.phase_of_poodle("hamlet") == "Running").then_some(())).await;
    is_silent.store(true, Relaxed);
    stage.restart();
    sleep(Duration::from_secs(20)).await;
    is_silent.store(false, Relaxed);
    let digest = digest_of(&component);
    // The first request is given up after 10 s, and the next is made after 1 s.
    sleep(Duration::from_secs(20)).await;
    stage.sim.set_succeeded("default", "hamlet-worker-0");
    stage.until("hamlet to complete", |stage| (stage.phase_of_poodle("hamlet") == "Completed").then_some(())).await;
    assert_eq!(stage.planner_of_poodle("hamlet").await, digest);
    let created = |it: &&sim::RequestRecord| it.verb == "create" && it.resource == "pods";
    assert_eq!(stage.sim.requests_of("troupe").iter().filter(created).count(), 1, "no pod is created again");
}

/// An answer with this body.
pub(super) fn refusal(code: u16, body: &Value) -> Answer {
    http::Response::builder().status(code).body(axum::body::Body::from(body.to_string())).unwrap()
}

/// A refusal as API Priority and Fairness words it: the seconds stand in the header alone.
pub(super) fn busy(seconds: u32) -> Answer {
    let body = axum::body::Body::from("Too many requests, please try again later.\n");
    http::Response::builder().status(429).header("retry-after", seconds).body(body).unwrap()
}

/// A host starts while lists of Plugins are forbidden, for this time or for good. Returns the digest that plans a job, and
/// that of its Plugin.
async fn planner_while_forbidden(time: Option<Duration>) -> (String, String) {
    let (component, is_forbidden) = (another("paddle", "one"), Arc::new(AtomicBool::new(false)));
    let starts = is_forbidden.clone();
    let objects = vec![map("paddle", &component), plugin("paddle", &grants("paddle"))];
    let mut stage = Stage::refusing(objects, move |request| {
        let is_list = request.uri().path().ends_with("/plugins");
        (is_list && starts.load(Relaxed)).then(|| refusal(403, &json!("forbidden")))
    });
    stage.serves("paddle", &component).await;
    is_forbidden.store(true, Relaxed);
    stage.restart();
    stage.sim.create(job("hamlet"));
    if let Some(time) = time {
        sleep(time).await;
        is_forbidden.store(false, Relaxed);
    }
    (stage.planner("hamlet").await, digest_of(&component))
}

#[tokio::test(start_paused = true)]
async fn a_list_of_plugins_that_is_forbidden_at_first_is_asked_for_again_before_a_job_is_planned() {
    let (planner, digest) = planner_while_forbidden(Some(Duration::from_secs(25))).await;
    assert_eq!(planner, digest);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_has_no_right_to_plugins_does_not_wait_for_them() {
    let stage = Stage::refusing(vec![], move |request| {
        let path = request.uri().path();
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {}, "spec": {},
            "status": { "allowed": false },
        });
        path.ends_with("/plugins")
            .then(|| refusal(403, &json!("forbidden")))
            .or_else(|| path.ends_with("/selfsubjectaccessreviews").then(|| refusal(201, &review)))
    });
    stage.sim.create(job("hamlet"));
    sleep(Duration::from_secs(5)).await;
    assert_eq!(stage.pods_of("hamlet"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_may_not_list_plugins_serves_what_comes_with_it() {
    let (planner, _) = planner_while_forbidden(None).await;
    assert_eq!(planner, digest_of(Plugins::built_in("paddle").unwrap()));
}

/// The time between the first two requests for Plugins that `which` picks by its query, of which the API server refuses two.
async fn asked_again_after(which: fn(&str) -> bool) -> Duration {
    let asked = Arc::new(Mutex::new(vec![]));
    let times = asked.clone();
    let _stage = Stage::refusing(vec![], move |request| {
        let is_meant = request.uri().path().ends_with("/plugins") && which(request.uri().query().unwrap_or_default());
        (is_meant && times.lock().len() < 2).then(|| {
            times.lock().push(Instant::now());
            busy(20)
        })
    });
    sleep(Duration::from_secs(60)).await;
    let asked = asked.lock().clone();
    asked[1] - asked[0]
}

#[tokio::test(start_paused = true)]
async fn plugins_are_asked_for_again_when_the_api_server_says() {
    let is_watch = |query: &str| query.contains("watch=true");
    for which in [|query: &str| !query.contains("watch=true"), is_watch] {
        let waited = asked_again_after(which).await;
        assert!((Duration::from_secs(20)..Duration::from_secs(22)).contains(&waited), "{waited:?}");
    }
}
