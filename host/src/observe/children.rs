//! The pods and the other children of one job, as the watches have shown them, with its tombstones.

use crate::{
    job_key::JobKey,
    observe::{
        cache::Cache,
        layout::{Purpose, WatchId},
        table::Controller,
        tombstones::{Buried, Tombstones},
        wire::Held,
    },
};
use decide::{
    plan::FieldError,
    snapshot::{Child, Dependent, Pod},
    weight,
    workload::WORKLOADS,
};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

/// The fields that are kept of a job's children take at most so many bytes, as estimated: a pass shows them all to the
/// plugin, and is recorded with them.
const MOST_KEPT: usize = 16 << 20;

/// The fields of a job's Jobs have room of their own: the host makes Jobs and waits for their ends, so that other children
/// must not take their room.
const MOST_KEPT_OF_JOBS: usize = 64 << 20;

/// The children of a job, by name.
pub(crate) struct Children {
    pub(crate) pods: Vec<Arc<Pod>>,
    pub(crate) others: Vec<Arc<Child>>,
    /// What the pods control.
    pub(crate) dependents: Vec<Dependent>,
    /// The first error in the text of one of them.
    pub(crate) unreadable: Option<FieldError>,
}

impl Children {
    /// Returns the children of the job with this uid in these watches: its own, and the pods of its batch/v1 Jobs.
    pub(crate) fn of(cache: &Cache, watches: &[WatchId], tombstones: &Tombstones, key: &JobKey, uid: &str) -> Self {
        let mut found = Self { pods: Vec::new(), others: Vec::new(), dependents: Vec::new(), unreadable: None };
        let buried = tombstones.of(key, watches);
        let mut pods = Places::default();
        found.add_own(cache, watches, &buried, Controller::job(key, uid), &mut pods);
        found.add_pods_of_jobs(cache, watches, &buried, &key.namespace, &mut pods);
        found.add_dependents(cache, watches, &key.namespace);
        found.pods.sort_by(|a, b| a.name.cmp(&b.name));
        found.others.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
        found
    }

    /// Leaves out the fields of what comes after [`MOST_KEPT`] bytes, or [`MOST_KEPT_OF_JOBS`], and reports the first such
    /// object.
    pub(crate) fn bound(&mut self) {
        let (mut left, mut left_of_jobs) = (MOST_KEPT, MOST_KEPT_OF_JOBS);
        let of_pods = self.dependents.iter_mut().map(|dependent| &mut dependent.object);
        for child in self.others.iter_mut().chain(of_pods).filter(|child| !child.fields.is_empty()) {
            let (left, most) =
                if child.kind == "Job" { (&mut left_of_jobs, MOST_KEPT_OF_JOBS) } else { (&mut left, MOST_KEPT) };
            *left = left.saturating_sub(weight::child(child));
            if *left == 0 {
                self.unreadable.get_or_insert_with(|| too_much(child, most));
                *child = Arc::new(without_fields(child));
            }
        }
    }

    /// Takes the Workloads out.
    pub(crate) fn take_workloads(&mut self) -> Vec<Arc<Child>> {
        let is_workload =
            |child: &mut Arc<Child>| child.kind == WORKLOADS.kind && child.api_version == WORKLOADS.api_version;
        self.others.extract_if(.., is_workload).collect()
    }

    /// Adds what the pods, which are in this namespace, control, in the order of kinds and names.
    fn add_dependents(&mut self, cache: &Cache, watches: &[WatchId], namespace: &str) {
        let is_of_pods = |id: &&WatchId| {
            cache.layout().watches().get(id).is_some_and(|watch| matches!(watch.purpose, Purpose::Dependents(_)))
        };
        let tables: Vec<_> = watches.iter().filter(is_of_pods).filter_map(|id| cache.table(*id)).collect();
        for pod in self.pods.iter().filter(|_| !tables.is_empty()) {
            let owner = Controller { namespace, name: &pod.name, uid: &pod.uid };
            for object in tables.iter().flat_map(|table| table.owned_by(owner)) {
                if let Held::Child(child) = &object.held {
                    self.unreadable = self.unreadable.take().or_else(|| object.unreadable.clone());
                    self.dependents.push(Dependent { pod: pod.name.clone(), object: child.clone() });
                }
            }
        }
        let order = |dependent: &Dependent| (dependent.object.kind.clone(), dependent.object.name.clone());
        self.dependents.sort_by_cached_key(order);
    }

