//! What must hold after every write, whatever happens. The names are those of the project's list of invariants.

use super::{
    deliveries::{self, Deliveries, planner_is_sound, plugin_serves},
    guests::Guest,
    history::controller,
    hosts::{LEASE_LOST, is_host},
    nonsense,
    outages::LONGEST_FREEZE_MS,
    restarts, times_to_live,
    together::{Together, is_complete},
};
use decide::{ledger::Ledger, status::step};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::Value;
use sim::{Delivery, Sim, View, Write};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

/// Checks every write, and keeps what it finds.
pub(super) struct Invariants {
    found: Arc<Mutex<Vec<String>>>,
    lost: Arc<Mutex<Vec<LostSuccess>>>,
    made_again: Arc<Mutex<Vec<MadeAgain>>>,
}

/// A launcher's Job that was made again after it had gone by its time to live.
struct MadeAgain {
    name: String,
    first: Timestamp,
    again: Timestamp,
    /// The ledger said that it had been made.
    is_noted: bool,
}

/// A job that ended as a failure although its launcher's Job was complete.
struct LostSuccess {
    job: String,
    complete: Timestamp,
    /// When a host was first shown the complete Job.
    shown: Option<Timestamp>,
    ended: Timestamp,
}

/// No watch is silent for longer before another takes its place.
const SILENCE: SignedDuration = SignedDuration::from_secs(100);

/// A host waits no longer for an answer.
const PATIENCE: Duration = troupe::api::DEADLINE;

/// What jobs have for children.
const CHILDREN: [(&str, &str); 5] =
    [("v1", "Pod"), ("v1", "Service"), ("v1", "ConfigMap"), ("v1", "Secret"), ("batch/v1", "Job")];

/// One life of a host: its actor, and how many crashes there were before.
type Life = (String, u32);

/// At most this many violations of one run are worth reading.
const ENOUGH: usize = 20;

impl Invariants {
    /// `life` counts the lives of the host.
    pub(super) fn watching(
        sim: &Sim,
        life: Arc<AtomicU32>,
        deliveries: Option<&Deliveries>,
        guests: &[Guest],
        clocks_are_right: bool,
    ) -> Self {
        // Nobody delivers the plugins of guests: they are accepted from the start.
        let digests = deliveries.map(Deliveries::digests);
        let planners: Option<BTreeSet<_>> = digests
            .clone()
            .map(|all| all.into_iter().chain(guests.iter().map(|guest| guest.digest().to_owned())).collect());
        let guests: BTreeSet<String> = guests.iter().map(|guest| guest.kind().to_owned()).collect();
        let found = Arc::new(Mutex::new(Vec::new()));
        let keep = found.clone();
        let lost: Arc<Mutex<Vec<LostSuccess>>> = Arc::default();
        let losses = lost.clone();
        let mut launchers = BTreeMap::new();
        let shown: Arc<Mutex<Shown>> = Arc::default();
        let note = shown.clone();
        sim.on_delivery(move |delivery| note.lock().note(delivery));
        let mut succeeded = Succeeded::default();
        let mut together = Together::default();
        let migrates = deliveries.is_some_and(|deliveries| deliveries.migrates);
        let made_again: Arc<Mutex<Vec<MadeAgain>>> = Arc::default();
        let again_made = made_again.clone();
        let mut made = BTreeMap::new();
        let mut gone = BTreeMap::new();
        sim.on_write(move |write, view| {
            let shown = shown.lock();
            let again = succeeded.is_run_again(write, &shown);
            succeeded.note(write, view);
            let lost = success_is_lost(write, &mut launchers, &shown);
            losses.lock().extend(lost);
            let rerun = not_run_again(write, view, life.load(Ordering::Relaxed), &mut made);
            again_made.lock().extend(rerun);
            let beside = no_job_beside_pods_of_another(write, view, &mut gone, &shown);
            let is_ours = !guests.contains::<str>(&write.kind);
            let checks = [
                one_live_pod_an_index(write, view, &guests),
                final_status_stays(write),
                success_is_true(write, &succeeded.ever),
                no_foreign_write(write),
                nonsense::nothing_is_made(write),
                no_unfounded_deletion(write, view),
                restarts::attempts_do_not_overlap(write, view),
                times_to_live::has_passed(write).filter(|_| clocks_are_right && is_ours),
                again,
                beside,
                together.fails_in_vain(write).filter(|_| is_ours),
                planners.as_ref().and_then(|digests| planner_is_sound(write, digests, migrates)),
                digests.as_ref().and_then(|digests| plugin_serves(write, digests)),
            ];
            let mut found = keep.lock();
            if found.len() < ENOUGH {
                found.extend(checks.into_iter().flatten().map(|what| format!("{} {what}", write.at)));
            }
        });
        Self { found, lost, made_again }
    }

