//! Kinds that jobs do without, such as Workloads: not served yet, forbidden, refused for a while, gone.

use super::{PADDLE, World, after, in_virtual_time};
use crate::built_in;
use sandbox::Plugins;
use serde_json::{Value, json};
use sim::{ApiError, Faults, Kind, Matching};
use std::{sync::Arc, time::Duration};

const WORKLOAD: (&str, &str) = ("kueue.x-k8s.io/v1beta2", "Workload");
const DEFINITION: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

impl World {
    /// A cluster with queues, and a job in one of them.
    fn with_a_queued_job(plugins: &Arc<Plugins>) -> Self {
        let world = Self::new(plugins, 1, Faults::none());
        world.sim.serve(Kind::custom(WORKLOAD.0, WORKLOAD.1, "workloads"));
        let mut job = world.paddle("queued");
        job["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "ours" });
        world.sim.create(job);
        world
    }

    /// One whose API server forbids to list or to watch Workloads so many times.
    fn forbidding(plugins: &Arc<Plugins>, verb: &str, times: u64) -> Self {
        let world = Self::with_a_queued_job(plugins);
        world.sim.refuse_times(Matching::verb(verb, "workloads"), forbidden(), times);
        world
    }

    fn workloads(&self) -> Vec<Value> {
        self.sim.list(WORKLOAD.0, WORKLOAD.1, "default")
    }

    async fn until_it_has_its_workload(&self) {
        self.until("the Workload", 20, |it| !it.workloads().is_empty()).await;
    }

    fn is_made(&self) -> bool {
        self.sim.get("v1", "Pod", "default", "queued-worker-0").is_some()
    }

    /// Has a pass made over the job, by a watch that may be in a back-off of 15 s; returns whether the job has pods then.
    async fn is_made_when_touched(&self) -> bool {
        let touched = json!({ "metadata": { "annotations": { "touched": self.sim.now() } } });
        self.sim.patch(PADDLE.0, PADDLE.1, "default", "queued", touched).unwrap();
        after(Duration::from_secs(20)).await;
        self.is_made()
    }

    async fn until_its_end(&self, seconds: u64) {
        self.until("the job to end", seconds, |it| it.status(PADDLE, "queued")["phase"] == "Completed").await;
    }

    /// Admits the job as Kueue does.
    fn admit(&self) {
        let workloads = self.workloads();
        let [workload] = workloads.as_slice() else { panic!("{workloads:?}") };
        let name = workload["metadata"]["name"].as_str().unwrap();
        let conditions = ["QuotaReserved", "Admitted"].map(|it| json!({ "type": it, "status": "True", "reason": it }));
        let admission = json!({ "clusterQueue": "all", "podSetAssignments": [{ "name": "worker", "count": 2 }] });
        let admitted = json!({ "status": { "admission": admission, "conditions": conditions } });
        self.sim.patch_status(WORKLOAD.0, WORKLOAD.1, "default", name, admitted).unwrap();
    }
}

fn forbidden() -> ApiError {
    ApiError::new(403, "Forbidden", "workloads.kueue.x-k8s.io is forbidden: not yet synced")
}

fn not_found() -> ApiError {
    ApiError::new(404, "NotFound", "the server could not find the requested resource")
}

#[test]
fn a_queued_job_waits_for_its_admission_although_an_api_server_that_starts_forbids_workloads() {
    let plugins = built_in::of_campaigns();
    for (verb, times) in [("list", 1), ("watch", 1), ("list", 5), ("watch", 5)] {
        in_virtual_time(async {
            let world = World::forbidding(&plugins, verb, times);
            after(Duration::from_secs(120)).await;
            assert!(!world.is_made(), "{verb}: nobody has admitted it");
            world.admit();
            world.until_its_end(20).await;
        });
    }
}

#[test]
fn a_host_without_the_right_to_workloads_serves_queued_jobs_after_half_a_minute() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::forbidding(&plugins, "list", u64::MAX);
        after(Duration::from_secs(29)).await;
        assert!(!world.is_made());
        world.until("the pods", 3, World::is_made).await;
        let asked = world.times("list", "workloads").len();
        assert!(asked < 15, "{asked} lists in half a minute");
        after(Duration::from_secs(590)).await;
        assert_eq!(world.times("list", "workloads").len(), asked);
        after(Duration::from_secs(60)).await;
        assert_eq!(world.times("list", "workloads").len(), asked + 1);
    });
}

