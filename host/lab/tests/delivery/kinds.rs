//! Kinds of job that two Plugins want to serve.

use super::{startup::refusal, *};
use decide::{condition::Condition, own_conditions::current};
use lab::campaign::of_poodles;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(super) const POODLE: &str = "PoodleJob";

impl Stage {
    pub(super) async fn submit_poodle(&self, name: &str) {
        let mut poodle = job(name);
        poodle["kind"] = json!(POODLE);
        self.sim.create(poodle);
    }

    /// Waits until the job is held for this reason; returns the message.
    async fn holds_poodle(&self, name: &str, reason: &str) -> String {
        self.until(&format!("{name} to be held: {reason}"), |stage| {
            let job = stage.sim.get(JOBS.0, POODLE, "default", name)?;
            let held = current(&job["status"], Condition::PluginFaulted).filter(|it| it["reason"] == reason)?;
            held["message"].as_str().map(str::to_owned)
        })
        .await
    }

    pub(super) fn phase_of_poodle(&self, name: &str) -> String {
        let job = self.sim.get(JOBS.0, POODLE, "default", name).unwrap();
        job["status"]["phase"].as_str().unwrap_or_default().to_owned()
    }

    /// The digest that plans the job.
    pub(super) async fn planner_of_poodle(&self, name: &str) -> String {
        self.until(&format!("{name} to be planned"), |stage| {
            let job = stage.sim.get(JOBS.0, POODLE, "default", name)?;
            Some(job["status"]["troupe"]["digest"].as_str()?.to_owned())
        })
        .await
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_moves_to_a_plugin_of_another_name_once_the_first_is_gone() {
    let (one, two) = (of_poodles("poodla"), of_poodles("poodlb"));
    let stage = Stage::with(vec![map("poodla", &one), plugin("poodla", &grants("paddle"))]);
    stage.serves("poodla", &one).await;
    stage.submit_poodle("hamlet").await;
    assert_eq!(stage.planner_of_poodle("hamlet").await, digest_of(&one));

    [map("poodlb", &two), plugin("poodlb", &grants("paddle"))].into_iter().for_each(|it| drop(stage.sim.create(it)));
    let reported = stage.is("poodlb", "Accepted", "Conflict").await;
    let error = reported["status"]["lastError"].as_str().unwrap();
    assert!(error.contains(POODLE) && error.contains("poodla"), "{error}");

    let gone = Instant::now();
    stage.sim.delete(API, "Plugin", "", "poodla").unwrap();
    stage.serves("poodlb", &two).await;
    assert!(gone.elapsed() < Duration::from_secs(5), "{:?}", gone.elapsed());
    stage.submit_poodle("othello").await;
    assert_eq!(stage.planner_of_poodle("othello").await, digest_of(&two));
    assert_eq!(stage.planner_of_poodle("hamlet").await, digest_of(&one), "it stays with its own");

    // And whoever comes back finds it taken.
    stage.sim.create(plugin("poodla", &grants("paddle")));
    stage.is("poodla", "Accepted", "Conflict").await;
}

// Neither the spec of a Plugin nor what it lacks is reported: only that it was refused.
#[tokio::test(start_paused = true)]
async fn jobs_of_a_kind_whose_only_plugin_is_refused_say_so_until_it_serves() {
    let component = of_poodles("poodla");
    let stage = Stage::with(vec![map("poodla", &component)]);
    // Another controller serves the kind, which is not disturbed.
    stage.submit_poodle("of-another").await;
    let status = json!({ "phase": "Running" });
    stage.sim.patch_status(JOBS.0, POODLE, "default", "of-another", json!({ "status": status })).unwrap();
    stage.sim.create(plugin("poodla", &Grants::default()));
    stage.is("poodla", "Accepted", "GrantMissing").await;
    stage.submit_poodle("hamlet").await;
    let reported = stage.holds_poodle("hamlet", "PluginRefused").await;
    assert!(reported.contains("Plugin poodla, which would, was refused (GrantMissing)"), "{reported}");
    assert!(stage.sim.list("v1", "Pod", "default").is_empty());

    sleep(PATIENCE).await;
    assert_eq!(stage.sim.get(JOBS.0, POODLE, "default", "of-another").unwrap()["status"], status);

    // Another Plugin may serve it.
    let two = of_poodles("poodlb");
    [map("poodlb", &two), plugin("poodlb", &grants("paddle"))].into_iter().for_each(|it| drop(stage.sim.create(it)));
    stage.serves("poodlb", &two).await;
    assert_eq!(stage.planner_of_poodle("hamlet").await, digest_of(&two));
}

#[tokio::test(start_paused = true)]
async fn a_refused_plugin_serves_the_jobs_that_wait_once_it_is_granted_what_it_needs_or_is_forgotten() {
    let component = of_poodles("poodla");
    let stage = Stage::with(vec![map("poodla", &component), plugin("poodla", &Grants::default())]);
    stage.is("poodla", "Accepted", "GrantMissing").await;
    stage.submit_poodle("hamlet").await;
    stage.holds_poodle("hamlet", "PluginRefused").await;
    stage.sim.delete(API, "Plugin", "", "poodla").unwrap();
    stage.holds_poodle("hamlet", "PluginMissing").await;

    stage.sim.create(plugin("poodla", &Grants::default()));
    stage.is("poodla", "Accepted", "GrantMissing").await;
    stage.sim.patch(API, "Plugin", "", "poodla", json!({ "spec": { "grants": grants("paddle") } })).unwrap();
    stage.serves("poodla", &component).await;
    assert_eq!(stage.planner_of_poodle("hamlet").await, digest_of(&component));
}

/// Longer than the host takes to notice that nothing needs a plugin any more.
const SWEPT: Duration = Duration::from_secs(1300);

#[tokio::test(start_paused = true)]
async fn a_kind_whose_plugin_is_gone_is_watched_until_its_last_job_has_ended() {
    let component = of_poodles("poodla");
    let stage = Stage::with(vec![map("poodla", &component), plugin("poodla", &grants("paddle"))]);
    let is_watched = || stage.context.stores().progress().iter().any(|of| of.watch.resource.plural == "poodlejobs");
    let requests = || stage.sim.requests().iter().filter(|request| request.resource == "poodlejobs").count();
    stage.serves("poodla", &component).await;
    stage.submit_poodle("held-hamlet").await;
    stage.planner_of_poodle("held-hamlet").await;
    stage.sim.delete(API, "Plugin", "", "poodla").unwrap();
    sleep(SWEPT).await;
    assert!(is_watched(), "its job has not ended");

    stage.sim.delete(JOBS.0, POODLE, "default", "held-hamlet").unwrap();
    sleep(SWEPT).await;
    assert!(!is_watched());
    let before = requests();
    sleep(SWEPT).await;
    assert_eq!(requests(), before, "nobody asks for the kind");

    // The Plugin comes back.
    stage.sim.create(plugin("poodla", &grants("paddle")));
    stage.serves("poodla", &component).await;
    stage.submit_poodle("othello").await;
    assert_eq!(stage.planner_of_poodle("othello").await, digest_of(&component));
}

#[tokio::test(start_paused = true)]
async fn a_plugin_whose_crd_drops_what_the_host_remembers_says_so_until_the_crd_is_put_right() {
    let component = of_poodles("poodla");
    let stage = Stage::with(vec![map("poodla", &component), plugin("poodla", &grants("paddle"))]);
    let crd = Kind::custom(JOBS.0, POODLE, "poodlejobs");
    stage.serves("poodla", &component).await;
    stage.is("poodla", "Degraded", "AsExpected").await;

    stage.sim.serve(crd.clone().pruning("troupe"));
    stage.submit_poodle("hamlet").await;
    let reported = stage.is("poodla", "Degraded", "StatusPruned").await;
    let conditions = reported["status"]["conditions"].to_string();
    assert!(conditions.contains("the CRD poodlejobs.batch.paddlepaddle.org drops status.troupe"), "{conditions}");

    stage.sim.serve(crd);
    stage.submit_poodle("othello").await;
    stage.planner_of_poodle("othello").await;
    stage.is("poodla", "Degraded", "AsExpected").await;
}

#[tokio::test(start_paused = true)]
async fn jobs_that_a_host_may_not_list_for_a_while_keep_their_ports_and_delay_others_by_half_a_minute() {
    let (component, is_forbidden) = (of_poodles("poodla"), Arc::new(AtomicBool::new(false)));
    let forbidden = is_forbidden.clone();
    let objects = vec![map("poodla", &component), plugin("poodla", &grants("paddle"))];
    let mut stage = Stage::refusing(objects, move |request| {
        let is_list = request.uri().path().ends_with("/poodlejobs");
        (is_list && forbidden.load(Relaxed)).then(|| refusal(403, &json!("forbidden")))
    });
    stage.serves("poodla", &component).await;
    let on_ports = |mut job: Value, kind: &str| {
        job["kind"] = json!(kind);
        job["spec"]["intranet"] = json!("Host");
        job
    };
    stage.sim.create(on_ports(job("long-rex"), POODLE));
    let of_rex = |stage: &Stage| {
        let job = stage.sim.get(JOBS.0, POODLE, "default", "long-rex")?;
        let pod = stage.sim.get("v1", "Pod", "default", "long-rex-worker-0")?;
        let first = job["status"]["troupe"]["hostPorts"]["first"].as_u64()?;
        (pod["status"]["phase"] == "Running").then(|| (first, pod["metadata"]["uid"].clone()))
    };
    let before = stage.until("rex to run", of_rex).await;
    is_forbidden.store(true, Relaxed);
    stage.restart();
    stage.sim.create(on_ports(job("hamlet"), JOBS.1));
    let began = Instant::now();
    stage.planner("hamlet").await;
    let waited = began.elapsed();
    let hamlet = stage.sim.get(JOBS.0, JOBS.1, "default", "hamlet").unwrap();
    let port = stage.sim.get("v1", "Pod", "default", "long-rex-worker-0").unwrap()["spec"]["containers"][0]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|port| port["hostPort"].as_u64())
        .max();
    assert!(hamlet["status"]["troupe"]["hostPorts"]["first"].as_u64() > port, "{port:?} {hamlet:#}");
    assert!((Duration::from_secs(30)..Duration::from_secs(50)).contains(&waited), "{waited:?}");
    assert!(stage.context.is_ready());
    is_forbidden.store(false, Relaxed);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(of_rex(&stage), Some(before));
    stage.submit_poodle("spot").await;
    assert_eq!(stage.planner_of_poodle("spot").await, digest_of(&component));
}
