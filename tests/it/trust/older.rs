//! What jobs get from an older digest that they stay with: it may do no more than it was accepted for, whatever a newer one
//! may do, and it is found again.

use super::*;
use crate::hostile::guest;
use decide::Digest;

impl World {
    /// Waits until this component plans new jobs.
    async fn serves(&self, wasm: &[u8]) {
        let digest = digest_of(wasm);
        self.plugin_is("served", |status| status["digest"] == digest).await;
    }

    /// Changes the spec of the Plugin.
    fn change_plugin(&self, spec: &Value) -> Value {
        self.sim.patch(PLUGIN.0, PLUGIN.1, "", "paddle", json!({ "spec": spec })).unwrap()
    }

    /// Changes the spec of the Plugin, and waits until that was accepted.
    async fn accepts(&self, spec: &Value) {
        let generation = self.change_plugin(spec)["metadata"]["generation"].clone();
        let is_accepted = |status: &Value| status["observedGeneration"] == generation && status["lastError"].is_null();
        self.plugin_is("accepted", is_accepted).await;
    }

    /// The job has so many workers from now on.
    fn scale(&self, job: &str, replicas: u32) {
        let spec = json!({ "spec": { "worker": { "replicas": replicas } } });
        self.sim.patch(PADDLE.0, PADDLE.1, TENANT, job, spec).unwrap();
    }

    async fn has_pods(&self, job: &str, count: usize) {
        until(&format!("{count} pods of {job}"), || {
            let pods = self.pods_of(job);
            if pods == count { Ok(()) } else { Err(json!({ "pods": pods, "status": self.status(job) })) }
        })
        .await;
    }

    /// The job `old` has a worker, and stays with a digest that was accepted for one worker a job. Another digest plans new
    /// jobs of any size.
    async fn widened() -> (Self, Host) {
        let world = Self::new();
        let host = world.host();
        let (one, two) = (version("one"), version("two"));
        world.source(&one);
        let narrow = Grants { max_replicas: Some(1), ..grants() };
        world.sim.create(json!({ "apiVersion": PLUGIN.0, "kind": PLUGIN.1, "metadata": { "name": "paddle" },
            "spec": { "source": { "configMap": { "name": "paddle" } }, "grants": narrow } }));
        world.serves(&one).await;
        world.submit("old");
        world.planned_by("old", &digest_of(&one)).await;
        world.source(&two);
        world.serves(&two).await;
        world.accepts(&json!({ "grants": { "maxReplicas": null } })).await;
        (world, host)
    }

    /// The job `old` says that it may not have a second worker, and has none.
    async fn refuses_a_second_worker(&self) {
        let held = self.held("old", "LimitExceeded").await;
        assert!(fault_of(&held)["message"].as_str().unwrap().contains("`spec.grants.maxReplicas: 2`"), "{held:#}");
        assert_eq!(self.pods_of("old"), 1);
    }

    /// Whatever happens, the job `old` gets no second worker of this digest, which lacks a grant for that.
    async fn gets_no_second_worker(&self, digest: &str) {
        tokio::time::sleep(SOON).await;
        let status = self.status("old");
        assert_eq!((self.pods_of("old"), &status["troupe"]["digest"]), (1, &json!(digest)), "{status:#}");
        assert_ne!(*fault_of(&status), Value::Null, "{status:#}");
    }
}

/// Waits until a host has loaded this digest.
async fn loaded(plugins: &Plugins, digest: &str) {
    let digest: Digest = digest.parse().unwrap();
    until("loaded", || plugins.has(&digest).then_some(()).ok_or(Value::Null)).await;
}

#[test]
fn an_older_digest_gets_no_grant_that_a_newer_one_is_accepted_with() {
    in_virtual_time(async {
        let (world, host) = World::widened().await;
        world.submit("new");
        world.scale("new", 2);
        world.scale("old", 2);
        world.has_pods("new", 2).await;
        world.refuses_a_second_worker().await;
        drop(host);
        let _host = world.host();
        tokio::time::sleep(SOON).await;
        world.refuses_a_second_worker().await;
    });
}

#[test]
fn an_older_digest_has_no_more_than_its_mark_says_after_a_restart_and_another_upgrade() {
    in_virtual_time(async {
        let (world, host, one, _) = World::upgraded().await;
        drop(host);
        // Its job makes a ConfigMap.
        world.grant_nothing_but_pods(&one);
        let _host = world.host();
        world.held("old", "UnacceptableAnswer").await;
        let three = version("three");
        world.source(&three);
        world.serves(&three).await;
        world.scale("old", 2);
        world.gets_no_second_worker(&one).await;
    });
}