    /// What did not hold.
    pub(super) fn found(&self) -> Vec<String> {
        self.found.lock().clone()
    }

    /// S3: a launcher that succeeded means Succeeded, if a host was shown that and lived on to write it down.
    pub(super) fn lost_successes(&self, sim: &Sim) -> Vec<String> {
        let lost = self.lost.lock();
        let seen = lost.iter().filter(|lost| lost.was_seen(&sim.troubles()));
        seen.map(|lost| format!("S3: the launcher of {} succeeded, and it failed", lost.job)).collect()
    }

    /// S3: no launcher runs twice, unless no host could know of the first one: the answer to its create was lost, and
    /// events of its life were too.
    pub(super) fn made_again(&self, sim: &Sim) -> Vec<String> {
        let (all, requests, troubles) = (self.made_again.lock(), sim.requests(), sim.troubles());
        let was_known = |job: &&MadeAgain| {
            let created = requests.iter().find(|request| {
                request.verb == "create"
                    && request.resource == "jobs"
                    && request.name == job.name
                    && request.at == job.first
            });
            let is_answered = created.is_none_or(|request| !request.reply_lost && request.waited < PATIENCE);
            job.is_noted || is_answered || !is_blind(&troubles, job.first - SILENCE, job.again)
        };
        all.iter().filter(was_known).map(|job| format!("{} S3: {} is made again", job.again, job.name)).collect()
    }

    /// Jobs that failed since no host could know that their launchers had succeeded.
    pub(super) fn unknown_successes(&self, sim: &Sim) -> BTreeSet<String> {
        let lost = self.lost.lock();
        lost.iter().filter(|lost| !lost.was_seen(&sim.troubles())).map(|lost| lost.job.clone()).collect()
    }

    /// S4: no child without its job.
    pub(super) fn at_the_end(&self, sim: &Sim) -> Vec<String> {
        let mut orphans = Vec::new();
        for (version, kind) in CHILDREN {
            for object in sim.list(version, kind, "") {
                let gone = controller(&object).is_some_and(|uid| sim.view(|view| view.by_uid(uid).is_none()));
                if gone {
                    orphans.push(format!("S4: {kind} {} has outlived its job", object["metadata"]["name"]));
                }
            }
        }
        orphans
    }
}

/// Pods that have succeeded, by the uid of their controller and their name.
#[derive(Default)]
struct Succeeded {
    /// At some time.
    ever: BTreeSet<(String, String)>,
    /// And were not deleted, or taken from their job, since by anybody but the host, nor was their job suspended.
    known: BTreeSet<(String, String)>,
}

/// What hosts were shown.
#[derive(Default)]
struct Shown {
    /// When the launcher's Job of a controller with this uid was first shown complete.
    complete: BTreeMap<String, Timestamp>,
    /// Pods that were shown as succeeded, by the uid of their controller and their name.
    succeeded: BTreeSet<(String, String)>,
    /// When each host was first shown a pod of a Job, by the host and the uid of the pod.
    of_jobs: BTreeMap<(String, String), Timestamp>,
}

impl Shown {
    fn note(&mut self, delivery: &Delivery<'_>) {
        let Some(uid) = controller(delivery.object).filter(|_| is_host(delivery.actor)) else { return };
        if delivery.kind == "Pod" && owning_job(delivery.object).is_some() {
            let pod = delivery.object["metadata"]["uid"].as_str().unwrap_or_default();
            self.of_jobs.entry((delivery.actor.to_owned(), pod.to_owned())).or_insert(delivery.at);
        }
        match delivery.kind {
            "Job" if is_complete(delivery.object) => {
                self.complete.entry(uid.to_owned()).or_insert(delivery.at);
            }
            "Pod" if delivery.object["status"]["phase"] == "Succeeded" => {
                self.succeeded.insert((uid.to_owned(), restarts::name_in_attempt(delivery.object)));
            }
            _ => {}
        }
    }
}

