//! A kind of job that no plugin of the host serves: one Plugin does, another that wants to is refused, and serves it once
//! the first is deleted.

use super::{
    components::{self, of_poodles},
    deeds::Deed,
    deliveries::API,
    draw::Draw,
    jobs::{self, JobParams},
    tally::Tally,
    workload::{BUSY, Scripted},
};
use decide::grants::Grants;
use sandbox::source;
use serde_json::json;
use sim::{Kind, Sim};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The kind.
const KIND: &str = "PoodleJob";

/// The Plugins that want to serve it.
const FIRST: &str = "poodla";
const SECOND: &str = "poodlb";

/// When the kind moves.
#[derive(Debug, Clone)]
pub(super) struct Move {
    steps: [(Duration, Step); 3],
    /// When a user creates a job of the kind that only the second Plugin may see, unless hosts are in trouble.
    last_job: Duration,
}

/// One thing that the platform team does.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A Plugin of this name wants to serve the kind.
    Create(&'static str),
    /// The first Plugin goes.
    Delete,
}

impl Move {
    /// The move of a seed.
    pub(super) fn drawn(draw: &mut Draw) -> Self {
        let mut at = draw.ms(0, 3000);
        let steps = [Step::Create(FIRST), Step::Create(SECOND), Step::Delete];
        let steps = steps.map(|step| {
            let this = at;
            at += draw.ms(3000, 15_000);
            (this, step)
        });
        Self { steps, last_job: at }
    }

    /// A job that is there when the first Plugin is, one that comes after it, and when users create them.
    pub(super) fn jobs(&self) -> Vec<Scripted> {
        let jobs = [(7, self.steps[0].0), (8, self.last_job)].into_iter().map(|(number, at)| {
            let params = JobParams { namespace: BUSY, number, sound: true, is_edited: true };
            let lives = vec![[format!("moved-{number}-worker-*"), "run-for".to_owned(), "2s".to_owned()]];
            let mut job = jobs::of_roles("moved", params, &json!({ "worker": jobs::bare_role(1) }), lives);
            job.manifest["kind"] = json!(KIND);
            let submit = Deed::Submit(job.manifest.clone());
            (job, vec![(at, submit)])
        });
        jobs.collect()
    }

    /// Does all of it, each at its time.
    pub(super) async fn play(&self, sim: &Sim, grants: &Grants, tally: &Tally) {
        let start = Instant::now();
        for (at, step) in &self.steps {
            sleep_until(start + *at).await;
            match step {
                Step::Create(name) => {
                    sim.create(components::source_of(name, &of_poodles(name)));
                    let spec = json!({ "source": { "configMap": { "name": name } }, "grants": grants });
                    sim.create(components::plugin(name, &spec));
                }
                Step::Delete => {
                    sim.delete(API, "Plugin", "", FIRST).expect("nobody else deletes it");
                    tally.count("delivery: a kind moves to another Plugin");
                }
            }
        }
    }

    /// L2: once everything is quiet, the second Plugin serves the kind.
    pub(super) fn unserved(&self, sim: &Sim) -> Option<String> {
        let plugin = sim.get(API, "Plugin", "", SECOND).unwrap_or_default();
        let serves = plugin["status"]["digest"] == digest(SECOND).as_str();
        (!serves).then(|| format!("L2: {SECOND} does not serve: {}", plugin["status"]))
    }
}

/// The kind, for a simulator.
pub(super) fn kind() -> Kind {
    Kind::custom("batch.paddlepaddle.org/v1", KIND, "poodlejobs")
}

/// The digests of both components.
pub(super) fn digests() -> [String; 2] {
    [FIRST, SECOND].map(digest)
}

fn digest(name: &str) -> String {
    source::digest(&of_poodles(name)).to_string()
}
