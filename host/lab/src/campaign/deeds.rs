//! What users do to jobs beside submitting them: edits of the spec, deletions of jobs and of each kind of child, strangers
//! in the way, the end of a namespace.

use super::{
    draw::Draw,
    jobs::{Change, Job},
    tally::Tally,
    together::LAUNCHER,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sim::Sim;
use std::{cmp::Ordering, time::Duration};

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
    /// Deletes the job's first Job by name, the launcher's, and then, until the job ends, each Job that was made before the
    /// launcher's that is there now: it knows the earlier one alone.
    DeleteJobs(Value),
    /// Deletes what an orphan deletion of the job has left, or leaves within [`SWEEPS`] seconds: the garbage collector
    /// takes its time.
    Sweep(Value),
}

/// Kinds of children that are deleted by hand.
const KINDS: [(&str, &str); 5] = [("v1", "Pod"), ("v1", "Service"), ("v1", "ConfigMap"), ("v1", "Secret"), JOB];

/// The PodGroups: Volcano's, that of the scheduler-plugins, the cluster's own.
pub(super) const POD_GROUPS: [(&str, &str); 3] = [
    ("scheduling.volcano.sh/v1beta1", "PodGroup"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    ("scheduling.k8s.io/v1beta1", "PodGroup"),
];

/// How often orphans are looked for, a second apart.
const SWEEPS: u32 = 10;

/// The Jobs behind jobs.
const JOB: (&str, &str) = ("batch/v1", "Job");

/// How often Jobs are looked for that know an earlier launcher, a second apart: for longer than a host lags behind.
const LOOKS: u32 = 200;

/// How a job may be deleted.
const PROPAGATIONS: [&str; 3] = ["Background", "Foreground", "Orphan"];

impl Deed {
    /// Does it, and counts it if there was something to do.
    pub(super) async fn done(self, sim: Sim, tally: Tally) {
        let what = self.what(&sim);
        if self.was_done(&sim).await {
            what.iter().for_each(|what| tally.count(what));
        }
    }

    /// What it is counted as when it is done now.
    fn what(&self, sim: &Sim) -> Vec<String> {
        match self {
            Self::Submit(object) => vec![format!("user creates {}", text(object, "kind"))],
            Self::SubmitOdd(what, _) => vec![format!("user creates a job: {what}")],
            Self::Delete(object, how) => vec![format!("user deletes {} ({how})", text(object, "kind"))],
            Self::Patch(change, object, patch) => {
                let what = format!("user edits: {change:?}");
                let way = scaled(sim, *change, object, patch).map(|way| format!("{what} {way}"));
                way.into_iter().chain([what]).collect()
            }
            Self::DeleteChild(job, (_, kind)) => {
                let what = format!("user deletes child {kind}");
                vec![format!("{what} of {}", text(job, "kind")), what]
            }
            Self::DeleteJobs(job) => vec![format!("user deletes the Jobs of {}", text(job, "kind"))],
            Self::Sweep(_) => vec!["user sweeps orphans".into()],
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
            Self::DeleteJobs(job) => {
                let mut deleted = false;
                let looks = if delete_child(sim, &job, JOB) { LOOKS } else { 0 };
                for _ in 0..looks {
                    if now(sim, &job).is_some_and(|job| has_ended(&job)) {
                        break;
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    deleted |= delete_of_earlier_launcher(sim, &job);
                }
                deleted
            }
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
    let (.., namespace, _) = address(job);
    let Some(child) = children(sim, job, kind).into_iter().next() else { return false };
    sim.delete(version, kind, namespace, text(&child["metadata"], "name")).is_ok()
}

/// Deletes the Jobs that were made before the launcher's that is there now, and all if there is none; returns whether there
/// were any.
fn delete_of_earlier_launcher(sim: &Sim, job: &Value) -> bool {
    let (.., namespace, _) = address(job);
    let metadata = |child: &Value, field| text(&child["metadata"], field).to_owned();
    let jobs = children(sim, job, JOB.1).into_iter();
    let (launchers, others): (Vec<_>, Vec<_>) = jobs.partition(|job| metadata(job, "name").ends_with(LAUNCHER));
    let made = |job: &Value| metadata(job, "creationTimestamp");
    let outlived = others.iter().filter(|job| launchers.iter().all(|launcher| made(job) < made(launcher)));
    let deleted = outlived.filter(|job| sim.delete(JOB.0, JOB.1, namespace, &metadata(job, "name")).is_ok());
    deleted.count() > 0
}

/// The children of this kind that a job and its Jobs have, but those on their way out; each one's by name.
fn children(sim: &Sim, job: &Value, kind: &str) -> Vec<Value> {
    let Some(job) = now(sim, job) else { return vec![] };
    let uid = text(&job["metadata"], "uid");
    let stays = |child: &Value| child["kind"] == kind && child["metadata"]["deletionTimestamp"].is_null();
    sim.view(|view| {
        let own = view.owned_by(uid);
        let of_jobs = own.iter().filter(|child| child["kind"] == "Job");
        let pods: Vec<_> = of_jobs.flat_map(|child| view.owned_by(text(&child["metadata"], "uid"))).collect();
        own.into_iter().chain(pods).filter(|child| stays(child)).cloned().collect()
    })
}

/// The object as it is now, if it is there.
fn now(sim: &Sim, object: &Value) -> Option<Value> {
    let (version, kind, namespace, name) = address(object);
    sim.get(version, kind, namespace, name)
}

/// Its ledger says that it has ended.
fn has_ended(job: &Value) -> bool {
    !job["status"]["troupe"]["finished"].is_null()
}

/// Which way the number changes by which a user scales a job that goes on.
fn scaled(sim: &Sim, change: Change, job: &Value, patch: &Value) -> Option<&'static str> {
    if !matches!(change, Change::Scale) {
        return None;
    }
    let job = now(sim, job).filter(|job| !has_ended(job))?;
    match compared(patch, &job)? {
        Ordering::Less => Some("down"),
        Ordering::Equal => None,
        Ordering::Greater => Some("up"),
    }
}

/// How the number that a merge patch sets compares with what the object has there.
fn compared(patch: &Value, object: &Value) -> Option<Ordering> {
    match patch {
        Value::Object(fields) => fields.iter().find_map(|(name, patch)| compared(patch, &object[name])),
        number => Some(number.as_u64()?.cmp(&object.as_u64()?)),
    }
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
/// returns for how long each had been there after the end of its grace period.
pub(super) fn rescue(sim: &Sim, namespace: &str) -> Vec<SignedDuration> {
    let removed = |pod: Value| {
        let metadata = &pod["metadata"];
        let due: Timestamp = metadata["deletionTimestamp"].as_str()?.parse().ok()?;
        sim.set_failed(namespace, text(metadata, "name"), 137);
        sim.remove_pod(namespace, text(metadata, "name")).ok()?;
        Some(sim.now().duration_since(due))
    };
    sim.list("v1", "Pod", namespace).into_iter().filter_map(removed).collect()
}

/// What is done to the jobs of a seed, and when.
pub(super) fn drawn(draw: &mut Draw, jobs: &[Job]) -> Vec<(Duration, Deed)> {
    jobs.iter().flat_map(|job| of_job(draw, job)).collect()
}

/// In some seeds, a user runs jobs again by hand whose Jobs belong together.
pub(super) fn by_hand(seed: u64, jobs: &[Job]) -> Vec<(Duration, Deed)> {
    let mut draw = Draw::new(seed, "Jobs by hand");
    if !draw.one_in(4) {
        return vec![];
    }
    let together = jobs.iter().filter(|job| job.has_jobs_that_belong_together());
    together.map(|job| (draw.ms(1000, 8000), Deed::DeleteJobs(job.manifest.clone()))).collect()
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
    // [`by_hand`] deletes both.
    let kind = if drawn == JOB && job.has_jobs_that_belong_together() { ("v1", "Pod") } else { drawn };
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

#[cfg(test)]
mod tests {
    use super::*;
    use sim::{Kind, Options};
    use std::collections::BTreeMap;

    const TALE: (&str, &str, &str, &str) = ("example.com/v1", "Tale", "ns", "hamlet");

    fn cluster() -> Sim {
        let sim = Sim::new(Options { kinds: vec![Kind::custom(TALE.0, TALE.1, "tales")], ..Options::default() });
        sim.create(tale());
        sim
    }

    fn tale() -> Value {
        let metadata = json!({ "name": TALE.3, "namespace": TALE.2 });
        json!({
            "apiVersion": TALE.0, "kind": TALE.1, "metadata": metadata, "spec": { "worker": { "replicas": 2 } },
        })
    }

    fn end(sim: &Sim) {
        let (version, kind, namespace, name) = TALE;
        let ended = json!({ "status": { "troupe": { "finished": { "outcome": "failed" } } } });
        sim.patch_status(version, kind, namespace, name, ended).unwrap();
    }

    fn make_job(sim: &Sim, name: &str) {
        let uid = now(sim, &tale()).unwrap()["metadata"]["uid"].clone();
        let owner = json!({ "apiVersion": TALE.0, "kind": TALE.1, "name": TALE.3, "uid": uid, "controller": true });
        let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "main", "image": "x" }] });
        sim.create(json!({
            "apiVersion": JOB.0, "kind": JOB.1, "spec": { "template": { "spec": pod } },
            "metadata": { "name": name, "namespace": TALE.2, "ownerReferences": [owner] },
        }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_scale_has_a_way_if_it_changes_the_number_of_a_job_that_goes_on() {
        let (sim, tally) = (cluster(), Tally::default());
        let scale = |replicas: u32| {
            let patch = json!({ "spec": { "worker": { "replicas": replicas } } });
            Deed::Patch(Change::Scale, tale(), patch).done(sim.clone(), tally.clone())
        };
        for replicas in [3, 1, 1] {
            scale(replicas).await;
        }
        end(&sim);
        scale(4).await;
        let counts = tally.counts();
        let counts: Vec<_> = counts.iter().map(|(what, times)| (what.as_str(), *times)).collect();
        assert_eq!(counts, [("user edits: Scale", 4), ("user edits: Scale down", 1), ("user edits: Scale up", 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_deletes_a_leading_job_deletes_those_that_know_no_later_one_until_the_job_ends() {
        let (sim, tally) = (cluster(), Tally::default());
        let (leader, other) = ("hamlet-launcher", "hamlet-workers");
        let make = || [leader, other].iter().for_each(|name| make_job(&sim, name));
        let names = || -> Vec<String> {
            let jobs = sim.list(JOB.0, JOB.1, TALE.2);
            jobs.iter().map(|job| text(&job["metadata"], "name").to_owned()).collect()
        };
        make();
        let user = tokio::spawn(Deed::DeleteJobs(tale()).done(sim.clone(), tally.clone()));
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(names(), [other]);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(names().is_empty());
        make();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(names(), [leader, other], "they know each other");
        sim.delete(JOB.0, JOB.1, TALE.2, leader).unwrap();
        make_job(&sim, leader);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(names(), [leader]);
        end(&sim);
        user.await.unwrap();
        assert_eq!(tally.counts(), BTreeMap::from([("user deletes the Jobs of Tale".to_owned(), 1)]));
    }
}
