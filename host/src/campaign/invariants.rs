//! What must hold after every write, whatever happens. The names are those of the project's list of invariants.

use super::HOST;
use decide::status::step;
use serde_json::Value;
use sim::{Sim, View, Write};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

/// Checks every write, and keeps what it finds.
pub(super) struct Invariants {
    found: Arc<Mutex<Vec<String>>>,
}

/// At most this many violations of one run are worth reading.
const ENOUGH: usize = 20;

impl Invariants {
    /// Watches every write from now on. `foreign` are kinds and names that are nobody's.
    /// `life` counts the lives of the host.
    pub(super) fn watching(sim: &Sim, foreign: BTreeSet<(String, String)>, life: Arc<AtomicU32>) -> Self {
        let found = Arc::new(Mutex::new(Vec::new()));
        let keep = found.clone();
        let mut succeeded: BTreeSet<(String, String)> = BTreeSet::new();
        let mut complete: BTreeMap<String, u32> = BTreeMap::new();
        sim.on_write(move |write, view| {
            note_success(write, &mut succeeded);
            let rerun = not_run_again(write, view, life.load(Ordering::Relaxed), &mut complete);
            let checks = [
                one_live_pod_an_index(write, view),
                final_status_stays(write),
                success_is_true(write, &succeeded),
                no_foreign_write(write, &foreign),
                no_unfounded_deletion(write, view),
                rerun,
            ];
            let mut found = keep.lock().unwrap_or_else(PoisonError::into_inner);
            if found.len() < ENOUGH {
                found.extend(checks.into_iter().flatten().map(|what| format!("{} {what}", write.at)));
            }
        });
        Self { found }
    }

    /// What did not hold.
    pub(super) fn found(&self) -> Vec<String> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// S4: no child without its job.
    pub(super) fn at_the_end(&self, sim: &Sim) -> Vec<String> {
        let mut orphans = Vec::new();
        for kind in ["Pod", "Service", "ConfigMap", "Secret"] {
            for object in sim.list("v1", kind, "default") {
                let gone = controller(&object).is_some_and(|uid| sim.view(|view| view.by_uid(uid).is_none()));
                if gone {
                    orphans.push(format!("S4: {kind} {} has outlived its job", object["metadata"]["name"]));
                }
            }
        }
        orphans
    }
}

/// S1: names are the only hard uniqueness; nobody makes a second pod for an index under another name.
fn one_live_pod_an_index(write: &Write, view: &View<'_>) -> Option<String> {
    let pod = write.after.as_ref().filter(|_| write.kind == "Pod" && write.created() && write.actor == HOST)?;
    let uid = controller(pod)?;
    let index = |pod: &Value| (pod["metadata"]["labels"].clone(), pod["spec"]["hostname"].clone());
    let live = view.owned_by(uid).into_iter().filter(|other| other["kind"] == "Pod" && is_live(other));
    let same = live.filter(|other| index(other) == index(pod)).count();
    (same > 1).then(|| format!("S1: {same} live pods stand for {}", write.name))
}

/// S2: once the ledger says that a job has ended, its step stays, and so do the end and its time.
fn final_status_stays(write: &Write) -> Option<String> {
    let (before, after) = (&write.before.as_ref()?["status"], &write.after.as_ref()?["status"]);
    let end = |status: &Value| ["at", "outcome"].map(|field| status["troupe"]["finished"][field].clone());
    if before["troupe"]["finished"].is_null() || step(before) == step(after) && end(before) == end(after) {
        return None;
    }
    Some(format!("S2: the final status of {} changed from {before} to {after}", write.name))
}

/// S3: a job is Completed only when each of its pods has succeeded.
fn success_is_true(write: &Write, succeeded: &BTreeSet<(String, String)>) -> Option<String> {
    let (before, after) = (write.before.as_ref()?, write.after.as_ref()?);
    if after["status"]["phase"] != "Completed" || before["status"]["phase"] == "Completed" {
        return None;
    }
    let uid = after["metadata"]["uid"].as_str()?;
    for role in ["ps", "worker"] {
        for index in 0..after["spec"][role]["replicas"].as_u64().unwrap_or(0) {
            let pod = format!("{}-{role}-{index}", write.name);
            if !succeeded.contains(&(uid.to_owned(), pod.clone())) {
                return Some(format!("S3: {} is Completed although {pod} never succeeded", write.name));
            }
        }
    }
    None
}

/// S5: the host changes and deletes only what a job controls, and jobs.
fn no_foreign_write(write: &Write, foreign: &BTreeSet<(String, String)>) -> Option<String> {
    let before = write.before.as_ref().filter(|_| write.actor == HOST)?;
    let nobodys = controller(before).is_none() && foreign.contains(&(write.kind.clone(), write.name.clone()));
    nobodys.then(|| format!("S5: the host changed {} {}, which is nobody's", write.kind, write.name))
}

/// No pod whose success the ledger lacks is deleted while its job goes on.
fn no_unfounded_deletion(write: &Write, view: &View<'_>) -> Option<String> {
    let before = write.before.as_ref().filter(|_| write.actor == HOST && write.kind == "Pod")?;
    let going = write.after.as_ref().is_none_or(|after| !after["metadata"]["deletionTimestamp"].is_null());
    if !going || !before["metadata"]["deletionTimestamp"].is_null() || before["status"]["phase"] != "Succeeded" {
        return None;
    }
    let job = view.by_uid(controller(before)?)?;
    let noted = !job["status"]["troupe"]["finished"].is_null() || !job["status"]["troupe"]["succeeded"].is_null();
    (!noted).then(|| format!("S3: {} was deleted before its success was written down", write.name))
}

/// A job whose launcher's Job was made does not get another, also when that one has gone by its time to live: in this
/// life of the host, and in later ones if the ledger says that it was made.
fn not_run_again(write: &Write, view: &View<'_>, life: u32, made: &mut BTreeMap<String, u32>) -> Option<String> {
    let job = write.after.as_ref().filter(|_| write.kind == "Job" && write.created() && write.actor == HOST)?;
    let uid = controller(job)?;
    let before = made.insert(uid.to_owned(), life)?;
    let vanishes = !job["spec"]["ttlSecondsAfterFinished"].is_null();
    let noted = view.by_uid(uid).is_some_and(|job| job["status"]["troupe"]["made"].to_string().contains("job/"));
    (vanishes && (before == life || noted)).then(|| format!("S3: {} is made again", write.name))
}

fn note_success(write: &Write, succeeded: &mut BTreeSet<(String, String)>) {
    let Some(pod) = write.after.as_ref().filter(|pod| write.kind == "Pod" && pod["status"]["phase"] == "Succeeded")
    else {
        return;
    };
    if let Some(uid) = controller(pod) {
        succeeded.insert((uid.to_owned(), write.name.clone()));
    }
}

fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

fn is_live(pod: &Value) -> bool {
    pod["status"]["phase"] != "Succeeded" && pod["status"]["phase"] != "Failed"
}
