//! What users do in a campaign: jobs of both kinds, pods deleted by hand, strangers in the way, a job re-created.

use decide::status::of_framework;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};
use serde_json::{Value, json};
use sim::Sim;
use std::{collections::BTreeSet, time::Duration};

const NAMESPACE: &str = "default";

/// One thing a user does.
#[derive(Debug, Clone)]
enum Deed {
    Submit(Value),
    DeletePod(String),
    DeleteJob(Value),
    Plant(Value),
    Weed(Value),
}

/// What users do, and when.
#[derive(Debug, Clone)]
pub(super) struct Workload {
    deeds: Vec<(Duration, Deed)>,
    jobs: Vec<Value>,
    calm: bool,
}

struct Draw(ChaCha8Rng);

impl Draw {
    fn below(&mut self, end: u32) -> u32 {
        self.0.next_u32() % end
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    fn of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.below(u32::try_from(from.len()).unwrap_or(1)) as usize;
        from.get(at).copied().unwrap_or_default()
    }

    fn ms(&mut self, from: u32, to: u32) -> Duration {
        Duration::from_millis(u64::from(from + self.below(to - from)))
    }
}

impl Workload {
    /// The workload of a seed; every tenth is calm: nobody interferes.
    pub(super) fn drawn(seed: u64) -> Self {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
        let calm = seed.is_multiple_of(10);
        let mut workload = Self { deeds: vec![], jobs: vec![], calm };
        for number in 0..2 {
            let job = servers_and_workers(&mut draw, number, calm);
            workload.submit(&mut draw, job);
        }
        let job = launched(&mut draw, calm);
        workload.submit(&mut draw, job);
        if !calm {
            workload.interfere(&mut draw);
        }
        workload.deeds.sort_by_key(|(at, _)| *at);
        workload
    }

    fn submit(&mut self, draw: &mut Draw, job: Value) {
        self.jobs.push(job.clone());
        self.deeds.push((draw.ms(0, 3000), Deed::Submit(job)));
    }

    fn interfere(&mut self, draw: &mut Draw) {
        if draw.one_in(2) {
            let pod = draw.of(&["a-0-worker-0", "a-1-worker-0", "b-0-worker-0", "a-0-ps-0"]);
            self.deeds.push((draw.ms(1000, 8000), Deed::DeletePod(pod.into())));
        }
        if draw.one_in(4) {
            let kind = draw.of(&["Pod", "Service", "ConfigMap"]);
            let name = if kind == "ConfigMap" { "a-1" } else { "a-1-worker-0" };
            let spec = if kind == "Pod" { json!({ "containers": [{ "name": "x", "image": "x" }] }) } else { json!({}) };
            let stranger = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec });
            self.deeds.push((Duration::ZERO, Deed::Plant(stranger.clone())));
            self.deeds.push((draw.ms(10_000, 30_000), Deed::Weed(stranger)));
        }
        if let (true, Some(job)) = (draw.one_in(4), self.jobs.first().cloned()) {
            let at = draw.ms(3000, 12_000);
            self.deeds.push((at, Deed::DeleteJob(job.clone())));
            self.deeds.push((at + draw.ms(1, 2000), Deed::Submit(job)));
        }
    }

    /// Names of objects that are nobody's, planted in the way of jobs.
    pub(super) fn foreign_names(&self) -> BTreeSet<(String, String)> {
        let planted = self.deeds.iter().filter_map(|(_, deed)| match deed {
            Deed::Plant(object) => Some((text(object, "/kind"), text(object, "/metadata/name"))),
            _ => None,
        });
        planted.collect()
    }

    /// Does what users do, each at its time.
    pub(super) async fn play(self, sim: Sim) {
        let start = tokio::time::Instant::now();
        for (at, deed) in self.deeds {
            tokio::time::sleep_until(start + at).await;
            match deed {
                Deed::Submit(object) | Deed::Plant(object) => {
                    // The name may still be taken by an earlier one; users try again.
                    while sim.try_create(object.clone()).is_err() {
                        tokio::time::sleep(Duration::from_millis(200)).await;
                    }
                }
                // It may not be there yet, or not any more.
                Deed::DeletePod(name) => drop(sim.delete("v1", "Pod", NAMESPACE, &name)),
                Deed::DeleteJob(object) | Deed::Weed(object) => {
                    let (version, kind) = (text(&object, "/apiVersion"), text(&object, "/kind"));
                    drop(sim.delete(&version, &kind, NAMESPACE, &text(&object, "/metadata/name")));
                }
            }
        }
    }

    /// Jobs whose ledger does not say that they have ended.
    pub(super) fn unfinished(&self, sim: &Sim) -> Vec<String> {
        let mut names = Vec::new();
        for job in &self.jobs {
            let name = text(job, "/metadata/name");
            let there = sim.get(&text(job, "/apiVersion"), &text(job, "/kind"), NAMESPACE, &name);
            let status = there.map(|mut job| job["status"].take()).unwrap_or_default();
            if status["troupe"]["finished"].is_null() {
                names.push(format!("{name} ({})", of_framework(&status)));
            }
        }
        names
    }

    /// S7: without faults, a job costs its creates, a status write a headline and folded counts, and its clean-up.
    pub(super) fn over_budget(&self, sim: &Sim) -> Vec<String> {
        assert!(self.calm, "only calm workloads have a budget");
        let requests = sim.requests_of(super::HOST);
        let after_sync = requests.iter().filter(|r| r.verb == "get" || r.verb == "update");
        let reads = after_sync.map(|r| format!("S7: {} {}", r.what(), r.name));
        let mut over: Vec<_> = reads.collect();
        for job in &self.jobs {
            let name = text(job, "/metadata/name");
            let statuses = requests.iter().filter(|r| r.subresource == "status" && r.name == name).count();
            // Headlines, plus at most one folded write a second of its life.
            if statuses > 20 {
                over.push(format!("S7: {statuses} status writes for {name}"));
            }
            let twice = requests.iter().filter(|r| r.verb == "create" && r.name.starts_with(&name)).fold(
                (BTreeSet::new(), 0),
                |(mut seen, twice), r| {
                    let new = seen.insert((r.resource.clone(), r.name.clone()));
                    (seen, twice + usize::from(!new))
                },
            );
            if twice.1 > 0 {
                over.push(format!("S7: {} objects of {name} were created twice", twice.1));
            }
        }
        over
    }
}