// A gate that opens because of an API server's troubles starts pods beyond the quota, which are deleted after them.
#[test]
fn a_queued_job_is_still_held_for_as_long_as_workloads_that_were_listed_are_refused() {
    let plugins = built_in::of_campaigns();
    let of_discovery = || Matching::verb("get", "");
    let unavailable = ApiError::new(503, "ServiceUnavailable", "the server is currently unable to handle the request");
    let cases = [
        ("forbidden", forbidden(), None),
        ("not found, and discovery has them", not_found(), None),
        ("not found, and discovery does not answer", not_found(), Some(unavailable)),
    ];
    for (case, refused, of_kinds) in cases {
        in_virtual_time(async {
            let world = World::with_a_queued_job(&plugins);
            world.until_it_has_its_workload().await;
            let of_workloads = ["list", "watch"].map(|verb| (Matching::verb(verb, "workloads"), refused.clone()));
            let all = of_workloads.into_iter().chain(of_kinds.map(|error| (of_discovery(), error)));
            let refusals: Vec<_> = all.map(|(matching, error)| world.sim.refuse(matching, error)).collect();
            // A watch that is open lasts at most 290 s longer.
            let asked = world.times("watch", "workloads").len();
            after(Duration::from_secs(400)).await;
            assert!(world.times("watch", "workloads").len() > asked, "{case}: the watch was meant to be refused");
            assert!(!world.is_made_when_touched().await, "{case}: nobody has admitted it");
            refusals.into_iter().for_each(|refusal| world.sim.lift(refusal));
            world.admit();
            world.until_its_end(60).await;
        });
    }
}

#[test]
fn a_single_404_says_nothing_of_workloads_that_were_listed() {
    let plugins = built_in::of_campaigns();
    for verb in ["list", "watch"] {
        in_virtual_time(async {
            let world = World::with_a_queued_job(&plugins);
            world.until_it_has_its_workload().await;
            world.sim.refuse_times(Matching::verb(verb, "workloads"), not_found(), 1);
            // A watch that ends, after at most 290 s, is followed by a list.
            world.sim.set_faults(Faults { reopen_gone: 1.0, ..Faults::none() });
            let asked = world.times(verb, "workloads").len();
            after(Duration::from_secs(300)).await;
            world.sim.set_faults(Faults::none());
            assert!(world.times(verb, "workloads").len() > asked, "{verb}: one was meant to be refused");
            assert!(!world.is_made_when_touched().await, "{verb}: nobody has admitted it");
            world.admit();
            world.until_its_end(60).await;
        });
    }
}

#[test]
fn a_queued_job_is_held_no_longer_once_workloads_are_not_served_any_more() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::with_a_queued_job(&plugins);
        let version = json!({ "name": "v1beta2", "served": true, "storage": true, "subresources": { "status": {} } });
        let names = json!({ "kind": WORKLOAD.1, "plural": "workloads" });
        world.sim.create(json!({
            "apiVersion": DEFINITION.0, "kind": DEFINITION.1, "metadata": { "name": "workloads.kueue.x-k8s.io" },
            "spec": { "group": "kueue.x-k8s.io", "scope": "Namespaced", "names": names, "versions": [version] },
        }));
        world.until_it_has_its_workload().await;
        after(Duration::from_secs(5)).await;
        assert!(!world.is_made());
        // The watch breaks before it shows that the Workload is gone, too.
        world.sim.set_faults(Faults { watch_drop: 1.0, ..Faults::none() });
        world.sim.delete(DEFINITION.0, DEFINITION.1, "", "workloads.kueue.x-k8s.io").unwrap();
        after(Duration::from_millis(200)).await;
        world.sim.set_faults(Faults::none());
        world.until("the pods", 10, World::is_made).await;
        world.until_its_end(30).await;
    });
}

// What is granted is a kind, and a plural that is another's would have the host read that.
#[test]
fn a_kind_that_comes_later_under_the_plural_of_another_is_not_listed() {
    let plugins = built_in::of_campaigns();
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        after(Duration::from_secs(2)).await;
        let lists = |it: &World| it.times("list", "workloads").len();
        assert_eq!(lists(&world), 1, "it is not served");
        world.sim.serve(Kind::custom(WORKLOAD.0, "Vault", "workloads"));
        after(Duration::from_secs(1300)).await;
        assert_eq!(lists(&world), 1);
    });
    in_virtual_time(async {
        let world = World::new(&plugins, 1, Faults::none());
        after(Duration::from_secs(2)).await;
        world.sim.serve(Kind::custom(WORKLOAD.0, WORKLOAD.1, "workloads"));
        world.until("the list", 620, |it| it.times("list", "workloads").len() == 2).await;
    });
}
