//! What the watches have shown, and the one back edge inside the process: a job whose own writes have not been shown
//! yet is not observed. Never writes to the API.

use crate::{
    departed::Departed,
    host_ports,
    resource::Resource,
    wire::{Held, Object, Owner},
};
use decide::{
    Snapshot,
    ledger::{HostPorts, Ledger},
    plan::{Descriptor, JobKind},
    snapshot::{Child, Pod},
    status::Published,
};
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// Which job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    /// Place of its kind in [`Stores::kinds`].
    pub kind: usize,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// A kind of job with the framework that serves it.
#[derive(Debug, Clone)]
pub struct Served {
    /// The kind.
    pub kind: Arc<JobKind>,
    /// The framework.
    pub framework: Arc<Descriptor>,
    /// Digest of its plugin.
    pub digest: String,
}

/// What one watch is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// Jobs of the kind at this place.
    Jobs(usize),
    /// Pods.
    Pods,
    /// Other children; these pointers are kept of each.
    Children(Vec<String>),
}

/// A watch: which objects, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchSpec {
    /// The kind of object.
    pub resource: Resource,
    /// Only objects with these labels.
    pub selector: Option<String>,
    /// What for.
    pub purpose: Purpose,
    /// Jobs are served also where the API server does not have the kind.
    pub optional: bool,
}

/// What a write has to be seen as before the job is decided again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// The watch has come to this resource version.
    Version(u64),
    /// The object with this uid is gone or on its way.
    Going {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
}

/// A job at an instant, or why it is not decided.
#[derive(Debug)]
pub enum Observed {
    /// Here it is.
    Ready(Box<Snapshot>),
    /// A write of ours has not been shown yet, or a watch has not listed yet.
    Stale,
    /// There is no such job.
    Gone,
}

/// Everything the watches have shown.
#[derive(Debug)]
pub struct Stores {
    kinds: Vec<Served>,
    watches: Vec<WatchSpec>,
    /// By watch: its kind was not served and is now.
    served: Vec<Notify>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    tables: Vec<Table>,
    expected: BTreeMap<JobKey, Vec<(usize, Expected)>>,
    published: BTreeMap<JobKey, Published>,
    departed: Departed,
    /// What was made once and for all, by the uid of the job, until its ledger says so.
    made: BTreeMap<String, BTreeSet<String>>,
    /// Ports of the nodes by the uid of the job that has them.
    host_ports: BTreeMap<String, HostPorts>,
}

/// The objects of one watch.
#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<(String, String), Object>,
    by_owner: BTreeMap<String, BTreeSet<(String, String)>>,
    /// The newest resource version that an event, a bookmark or a list has shown.
    progress: u64,
    listed: Listed,
}

/// Whether a watch has shown its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listed {
    /// Not yet.
    #[default]
    NotYet,
    /// The API server does not serve the kind.
    NoSuchKind,
    /// It has.
    Yes,
}

impl Stores {
    /// Empty stores for these kinds of job; one watch for each kind of job and each (child kind, selector).
    #[must_use]
    pub fn new(kinds: Vec<Served>) -> Self {
        let mut watches: Vec<WatchSpec> = Vec::new();
        for (place, served) in kinds.iter().enumerate() {
            let jobs = WatchSpec {
                resource: (&*served.kind).into(),
                selector: None,
                purpose: Purpose::Jobs(place),
                optional: false,
            };
            let children = served.framework.children.iter().map(|kind| WatchSpec {
                resource: kind.into(),
                selector: kind.selector.clone(),
                purpose: if kind.kind == "Pod" { Purpose::Pods } else { Purpose::Children(kind.keep.clone()) },
                optional: kind.optional,
            });
            for watch in std::iter::once(jobs).chain(children) {
                if !watches.contains(&watch) {
                    watches.push(watch);
                }
            }
        }
        let tables = watches.iter().map(|_| Table::default()).collect();
        let served = watches.iter().map(|_| Notify::new()).collect();
        Self { kinds, watches, served, inner: Mutex::new(Inner { tables, ..Inner::default() }) }
    }

