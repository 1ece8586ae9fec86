//! What is refused changes nothing, and is not looked at for ever.

use super::{
    startup::{busy, kept},
    *,
};
use decide::own_conditions;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A Plugin with a component of its own that is refused for what its spec says.
fn refused(spec: &Value) -> Vec<Value> {
    let mut refused = plugin("paddle", &grants("paddle"));
    for (field, value) in spec.as_object().unwrap() {
        refused["spec"][field] = value.clone();
    }
    vec![map("paddle", &another("paddle", "one")), refused]
}

async fn leaves_the_built_in(spec: &Value, reason: &str) {
    let stage = Stage::with(refused(spec));
    stage.is("paddle", "Accepted", reason).await;
    stage.sim.create(job("hamlet"));
    assert_eq!(stage.planner("hamlet").await, digest_of(Plugins::built_in("paddle").unwrap()), "{reason}");
    stage.sim.delete(API, "Plugin", "", "paddle").unwrap();
    stage.sim.create(job("othello"));
    stage.planner("othello").await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_plugin_takes_neither_grants_nor_limits_nor_settings_from_the_built_in() {
    leaves_the_built_in(&json!({ "grants": {} }), "GrantMissing").await;
    let spoilt = json!({ "config": { "no-such-setting": 1 }, "limits": { "fuel": 1 } });
    leaves_the_built_in(&spoilt, "InvalidConfig").await;
}

#[tokio::test(start_paused = true)]
async fn a_component_that_names_a_kind_otherwise_than_the_api_server_is_refused_for_it() {
    let (group, version) = JOBS.0.split_once('/').unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("poodles.{group}") },
        "spec": { "group": group, "scope": "Namespaced", "names": { "kind": JOBS.1, "plural": "poodles" },
            "versions": [{ "name": version, "served": true, "storage": true }] },
    });
    let stage = Stage::with(std::iter::once(definition).chain(refused(&json!({}))).collect());
    let message = stage.is("paddle", "Accepted", "KindMismatch").await;
    assert!(message.to_string().contains("the API server calls PaddleJob poodles"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn kinds_that_the_api_server_does_not_name_are_no_fault_of_the_component() {
    let is_silent = Arc::new(AtomicBool::new(true));
    let silence = is_silent.clone();
    let lists_kinds = format!("/apis/{}", JOBS.0);
    let stage = Stage::meddled(refused(&json!({})), move |request: &Request<Body>| {
        match silence.load(Ordering::Relaxed) && request.uri().path() == lists_kinds {
            true => std::future::pending().boxed(),
            false => std::future::ready(()).boxed(),
        }
    });
    stage.is("paddle", "Accepted", "KindsUnknown").await;
    is_silent.store(false, Ordering::Relaxed);
    stage.serves("paddle", &another("paddle", "one")).await;
}

/// The Plugin serves with this in its spec, by which no job in the namespace `default` can run, and goes.
async fn gives_back(source: &Value, spec: &Value) {
    let stage = Stage::with(refused(source));
    stage.is("paddle", "Serving", "Serving").await;
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": spec })).unwrap();
    stage
        .until("the second generation", |stage| {
            (stage.plugin("paddle")["status"]["observedGeneration"] == 2).then_some(())
        })
        .await;
    stage.sim.delete(API, "Plugin", "", "paddle").unwrap();
    stage.sim.create(job("hamlet"));
    assert_eq!(stage.planner("hamlet").await, digest_of(Plugins::built_in("paddle").unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_goes_gives_the_built_in_back_with_its_own_settings() {
    let elsewhere = Grants { namespaces: Some(["elsewhere".to_owned()].into()), ..grants("paddle") };
    gives_back(&json!({}), &json!({ "grants": elsewhere })).await;
    gives_back(&json!({ "source": { "builtIn": {} } }), &json!({ "limits": { "fuel": 1 } })).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_from_a_plugins_grants_is_taken_at_once_from_what_it_serves() {
    let component = another("paddle", "one");
    let mut stage = Stage::with(vec![map("paddle", &component), plugin("paddle", &grants("paddle"))]);
    stage.serves("paddle", &component).await;
    // A merge patch with null takes everything away.
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": { "grants": null } })).unwrap();
    stage.is("paddle", "Accepted", "GrantMissing").await;
    stage.gets_no_pod("hamlet").await;

    // The next host takes nothing back, although nobody can tell it what the component asks for.
    stage.sim.delete("v1", "ConfigMap", NAMESPACE, "paddle").unwrap();
    stage.is("paddle", "Fetched", "NotFound").await;
    stage.restart();
    stage.gets_no_pod("ophelia").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_from_a_plugins_grants_is_taken_from_older_digests_that_jobs_are_pinned_to() {
    let (one, two) = (another("paddle", "one"), another("paddle", "two"));
    let mut stage = Stage::with(vec![map("paddle", &one), plugin("paddle", &grants("paddle"))]);
    stage.serves("paddle", &one).await;
    stage.sim.create(job("held-hamlet"));
    let has_pod = |stage: &Stage| stage.sim.get("v1", "Pod", "default", "held-hamlet-worker-0").map(drop);
    stage.until("its pod", has_pod).await;
    let data = json!({ "binaryData": { source::KEY: STANDARD.encode(&two) } });
    stage.sim.patch("v1", "ConfigMap", NAMESPACE, "paddle", data).unwrap();
    stage.serves("paddle", &two).await;
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": { "grants": null } })).unwrap();
    stage.is("paddle", "Accepted", "GrantMissing").await;
    stage.sim.delete("v1", "Pod", "default", "held-hamlet-worker-0").unwrap();
    stage.reports_that_it_is_refused("held-hamlet").await;

    // The next host remembers it.
    stage.restart();
    sleep(Duration::from_secs(60)).await;
    assert!(stage.sim.list("v1", "Pod", "default").is_empty());
}

#[tokio::test(start_paused = true)]
async fn grants_that_a_plugin_names_limit_what_comes_with_the_host() {
    let few = Grants { kinds: ["Pod".to_owned()].into(), ..Grants::default() };
    let mut stage = Stage::with(refused(&json!({ "source": { "builtIn": {} }, "grants": few })));
    // It serves, and the Plugin says what it lacks.
    let plugin = stage.is("paddle", "Degraded", "GrantMissing").await;
    assert_eq!(condition(&plugin, "Accepted").unwrap().0, "True");
    let conditions = plugin["status"]["conditions"].as_array().unwrap();
    let degraded = conditions.iter().find(|condition| condition["type"] == "Degraded").unwrap();
    assert!(degraded["message"].as_str().unwrap().contains("\nimages: ["), "{degraded}");
    stage.gets_no_pod("hamlet").await;

    // The next host knows it before its first pass, also with fewer than when it was accepted.
    stage.restart();
    stage.gets_no_pod("ophelia").await;
    stage.host.abort();
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": { "grants": grants("paddle") } })).unwrap();
    stage.restart();
    stage.planner("ophelia").await;
    stage.is("paddle", "Degraded", "AsExpected").await;

    // What names nothing is as good as no grants.
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": { "grants": null } })).unwrap();
    stage.sim.create(job("othello"));
    stage.planner("othello").await;
}

#[tokio::test(start_paused = true)]
async fn limits_in_the_grants_of_a_plugin_hold_for_what_comes_with_the_host() {
    let elsewhere = Grants { namespaces: Some(["elsewhere".to_owned()].into()), ..grants("paddle") };
    let stage = Stage::with(refused(&json!({ "source": { "builtIn": {} }, "grants": elsewhere })));
    stage.is("paddle", "Serving", "Serving").await;
    stage.sim.create(job("hamlet"));
    stage
        .until("hamlet to be rejected", |stage| {
            let job = stage.sim.get(JOBS.0, JOBS.1, "default", "hamlet")?;
            own_conditions::all(&job["status"]).any(|it| it["reason"] == "NamespaceNotServed").then_some(())
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_pinned_component_has_no_more_under_a_built_in_source_than_it_was_accepted_with() {
    let component = another("paddle", "one");
    let stage = Stage::with(vec![map("paddle", &component), plugin("paddle", &grants("paddle"))]);
    stage.serves("paddle", &component).await;
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": { "grants": { "kinds": null } } })).unwrap();
    stage.is("paddle", "Accepted", "GrantMissing").await;
    let pinned =
        json!({ "source": { "configMap": null, "builtIn": {} }, "digest": digest_of(&component), "grants": null });
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": pinned })).unwrap();
    stage.is("paddle", "Accepted", "Accepted").await;
    stage.gets_no_pod("hamlet").await;
}

impl Stage {
    /// The component that plans this new job is refused what the job needs.
    async fn gets_no_pod(&self, name: &str) {
        self.sim.create(job(name));
        self.reports_that_it_is_refused(name).await;
    }

    /// The job that has no pods says that its component is refused what it needs.
    async fn reports_that_it_is_refused(&self, name: &str) {
        self.until("the job to report it", |stage| {
            let job = stage.sim.get(JOBS.0, JOBS.1, "default", name)?;
            own_conditions::all(&job["status"]).any(|it| it["reason"] == "UnacceptableAnswer").then_some(())
        })
        .await;
        assert!(self.sim.list("v1", "Pod", "default").is_empty());
    }
}

impl Stage {
    /// How often the host has read the ConfigMap of this name.
    fn reads(&self, name: &str) -> usize {
        let requests = self.sim.requests_of("troupe");
        requests.iter().filter(|it| it.verb == "get" && it.resource == "configmaps" && it.name == name).count()
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_candidate_is_looked_at_ever_more_rarely_until_it_changes() {
    let stage = Stage::with(vec![map("paddle", b"\0asm\x0d\0\x01\0rubbish"), plugin("paddle", &grants("paddle"))]);
    stage.is("paddle", "Compiled", "NotAPlugin").await;
    sleep(Duration::from_secs(3600)).await;
    let reads = stage.reads("paddle");
    assert!((2..=15).contains(&reads), "{reads} reads in an hour");

    let (component, changed) = (another("paddle", "one"), Instant::now());
    let data = json!({ "binaryData": { source::KEY: STANDARD.encode(&component) } });
    stage.sim.patch("v1", "ConfigMap", NAMESPACE, "paddle", data).unwrap();
    stage.serves("paddle", &component).await;
    assert!(changed.elapsed() < Duration::from_secs(5), "{:?}", changed.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_cannot_be_kept_is_looked_at_again_when_the_api_server_says() {
    let (asked, archived) = (Arc::new(Mutex::new(vec![])), kept(Plugins::built_in("paddle").unwrap()));
    let times = asked.clone();
    let stage = Stage::refusing(refused(&json!({ "source": { "builtIn": {} } })), move |request| {
        let is_mark = request.method().as_str() == "PATCH" && request.uri().path().ends_with(&archived);
        let mut times = times.lock();
        times.extend(is_mark.then(Instant::now));
        (is_mark && times.len() == 1).then(|| busy(40))
    });
    stage.is("paddle", "Accepted", "NotKept").await;
    stage.is("paddle", "Accepted", "Accepted").await;
    let asked = asked.lock().clone();
    let waited = asked[1] - asked[0];
    assert!((Duration::from_secs(40)..Duration::from_secs(55)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_cannot_be_read_costs_only_itself() {
    let component = another("paddle", "one");
    let mut odd = plugin("odd", &Grants::default());
    odd["spec"]["limits"] = json!({ "concurrency": 5_000_000_000_u64 });
    let stage = Stage::with(vec![odd.clone(), map("paddle", &component), plugin("paddle", &grants("paddle"))]);
    stage.serves("paddle", &component).await;
    stage.sim.create(job("hamlet"));
    assert_eq!(stage.planner("hamlet").await, digest_of(&component));
    let reported = stage.is("odd", "Fetched", "InvalidSpec").await;
    let error = reported["status"]["lastError"].as_str().unwrap();
    assert!(error.contains("spec.limits.concurrency") && error.contains("expected u32"), "{error}");

    // The same of one that serves already: it serves on, and is read again once it can be.
    let bad = json!({ "spec": { "limits": { "logLines": -1 } } });
    stage.sim.patch(API, "Plugin", "", "paddle", bad).unwrap();
    stage.is("paddle", "Fetched", "InvalidSpec").await;
    stage.sim.create(job("othello"));
    assert_eq!(stage.planner("othello").await, digest_of(&component));
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": { "limits": null } })).unwrap();
    stage.is("paddle", "Fetched", "Fetched").await;
}

/// So many maps in each other.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!({ "x": inner }))
}

// serde_json refuses a list or an event with a value of more than 128 levels, unless that value is left out of it.
#[tokio::test(start_paused = true)]
async fn a_plugin_that_is_nested_too_deeply_costs_only_itself() {
    let component = another("paddle", "one");
    let mut deep = plugin("deep", &Grants::default());
    deep["spec"]["config"] = nested(140);
    let mut stage = Stage::with(vec![deep.clone(), map("paddle", &component), plugin("paddle", &grants("paddle"))]);
    stage.serves("paddle", &component).await;
    let reported = stage.is("deep", "Fetched", "InvalidSpec").await;
    let error = reported["status"]["lastError"].as_str().unwrap();
    assert!(error.contains("spec.config.x.x.x.x.x: is nested deeper than 100 levels"), "{error}");

    // The same of one that serves already, which a watch shows: it serves on.
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": { "config": nested(140) } })).unwrap();
    stage.is("paddle", "Fetched", "InvalidSpec").await;
    stage.sim.create(job("hamlet"));
    assert_eq!(stage.planner("hamlet").await, digest_of(&component));

    stage.restart();
    stage.sim.create(job("othello"));
    assert_eq!(stage.planner("othello").await, digest_of(&component));
    stage.sim.patch(API, "Plugin", "", "paddle", json!({ "spec": { "config": null } })).unwrap();
    stage.is("paddle", "Fetched", "Fetched").await;
}
