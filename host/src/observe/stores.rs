//! The objects that the watches have shown, and the one back edge inside the process: a job is not observed until the
//! watches have shown the host's own writes. Never writes to the API.

use crate::{
    job_key::{GroupKind, JobKey},
    observe::{
        cache::Cache,
        children::Children,
        layout::{Layout, Planner, Purpose, WatchId, WatchSpec},
        records::Records,
        reports::{Report, Reports},
        table::{Controller, Table},
        tombstones::{Tombstones, Witness},
        wire::{Held, Object, Packed},
    },
};
use decide::{
    Applied, Digest, Snapshot, is_at_rest,
    ledger::Ledger,
    plan::{Fault, FieldError},
    snapshot::{Child, Job, Pod, Queue},
    workload,
};
use jiff::Timestamp;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::Notify;

pub use crate::observe::{
    observed::{Doubt, Observed},
    table::{Expected, Listed},
};

/// How far a watch has come.
#[derive(Debug, Clone)]
pub struct Progress {
    /// What it watches.
    pub watch: WatchSpec,
    /// Whether it has listed.
    pub listed: Listed,
    /// The number of its objects.
    pub objects: usize,
}

/// The objects of all watches, and what this process remembers of its own writes.
#[derive(Debug, Default)]
pub struct Stores {
    inner: Mutex<Inner>,
    /// Notified when watches were added or ended.
    changed: Notify,
    /// Notified when a watch has listed for the first time.
    listed: Notify,
}

/// A job as people are shown it.
#[derive(Debug)]
pub struct Sight {
    /// The job.
    pub job: Job,
    /// What its status says of its past.
    pub ledger: Ledger,
    /// Its pods, sorted by name.
    pub pods: Vec<Arc<Pod>>,
    /// Its other objects, sorted by kind and name.
    pub children: Vec<Arc<Child>>,
}

/// A job that has not ended.
#[derive(Debug)]
pub struct OpenJob {
    /// The job.
    pub key: JobKey,
    /// Its uid.
    pub uid: String,
    /// The digest that has planned it, if it was planned.
    pub digest: Option<Digest>,
}

#[derive(Debug, Default)]
struct Inner {
    cache: Cache,
    /// By watch: notified when a write shows that the kind, which was not served, is served now.
    served: BTreeMap<WatchId, Arc<Notify>>,
    expected: BTreeMap<JobKey, Vec<(WatchId, Expected)>>,
    /// Jobs that wait for a version that no event of their own has to show.
    settled: BTreeSet<(WatchId, JobKey)>,
    tombstones: Tombstones,
    records: Records,
    reports: Reports,
}