fn servers_and_workers(draw: &mut Draw, number: u32, calm: bool) -> Value {
    let policy = draw.of(&["Always", "Never", "OnCompletion", "OnFailure"]);
    let mut spec = json!({ "cleanPodPolicy": policy, "worker": role(draw, calm) });
    if draw.one_in(2) {
        spec["ps"] = role(draw, true);
    }
    if draw.one_in(3) {
        spec["intranet"] = json!("Service");
    }
    json!({
        "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob",
        "metadata": { "name": format!("a-{number}"), "namespace": NAMESPACE }, "spec": spec,
    })
}

fn role(draw: &mut Draw, well: bool) -> Value {
    let exit = if !well && draw.one_in(5) { "1" } else { "0" };
    let run = format!("{}ms", draw.ms(200, 5000).as_millis());
    json!({ "replicas": 1 + draw.below(3), "template": {
        "metadata": { "annotations": { "troupe.dev/run-for": run, "troupe.dev/exit-code": exit } },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "x" }] } } })
}

fn launched(draw: &mut Draw, calm: bool) -> Value {
    let exit = if !calm && draw.one_in(5) { "1" } else { "0" };
    let run = format!("{}ms", draw.ms(200, 5000).as_millis());
    let container = json!({ "spec": { "containers": [{ "name": "main", "image": "x" }] } });
    let mut launcher = container.clone();
    launcher["metadata"] = json!({ "annotations": { "troupe.dev/run-for": run, "troupe.dev/exit-code": exit } });
    let mut policy = json!({ "cleanPodPolicy": draw.of(&["None", "Running", "All"]), "backoffLimit": 1 });
    if draw.one_in(2) {
        policy["ttlSecondsAfterFinished"] = json!(draw.below(3));
    }
    json!({
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob",
        "metadata": { "name": "b-0", "namespace": NAMESPACE },
        "spec": {
            "runPolicy": policy,
            "mpiReplicaSpecs": {
                "Launcher": { "replicas": 1, "restartPolicy": "Never", "template": launcher },
                "Worker": { "replicas": 1 + draw.below(3), "template": container },
            },
        },
    })
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
