//! The objects that the watches have shown, and the one back edge inside the process: a job is not observed until the
//! watches have shown the host's own writes. Never writes to the API.

use crate::{
    job_key::JobKey,
    observe::{
        host_ports::{self, Blocks, Claim},
        layout::{Layout, Planner, Purpose, Served},
        table::Table,
        tombstones::{Tombstones, Witness},
        wire::{Held, Object, Owner},
    },
};
use decide::{
    Applied, Snapshot, is_at_rest,
    ledger::{HostPorts, Ledger, Warned},
    plan::Fault,
    ports::NoPorts,
    snapshot::{Child, Job, Pod},
    status::Published,
};
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

pub use crate::observe::table::{Expected, Listed};

/// The snapshot of a job, or why there is none.
#[derive(Debug)]
pub enum Observed {
    /// The snapshot.
    Ready(Box<Snapshot>),
    /// The snapshot, and the reason why no plugin is asked about the job.
    Held(Box<Snapshot>, Fault),
    /// The watches have not shown one of the host's own writes yet, or have not listed yet.
    Stale,
    /// The job does not exist.
    Gone,
    /// The plugin with this digest is not loaded yet.
    Loading(String),
}

/// The objects of all watches, and what this process remembers of its own writes.
#[derive(Debug, Default)]
pub struct Stores {
    inner: Mutex<Inner>,
    /// Notified when the layout has more watches than before.
    grown: Notify,
}

/// What the ledger of the job with this uid does not hold yet.
#[derive(Debug, Default)]
struct Made {
    uid: String,
    made: BTreeSet<String>,
    warned: Warned,
}

#[derive(Debug, Default)]
struct Inner {
    layout: Arc<Layout>,
    tables: Vec<Table>,
    /// By watch: notified when a write shows that the kind, which was not served, is served now.
    served: Vec<Arc<Notify>>,
    expected: BTreeMap<JobKey, Vec<(usize, Expected)>>,
    /// The last write of each job's status by this process, with the uid of the job.
    published: BTreeMap<JobKey, (String, Published)>,
    tombstones: Tombstones,
    /// Objects that are created only once, and warnings, until the job's ledger holds them.
    made: BTreeMap<JobKey, Made>,
    /// Uids of jobs whose namespace is being deleted, so that nothing can be created for them.
    without_namespace: BTreeMap<JobKey, String>,
    /// The host ports that jobs hold.
    ports: Blocks,
    /// Kinds whose ledgers have been read for host ports.
    claimed: BTreeSet<usize>,
}

impl Stores {
    /// Returns empty stores for this layout. Jobs may hold these host ports.
    #[must_use]
    pub fn new(layout: Layout, ports: host_ports::Limits) -> Self {
        let stores = Self::default();
        stores.lock().ports = Blocks::new(ports);
        stores.change(|empty| *empty = layout);
        stores
    }

    /// Returns the current layout.
    #[must_use]
    pub fn layout(&self) -> Arc<Layout> {
        self.lock().layout.clone()
    }