impl Succeeded {
    fn note(&mut self, write: &Write, view: &View<'_>) {
        if write.after.as_ref().is_some_and(|job| job["spec"]["runPolicy"]["suspend"] == true) {
            let uid = write.after.as_ref().and_then(|job| job["metadata"]["uid"].as_str()).unwrap_or_default();
            self.known.retain(|(owner, _)| owner != uid);
        }
        if write.kind != "Pod" {
            return;
        }
        let owner = |pod: &Value| controller(pod).map(str::to_owned);
        let (was, is) = (write.before.as_deref().and_then(owner), write.after.as_deref().and_then(owner));
        let Some(uid) = was.as_ref().or(is.as_ref()) else { return };
        let pod = write.before.as_deref().or(write.after.as_deref());
        let key = (uid.clone(), pod.map(restarts::name_in_attempt).unwrap_or_default());
        // Users who edit the spec may have asked for fewer pods, and later for more.
        let fewer = || view.by_uid(uid).is_some_and(|job| job["metadata"]["generation"] != 1);
        if is.is_none() && (!is_host(&write.actor) || fewer()) {
            if !view.by_uid(uid).is_some_and(|job| is_recorded(job, &write.name)) {
                self.known.remove(&key);
            }
        } else if write.after.as_ref().is_some_and(|pod| pod["status"]["phase"] == "Succeeded") {
            self.ever.insert((uid.clone(), write.name.clone()));
            self.known.insert(key);
        }
    }

    /// S3: an index that succeeded, as a host was shown, gets no new pod.
    fn is_run_again(&self, write: &Write, shown: &Shown) -> Option<String> {
        let pod = write.after.as_ref().filter(|_| write.kind == "Pod" && write.created() && is_host(&write.actor))?;
        let key = (controller(pod)?.to_owned(), restarts::name_in_attempt(pod));
        (self.known.contains(&key) && shown.succeeded.contains(&key))
            .then(|| format!("S3: {} has succeeded and gets a new pod", write.name))
    }
}

/// Whether the ledger of a job says that the replica of this pod, `JOB-ROLE-INDEX`, has succeeded.
fn is_recorded(job: &Value, pod: &str) -> bool {
    let Ok(ledger) = serde_json::from_value::<Ledger>(job["status"]["troupe"].clone()) else { return false };
    let replica = pod.rsplit_once('-').and_then(|(rest, index)| Some((rest.rsplit_once('-')?.1, index.parse().ok()?)));
    // The names of its pods do not name their role.
    let role = |named| if job["kind"] == "IndexedJob" { "main" } else { named };
    replica.is_some_and(|(named, index)| ledger.has_succeeded(role(named), index))
}

/// S1: names are the only hard uniqueness; nobody makes a second pod for an index under another name.
fn one_live_pod_an_index(write: &Write, view: &View<'_>, guests: &BTreeSet<String>) -> Option<String> {
    let pod = write.after.as_ref().filter(|_| write.kind == "Pod" && write.created() && is_host(&write.actor))?;
    let uid = controller(pod)?;
    // Pods that are all alike have no index; those of guests may differ by their names alone.
    let kind = pod["metadata"]["ownerReferences"][0]["kind"].as_str().unwrap_or_default();
    if (kind == "IndexedJob" || guests.contains(kind)) && pod["spec"]["hostname"].is_null() {
        return None;
    }
    let index = |pod: &Value| (pod["metadata"]["labels"].clone(), pod["spec"]["hostname"].clone());
    let live = view.owned_by(uid).into_iter().filter(|other| other["kind"] == "Pod" && is_live(other));
    let same = live.filter(|other| index(other) == index(pod)).count();
    (same > 1).then(|| format!("S1: {same} live pods stand for {}", write.name))
}

/// S2: once the ledger says that a job has ended, its step stays, and so do the end and its time.
fn final_status_stays(write: &Write) -> Option<String> {
    let (before, after) = (&write.before.as_ref()?["status"], &write.after.as_ref()?["status"]);
    let end = |status: &Value| ["at", "outcome"].map(|field| status["troupe"]["finished"][field].clone());
    // Anybody can write a ledger; the host's own names the job.
    let is_own = before["troupe"]["uid"] == write.before.as_ref()?["metadata"]["uid"];
    if !is_own || before["troupe"]["finished"].is_null() || step(before) == step(after) && end(before) == end(after) {
        return None;
    }
    Some(format!("S2: the final status of {} changed from {before} to {after}", write.name))
}