impl Stores {
    /// Returns empty stores for this layout.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        let stores = Self::default();
        stores.change(|empty| *empty = layout);
        stores
    }

    /// Keeps of no job a spec that has more bytes as JSON: the job is refused, with the size.
    pub(crate) fn limit_specs(&self, largest: usize) {
        self.inner.lock().cache.limit_specs(largest);
    }

    /// Leaves out of listed objects what is not kept of them, so that a list takes no more memory than what is kept.
    pub(crate) fn trim(&self, objects: &mut [Object]) {
        let inner = self.inner.lock();
        objects.iter_mut().for_each(|object| inner.cache.trim(object));
    }

    /// Returns the current layout.
    #[must_use]
    pub fn layout(&self) -> Arc<Layout> {
        self.inner.lock().cache.layout().clone()
    }

    /// Changes the layout: a new watch gets a table, and the objects of a watch that has ended are dropped.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Layout)) {
        self.change_locked(&mut self.inner.lock(), change);
    }

    fn change_locked(&self, inner: &mut Inner, change: impl FnOnce(&mut Layout)) {
        if inner.cache.change(change) {
            inner.served.retain(|watch, _| inner.cache.table(*watch).is_some());
            self.changed.notify_one();
        }
    }

    /// Ends the watches that neither a loaded plugin nor a job that has not ended needs. Returns the jobs that are no
    /// longer watched.
    pub(crate) fn prune(&self) -> BTreeSet<JobKey> {
        let mut inner = self.inner.lock();
        let in_use: BTreeSet<GroupKind> = inner.cache.open_jobs().map(|(key, _)| key.kind).collect();
        let mut unwatched: BTreeSet<_> = inner.cache.keys().filter(|key| !in_use.contains(&key.kind)).collect();
        self.change_locked(&mut inner, |layout| layout.prune(&in_use));
        unwatched.retain(|key| !inner.cache.layout().kinds().contains_key(&key.kind));
        unwatched
    }

    /// Waits until watches were added or have ended.
    pub(crate) async fn watches_changed(&self) {
        self.changed.notified().await;
    }

    /// Returns how far each watch has come.
    #[must_use]
    pub fn progress(&self) -> Vec<Progress> {
        let inner = self.inner.lock();
        let of = |(id, watch): (&WatchId, &WatchSpec)| {
            let table = inner.cache.table(*id)?;
            Some(Progress { watch: watch.clone(), listed: table.listed, objects: table.objects.len() })
        };
        inner.cache.layout().watches().iter().filter_map(of).collect()
    }

    /// Returns whether every watch has listed or waits for its kind to be served, but for those that nothing waits for.
    #[must_use]
    pub fn have_listed(&self) -> bool {
        self.all_listed(|listed| matches!(listed, Listed::Yes | Listed::NoSuchKind))
    }

    /// Returns whether every watch has listed, or waits for its kind to be served or for the right to it, but for those that
    /// nothing waits for.
    #[must_use]
    pub fn have_answers(&self) -> bool {
        self.all_listed(|listed| listed != Listed::NotYet)
    }

    fn all_listed(&self, is_enough: impl Fn(Listed) -> bool) -> bool {
        self.read(|cache| {
            let layout = cache.layout();
            cache.tables().iter().all(|(id, table)| is_enough(table.listed) || layout.is_of_unserved(*id))
        })
    }

    /// Returns the keys of all jobs that the watches have shown, sorted by kind, namespace and name.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobKey> {
        let mut jobs: Vec<_> = self.read(|cache| cache.keys().collect());
        jobs.sort();
        jobs
    }

    /// Returns the jobs that have not ended, sorted by kind, namespace and name.
    #[must_use]
    pub fn open_jobs(&self) -> Vec<OpenJob> {
        let open = |(key, job): (JobKey, &Packed)| {
            let (uid, digest) = (job.job().uid.clone(), job.recorded().digest.clone());
            OpenJob { key, uid, digest }
        };
        let mut jobs: Vec<_> = self.read(|cache| cache.open_jobs().map(open).collect());
        jobs.sort_by(|a, b| a.key.cmp(&b.key));
        jobs
    }

    /// Calls `read` with the objects of all watches. No watch goes on meanwhile.
    pub fn read<T>(&self, read: impl FnOnce(&Cache) -> T) -> T {
        read(&self.inner.lock().cache)
    }

    /// Returns the snapshot of the job at `now`, or why there is none. Forgets records of a job that is gone.
    #[must_use]
    pub fn observe(&self, key: &JobKey, now: Timestamp) -> Observed {
        let mut inner = self.inner.lock();
        let layout = inner.cache.layout().clone();
        let Some(own) = layout.jobs_of(&key.kind) else {
            inner.forget(key);
            return Observed::Gone;
        };
        if let Some(doubt) = inner.doubt(key) {
            return Observed::InDoubt(doubt);
        }
        if !inner.cache.is_shown(own) {
            return Observed::Unlisted;
        }
        if !inner.shows_our_writes(key) {
            return Observed::Stale;
        }
        let object = inner.cache.job(key);
        if object.is_some_and(|object| matches!(&object.held, Held::Job(packed) if packed.lacks_ledger())) {
            return Observed::Stale;
        }
        let Some((job, unreadable)) = object.and_then(unpacked) else {
            inner.forget(key);
            return Observed::Gone;
        };
        let job = Arc::new(job);
        let mut ledger = Ledger::read(&job.status, &job.uid);
        let may_be = |digest: &Digest| layout.may_have_planned(&key.kind, digest);
        let of_children = || inner.cache.digest_of_children(Controller::job(key, &job.uid), may_be);
        let (digest, held) = match layout.planner(&key.kind, &job, &ledger, of_children) {
            Planner::Digest(digest) => (Some(digest), None),
            Planner::Nobody => (None, None),
            Planner::Loading(digest) => return Observed::Loading(digest),
            Planner::Held(digest, why) => (digest, Some(why)),
            Planner::Another => return Observed::Another,
        };
        let Some(kind) = layout.kind_by(&key.kind, digest.as_ref()) else { return Observed::Gone };
        let needed = layout.tables_of(&key.kind, digest.as_ref());
        if needed.iter().any(|watch| !inner.cache.is_shown(*watch)) {
            return Observed::Stale;
        }
        let watches = needed.get(1..).unwrap_or_default();
        if let Some((watch, version)) = inner.cache.behind_list(watches, Controller::job(key, &job.uid)) {
            inner.expected.entry(key.clone()).or_default().push((watch, Expected::Version(version)));
            inner.settled.insert((watch, key.clone()));
            return Observed::Stale;
        }
        let mut children = Children::of(&inner.cache, watches, &inner.tombstones, key, &job.uid);
        let workloads = layout.workloads_of(&key.kind, digest.as_ref()).and_then(|watch| inner.cache.table(watch));
        let of_queue = workloads.is_some_and(|table| table.listed == Listed::Yes).then(|| children.take_workloads());
        children.bound();
        let taken = inner.cache.taken(watches, key, &job.uid);
        let reports = inner.reports.of(&children.others, now);
        inner.records.recall_made(key, &mut ledger);
        let mut snapshot = Snapshot {
            now,
            kind,
            unreadable: unreadable.or(children.unreadable),
            ledger,
            pods: children.pods,
            children: children.others,
            dependents: children.dependents,
            reports,
            contents: vec![],
            taken,
            served_as: inner.cache.served_as(watches),
            digest,
            set_aside: None,
            no_ports: None,
            pruned: false,
            namespace_terminating: inner.records.is_namespace_terminating(key, &job.uid, now),
            queue: None,
            job,
        };
        if let Some(workloads) = of_queue {
            // Most jobs have no Workload, and its name holds a hash.
            let called = (!workloads.is_empty()).then(|| workload::name(&snapshot));
            let workload = workloads.into_iter().find(|workload| called.as_ref() == Some(&workload.name));
            let is_queued = snapshot.is_queued_by_host(workload.is_some());
            snapshot.queue = is_queued.then(|| Queue { workload, classes: inner.cache.classes() });
        }
        observed(&layout, &key.kind, Box::new(snapshot), held)
    }

    /// Returns the job and its children as the watches have shown them, the host's latest writes or not: for people, not
    /// for decisions. `None` if the job is gone.
    #[must_use]
    pub fn sight(&self, key: &JobKey) -> Option<Sight> {
        let inner = self.inner.lock();
        let (job, _) = inner.cache.job(key).and_then(unpacked)?;
        let ledger = Ledger::read(&job.status, &job.uid);
        let watches = inner.cache.layout().tables_of(&key.kind, ledger.digest.digest());
        let watches = watches.get(1..).unwrap_or_default();
        let Children { pods, others, .. } = Children::of(&inner.cache, watches, &inner.tombstones, key, &job.uid);
        Some(Sight { job, ledger, pods, children: others })
    }

    /// Records the job's objects that are created only once, and the warnings, until its ledger holds them.
    pub(crate) fn record_applied(&self, key: &JobKey, job: &Job, applied: &Applied) {
        self.inner.lock().records.record_applied(key, job, applied);
    }

    /// Forgets the job's recorded objects that are not in `kept`: the next ledger leaves them out.
    pub(crate) fn retain_made(&self, key: &JobKey, kept: &BTreeSet<String>) {
        self.inner.lock().records.retain_made(key, kept);
    }

    /// Records, for a minute from `now` on, that the namespace of the job with this uid is being deleted.
    pub(crate) fn record_namespace_terminating(&self, key: &JobKey, uid: &str, now: Timestamp) {
        self.inner.lock().records.record_namespace_terminating(key, uid, now);
    }

    /// Returns when the record is over that the namespace of the job is being deleted; `None` if there is none.
    pub(crate) fn namespace_terminates_until(&self, key: &JobKey) -> Option<Timestamp> {
        self.inner.lock().records.namespace_terminates_until(key)
    }

    /// Returns the number of the job's tombstones.
    pub(crate) fn count_tombstones(&self, key: &JobKey) -> usize {
        self.inner.lock().tombstones.count(key)
    }

    /// Removes the first `count` tombstones of the job, once its status says how these children ended. Returns whether
    /// there were any; if so, the job must be decided again without them.
    pub(crate) fn forget_tombstones(&self, key: &JobKey, count: usize) -> bool {
        self.inner.lock().tombstones.forget_first(key, count)
    }

    /// Makes the job, planned by `digest`, stale until its watch of this resource has shown the write.
    pub fn expect(&self, key: &JobKey, digest: Option<&Digest>, (api_version, kind): (&str, &str), expected: Expected) {
        let mut inner = self.inner.lock();
        let layout = inner.cache.layout().clone();
        let is_of = |watch: &WatchSpec| {
            let is_own = !matches!(watch.purpose, Purpose::Dependents(_));
            is_own && watch.resource.kind == kind && watch.resource.api_version() == api_version
        };
        let of_kind = |id: &WatchId| layout.watches().get(id).is_some_and(is_of);
        // A kind whose watch no job waits for (Secret, Event) is never expected.
        let Some(watch) = layout.tables_of(&key.kind, digest).into_iter().find(of_kind) else { return };
        if inner.cache.table(watch).is_some_and(|table| table.listed == Listed::NoSuchKind) {
            inner.served.entry(watch).or_default().notify_one();
        }
        inner.expected.entry(key.clone()).or_default().push((watch, expected));
    }

    /// Ends a doubt about a create of the job: the job is stale until the watch has reached this version.
    pub(crate) fn settle(&self, key: &JobKey, doubt: &Doubt, version: u64) {
        let mut inner = self.inner.lock();
        let in_doubt = Expected::InDoubt { name: doubt.name.clone() };
        for (watch, expected) in inner.expected.get_mut(key).into_iter().flatten() {
            if *watch == doubt.watch && *expected == in_doubt {
                *expected = Expected::Version(version);
            }
        }
        inner.settled.insert((doubt.watch, key.clone()));
    }

    /// Forgets the writes of the job that its watches have shown. Only for the pass that decides from what they show:
    /// until then every event that shows a write wakes the job.
    pub(crate) fn forget_shown_writes(&self, key: &JobKey) {
        let Inner { cache, expected, settled, .. } = &mut *self.inner.lock();
        let Some(writes) = expected.get_mut(key) else { return };
        writes.retain(|(watch, write)| !cache.shows(*watch, &key.namespace, write));
        if writes.is_empty() {
            expected.remove(key);
            settled.retain(|(_, waits)| waits != key);
        }
    }

    /// Replaces a watch's objects by a complete list as of this version. Returns the jobs that may be concerned.
    pub(crate) fn replace(&self, watch: WatchId, objects: Vec<Object>, version: u64) -> BTreeSet<JobKey> {
        let mut inner = self.inner.lock();
        let mut concerned = BTreeSet::new();
        let known = |object: Object| inner.cache.with_what_is_known(watch, &object).unwrap_or(object);
        let objects: Vec<_> = objects.into_iter().map(known).collect();
        let Some(old) = inner.cache.table(watch) else { return concerned };
        for object in &objects {
            let here = (object.namespace.clone(), object.name.clone());
            if old.objects.get(&here) != Some(object) {
                concerned.extend(inner.cache.concerned(watch, object));
            }
        }
        let Some(old) = inner.cache.replace(watch, objects, version) else { return concerned };
        concerned.extend(inner.left_out(watch, &old, version));
        concerned.extend(inner.expected.keys().cloned());
        if old.listed != Listed::Yes {
            concerned.extend(inner.cache.keys());
            // Of those of jobs that went before their kind was listed nothing is kept.
            concerned.extend(inner.tombstones.jobs().cloned());
            self.listed.notify_one();
        }
        concerned
    }

    /// Stores an object that was added or changed. Returns the jobs that may be concerned.
    pub(crate) fn upsert(&self, watch: WatchId, object: Object) -> BTreeSet<JobKey> {
        let mut inner = self.inner.lock();
        let object = inner.cache.with_what_is_known(watch, &object).unwrap_or(object);
        let mut concerned = inner.cache.concerned(watch, &object);
        if let Some(before) = inner.cache.upsert(watch, object) {
            concerned.extend(inner.cache.concerned(watch, &before));
        }
        concerned.extend(inner.reached(watch));
        concerned
    }

    /// Removes a deleted object. Returns the jobs that may be concerned.
    pub(crate) fn remove(&self, watch: WatchId, object: &Object) -> BTreeSet<JobKey> {
        let mut inner = self.inner.lock();
        let known = inner.cache.with_what_is_known(watch, object);
        let object = known.as_ref().unwrap_or(object);
        let mut concerned = inner.cache.concerned(watch, object);
        inner.tombstones.record(watch, &concerned, object, Witness::Event);
        inner.cache.remove(watch, object);
        inner.reports.forget(&object.uid);
        concerned.extend(inner.reached(watch));
        concerned
    }

    /// Records that the watch has reached this version. Returns the jobs that expect a write that the watch has shown.
    pub(crate) fn bookmark(&self, watch: WatchId, version: u64) -> BTreeSet<JobKey> {
        let mut inner = self.inner.lock();
        inner.cache.progressed(watch, version);
        let mut concerned = BTreeSet::from_iter(inner.reached(watch));
        let cache = &inner.cache;
        let is_shown = |(key, writes): &(&JobKey, &Vec<(WatchId, Expected)>)| {
            writes.iter().any(|(at, expected)| *at == watch && cache.shows(watch, &key.namespace, expected))
        };
        concerned.extend(inner.expected.iter().filter(is_shown).map(|(key, _)| key.clone()));
        concerned
    }

    /// Waits until the API server serves a kind that schedulers report on.
    pub(crate) async fn can_be_reported(&self) {
        while !self.read(Cache::has_reported_kind) {
            self.listed.notified().await;
        }
    }

    /// Records what a scheduler has said of a child. Returns the child's job, if that is new. Everybody who may create
    /// events writes what he likes there: it is kept of a job's own child alone.
    pub(crate) fn report(&self, report: &Report) -> Option<JobKey> {
        let Inner { cache, reports, .. } = &mut *self.inner.lock();
        let key = cache.job_of_reported(report.namespace(), &report.about.name, &report.about.uid)?;
        reports.record(report).then_some(key)
    }

    /// Records that the API server does not serve this kind. If that is new and the kind is optional, its objects are gone,
    /// no write to them is awaited any more, and all jobs are returned.
    pub(crate) fn no_such_kind(&self, watch: WatchId) -> BTreeSet<JobKey> {
        let mut inner = self.inner.lock();
        let Some(old) = inner.cache.no_such_kind(watch) else { return BTreeSet::new() };
        let mut concerned = inner.left_out(watch, &old, old.progress);
        concerned.extend(inner.expected.keys().cloned());
        concerned.extend(inner.cache.keys());
        inner.forget_writes_to(watch);
        concerned
    }

    /// Records that the host has no right to the kind of this watch.
    pub(crate) fn forbidden(&self, watch: WatchId) {
        self.inner.lock().cache.forbidden(watch);
    }

    /// Waits until a write shows that the kind of this watch, which was not served when it was last listed, is served.
    pub(crate) async fn is_served(&self, watch: WatchId) {
        match self.served(watch) {
            Some(served) => served.notified().await,
            None => std::future::pending().await,
        }
    }

    fn served(&self, watch: WatchId) -> Option<Arc<Notify>> {
        let mut inner = self.inner.lock();
        inner.cache.table(watch)?;
        Some(inner.served.entry(watch).or_default().clone())
    }
}

