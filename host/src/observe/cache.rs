//! The cache: the objects that all watches have shown, in one layout, and what can be read from them. Says of every
//! change which jobs it may concern.

use crate::{
    api::resource::Resource,
    job_key::{GroupKind, JobKey},
    observe::{
        departures::{Departure, Departures},
        kept::Kept,
        layout::{Layout, Purpose, Served, WatchId, WatchSpec},
        table::{Controller, Expected, Listed, Table},
        wire::{self, Held, Object, Owner, Packed},
    },
};
use decide::{
    Digest, gang,
    plan::group,
    snapshot::{Child, QUEUE_LABEL},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The name of a Job behind a role is that of its job, a dash, and the name of the role: a DNS label, which has 63 characters
/// and thus at most 31 dashes.
const MOST_DASHES: usize = 32;

/// The objects of all watches, by watch.
#[derive(Debug, Default)]
pub struct Cache {
    layout: Arc<Layout>,
    tables: BTreeMap<WatchId, Table>,
    kept: Kept,
    departures: Departures,
}

impl Cache {
    /// Returns the current layout.
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Changes the layout: a new watch gets a table, the table of a watch that has ended is dropped. Returns whether
    /// there are other watches than before.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Layout)) -> bool {
        change(Arc::make_mut(&mut self.layout));
        let watches = self.layout.watches();
        let mut is_other = false;
        for (_, ended) in self.tables.extract_if(.., |id, _| !watches.contains_key(id)) {
            is_other = true;
            ended.objects.values().for_each(|object| self.kept.release(object));
        }
        for id in watches.keys() {
            self.tables.entry(*id).or_insert_with(|| {
                is_other = true;
                Table::default()
            });
        }
        is_other
    }

    /// Keeps of no job a spec that has more bytes as JSON.
    pub(crate) fn limit_specs(&mut self, largest: usize) {
        self.kept.limit_specs(largest);
    }

    /// Leaves out of an object what is not kept of it, however much room its namespace has.
    pub(crate) fn trim(&self, object: &mut Object) {
        self.kept.trim(object);
    }

    /// Returns the table of a watch, unless the watch has ended.
    pub(crate) fn table(&self, watch: WatchId) -> Option<&Table> {
        self.tables.get(&watch)
    }

    /// Returns each watch with its table.
    pub(crate) fn tables(&self) -> &BTreeMap<WatchId, Table> {
        &self.tables
    }

    /// Replaces a watch's objects by a complete list as of this version, and returns the table as it was before.
    pub(crate) fn replace(&mut self, watch: WatchId, objects: Vec<Object>, version: u64) -> Option<Table> {
        let table = self.tables.get_mut(&watch)?;
        let progress = version.max(table.progress);
        let before = std::mem::take(table);
        (table.progress, table.listed, table.list) = (progress, Listed::Yes, version);
        before.objects.values().for_each(|object| self.kept.release(object));
        objects.into_iter().for_each(|object| self.insert(watch, object));
        Some(before)
    }

    /// Returns the pod with what only an earlier state of it shows: that it was deleted while it ran. None if it says all itself.
    pub(crate) fn with_what_is_known(&self, watch: WatchId, object: &Object) -> Option<Object> {
        let Held::Pod(pod) = &object.held else { return None };
        if !pod.terminating || pod.stopped {
            return None;
        }
        let before = self.table(watch)?.objects.get(&(object.namespace.clone(), object.name.clone()))?;
        let was_stopped = before.uid == object.uid && matches!(&before.held, Held::Pod(before) if before.stopped);
        was_stopped.then(|| {
            let mut object = object.clone();
            if let Held::Pod(pod) = &mut object.held {
                Arc::make_mut(pod).stopped = true;
            }
            object
        })
    }

    /// Stores an object that was added or changed, and returns it as it was before.
    pub(crate) fn upsert(&mut self, watch: WatchId, object: Object) -> Option<Object> {
        let before = self.take(watch, &object, object.resource_version);
        self.insert(watch, object);
        before
    }

    /// Removes a deleted object.
    pub(crate) fn remove(&mut self, watch: WatchId, object: &Object) {
        self.take(watch, object, object.resource_version);
        self.record_departure(object, object.resource_version);
    }

    /// Records that this object was gone at this version.
    pub(crate) fn record_departure(&mut self, object: &Object, version: u64) {
        self.departures.record(object, version);
    }

    fn take(&mut self, watch: WatchId, object: &Object, version: u64) -> Option<Object> {
        let table = self.tables.get_mut(&watch)?;
        table.progress = table.progress.max(version);
        let object = table.remove(&(object.namespace.clone(), object.name.clone()))?;
        self.kept.release(&object);
        Some(object)
    }

    /// Records that the watch has reached this version.
    pub(crate) fn progressed(&mut self, watch: WatchId, version: u64) {
        if let Some(table) = self.tables.get_mut(&watch) {
            table.progress = table.progress.max(version);
        }
    }

    /// Records that the API server does not serve the kind of this watch. If that is new and the kind is optional, its table
    /// is empty from now on and counts as shown; returns the table as it was before.
    pub(crate) fn no_such_kind(&mut self, watch: WatchId) -> Option<Table> {
        let is_optional = self.layout.watches().get(&watch).is_some_and(|watch| watch.optional);
        let table = self.tables.get_mut(&watch)?;
        if !is_optional || table.listed == Listed::NoSuchKind {
            table.listed = Listed::NoSuchKind;
            return None;
        }
        let before = std::mem::take(table);
        (table.progress, table.listed) = (before.progress, Listed::NoSuchKind);
        before.objects.values().for_each(|object| self.kept.release(object));
        Some(before)
    }

    /// Records that the host has no right to the kind of this watch. What it has listed before, it keeps to. Pods are
    /// awaited whatever is forbidden: the host knows nothing of any job without them.
    pub(crate) fn forbidden(&mut self, watch: WatchId) {
        let is_of_pods = self.layout.watches().get(&watch).is_some_and(|it| matches!(it.purpose, Purpose::Pods(_)));
        if let Some(table) = self.tables.get_mut(&watch).filter(|table| !is_of_pods && table.listed == Listed::NotYet) {
            table.listed = Listed::Forbidden;
        }
    }

    /// Stores an object, unless it is of nobody who matters.
    fn insert(&mut self, watch: WatchId, mut object: Object) {
        let purpose = self.layout.watches().get(&watch).map(|spec| &spec.purpose);
        let is_stored = purpose.is_some_and(|purpose| wire::is_stored(purpose, object.owner.as_deref()));
        if let Some(table) = self.tables.get_mut(&watch).filter(|_| is_stored) {
            self.kept.admit(&mut object);
            if let Some(earlier) = table.insert(object) {
                self.kept.release(&earlier);
            }
        }
    }

    /// Returns the job with this key, as its watch has shown it.
    pub(crate) fn job(&self, key: &JobKey) -> Option<&Object> {
        let table = self.table(self.layout.jobs_of(&key.kind)?)?;
        table.objects.get(&(key.namespace.clone(), key.name.clone()))
    }

    /// Returns the jobs that a change of this object may concern.
    pub(crate) fn concerned(&self, watch: WatchId, object: &Object) -> BTreeSet<JobKey> {
        match self.layout.watches().get(&watch).map(|watch| &watch.purpose) {
            Some(Purpose::Jobs(kind)) => BTreeSet::from([JobKey::new(kind, &object.namespace, &object.name)]),
            Some(Purpose::Pods(_) | Purpose::Children(_)) => {
                object.owner.as_ref().and_then(|owner| self.job_of(&object.namespace, owner)).into_iter().collect()
            }
            Some(Purpose::Dependents(_)) => {
                let pod = object.owner.as_ref().and_then(|owner| self.pod(&object.namespace, owner));
                let owner = pod.and_then(|pod| pod.owner.as_ref());
                owner.and_then(|owner| self.job_of(&object.namespace, owner)).into_iter().collect()
            }
            Some(Purpose::Classes(_)) => self.queued_jobs().collect(),
            None => BTreeSet::new(),
        }
    }

    fn job_of(&self, namespace: &str, owner: &Owner) -> Option<JobKey> {
        if let Some(kind) = self.kind_of(owner) {
            return Some(JobKey::new(kind, namespace, &owner.name));
        }
        if !owner.is_batch_job() {
            return None;
        }
        let Some(job) = self.batch_job(namespace, owner) else {
            return self.job_named_before(namespace, &owner.name);
        };
        let owner = job.owner.as_ref()?;
        Some(JobKey::new(self.kind_of(owner)?, namespace, &owner.name))
    }

    /// Returns the pod that this owner reference names, unless it is gone.
    fn pod(&self, namespace: &str, owner: &Owner) -> Option<&Object> {
        let here = (namespace.to_owned(), owner.name.clone());
        let of_pods = self.layout.watches().iter().filter(|(_, watch)| matches!(watch.purpose, Purpose::Pods(_)));
        let named = of_pods.filter_map(|(id, _)| self.table(*id)?.objects.get(&here));
        named.into_iter().find(|pod| pod.uid == owner.uid)
    }

    /// Returns the batch/v1 Job that this owner reference names, as any watch of Jobs still shows it.
    fn batch_job(&self, namespace: &str, owner: &Owner) -> Option<&Object> {
        let here = (namespace.to_owned(), owner.name.clone());
        let of_jobs = self.layout.watches().iter().filter(|(_, watch)| watch.resource.kind == "Job");
        let named = of_jobs.filter_map(|(id, _)| self.table(*id)?.objects.get(&here));
        named.into_iter().find(|job| job.uid == owner.uid)
    }

    /// Returns whether one of these watches shows the object that this owner reference names.
    fn is_shown_by(&self, watches: &[WatchId], namespace: &str, owner: &Owner) -> bool {
        let here = (namespace.to_owned(), owner.name.clone());
        let is_it = |id: &WatchId| self.table(*id)?.objects.get(&here).filter(|object| object.uid == owner.uid);
        watches.iter().any(|id| is_it(id).is_some())
    }

    /// Returns the job that a deleted Job belonged to: the name of a Job is that of its job with a suffix.
    fn job_named_before(&self, namespace: &str, name: &str) -> Option<JobKey> {
        name.rmatch_indices('-').take(MOST_DASHES).find_map(|(end, _)| {
            let here = (namespace.to_owned(), name[..end].to_owned());
            let (kind, _) = self.tables_of_jobs().find(|(_, table)| table.objects.contains_key(&here))?;
            Some(JobKey { kind: kind.clone(), namespace: here.0, name: here.1 })
        })
    }

    fn kind_of(&self, owner: &Owner) -> Option<&GroupKind> {
        let group = group(&owner.api_version);
        self.layout.kinds().keys().find(|kind| kind.kind() == owner.kind && kind.group() == group)
    }

    /// Returns whether the watch has listed, or its kind is optional and not served.
    pub(crate) fn is_shown(&self, watch: WatchId) -> bool {
        let is_optional = || self.layout.watches().get(&watch).is_some_and(|watch| watch.optional);
        self.table(watch).is_some_and(|table| match table.listed {
            Listed::Yes => true,
            Listed::NoSuchKind => is_optional(),
            Listed::NotYet | Listed::Forbidden => false,
        })
    }

    /// Returns the API versions of optional kinds of these watches that are not served, each with the version of the same
    /// kind that is.
    pub(crate) fn served_as(&self, watches: &[WatchId]) -> BTreeMap<String, String> {
        let of = |listed: Listed| {
            let has = move |id: &&WatchId| self.table(**id).is_some_and(|table| table.listed == listed);
            watches.iter().filter(has).filter_map(|id| Some(&self.layout.watches().get(id)?.resource))
        };
        let served = |lacking: &Resource| {
            let is_it = |one: &&Resource| (&one.group, &one.kind) == (&lacking.group, &lacking.kind);
            let instead = of(Listed::Yes).find(is_it)?;
            Some((lacking.api_version(), instead.api_version()))
        };
        of(Listed::NoSuchKind).filter_map(served).collect()
    }

    /// Returns whether the watch has shown a write in this namespace; a watch that has ended shows nothing more.
    pub(crate) fn shows(&self, watch: WatchId, namespace: &str, expected: &Expected) -> bool {
        self.table(watch).is_none_or(|table| table.shows(namespace, expected))
    }

    /// Returns whether a watch of jobs or pods has not listed yet. Nobody waits for kinds that the host may not list.
    pub(crate) fn awaits_jobs_or_pods(&self) -> bool {
        self.layout.watches().iter().any(|(id, watch)| {
            matches!(watch.purpose, Purpose::Jobs(_) | Purpose::Pods(_))
                && self.table(*id).is_some_and(|table| table.listed == Listed::NotYet)
        })
    }

    /// Returns whether the jobs of this kind have been listed.
    pub(crate) fn has_listed_jobs_of(&self, kind: &GroupKind) -> bool {
        let table = self.layout.jobs_of(kind).and_then(|watch| self.table(watch));
        table.is_some_and(|table| table.listed == Listed::Yes)
    }

    /// Returns the host ports that live pods of jobs on nodes declare, if there may be jobs that the host may not list. Of
    /// each namespace at most `most`: what pods declare is their user's word.
    pub(crate) fn ports_of_hidden_jobs(&self, most: usize) -> BTreeSet<u32> {
        let is_hidden = |(id, watch): (&WatchId, &WatchSpec)| {
            matches!(watch.purpose, Purpose::Jobs(_))
                && self.table(*id).is_some_and(|table| table.listed == Listed::Forbidden)
        };
        if !self.layout.watches().iter().any(is_hidden) {
            return BTreeSet::new();
        }
        let mut of_namespaces: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        let objects = self.tables.values().flat_map(|table| table.objects.values());
        for pod in objects.filter(|object| object.is_live_pod_on_node()) {
            let of_one = of_namespaces.entry(&pod.namespace).or_default();
            of_one.extend(pod.host_ports.iter().take(most.saturating_sub(of_one.len())));
        }
        of_namespaces.into_values().flatten().collect()
    }

    /// Returns the tables of jobs, each with its kind.
    pub fn tables_of_jobs(&self) -> impl Iterator<Item = (&GroupKind, &Table)> {
        self.layout.watches().iter().filter_map(|(id, watch)| match &watch.purpose {
            Purpose::Jobs(kind) => Some((kind, self.table(*id)?)),
            Purpose::Pods(_) | Purpose::Children(_) | Purpose::Dependents(_) | Purpose::Classes(_) => None,
        })
    }

    /// Returns the flavors and priority classes of the cluster.
    pub(crate) fn classes(&self) -> Vec<Arc<Child>> {
        let watches = self.layout.watches().iter().filter(|(_, watch)| matches!(watch.purpose, Purpose::Classes(_)));
        let objects = watches.filter_map(|(id, _)| self.table(*id)).flat_map(|table| table.objects.values());
        objects
            .filter_map(|object| if let Held::Child(class) = &object.held { Some(class.clone()) } else { None })
            .collect()
    }

    /// Returns the jobs that name a queue.
    fn queued_jobs(&self) -> impl Iterator<Item = JobKey> {
        self.tables_of_jobs().flat_map(|(kind, table)| {
            let is_queued = |object: &&Object| match &object.held {
                Held::Job(job) => job.job().labels.contains_key(QUEUE_LABEL),
                Held::Pod(_) | Held::Child(_) => false,
            };
            let queued = table.objects.values().filter(is_queued);
            queued.map(move |job| JobKey::new(kind, &job.namespace, &job.name))
        })
    }

    /// Returns the jobs that have not ended.
    pub(crate) fn open_jobs(&self) -> impl Iterator<Item = (JobKey, &Packed)> {
        self.open_jobs_where(|_| true)
    }

    /// Returns the jobs of the framework with this name that have not ended.
    pub(crate) fn open_jobs_of(&self, framework: &str) -> impl Iterator<Item = (JobKey, &Packed)> {
        self.open_jobs_where(move |served| served.framework.name == framework)
    }

    fn open_jobs_where(&self, is_wanted: impl Fn(&Served) -> bool) -> impl Iterator<Item = (JobKey, &Packed)> {
        let tables =
            self.tables_of_jobs().filter(move |(kind, _)| self.layout.kinds().get(kind).is_some_and(&is_wanted));
        let objects = tables.flat_map(|(kind, table)| table.objects.values().map(move |job| (kind, job)));
        objects.filter_map(|(kind, object)| {
            let Held::Job(job) = &object.held else { return None };
            let is_open = !job.recorded().has_ended;
            is_open.then(|| (JobKey::new(kind, &object.namespace, &object.name), &**job))
        })
    }

    /// Returns the keys of all jobs.
    pub(crate) fn keys(&self) -> impl Iterator<Item = JobKey> {
        let tables = self.tables_of_jobs();
        tables.flat_map(|(kind, table)| {
            table.objects.keys().map(move |(namespace, name)| JobKey::new(kind, namespace, name))
        })
    }

    /// Returns the children of this controller.
    pub(crate) fn owned_by(&self, controller: Controller<'_>) -> impl Iterator<Item = &Object> {
        self.tables.values().flat_map(move |table| table.owned_by(controller))
    }

    /// Returns whether the API server serves a kind that schedulers report on.
    pub(crate) fn has_reported_kind(&self) -> bool {
        self.reported_tables().any(|table| table.listed == Listed::Yes)
    }

    /// Returns the job of the child with this name and uid that its scheduler reports on, unless the child is gone.
    pub(crate) fn job_of_reported(&self, namespace: &str, name: &str, uid: &str) -> Option<JobKey> {
        let here = (namespace.to_owned(), name.to_owned());
        let mut named = self.reported_tables().filter_map(|table| table.objects.get(&here));
        let owner = named.find(|child| child.uid == uid)?.owner.as_ref()?;
        self.job_of(namespace, owner)
    }

    fn reported_tables(&self) -> impl Iterator<Item = &Table> {
        let is_reported = |watch: &WatchSpec| gang::is_reported(&watch.resource.api_version(), &watch.resource.kind);
        let watches = self.layout.watches().iter().filter(move |(_, watch)| is_reported(watch));
        watches.filter_map(|(id, _)| self.table(*id))
    }

    /// Returns the batch/v1 Jobs of this controller that have ended, as watches other than these show them.
    pub(crate) fn ended_elsewhere(
        &self,
        watches: &[WatchId],
        controller: Controller<'_>,
    ) -> impl Iterator<Item = &Arc<Child>> {
        let elsewhere = self.tables.iter().filter(|(id, _)| !watches.contains(id));
        let owned = elsewhere.flat_map(move |(_, table)| table.owned_by(controller));
        owned.filter_map(|object| match &object.held {
            Held::Child(child) if child.job_is_over() => Some(child),
            Held::Job(_) | Held::Pod(_) | Held::Child(_) => None,
        })
    }

    /// Returns a watch other than these that still shows a batch/v1 Job of this controller that has not ended, although the
    /// latest list of these lacks it, and the version of that list: what the other shows up to there may be how the Job ended.
    /// One that has reached the version shows a Job that these do not select.
    pub(crate) fn behind_list(&self, watches: &[WatchId], controller: Controller<'_>) -> Option<(WatchId, u64)> {
        let is_of_jobs =
            |id: &&WatchId| self.layout.watches().get(id).is_some_and(|watch| watch.resource.kind == "Job");
        let own: Vec<_> = watches.iter().filter(is_of_jobs).filter_map(|id| self.table(*id)).collect();
        let list = own.iter().map(|table| table.list).max()?;
        let is_lacking = |object: &Object| {
            let here = (object.namespace.clone(), object.name.clone());
            matches!(&object.held, Held::Child(child) if child.kind == "Job" && !child.job_is_over())
                && own.iter().all(|table| !table.objects.contains_key(&here))
        };
        let mut others = self.tables.iter().filter(|(id, table)| !watches.contains(id) && table.progress < list);
        others.find(|(_, table)| table.owned_by(controller).any(is_lacking)).map(|(id, _)| (*id, list))
    }

    /// Returns the first digest named by a child of this job that `may_be` accepts.
    pub(crate) fn digest_of_children(&self, job: Controller<'_>, may_be: impl Fn(&Digest) -> bool) -> Option<Digest> {
        let mut children = self.owned_by(job);
        children.find_map(|object| object.made_by.clone().filter(|digest| may_be(digest)))
    }

    /// Returns kinds and names that the job cannot use yet: of children of an earlier job of this name, and of deleted Jobs
    /// whose pods still exist, or may exist: those that were there when the Job went have not been shown yet. All are as these
    /// watches show them: the job waits for no other, which may be behind. What other jobs' children are named is not read: a
    /// namespace may have very many whose names begin with that of the job.
    pub(crate) fn taken(&self, children: &[WatchId], key: &JobKey, uid: &str) -> BTreeSet<(String, String)> {
        let JobKey { namespace, name: job, .. } = key;
        let mut taken = BTreeSet::new();
        for (id, watch) in children.iter().filter_map(|id| Some((id, self.layout.watches().get(id)?))) {
            let Some(table) = self.table(*id) else { continue };
            for owner in table.controllers_named(namespace, job).filter(|owner| owner.uid != uid) {
                let of_earlier = table.owned_by(Controller::job(key, &owner.uid));
                taken.extend(of_earlier.map(|object| (watch.resource.kind.clone(), object.name.clone())));
            }
            let of_jobs = table.controllers_named_alike(namespace, job).filter(|owner| owner.is_batch_job());
            let of_deleted = of_jobs.filter(|owner| !self.is_shown_by(children, namespace, owner));
            taken.extend(of_deleted.map(|owner| (owner.kind.clone(), owner.name.clone())));
        }
        let departed = self.departures.named_alike(namespace, job);
        let may_have_pods = departed.filter(|(gone, departure)| !self.shows_pods_of(children, *gone, departure));
        taken.extend(may_have_pods.map(|(gone, _)| ("Job".to_owned(), gone.name.to_owned())));
        taken
    }

    /// Returns whether those of these watches that are of pods have shown all that were there when this Job went.
    fn shows_pods_of(&self, watches: &[WatchId], gone: Controller<'_>, departure: &Departure) -> bool {
        departure.is_old() || self.tables_of_pods(watches).all(|table| departure.has_all_pods_in(gone, table))
    }

    /// Returns the tables of pods among these.
    pub(crate) fn tables_of_pods(&self, watches: &[WatchId]) -> impl Iterator<Item = &Table> {
        let is_of_pods = |watch: &WatchSpec| matches!(watch.purpose, Purpose::Pods(_));
        let of_pods = watches.iter().filter(move |id| self.layout.watches().get(id).is_some_and(is_of_pods));
        of_pods.filter_map(|id| self.table(*id))
    }

    /// Returns whether a pod of this job has not ended.
    pub(crate) fn runs_pods_of(&self, job: Controller<'_>) -> bool {
        let mut children = self.owned_by(job);
        children.any(|object| matches!(&object.held, Held::Pod(pod) if !pod.phase.is_terminal()))
    }
}
