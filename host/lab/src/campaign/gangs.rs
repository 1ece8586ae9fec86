//! Gang schedulers: which one the frameworks use in a run, and Volcano's part, which admits PodGroups. The other schedulers
//! see the pods before they decide, and the simulated kubelet starts pods without a scheduler.

use super::{
    deeds::{Deed, POD_GROUPS},
    draw::Draw,
    jobs::Job,
    tally::Tally,
};
use serde_json::{Value, json};
use sim::Sim;
use std::time::Duration;

/// A scheduler for each kind of PodGroup.
const SCHEDULERS: [&str; 3] = ["volcano", "scheduler-plugins-scheduler", "kubernetes"];

/// How often Volcano looks for PodGroups.
const LOOK: Duration = Duration::from_millis(700);

/// Returns the gang scheduler of a seed, if it has one.
pub(super) fn scheduler(seed: u64) -> Option<&'static str> {
    let mut draw = Draw::new(seed, "gangs");
    draw.one_in(5).then(|| *draw.of(&SCHEDULERS))
}

/// Deletes the PodGroups of some of the jobs by hand, if there is a gang scheduler.
pub(super) fn deeds(seed: u64, scheduler: Option<&str>, jobs: &[Job]) -> Vec<(Duration, Deed)> {
    let Some(place) = SCHEDULERS.iter().position(|name| scheduler == Some(*name)) else { return vec![] };
    let mut draw = Draw::new(seed, "gang deeds");
    let some = jobs.iter().filter(|_| draw.one_in(2)).collect::<Vec<_>>();
    let delete = |job: &Job| Deed::DeleteChild(job.manifest.clone(), POD_GROUPS[place]);
    some.into_iter().map(|job| (draw.ms(500, 12_000), delete(job))).collect()
}

/// Admits every PodGroup of Volcano some time after its creation, for ever.
pub(super) async fn admit(sim: Sim, seed: u64, tally: Tally) {
    let mut draw = Draw::new(seed, "admissions");
    loop {
        tokio::time::sleep(LOOK).await;
        let (version, kind) = POD_GROUPS[0];
        let groups = sim.list(version, kind, "");
        for group in groups.iter().filter(|group| group["status"]["phase"] != "Inqueue") {
            // As if the queue were full for a while.
            if draw.one_in(2) && admitted(&sim, group) {
                tally.count("gang: a PodGroup is admitted");
            }
        }
    }
}

fn admitted(sim: &Sim, group: &Value) -> bool {
    let text = |field: &str| group["metadata"][field].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let (version, kind) = POD_GROUPS[0];
    let phase = json!({ "status": { "phase": "Inqueue" } });
    sim.patch_status(version, kind, namespace, name, phase).is_ok()
}