    /// The kinds of job that are served.
    #[must_use]
    pub fn kinds(&self) -> &[Served] {
        &self.kinds
    }

    /// The watches that feed these stores, by place.
    #[must_use]
    pub fn watches(&self) -> &[WatchSpec] {
        &self.watches
    }

    /// Whether each watch has listed.
    #[must_use]
    pub fn listed(&self) -> Vec<Listed> {
        self.lock().tables.iter().map(|table| table.listed).collect()
    }

    /// The jobs that are known, by kind, namespace and name.
    pub(crate) fn jobs(&self) -> Vec<JobKey> {
        let mut jobs = self.all_keys(&self.lock());
        jobs.sort();
        jobs
    }

    /// The job at this instant.
    #[must_use]
    pub fn observe(&self, key: &JobKey, now: Timestamp) -> Observed {
        let mut inner = self.lock();
        let Some(served) = self.kinds.get(key.kind) else { return Observed::Gone };
        let needed: Vec<usize> = self.tables_of(key.kind);
        if needed.iter().any(|at| inner.tables.get(*at).is_none_or(|table| !self.is_shown(*at, table))) {
            return Observed::Stale;
        }
        if !inner.shows_our_writes(key) {
            return Observed::Stale;
        }
        let here = (key.namespace.clone(), key.name.clone());
        let found = needed.first().and_then(|at| inner.tables.get(*at)?.objects.get(&here));
        let Some(Held::Job(job)) = found.map(|object| object.held.clone()) else {
            inner.expected.remove(key);
            inner.published.remove(key);
            inner.departed.forget(key);
            inner.forget_made();
            return Observed::Gone;
        };
        let mut pods: Vec<Arc<Pod>> = Vec::new();
        let mut children: Vec<Arc<Child>> = Vec::new();
        let mut collect = |uid: &str, children: &mut Vec<Arc<Child>>| {
            let tables = needed.iter().skip(1);
            for object in tables.flat_map(|at| inner.tables[*at].owned_by(uid)) {
                match &object.held {
                    Held::Pod(pod) => pods.push(pod.clone()),
                    Held::Child(child) => children.push(child.clone()),
                    Held::Job(_) => {}
                }
            }
            // A name that another object has by now is its.
            for held in inner.departed.owned_by(key, uid) {
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
        let taken = self.taken(&inner, &needed, &job.namespace, &job.name, &job.uid);
        let mut ledger = Ledger::read(&job.status, &job.uid);
        if let Some(made) = inner.made.get(&job.uid) {
            if made.is_subset(&ledger.made) {
                inner.made.remove(&job.uid);
            } else {
                ledger.made.extend(made.iter().cloned());
            }
        }
        Observed::Ready(Box::new(Snapshot {
            set_aside: None,
            now,
            kind: served.kind.clone(),
            ledger,
            digest: served.digest.clone(),
            job,
            pods,
            children,
            taken,
        }))
    }

    /// What this process last wrote to the job's status.
    #[must_use]
    pub fn published(&self, key: &JobKey) -> Option<Published> {
        self.lock().published.get(key).cloned()
    }

    /// Remembers what was written to the job's status.
    pub fn note_published(&self, key: &JobKey, published: Published) {
        self.lock().published.insert(key.clone(), published);
    }

    /// Remembers what was made once and for all of the job with this uid, until its ledger does.
    pub(crate) fn note_made(&self, uid: &str, made: &[String]) {
        if !made.is_empty() {
            self.lock().made.entry(uid.to_owned()).or_default().extend(made.iter().cloned());
        }
    }

    /// How the job's children ended is in its status: those that are gone need not be remembered. Says whether there
    /// were any; then the job is to be decided again without them.
    pub(crate) fn forget_departed(&self, key: &JobKey) -> bool {
        self.lock().departed.forget(key)
    }

    /// Sets ports of the nodes aside for the job with this uid, or tells again which it has. None while none are free, or
    /// while it is not known what other jobs have.
    pub(crate) fn set_aside(&self, uid: &str, count: u32, range: &RangeInclusive<u32>) -> Option<HostPorts> {
        let mut inner = self.lock();
        let of_jobs = |(watch, _): &(&WatchSpec, &Table)| matches!(watch.purpose, Purpose::Jobs(_));
        if self.watches.iter().zip(&inner.tables).filter(of_jobs).any(|(_, table)| table.listed == Listed::NotYet) {
            return None;
        }
        let mut live = BTreeMap::new();
        for (_, table) in self.watches.iter().zip(&inner.tables).filter(of_jobs) {
            for object in table.objects.values() {
                let Held::Job(job) = &object.held else { continue };
                let ledger = Ledger::read(&job.status, &job.uid);
                let given = ledger.host_ports.or_else(|| inner.host_ports.get(&job.uid).copied());
                let has = given.filter(|_| ledger.finished.is_none() || inner.runs_pods_of(&job.uid));
                live.extend(has.map(|ports| (job.uid.clone(), ports)));
            }
        }
        let known = std::mem::take(&mut inner.host_ports);
        live.extend(known.into_iter().filter(|(uid, _)| inner.runs_pods_of(uid)));
        if let Some(ports) = live.get(uid) {
            let ports = *ports;
            inner.host_ports = live;
            return Some(ports);
        }
        let free = host_ports::free(range, count, live.values().copied().collect());
        live.extend(free.map(|ports| (uid.to_owned(), ports)));
        inner.host_ports = live;
        free
    }

    /// The job is not observed before its watch of this resource has shown the write.
    pub fn expect(&self, key: &JobKey, api_version: &str, kind: &str, expected: Expected) {
        let of_kind = |at: &usize| {
            let resource = &self.watches[*at].resource;
            resource.kind == kind && resource.api_version() == api_version
        };
        // A kind that is not watched (Secret, Event) is never expected.
        if let Some(table) = self.tables_of(key.kind).into_iter().find(of_kind) {
            if self.lock().tables[table].listed == Listed::NoSuchKind {
                self.served[table].notify_one();
            }
            self.lock().expected.entry(key.clone()).or_default().push((table, expected));
        }
    }

    /// A list has shown all objects there are, as of this version. Returns the jobs that this may concern.
    pub(crate) fn replace(&self, watch: usize, objects: Vec<Object>, version: u64) -> BTreeSet<JobKey> {
        let mut inner = self.lock();
        let mut concerned = BTreeSet::new();
        let old = std::mem::take(&mut inner.tables[watch]);
        for object in objects {
            let here = (object.namespace.clone(), object.name.clone());
            let same = old.objects.get(&here).is_some_and(|before| *before == object);
            if !same {
                concerned.extend(self.concerned(&inner, watch, &object));
            }
            self.insert(&mut inner, watch, object);
        }
        for (here, object) in &old.objects {
            if !inner.tables[watch].objects.contains_key(here) {
                let of_object = self.concerned(&inner, watch, object);
                inner.departed.note(&of_object, object);
                concerned.extend(of_object);
            }
        }
        let table = &mut inner.tables[watch];
        table.progress = version.max(old.progress);
        table.listed = Listed::Yes;
        let waiting: Vec<_> = inner.expected.keys().cloned().collect();
        concerned.extend(waiting);
        if old.listed != Listed::Yes {
            concerned.extend(self.all_keys(&inner));
        }
        concerned
    }

    /// An object was added or changed. Returns the jobs that this may concern.
    pub(crate) fn upsert(&self, watch: usize, object: Object) -> BTreeSet<JobKey> {
        let mut inner = self.lock();
        let here = (object.namespace.clone(), object.name.clone());
        let mut concerned = self.concerned(&inner, watch, &object);
        if let Some(before) = inner.tables[watch].objects.get(&here).cloned() {
            concerned.extend(self.concerned(&inner, watch, &before));
            inner.tables[watch].remove(&here);
        }
        inner.tables[watch].progress = inner.tables[watch].progress.max(object.resource_version);
        self.insert(&mut inner, watch, object);
        concerned
    }

    /// An object is gone. Returns the jobs that this may concern.
    pub(crate) fn remove(&self, watch: usize, object: &Object) -> BTreeSet<JobKey> {
        let mut inner = self.lock();
        let concerned = self.concerned(&inner, watch, object);
        inner.departed.note(&concerned, object);
        let here = (object.namespace.clone(), object.name.clone());
        inner.tables[watch].remove(&here);
        inner.tables[watch].progress = inner.tables[watch].progress.max(object.resource_version);
        concerned
    }

    /// The watch has come to this version. Returns the jobs that waited for one of their writes.
    pub(crate) fn bookmark(&self, watch: usize, version: u64) -> BTreeSet<JobKey> {
        let mut inner = self.lock();
        inner.tables[watch].progress = inner.tables[watch].progress.max(version);
        inner.expected.keys().cloned().collect()
    }

    /// The API server does not serve the kind of this watch. Returns the jobs that are served without it.
    pub(crate) fn no_such_kind(&self, watch: usize) -> BTreeSet<JobKey> {
        let mut inner = self.lock();
        let first = inner.tables[watch].listed == Listed::NotYet;
        inner.tables[watch].listed = Listed::NoSuchKind;
        if first && self.watches[watch].optional {
            self.all_keys(&inner).into_iter().collect()
        } else {
            BTreeSet::new()
        }
    }

    /// Returns when an object of a kind was written that was not served when it was listed last.
    pub(crate) async fn is_served(&self, watch: usize) {
        match self.served.get(watch) {
            Some(served) => served.notified().await,
            None => std::future::pending().await,
        }
    }

    /// How many objects each watch holds.
    #[must_use]
    pub fn sizes(&self) -> Vec<usize> {
        self.lock().tables.iter().map(|table| table.objects.len()).collect()
    }

    /// The tables that jobs of a kind need: their own first.
    fn tables_of(&self, kind: usize) -> Vec<usize> {
        let Some(served) = self.kinds.get(kind) else { return vec![] };
        let own = self.watches.iter().position(|watch| watch.purpose == Purpose::Jobs(kind));
        let children = served.framework.children.iter().filter_map(|child| {
            let resource = Resource::from(child);
            self.watches.iter().position(|watch| {
                watch.resource == resource
                    && watch.selector == child.selector
                    && match &watch.purpose {
                        Purpose::Jobs(_) => false,
                        Purpose::Pods => child.kind == "Pod",
                        Purpose::Children(keep) => *keep == child.keep,
                    }
            })
        });
        own.into_iter().chain(children).collect()
    }

    /// Objects without a controller of ours are dropped here.
    fn insert(&self, inner: &mut Inner, watch: usize, object: Object) {
        let is_job = matches!(object.held, Held::Job(_));
        if is_job || object.owner.as_ref().is_some_and(|owner| self.kind_of(owner).is_some() || is_batch_job(owner)) {
            inner.tables[watch].insert(object);
        }
    }

    fn concerned(&self, inner: &Inner, watch: usize, object: &Object) -> BTreeSet<JobKey> {
        if let Purpose::Jobs(kind) = self.watches[watch].purpose {
            let (namespace, name) = (object.namespace.clone(), object.name.clone());
            return BTreeSet::from([JobKey { kind, namespace, name }]);
        }
        object.owner.as_ref().and_then(|owner| self.job_of(inner, &object.namespace, owner)).into_iter().collect()
    }

    fn job_of(&self, inner: &Inner, namespace: &str, owner: &Owner) -> Option<JobKey> {
        if let Some(kind) = self.kind_of(owner) {
            return Some(JobKey { kind, namespace: namespace.into(), name: owner.name.clone() });
        }
        if !is_batch_job(owner) {
            return None;
        }
        let here = (namespace.to_owned(), owner.name.clone());
        let of_jobs = self.watches.iter().zip(&inner.tables).filter(|(watch, _)| watch.resource.kind == "Job");
        let job = of_jobs.filter_map(|(_, table)| table.objects.get(&here)).find(|job| job.uid == owner.uid)?;
        let owner = job.owner.as_ref()?;
        Some(JobKey { kind: self.kind_of(owner)?, namespace: namespace.into(), name: owner.name.clone() })
    }

    fn kind_of(&self, owner: &Owner) -> Option<usize> {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        self.kinds.iter().position(|served| served.kind.kind == owner.kind && served.kind.group == group)
    }

    /// The watch has shown its objects, or jobs do without.
    fn is_shown(&self, watch: usize, table: &Table) -> bool {
        table.listed == Listed::Yes || (table.listed == Listed::NoSuchKind && self.watches[watch].optional)
    }

    fn all_keys(&self, inner: &Inner) -> Vec<JobKey> {
        let of_jobs = self.watches.iter().zip(&inner.tables).filter_map(|(watch, table)| match watch.purpose {
            Purpose::Jobs(kind) => Some((kind, table)),
            Purpose::Pods | Purpose::Children(_) => None,
        });
        of_jobs
            .flat_map(|(kind, table)| {
                let keys = table.objects.keys();
                keys.map(move |(namespace, name)| JobKey { kind, namespace: namespace.clone(), name: name.clone() })
            })
            .collect()
    }

    /// Names that children of an earlier job of this name still have.
    fn taken(
        &self,
        inner: &Inner,
        needed: &[usize],
        namespace: &str,
        job_name: &str,
        uid: &str,
    ) -> BTreeSet<(String, String)> {
        let mut taken = BTreeSet::new();
        for at in needed.iter().skip(1) {
            let from = (namespace.to_owned(), job_name.to_owned());
            let named_alike = inner.tables[*at].objects.range(from..);
            let named_alike = named_alike.take_while(|((ns, name), _)| ns == namespace && name.starts_with(job_name));
            for ((_, name), object) in named_alike {
                let ours = object.owner.as_ref().is_some_and(|owner| owner.uid == uid);
                if !ours {
                    taken.insert((self.watches[*at].resource.kind.clone(), name.clone()));
                }
            }
        }
        taken
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Forgets what was made of jobs that are gone.
    fn forget_made(&mut self) {
        let tables = &self.tables;
        self.made.retain(|uid, _| tables.iter().any(|table| table.objects.values().any(|object| object.uid == *uid)));
    }

    /// A pod of the job with this uid has not ended.
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

impl Table {
    fn shows(&self, namespace: &str, expected: &Expected) -> bool {
        match expected {
            Expected::Version(version) => self.progress >= *version,
            Expected::Going { name, uid } => {
                let there = self.objects.get(&(namespace.to_owned(), name.clone()));
                there.is_none_or(|object| object.uid != *uid || is_going(object))
            }
        }
    }

    fn insert(&mut self, object: Object) {
        let here = (object.namespace.clone(), object.name.clone());
        if let Some(owner) = &object.owner {
            self.by_owner.entry(owner.uid.clone()).or_default().insert(here.clone());
        }
        self.objects.insert(here, object);
    }

    fn remove(&mut self, here: &(String, String)) {
        let Some(object) = self.objects.remove(here) else { return };
        if let Some(owner) = object.owner
            && let Some(names) = self.by_owner.get_mut(&owner.uid)
        {
            names.remove(here);
            if names.is_empty() {
                self.by_owner.remove(&owner.uid);
            }
        }
    }

    fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Object> {
        self.by_owner.get(uid).into_iter().flatten().filter_map(|here| self.objects.get(here))
    }
}

fn is_batch_job(owner: &Owner) -> bool {
    owner.kind == "Job" && owner.api_version == "batch/v1"
}

fn is_going(object: &Object) -> bool {
    match &object.held {
        Held::Job(job) => job.deleting,
        Held::Pod(pod) => pod.terminating,
        Held::Child(child) => child.terminating,
    }
}