impl Inner {
    fn doubt(&self, key: &JobKey) -> Option<Doubt> {
        let of = |(watch, expected): &(WatchId, Expected)| {
            let Expected::InDoubt { name } = expected else { return None };
            let resource = self.cache.layout().watches().get(watch)?.resource.clone();
            Some(Doubt { resource, name: name.clone(), watch: *watch })
        };
        self.expected.get(key)?.iter().find_map(of)
    }

    fn shows_our_writes(&self, key: &JobKey) -> bool {
        let writes = self.expected.get(key);
        writes.into_iter().flatten().all(|(watch, write)| self.cache.shows(*watch, &key.namespace, write))
    }

    /// Records that the objects of this table that the watch does not show any more were gone as of this version; how they
    /// ended nobody saw. Returns the jobs that may be concerned.
    fn left_out(&mut self, watch: WatchId, before: &Table, version: u64) -> BTreeSet<JobKey> {
        let mut concerned = BTreeSet::new();
        for (here, object) in &before.objects {
            if self.cache.table(watch).is_none_or(|table| !table.objects.contains_key(here)) {
                let of_object = self.cache.concerned(watch, object);
                self.tombstones.record(watch, &of_object, object, Witness::List);
                self.cache.record_departure(object, version);
                self.reports.forget(&object.uid);
                concerned.extend(of_object);
            }
        }
        concerned
    }