#[test]
fn settings_that_an_older_digest_does_not_know_bring_it_no_grant() {
    in_virtual_time(async {
        let (world, _host) = World::widened().await;
        // It takes any settings.
        let other = guest("poses-as-paddle");
        let mut granted = grants();
        granted.images.extend(["one", "two"].map(str::to_owned));
        world.change_plugin(&json!({ "config": { "no-such-setting": true }, "grants": granted }));
        world.source(&other);
        world.serves(&other).await;
        world.scale("old", 2);
        world.refuses_a_second_worker().await;
    });
}

#[test]
fn an_older_digest_keeps_its_settings_where_the_newer_ones_need_a_grant_that_it_lacks() {
    in_virtual_time(async {
        let (world, _host, _, _) = World::upgraded().await;
        let mut granted = grants();
        granted.images.insert("busybox:2".to_owned());
        world.accepts(&json!({ "config": { "initImage": "busybox:2" }, "grants": granted })).await;
        world.submit("new");
        for (job, image) in [("new", "busybox:2"), ("old", "docker.io/library/alpine:3.10")] {
            world.scale(job, 2);
            world.has_pods(job, 2).await;
            let pod = world.sim.get("v1", "Pod", TENANT, &format!("{job}-worker-1")).unwrap();
            assert_eq!(pod["spec"]["initContainers"][0]["image"], image);
        }
    });
}

#[test]
fn a_grant_that_is_taken_from_an_older_digest_comes_back_to_the_newer_one_alone() {
    in_virtual_time(async {
        let (world, host, one, two) = World::upgraded().await;
        world.change_plugin(&json!({ "grants": null }));
        world.plugin_is("refused", |status| status["lastError"].is_string()).await;
        world.accepts(&json!({ "grants": grants() })).await;
        world.submit("new");
        world.planned_by("new", &two).await;
        world.scale("old", 2);
        world.gets_no_second_worker(&one).await;
        drop(host);
        let _host = world.host();
        world.gets_no_second_worker(&one).await;
    });
}

#[test]
fn calls_of_a_digest_that_a_job_has_loaded_count_under_the_name_of_its_plugin() {
    in_virtual_time(async {
        for has_plugin in [true, false] {
            let (world, host, one, _) = World::upgraded().await;
            drop(host);
            if !has_plugin {
                world.sim.delete(PLUGIN.0, PLUGIN.1, "", "paddle").unwrap();
            }
            let plugins = of_campaigns();
            let _host = world.host_of(OWN, Arc::clone(&plugins));
            loaded(&plugins, &one).await;
            let frameworks = plugins.frameworks();
            let is_known = |name: &str| frameworks.iter().any(|(framework, _)| framework.name == name);
            let names = plugins.calls().into_iter().map(|(plugin, ..)| plugin);
            let unknown: Vec<_> = names.filter(|name| !is_known(name)).collect();
            assert!(unknown.is_empty(), "{unknown:?}");
        }
    });
}

#[test]
fn a_digest_that_nothing_needed_for_a_while_is_sought_for_the_next_job_that_does() {
    in_virtual_time(async {
        for is_reported in [false, true] {
            let (world, host, one, two) = World::upgraded().await;
            drop(host);
            let bytes = Matching { actor: Some(HOST.into()), ..Matching::verb("get", "configmaps") };
            let unavailable = ApiError::new(503, "ServiceUnavailable", "the server is busy");
            let refusal = world.sim.refuse(bytes.named(&map_of(&one)), unavailable);
            let plugins = of_campaigns();
            let _host = world.host_of(OWN, Arc::clone(&plugins));
            if is_reported {
                world.held("old", "PluginMissing").await;
            } else {
                // By the second attempt the host has listed what it keeps.
                until("sought twice", || {
                    let requests = world.sim.requests_of(HOST);
                    let attempts = requests.iter().filter(|it| it.code == 503 && it.name == map_of(&one)).count();
                    if attempts >= 2 { Ok(()) } else { Err(json!(attempts)) }
                })
                .await;
            }
            world.sim.delete(PADDLE.0, PADDLE.1, TENANT, "old").unwrap();
            // It is sought no longer by then.
            tokio::time::sleep(Duration::from_secs(30)).await;
            world.sim.lift(refusal);
            world.submit("late");
            world.planned_by("late", &two).await;
            let ledger = json!({ "status": { "troupe": { "digest": one } } });
            world.sim.patch_status(PADDLE.0, PADDLE.1, TENANT, "late", ledger).unwrap();
            loaded(&plugins, &one).await;
        }
    });
}