/// S3: a job is Completed only when each of its pods has succeeded; servers may run on where the cluster operator says so.
fn success_is_true(write: &Write, succeeded: &BTreeSet<(String, String)>) -> Option<String> {
    let (before, after) = (write.before.as_ref()?, write.after.as_ref()?);
    if after["status"]["phase"] != "Completed" || before["status"]["phase"] == "Completed" {
        return None;
    }
    let uid = after["metadata"]["uid"].as_str()?;
    for role in ["worker", "heter"] {
        for index in 0..after["spec"][role]["replicas"].as_u64().unwrap_or(0) {
            let pod = format!("{}-{role}-{index}", write.name);
            if !succeeded.contains(&(uid.to_owned(), pod.clone())) {
                return Some(format!("S3: {} is Completed although {pod} never succeeded", write.name));
            }
        }
    }
    None
}

/// S5: the host changes and deletes only what a job controls, and what has a status of its own: jobs, and its lease.
fn no_foreign_write(write: &Write) -> Option<String> {
    let before = write.before.as_ref().filter(|_| is_host(&write.actor))?;
    // Kept plugins are the hosts' own.
    let is_child = write.namespace != deliveries::NAMESPACE && CHILDREN.iter().any(|(_, kind)| write.kind == *kind);
    let nobodys = is_child && controller(before).is_none();
    nobodys.then(|| format!("S5: the host changed {} {}, which is nobody's", write.kind, write.name))
}

impl LostSuccess {
    /// A host was shown that the launcher had succeeded, or could have been, and none crashed, lost its lease or was frozen
    /// before the job's end was written.
    fn was_seen(&self, troubles: &BTreeMap<String, Vec<Timestamp>>) -> bool {
        let frozen_since = self.complete - SignedDuration::from_millis(LONGEST_FREEZE_MS.into());
        if happened(troubles, (frozen_since, self.ended), |what| what == "host frozen") {
            return false;
        }
        match self.shown {
            Some(shown) => {
                !happened(troubles, (shown, self.ended), |what| what.starts_with("crash") || what == LEASE_LOST)
            }
            None => {
                let since = self.complete - SILENCE;
                !is_blind(troubles, since, self.ended)
                    && !happened(troubles, (since, self.ended), |what| what == LEASE_LOST)
            }
        }
    }
}

/// Whether a host may have missed events. A watch that breaks goes on from where it was; one that is silent, or too old,
/// does not.
fn is_blind(troubles: &BTreeMap<String, Vec<Timestamp>>, since: Timestamp, until: Timestamp) -> bool {
    let blinds = |what: &str| what.starts_with("crash") || what.ends_with("410") || what == "watch silent";
    happened(troubles, (since, until), blinds)
}

fn happened(
    troubles: &BTreeMap<String, Vec<Timestamp>>,
    (since, until): (Timestamp, Timestamp),
    is_meant: fn(&str) -> bool,
) -> bool {
    let when = troubles.iter().filter(|(what, _)| is_meant(what)).flat_map(|(_, when)| when);
    when.into_iter().any(|at| *at >= since && *at <= until)
}

fn success_is_lost(write: &Write, launchers: &mut BTreeMap<String, Timestamp>, shown: &Shown) -> Option<LostSuccess> {
    let after = write.after.as_ref()?;
    if write.kind == "Job" && is_complete(after) {
        launchers.entry(controller(after)?.to_owned()).or_insert(write.at);
        return None;
    }
    let end = |object: &Value| object["status"]["troupe"]["finished"]["outcome"].clone();
    let ends = !after["spec"]["mpiReplicaSpecs"].is_null() && write.before.as_deref().map(end) != Some(end(after));
    // Exit code 0 of a launcher that has lost a worker is no success (M21).
    let mut conditions = after["status"]["conditions"].as_array().into_iter().flatten();
    if conditions.any(|condition| condition["type"] == "Failed" && condition["reason"] == "MPIJobWorkerLost") {
        return None;
    }
    let uid = after["metadata"]["uid"].as_str()?;
    let complete = *launchers.get(uid)?;
    let shown = shown.complete.get(uid).copied();
    (ends && end(after) == "failed").then(|| LostSuccess { job: write.name.clone(), complete, shown, ended: write.at })
}