    /// Adds what the job itself controls.
    fn add_own(
        &mut self,
        cache: &Cache,
        watches: &[WatchId],
        buried: &Buried<'_>,
        job: Controller<'_>,
        of_pods: &mut Places,
    ) {
        let tables = watches.iter().filter_map(|id| cache.table(*id));
        for object in tables.flat_map(|table| table.owned_by(job)) {
            self.unreadable = self.unreadable.take().or_else(|| object.unreadable.clone());
            match &object.held {
                Held::Pod(pod) => self.pods.push(pod.clone()),
                Held::Child(child) => self.others.push(child.clone()),
                Held::Job(_) => {}
            }
        }
        let mut of_others = Places::default();
        for held in buried.get(job.uid).into_iter().flatten() {
            match held {
                Held::Pod(pod) => self.bury(pod, of_pods),
                Held::Child(child) => {
                    let is_behind = |live: &Child| live.uid == child.uid && !live.job_is_over();
                    of_others.bury(&mut self.others, child, is_behind, || child.clone());
                }
                Held::Job(_) => {}
            }
        }
        // A list does not show how what it lacks has ended. Until another watch shows the deletion, too, it has no tombstone.
        for over in cache.ended_elsewhere(watches, job) {
            let tombstone = || Arc::new(Child { terminating: true, ..Child::clone(over) });
            of_others.bury(&mut self.others, over, |_| false, tombstone);
        }
    }

    /// Adds the pods of the job's batch/v1 Jobs.
    fn add_pods_of_jobs(
        &mut self,
        cache: &Cache,
        watches: &[WatchId],
        buried: &Buried<'_>,
        namespace: &str,
        of_pods: &mut Places,
    ) {
        let jobs: Vec<_> = self.others.iter().filter(|child| child.kind == "Job").cloned().collect();
        let tables: Vec<_> = cache.tables_of_pods(watches).collect();
        for job in &jobs {
            let owner = Controller { namespace, name: &job.name, uid: &job.uid };
            for object in tables.iter().flat_map(|table| table.owned_by(owner)) {
                self.unreadable = self.unreadable.take().or_else(|| object.unreadable.clone());
                if let Held::Pod(pod) = &object.held {
                    self.pods.push(pod.clone());
                }
            }
            for held in buried.get(&*job.uid).into_iter().flatten() {
                if let Held::Pod(pod) = held {
                    self.bury(pod, of_pods);
                }
            }
        }
    }

    fn bury(&mut self, pod: &Arc<Pod>, of_pods: &mut Places) {
        let is_behind = |live: &Pod| live.uid == pod.uid && !live.phase.is_terminal();
        of_pods.bury(&mut self.pods, pod, is_behind, || pod.clone());
    }
}

/// Returns the error of the first child that there is no room for.
fn too_much(child: &Child, most: usize) -> FieldError {
    let most = most >> 20;
    let message =
        format!("the objects of the job have more than {most} MiB of data that its plugin reads: delete some");
    FieldError { path: format!("{} {}", child.kind, child.name), message }
}

/// Returns the child with nothing kept of it.
fn without_fields(child: &Child) -> Child {
    Child {
        api_version: child.api_version.clone(),
        kind: child.kind.clone(),
        name: child.name.clone(),
        uid: child.uid.clone(),
        resource_version: child.resource_version.clone(),
        terminating: child.terminating,
        fields: BTreeMap::new(),
    }
}

/// The places of children of one form by kind and name, once there is a tombstone.
#[derive(Default)]
struct Places {
    by_name: BTreeMap<(String, String), usize>,
    /// So many of the children are among them.
    known: usize,
}

/// What has a name that no other of its kind has.
trait Named {
    fn kind_and_name(&self) -> (String, String);
}

impl Named for Pod {
    fn kind_and_name(&self) -> (String, String) {
        (String::new(), self.name.clone())
    }
}

impl Named for Child {
    fn kind_and_name(&self) -> (String, String) {
        (self.kind.clone(), self.name.clone())
    }
}

impl Places {
    /// Adds a tombstone if no child has its name. If a live child reuses the name, ignores the tombstone. If it is the same
    /// object without its end, its watch is behind another's: the tombstone takes its place.
    fn bury<T: Named>(
        &mut self,
        children: &mut Vec<Arc<T>>,
        of: &T,
        is_behind: impl Fn(&T) -> bool,
        tombstone: impl FnOnce() -> Arc<T>,
    ) {
        for (place, child) in children.iter().enumerate().skip(self.known) {
            // Two watches may show the same object.
            self.by_name.entry(child.kind_and_name()).or_insert(place);
        }
        match self.by_name.entry(of.kind_and_name()) {
            Entry::Vacant(place) => {
                place.insert(children.len());
                children.push(tombstone());
            }
            Entry::Occupied(place) => {
                let known = &mut children[*place.get()];
                if is_behind(known) {
                    *known = tombstone();
                }
            }
        }
        self.known = children.len();
    }
}