    /// Changes the layout, and adds a table for each new watch.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Layout)) {
        let mut inner = self.lock();
        change(Arc::make_mut(&mut inner.layout));
        let watches = inner.layout.watches().len();
        let grows = watches > inner.tables.len();
        inner.tables.resize_with(watches, Table::default);
        inner.served.resize_with(watches, Arc::default);
        drop(inner);
        if grows {
            self.grown.notify_one();
        }
    }

    /// Waits until the layout has more watches than before.
    pub(crate) async fn grown(&self) {
        self.grown.notified().await;
    }

    /// Returns for each watch whether it has listed.
    #[must_use]
    pub fn listed(&self) -> Vec<Listed> {
        self.lock().tables.iter().map(|table| table.listed).collect()
    }

    /// Returns whether every watch has listed or waits for its kind to be served.
    pub(crate) fn have_listed(&self) -> bool {
        self.listed().iter().all(|listed| *listed != Listed::NotYet)
    }

    /// Returns the keys of all jobs that the watches have shown, sorted by kind, namespace and name.
    pub(crate) fn jobs(&self) -> Vec<JobKey> {
        let mut jobs = self.lock().all_keys();
        jobs.sort();
        jobs
    }

    /// Returns the keys of all jobs of the framework with this name.
    pub(crate) fn keys_of(&self, framework: &str) -> Vec<JobKey> {
        let layout = self.layout();
        let served_by = |key: &JobKey| layout.kinds().get(key.kind).map(|served| served.framework.name.as_str());
        self.jobs().into_iter().filter(|key| served_by(key) == Some(framework)).collect()
    }

    /// Returns the keys of the framework's jobs that have not ended and that no digest plans yet.
    pub(crate) fn unplanned_keys_of(&self, framework: &str) -> Vec<JobKey> {
        let mut unplanned = Vec::new();
        self.lock().each_open_job(|(kind, (namespace, name)), served, ledger| {
            if served.framework.name == framework && ledger.digest.is_empty() {
                unplanned.push(JobKey { kind, namespace: namespace.clone(), name: name.clone() });
            }
        });
        unplanned
    }

    /// Returns the number of the framework's planned jobs that have not ended, and that number for each accepted
    /// digest.
    pub(crate) fn digests_in_use(&self, framework: &str) -> (u32, BTreeMap<String, u32>) {
        let (mut all, mut in_use) = (0, BTreeMap::new());
        let inner = self.lock();
        inner.each_open_job(|(kind, _), served, ledger| {
            if served.framework.name != framework || ledger.digest.is_empty() {
                return;
            }
            all += 1;
            if inner.layout.may_have_planned(kind, &ledger.digest) {
                *in_use.entry(ledger.digest).or_insert(0) += 1;
            }
        });
        (all, in_use)
    }

    /// Returns the keys of the jobs that have not ended and whose ledger names this digest.
    pub(crate) fn keys_pinned_to(&self, digest: &str) -> Vec<JobKey> {
        let mut pinned = Vec::new();
        self.lock().each_open_job(|(kind, (namespace, name)), _, ledger| {
            if ledger.digest == digest {
                pinned.push(JobKey { kind, namespace: namespace.clone(), name: name.clone() });
            }
        });
        pinned
    }

    /// Returns the digests in the ledgers of all jobs that have not ended.
    pub(crate) fn all_digests_in_use(&self) -> BTreeSet<String> {
        let mut in_use = BTreeSet::new();
        self.lock().each_open_job(|_, _, ledger| {
            in_use.insert(ledger.digest);
        });
        in_use
    }

    /// Returns the snapshot of the job at `now`, or why there is none. Forgets records of a job that is gone.
    #[must_use]
    pub fn observe(&self, key: &JobKey, now: Timestamp) -> Observed {
        let mut inner = self.lock();
        let layout = inner.layout.clone();
        let Some(own) = layout.jobs_of(key.kind) else { return Observed::Gone };
        if !inner.is_shown(own) || !inner.shows_our_writes(key) {
            return Observed::Stale;
        }
        let here = (key.namespace.clone(), key.name.clone());
        let Some(Held::Job(job)) = inner.tables[own].objects.get(&here).map(|object| &object.held) else {
            inner.expected.remove(key);
            inner.published.remove(key);
            inner.tombstones.forget(key);
            inner.made.remove(key);
            inner.without_namespace.remove(key);
            inner.release_former(key, None);
            return Observed::Gone;
        };
        let job = Arc::new(job.unpacked());
        // Forget a write that was for an earlier job of this name.
        if inner.published.get(key).is_some_and(|(uid, _)| *uid != job.uid) {
            inner.published.remove(key);
        }
        let mut ledger = Ledger::read(&job.status, &job.uid);
        let of_children = || inner.digest_of_children(&job.uid, |digest| layout.may_have_planned(key.kind, digest));
        let (digest, held) = match layout.planner(key.kind, &job, &ledger, of_children) {
            Planner::Digest(digest) => (digest, None),
            Planner::Loading(digest) => return Observed::Loading(digest),
            Planner::Held(digest, why) => (digest, Some(why)),
        };
        let Some(kind) = layout.kind_by(key.kind, &digest) else { return Observed::Gone };
        let needed = layout.tables_of(key.kind, &digest);
        if needed.iter().any(|at| !inner.is_shown(*at)) {
            return Observed::Stale;
        }
        inner.release_former(key, Some(&job.uid));
        inner.believe_claims(key.kind);
        ledger.host_ports = ledger.host_ports.filter(|ports| inner.ports.of(key, &job.uid) == Some(*ports));
        let mut pods: Vec<Arc<Pod>> = Vec::new();
        let mut children: Vec<Arc<Child>> = Vec::new();
        let mut unreadable = inner.tables[own].objects.get(&here).and_then(|object| object.unreadable.clone());
        let mut collect = |uid: &str, children: &mut Vec<Arc<Child>>| {
            let tables = needed.iter().skip(1);
            for object in tables.flat_map(|at| inner.tables[*at].owned_by(uid)) {
                unreadable = unreadable.take().or_else(|| object.unreadable.clone());
                match &object.held {
                    Held::Pod(pod) => pods.push(pod.clone()),
                    Held::Child(child) => children.push(child.clone()),
                    Held::Job(_) => {}
                }
            }
            // If a live object reuses the name, ignore the tombstone.
            for held in inner.tombstones.owned_by(key, uid) {
                match held {
                    Held::Pod(pod) if pods.iter().all(|other| other.name != pod.name) => pods.push(pod.clone()),
                    Held::Child(child)
                        if children.iter().all(|other| (&other.kind, &other.name) != (&child.kind, &child.name)) =>
                    {
                        children.push(child.clone());
                    }
                    Held::Pod(_) | Held::Child(_) | Held::Job(_) => {}
                }
            }
        };
        collect(&job.uid, &mut children);
        let jobs: Vec<_> = children.iter().filter(|child| child.kind == "Job").map(|child| child.uid.clone()).collect();
        for uid in &jobs {
            collect(uid, &mut vec![]);
        }
        pods.sort_by(|a, b| a.name.cmp(&b.name));
        children.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
        let taken = inner.taken(&needed, &job.namespace, &job.name, &job.uid);
        inner.recall_made(key, &mut ledger);
        let pruned = inner.published.get(key).is_some_and(|(_, published)| published.is_pruned());
        let namespace_terminating = inner.without_namespace.get(key) == Some(&job.uid);
        let snapshot = Snapshot {
            now,
            kind,
            job,
            unreadable,
            ledger,
            pods,
            children,
            taken,
            digest,
            set_aside: None,
            no_ports: None,
            pruned,
            namespace_terminating,
        };
        seen(&layout, key.kind, Box::new(snapshot), held)
    }

    /// Returns what this process last wrote to the job's status.
    #[must_use]
    pub fn published(&self, key: &JobKey) -> Option<Published> {
        self.lock().published.get(key).map(|(_, published)| published.clone())
    }

    /// Records what was written to the status of the job with this uid.
    pub fn record_published(&self, key: &JobKey, uid: &str, published: Published) {
        self.lock().published.insert(key.clone(), (uid.to_owned(), published));
    }

    /// Forgets the last write of the job's status, after a write with an unknown result.
    pub(crate) fn forget_published(&self, key: &JobKey) {
        self.lock().published.remove(key);
    }

    /// Records the job's objects that are created only once, and the warnings, until its ledger holds them.
    pub(crate) fn record_applied(&self, key: &JobKey, job: &Job, applied: &Applied) {
        if applied.made.is_empty() && applied.warnings.is_empty() {
            return;
        }
        let mut inner = self.lock();
        let known = inner.made.entry(key.clone()).or_default();
        if known.uid != job.uid {
            *known = Made { uid: job.uid.clone(), ..Made::default() };
        }
        known.made.extend(applied.made.iter().cloned());
        known.warned.add(job.generation, &applied.warnings);
    }

    /// Records, until the job is gone, that the namespace of the job with this uid is being deleted.
    pub(crate) fn record_namespace_terminating(&self, key: &JobKey, uid: &str) {
        self.lock().without_namespace.insert(key.clone(), uid.to_owned());
    }

    /// Forgets the job's recorded objects that are not in `kept`: the next ledger leaves them out.
    pub(crate) fn retain_made(&self, key: &JobKey, kept: &BTreeSet<String>) {
        if let Some(known) = self.lock().made.get_mut(key) {
            known.made.retain(|note| kept.contains(note));
        }
    }

    /// Returns the number of the job's tombstones.
    pub(crate) fn count_tombstones(&self, key: &JobKey) -> usize {
        self.lock().tombstones.count(key)
    }

    /// Removes the first `count` tombstones of the job, once its status says how these children ended. Returns whether
    /// there were any; if so, the job must be decided again without them.
    pub(crate) fn forget_tombstones(&self, key: &JobKey, count: usize) -> bool {
        self.lock().tombstones.forget_first(key, count)
    }

    /// Returns a block of host ports for the job: the block that it holds, else a free one, which it holds from now on.
    ///
    /// # Errors
    /// Returns why there is none. No ports are free until all jobs and pods have been listed.
    pub(crate) fn set_aside(&self, key: &JobKey, uid: &str, count: u32) -> Result<HostPorts, NoPorts> {
        let mut inner = self.lock();
        if inner.has_ports_to_learn_of() {
            return Err(NoPorts::NoneFree);
        }
        for kind in 0..inner.layout.kinds().len() {
            inner.believe_claims(kind);
        }
        inner.ports.give(key, uid, count)
    }

    /// Returns the block that [`Stores::set_aside`] would return, without taking it.
    ///
    /// # Errors
    /// As for [`Stores::set_aside`].
    pub(crate) fn offer_ports(&self, key: &JobKey, uid: &str, count: u32) -> Result<HostPorts, NoPorts> {
        let inner = self.lock();
        if inner.has_ports_to_learn_of() { Err(NoPorts::NoneFree) } else { inner.ports.offer(key, uid, count) }
    }

    /// Releases the host ports of the job.
    pub(crate) fn release_ports(&self, key: &JobKey, uid: &str) {
        self.lock().ports.release(key, uid);
    }

    /// Makes the job, planned by `digest`, stale until its watch of this resource has shown the write.
    pub fn expect(&self, key: &JobKey, digest: &str, (api_version, kind): (&str, &str), expected: Expected) {
        let mut inner = self.lock();
        let layout = inner.layout.clone();
        let of_kind = |at: &usize| {
            let resource = &layout.watches()[*at].resource;
            resource.kind == kind && resource.api_version() == api_version
        };
        // A kind that is not watched (Secret, Event) is never expected.
        if let Some(table) = layout.tables_of(key.kind, digest).into_iter().find(of_kind) {
            if inner.tables[table].listed == Listed::NoSuchKind {
                inner.served[table].notify_one();
            }
            inner.expected.entry(key.clone()).or_default().push((table, expected));
        }
    }

    /// Replaces a watch's objects by a complete list as of this version. Returns the jobs that may be concerned.
    pub(crate) fn replace(&self, watch: usize, objects: Vec<Object>, version: u64) -> BTreeSet<JobKey> {
        let mut inner = self.lock();
        let mut concerned = BTreeSet::new();
        let old = std::mem::take(&mut inner.tables[watch]);
        for object in objects {
            let here = (object.namespace.clone(), object.name.clone());
            let same = old.objects.get(&here).is_some_and(|before| *before == object);
            if !same {
                concerned.extend(inner.concerned(watch, &object));
            }
            inner.insert(watch, object);
        }
        for (here, object) in &old.objects {
            if !inner.tables[watch].objects.contains_key(here) {
                let of_object = inner.concerned(watch, object);
                inner.tombstones.record(&of_object, object, Witness::List);
                concerned.extend(of_object);
            }
        }
        let table = &mut inner.tables[watch];
        table.progress = version.max(old.progress);
        table.listed = Listed::Yes;
        let waiting: Vec<_> = inner.expected.keys().cloned().collect();
        concerned.extend(waiting);
        if old.listed != Listed::Yes {
            concerned.extend(inner.all_keys());
        }
        concerned
    }

    /// Stores an object that was added or changed. Returns the jobs that may be concerned.
    pub(crate) fn upsert(&self, watch: usize, object: Object) -> BTreeSet<JobKey> {
        let mut inner = self.lock();
        let here = (object.namespace.clone(), object.name.clone());
        let mut concerned = inner.concerned(watch, &object);
        if let Some(before) = inner.tables[watch].objects.get(&here).cloned() {
            concerned.extend(inner.concerned(watch, &before));
            inner.tables[watch].remove(&here);
        }
        inner.tables[watch].progress = inner.tables[watch].progress.max(object.resource_version);
        inner.insert(watch, object);
        concerned
    }

    /// Removes a deleted object. Returns the jobs that may be concerned.
    pub(crate) fn remove(&self, watch: usize, object: &Object) -> BTreeSet<JobKey> {
        let mut inner = self.lock();
        let concerned = inner.concerned(watch, object);
        inner.tombstones.record(&concerned, object, Witness::Event);
        let here = (object.namespace.clone(), object.name.clone());
        inner.tables[watch].remove(&here);
        inner.tables[watch].progress = inner.tables[watch].progress.max(object.resource_version);
        concerned
    }

    /// Records that the watch has reached this version. Returns the jobs that expect a write that the watch has shown.
    pub(crate) fn bookmark(&self, watch: usize, version: u64) -> BTreeSet<JobKey> {
        let mut inner = self.lock();
        inner.tables[watch].progress = inner.tables[watch].progress.max(version);
        let table = &inner.tables[watch];
        let is_shown = |(key, writes): &(&JobKey, &Vec<(usize, Expected)>)| {
            writes.iter().any(|(at, expected)| *at == watch && table.shows(&key.namespace, expected))
        };
        inner.expected.iter().filter(is_shown).map(|(key, _)| key.clone()).collect()
    }

    /// Records that the API server does not serve this kind. If that is new and the kind is optional, returns all jobs.
    pub(crate) fn no_such_kind(&self, watch: usize) -> BTreeSet<JobKey> {
        let mut inner = self.lock();
        let first = inner.tables[watch].listed == Listed::NotYet;
        inner.tables[watch].listed = Listed::NoSuchKind;
        if first && inner.layout.watches()[watch].optional {
            inner.all_keys().into_iter().collect()
        } else {
            BTreeSet::new()
        }
    }

    /// Waits until a write shows that the kind of this watch, which was not served when it was last listed, is served.
    pub(crate) async fn is_served(&self, watch: usize) {
        let served = self.lock().served.get(watch).cloned();
        match served {
            Some(served) => served.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Returns the number of objects of each watch.
    #[must_use]
    pub fn sizes(&self) -> Vec<usize> {
        self.lock().tables.iter().map(|table| table.objects.len()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Stores an object. Drops a child whose controller is neither a job nor a batch/v1 Job.
    fn insert(&mut self, watch: usize, object: Object) {
        let is_job = matches!(object.held, Held::Job(_));
        if is_job || object.owner.as_ref().is_some_and(|owner| self.kind_of(owner).is_some() || is_batch_job(owner)) {
            self.tables[watch].insert(object);
        }
    }

    fn concerned(&self, watch: usize, object: &Object) -> BTreeSet<JobKey> {
        if let Purpose::Jobs(kind) = self.layout.watches()[watch].purpose {
            let (namespace, name) = (object.namespace.clone(), object.name.clone());
            return BTreeSet::from([JobKey { kind, namespace, name }]);
        }
        object.owner.as_ref().and_then(|owner| self.job_of(&object.namespace, owner)).into_iter().collect()
    }

    fn job_of(&self, namespace: &str, owner: &Owner) -> Option<JobKey> {
        if let Some(kind) = self.kind_of(owner) {
            return Some(JobKey { kind, namespace: namespace.into(), name: owner.name.clone() });
        }
        if !is_batch_job(owner) {
            return None;
        }
        let Some(job) = self.batch_job(namespace, owner) else {
            return self.job_named_before(namespace, &owner.name);
        };
        let owner = job.owner.as_ref()?;
        Some(JobKey { kind: self.kind_of(owner)?, namespace: namespace.into(), name: owner.name.clone() })
    }

    /// Returns the batch/v1 Job that this owner reference names, unless it is gone.
    fn batch_job(&self, namespace: &str, owner: &Owner) -> Option<&Object> {
        let here = (namespace.to_owned(), owner.name.clone());
        let all = self.layout.watches().iter().zip(&self.tables);
        let of_jobs = all.filter(|(watch, _)| watch.resource.kind == "Job");
        of_jobs.filter_map(|(_, table)| table.objects.get(&here)).find(|job| job.uid == owner.uid)
    }

    /// Returns the job that a deleted Job belonged to: the name of a Job is that of its job with a suffix.
    fn job_named_before(&self, namespace: &str, name: &str) -> Option<JobKey> {
        name.rmatch_indices('-').find_map(|(end, _)| {
            let here = (namespace.to_owned(), name[..end].to_owned());
            let (kind, _) = self.tables_of_jobs().find(|(_, table)| table.objects.contains_key(&here))?;
            Some(JobKey { kind, namespace: here.0, name: here.1 })
        })
    }

    fn kind_of(&self, owner: &Owner) -> Option<usize> {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        self.layout.kinds().iter().position(|served| served.kind.kind == owner.kind && served.kind.group == group)
    }

    /// Returns whether the watch has listed, or its kind is optional and not served.
    fn is_shown(&self, watch: usize) -> bool {
        let optional = self.layout.watches().get(watch).is_some_and(|watch| watch.optional);
        self.tables.get(watch).is_some_and(|table| match table.listed {
            Listed::Yes => true,
            Listed::NoSuchKind => optional,
            Listed::NotYet => false,
        })
    }

    /// Returns the tables of jobs, each with the place of its kind.
    fn tables_of_jobs(&self) -> impl Iterator<Item = (usize, &Table)> {
        let all = self.layout.watches().iter().zip(&self.tables);
        all.filter_map(|(watch, table)| match watch.purpose {
            Purpose::Jobs(kind) => Some((kind, table)),
            Purpose::Pods | Purpose::Children(_) => None,
        })
    }

    fn each_open_job(&self, mut see: impl FnMut((usize, &(String, String)), &Served, Ledger)) {
        for (kind, table) in self.tables_of_jobs() {
            let Some(served) = self.layout.kinds().get(kind) else { continue };
            for (here, object) in &table.objects {
                let Held::Job(job) = &object.held else { continue };
                let ledger = Ledger::read(&job.status(), &job.job().uid);
                if ledger.finished.is_none() {
                    see((kind, here), served, ledger);
                }
            }
        }
    }

    fn all_keys(&self) -> Vec<JobKey> {
        let keys = self.tables_of_jobs().flat_map(|(kind, table)| table.objects.keys().map(move |here| (kind, here)));
        keys.map(|(kind, (namespace, name))| JobKey { kind, namespace: namespace.clone(), name: name.clone() })
            .collect()
    }

    /// Returns the first digest named by a child of the job with this uid that `may_be` accepts.
    fn digest_of_children(&self, uid: &str, may_be: impl Fn(&str) -> bool) -> Option<String> {
        let mut owned = self.tables.iter().flat_map(|table| table.owned_by(uid));
        owned.find_map(|object| object.made_by.clone().filter(|digest| may_be(digest)))
    }

    /// Returns kinds and names that the job cannot use: of objects with another controller, such as children of an
    /// earlier job of this name, and of deleted Jobs whose pods still exist.
    fn taken(&self, needed: &[usize], namespace: &str, job_name: &str, uid: &str) -> BTreeSet<(String, String)> {
        let mut taken = BTreeSet::new();
        for at in needed.iter().skip(1) {
            let from = (namespace.to_owned(), job_name.to_owned());
            let named_alike = self.tables[*at].objects.range(from..);
            let named_alike = named_alike.take_while(|((ns, name), _)| ns == namespace && name.starts_with(job_name));
            for ((_, name), object) in named_alike {
                let ours = object.owner.as_ref().is_some_and(|owner| owner.uid == uid);
                if !ours {
                    taken.insert((self.layout.watches()[*at].resource.kind.clone(), name.clone()));
                }
                let of_a_job = object.owner.as_ref().filter(|owner| is_batch_job(owner));
                if let Some(owner) = of_a_job.filter(|owner| self.batch_job(namespace, owner).is_none()) {
                    taken.insert((owner.kind.clone(), owner.name.clone()));
                }
            }
        }
        taken
    }

    /// Adds to a ledger what was recorded for its job; forgets the records once the ledger holds all of them.
    fn recall_made(&mut self, key: &JobKey, ledger: &mut Ledger) {
        match self.made.get(key) {
            Some(known)
                if known.uid == ledger.uid
                    && !(known.made.is_subset(&ledger.made) && ledger.warned.has(&known.warned)) =>
            {
                ledger.made.extend(known.made.iter().cloned());
                ledger.warned.add(known.warned.generation, &known.warned.of);
            }
            _ => drop(self.made.remove(key)),
        }
    }

    /// Returns whether a watch of jobs or pods has not listed yet, so that ports in use may be unknown.
    fn has_ports_to_learn_of(&self) -> bool {
        let mut all = self.layout.watches().iter().zip(&self.tables);
        all.any(|(watch, table)| {
            table.listed == Listed::NotYet && matches!(watch.purpose, Purpose::Jobs(_) | Purpose::Pods)
        })
    }

    /// Reads the host ports in the ledgers of a kind, once; its jobs must have been listed.
    fn believe_claims(&mut self, kind: usize) {
        if self.claimed.insert(kind) {
            let claims = self.claims(kind);
            self.ports.believe(claims);
        }
    }

    fn claims(&self, kind: usize) -> Vec<Claim> {
        let tables = self.tables_of_jobs().filter(|(of, _)| *of == kind);
        let claim = |object: &Object| {
            let Held::Job(packed) = &object.held else { return None };
            let (job, status) = (packed.job(), packed.status());
            let ledger = status.pointer("/troupe/hostPorts").map(|_| Ledger::read(&status, &job.uid))?;
            let ports = ledger.host_ports.filter(|_| ledger.finished.is_none() || self.runs_pods_of(&job.uid))?;
            let key = JobKey { kind, namespace: job.namespace.clone(), name: job.name.clone() };
            let evident = self.runs_on(&job.uid, ports);
            Some(Claim { key, uid: job.uid.clone(), created: job.created, ports, evident })
        };
        tables.flat_map(|(_, table)| table.objects.values()).filter_map(claim).collect()
    }

    /// Releases the ports of earlier jobs of this name whose pods have ended.
    fn release_former(&mut self, key: &JobKey, uid: Option<&str>) {
        for former in self.ports.others(key, uid) {
            if !self.runs_pods_of(&former) {
                self.ports.release(key, &former);
            }
        }
    }

    /// Returns whether a live pod of the job with this uid is on a node and declares one of these ports.
    fn runs_on(&self, uid: &str, ports: HostPorts) -> bool {
        let owned = self.tables.iter().flat_map(|table| table.owned_by(uid));
        owned.into_iter().any(|object| {
            let is_there = matches!(&object.held, Held::Pod(pod) if !pod.phase.is_terminal() && !pod.node.is_empty());
            is_there && object.host_ports.iter().any(|port| ports.contains(*port))
        })
    }

    /// Returns whether a pod of the job with this uid has not ended.
    fn runs_pods_of(&self, uid: &str) -> bool {
        let owned = self.tables.iter().flat_map(|table| table.owned_by(uid));
        owned.into_iter().any(|object| matches!(&object.held, Held::Pod(pod) if !pod.phase.is_terminal()))
    }

    fn shows_our_writes(&mut self, key: &JobKey) -> bool {
        let Some(expected) = self.expected.get_mut(key) else { return true };
        let tables = &self.tables;
        expected.retain(|(table, expected)| !tables[*table].shows(&key.namespace, expected));
        let all = expected.is_empty();
        if all {
            self.expected.remove(key);
        }
        all
    }
}

/// Returns the observed job. A held job that is suspended, with nothing running, is planned like a new job.
fn seen(layout: &Layout, kind: usize, mut snapshot: Box<Snapshot>, held: Option<Fault>) -> Observed {
    let Some(why) = held else { return Observed::Ready(snapshot) };
    match layout.planner_of_new(kind, &snapshot.job) {
        Planner::Digest(digest) if is_at_rest(&snapshot) => {
            snapshot.digest = digest;
            Observed::Ready(snapshot)
        }
        _ => Observed::Held(snapshot, why),
    }
}

fn is_batch_job(owner: &Owner) -> bool {
    owner.kind == "Job" && owner.api_version == "batch/v1"
}

#[cfg(test)]
mod tests;