/// No pod whose success the ledger lacks is deleted while its job goes on.
fn no_unfounded_deletion(write: &Write, view: &View<'_>) -> Option<String> {
    let before = write.before.as_ref().filter(|_| is_host(&write.actor) && write.kind == "Pod")?;
    let going = write.after.as_ref().is_none_or(|after| !after["metadata"]["deletionTimestamp"].is_null());
    if !going || !before["metadata"]["deletionTimestamp"].is_null() || before["status"]["phase"] != "Succeeded" {
        return None;
    }
    // Users who edit the spec may have asked for fewer pods.
    let job = view.by_uid(controller(before)?).filter(|job| job["metadata"]["generation"] == 1)?;
    let ledger = &job["status"]["troupe"];
    let noted = !ledger["finished"].is_null() || !ledger["succeeded"].is_null() || restarts::is_over(before, ledger);
    (!noted).then(|| format!("S3: {} was deleted before its success was written down", write.name))
}

/// A job whose launcher's Job was made does not get another, also when that one has gone by its time to live: in this
/// life of the host, and in later ones if the ledger says that it was made. One that somebody deleted is made again.
fn not_run_again(
    write: &Write,
    view: &View<'_>,
    life: u32,
    made: &mut BTreeMap<String, (Life, Timestamp)>,
) -> Option<MadeAgain> {
    if write.kind != "Job" {
        return None;
    }
    let goes = |job: &Value| !job["metadata"]["deletionTimestamp"].is_null();
    let deleted = write.before.as_deref().filter(|job| !goes(job) && write.after.as_deref().is_none_or(goes));
    if let Some(uid) = deleted.filter(|_| write.actor != "ttl-controller").and_then(controller) {
        made.remove(uid);
    }
    let job = write.after.as_ref().filter(|_| write.created() && is_host(&write.actor))?;
    let uid = controller(job)?;
    let life = (write.actor.clone(), life);
    let (before, first) = made.insert(uid.to_owned(), (life.clone(), write.at))?;
    let vanishes = !job["spec"]["ttlSecondsAfterFinished"].is_null();
    let is_noted = view.by_uid(uid).is_some_and(|job| job["status"]["troupe"]["made"].to_string().contains("job/"));
    let is_violation = vanishes && (before == life || is_noted);
    is_violation.then(|| MadeAgain { name: write.name.clone(), first, again: write.at, is_noted })
}

/// S11: a host makes no Job while a pod of an earlier Job of that name is there and has not ended. It need not know of pods
/// that it had not been shown when that Job went; `gone` says when each did, by its uid.
fn no_job_beside_pods_of_another(
    write: &Write,
    view: &View<'_>,
    gone: &mut BTreeMap<String, Timestamp>,
    shown: &Shown,
) -> Option<String> {
    if write.kind != "Job" {
        return None;
    }
    if let Some(before) = write.before.as_deref().filter(|_| write.removed()) {
        gone.insert(before["metadata"]["uid"].as_str()?.to_owned(), write.at);
    }
    if !write.created() || !is_host(&write.actor) {
        return None;
    }
    let pod_is_known = |pod: &&&Value| {
        let key = (write.actor.clone(), pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
        let job_went = owning_job(pod).filter(|(name, _)| *name == write.name).and_then(|(_, uid)| gone.get(uid));
        job_went.zip(shown.of_jobs.get(&key)).is_some_and(|(went, shown)| shown < went)
    };
    let pods = view.list("v1", "Pod", &write.namespace);
    let left = pods.iter().filter(|pod| is_live(pod)).find(pod_is_known)?;
    Some(format!("S11: {} is made while {} of an earlier one has not ended", write.name, left["metadata"]["name"]))
}

/// The name and the uid of the Job that controls this object.
fn owning_job(object: &Value) -> Option<(&str, &str)> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true && owner["kind"] == "Job")?;
    Some((owner["name"].as_str()?, owner["uid"].as_str()?))
}

fn is_live(pod: &Value) -> bool {
    pod["status"]["phase"] != "Succeeded" && pod["status"]["phase"] != "Failed"
}