    /// Forgets the writes to the kind of this watch, which will not show them.
    fn forget_writes_to(&mut self, watch: WatchId) {
        self.expected.retain(|_, writes| {
            writes.retain(|(at, _)| *at != watch);
            !writes.is_empty()
        });
        self.settled.retain(|(at, _)| *at != watch);
    }

    /// Returns the jobs that wait for no version any more, with the one that this watch has reached or since another watch
    /// has ended.
    fn reached(&mut self, watch: WatchId) -> Vec<JobKey> {
        let Self { cache, expected, settled, .. } = self;
        let waits = |at: WatchId, key: &JobKey| {
            let writes = expected.get(key).into_iter().flatten();
            writes.filter(|(of, _)| *of == at).any(|(_, write)| !cache.shows(at, &key.namespace, write))
        };
        let is_over = |(at, key): &(WatchId, JobKey)| (*at == watch || cache.table(*at).is_none()) && !waits(*at, key);
        settled.extract_if(.., is_over).map(|(_, key)| key).collect()
    }

    /// Forgets what is remembered of a job that is gone.
    fn forget(&mut self, key: &JobKey) {
        self.expected.remove(key);
        self.settled.retain(|(_, waits)| waits != key);
        self.tombstones.forget(key);
        self.records.forget(key);
    }
}

/// Returns the job, and the first error in its text.
fn unpacked(object: &Object) -> Option<(Job, Option<FieldError>)> {
    match &object.held {
        Held::Job(packed) => Some((packed.unpacked(), object.unreadable.clone())),
        Held::Pod(_) | Held::Child(_) => None,
    }
}

/// Returns the observed job. A held job that is suspended, with nothing running, is planned like a new job.
fn observed(layout: &Layout, kind: &GroupKind, mut snapshot: Box<Snapshot>, held: Option<Fault>) -> Observed {
    let Some(why) = held else { return Observed::Ready(snapshot) };
    match layout.planner_of_new(kind, &snapshot.job) {
        Planner::Digest(digest) if is_at_rest(&snapshot) => {
            snapshot.digest = Some(digest);
            Observed::Ready(snapshot)
        }
        _ => Observed::Held(snapshot, why),
    }
}

#[cfg(test)]
mod tests;
