//! What users do to jobs beside submitting them: edits of the spec, deletions of jobs and of each kind of child, strangers
//! in the way, the end of a namespace.

use super::{
    draw::Draw,
    jobs::{Change, Job},
    tally::Tally,
};
use serde_json::{Value, json};
use sim::Sim;
use std::time::Duration;

/// One thing a user does.
#[derive(Debug, Clone)]
pub(super) enum Deed {
    /// Creates an object; while the name is taken, again and again.
    Submit(Value),
    /// Creates an object that is odd in this way.
    SubmitOdd(&'static str, Value),
    /// Deletes an object, if it is there, with `Background`, `Foreground` or `Orphan`.
    Delete(Value, &'static str),
    /// Merges a patch into an object, if it is there.
    Patch(Change, Value, Value),
    /// Deletes a child of this kind (`v1`, `Pod`) of the job, if it has one.
    DeleteChild(Value, (&'static str, &'static str)),
    /// Deletes what an orphan deletion of the job has left, or leaves within [`SWEEPS`] seconds: the garbage collector
    /// takes its time.
    Sweep(Value),
}

/// Kinds of children that are deleted by hand.
const KINDS: [(&str, &str); 5] =
    [("v1", "Pod"), ("v1", "Service"), ("v1", "ConfigMap"), ("v1", "Secret"), ("batch/v1", "Job")];

/// The PodGroups: Volcano's, that of the scheduler-plugins, the cluster's own.
pub(super) const POD_GROUPS: [(&str, &str); 3] = [
    ("scheduling.volcano.sh/v1beta1", "PodGroup"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    ("scheduling.k8s.io/v1alpha2", "PodGroup"),
];

/// How often orphans are looked for, a second apart.
const SWEEPS: u32 = 10;

/// How a job may be deleted.
const PROPAGATIONS: [&str; 3] = ["Background", "Foreground", "Orphan"];

impl Deed {
    /// Does it, and counts it if there was something to do.
    pub(super) async fn done(self, sim: Sim, tally: Tally) {
        let what = self.what();
        if self.was_done(&sim).await {
            tally.count(&what);
        }
    }

    fn what(&self) -> String {
        match self {
            Self::Submit(object) => format!("user creates {}", text(object, "kind")),
            Self::SubmitOdd(what, _) => format!("user creates a job: {what}"),
            Self::Delete(object, how) => format!("user deletes {} ({how})", text(object, "kind")),
            Self::Patch(change, ..) => format!("user edits: {change:?}"),
            Self::DeleteChild(_, (_, kind)) => format!("user deletes child {kind}"),
            Self::Sweep(_) => "user sweeps orphans".into(),
        }
    }

    async fn was_done(self, sim: &Sim) -> bool {
        match self {
            Self::Submit(object) | Self::SubmitOdd(_, object) => {
                while sim.try_create(object.clone()).is_err() {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                true
            }
            Self::Delete(object, how) => {
                let (version, kind, namespace, name) = address(&object);
                sim.delete_with(version, kind, namespace, name, &json!({ "propagationPolicy": how })).is_ok()
            }
            Self::Patch(_, object, patch) => {
                let (version, kind, namespace, name) = address(&object);
                sim.patch(version, kind, namespace, name, patch).is_ok()
            }
            Self::DeleteChild(job, kind) => delete_child(sim, &job, kind),
            Self::Sweep(job) => {
                let mut swept = false;
                for _ in 0..SWEEPS {
                    swept |= sweep(sim, &job);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                swept
            }
        }
    }
}

/// The first that is not on its way out already.
fn delete_child(sim: &Sim, job: &Value, (version, kind): (&str, &str)) -> bool {
    let (of_version, of_kind, namespace, name) = address(job);
    let Some(job) = sim.get(of_version, of_kind, namespace, name) else { return false };
    let uid = text(&job["metadata"], "uid");
    let children = sim.view(|view| {
        let mut own: Vec<Value> = view.owned_by(uid).into_iter().cloned().collect();
        let of_jobs = own.iter().filter(|child| child["kind"] == "Job");
        let pods: Vec<Value> =
            of_jobs.flat_map(|child| view.owned_by(text(&child["metadata"], "uid")).into_iter().cloned()).collect();
        own.extend(pods);
        own
    });
    let stays = |child: &&Value| child["kind"] == kind && child["metadata"]["deletionTimestamp"].is_null();
    let Some(child) = children.iter().find(stays) else { return false };
    sim.delete(version, kind, namespace, text(&child["metadata"], "name")).is_ok()
}

/// What is nobody's and begins with the job's name.
fn sweep(sim: &Sim, job: &Value) -> bool {
    let (.., namespace, name) = address(job);
    let mut swept = false;
    for (version, kind) in KINDS.into_iter().chain(POD_GROUPS) {
        for object in sim.list(version, kind, namespace) {
            let is_orphan = object["metadata"]["ownerReferences"].is_null();
            if is_orphan && text(&object["metadata"], "name").starts_with(name) {
                swept |= sim.delete(version, kind, namespace, text(&object["metadata"], "name")).is_ok();
            }
        }
    }
    swept
}

/// Ends and removes pods that do not end by themselves, as the garbage collector of pods does for nodes that are gone;
/// returns how many.
pub(super) fn rescue(sim: &Sim, namespace: &str) -> u64 {
    let ending = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
    let pods = sim.list("v1", "Pod", namespace).into_iter().filter(ending);
    let removed = |pod: Value| {
        let name = text(&pod["metadata"], "name");
        sim.set_failed(namespace, name, 137);
        u64::from(sim.remove_pod(namespace, name).is_ok())
    };
    pods.map(removed).sum()
}

/// What is done to the jobs of a seed, and when.
pub(super) fn drawn(draw: &mut Draw, jobs: &[Job]) -> Vec<(Duration, Deed)> {
    jobs.iter().flat_map(|job| of_job(draw, job)).collect()
}

/// One thing for each job, and often another one.
fn of_job(draw: &mut Draw, job: &Job) -> Vec<(Duration, Deed)> {
    let mut deeds = if draw.one_in(6) { stranger(draw, job) } else { vec![] };
    for _ in 0..=draw.below(2) {
        deeds.extend(match draw.below(7) {
            0..=2 => child(draw, job),
            3 => made_anew(draw, job),
            _ => edited(draw, job),
        });
    }
    deeds
}

/// A child is deleted by hand. Keys are never made twice: a job that has lost them is made anew.
fn child(draw: &mut Draw, job: &Job) -> Vec<(Duration, Deed)> {
    let (at, drawn) = (draw.ms(500, 12_000), *draw.of(&KINDS));
    let kind = if drawn.1 == "Job" && job.has_jobs_that_belong_together() { ("v1", "Pod") } else { drawn };
    let deleted = (at, Deed::DeleteChild(job.manifest.clone(), kind));
    let later = at + draw.ms(1, 5000);
    let anew = if kind.1 == "Secret" { replaced(draw, job, later, "Background") } else { vec![] };
    std::iter::once(deleted).chain(anew).collect()
}

/// Somebody else has the name first, and gives it back.
fn stranger(draw: &mut Draw, job: &Job) -> Vec<(Duration, Deed)> {
    let kind = *draw.of(&["Pod", "Service", "ConfigMap"]);
    let name = if kind == "ConfigMap" { job.name().to_owned() } else { format!("{}-worker-0", job.name()) };
    let metadata = json!({ "name": name, "namespace": job.namespace() });
    let mut stranger = json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata });
    if kind == "Pod" {
        stranger["spec"] = json!({ "containers": [{ "name": "x", "image": "x" }] });
    }
    let leaves = Deed::Delete(stranger.clone(), "Background");
    vec![(Duration::ZERO, Deed::Submit(stranger)), (draw.ms(10_000, 30_000), leaves)]
}

/// The job is deleted and submitted again; what an orphan deletion leaves would be in the way.
fn made_anew(draw: &mut Draw, job: &Job) -> Vec<(Duration, Deed)> {
    let (at, drawn) = (draw.ms(1000, 12_000), *draw.of(&PROPAGATIONS));
    // Pods that an orphan deletion leaves would be taken for those that the new launcher waits for.
    let how = if job.has_jobs_that_belong_together() && drawn == "Orphan" { "Background" } else { drawn };
    replaced(draw, job, at, how)
}

fn replaced(draw: &mut Draw, job: &Job, at: Duration, how: &'static str) -> Vec<(Duration, Deed)> {
    let again = at + draw.ms(1, 2000);
    let mut deeds = vec![(at, Deed::Delete(job.manifest.clone(), how)), (again, Deed::Submit(job.manifest.clone()))];
    if how == "Orphan" {
        deeds.push((again + draw.ms(1, 5000), Deed::Sweep(job.manifest.clone())));
    }
    deeds
}

/// An edit, and what undoes it where the job could not end otherwise.
fn edited(draw: &mut Draw, job: &Job) -> Vec<(Duration, Deed)> {
    let change = *draw.of(&Change::ALL);
    let Some((there, back)) = job.edit(draw, change) else { return vec![] };
    let at = draw.ms(500, 10_000);
    let deed = |patch| Deed::Patch(change, job.manifest.clone(), patch);
    let undo = back.map(|back| (at + draw.ms(100, 15_000), deed(back)));
    std::iter::once((at, deed(there))).chain(undo).collect()
}

/// API version, kind, namespace and name.
pub(super) fn address(object: &Value) -> (&str, &str, &str, &str) {
    let metadata = &object["metadata"];
    (text(object, "apiVersion"), text(object, "kind"), text(metadata, "namespace"), text(metadata, "name"))
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}
