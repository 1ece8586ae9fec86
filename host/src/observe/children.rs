//! The pods and the other children of one job, as the watches have shown them, with its tombstones.

use crate::{
    job_key::JobKey,
    observe::{
        cache::Cache,
        layout::{Purpose, WatchId},
        tombstones::Tombstones,
        wire::Held,
    },
};
use decide::{
    plan::FieldError,
    snapshot::{Child, Dependent, Pod},
    workload::WORKLOADS,
};
use std::sync::Arc;

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
        found.add(cache, watches, tombstones, key, uid);
        let jobs = found.others.iter().filter(|child| child.kind == "Job");
        let jobs: Vec<_> = jobs.map(|child| child.uid.clone()).collect();
        let own = found.others.len();
        for uid in &jobs {
            found.add(cache, watches, tombstones, key, uid);
        }
        found.others.truncate(own);
        found.add_dependents(cache, watches, &key.namespace);
        found.pods.sort_by(|a, b| a.name.cmp(&b.name));
        found.others.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
        found
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
            for object in tables.iter().flat_map(|table| table.owned_by(namespace, &pod.uid)) {
                if let Held::Child(child) = &object.held {
                    self.unreadable = self.unreadable.take().or_else(|| object.unreadable.clone());
                    self.dependents.push(Dependent { pod: pod.name.clone(), object: child.clone() });
                }
            }
        }
        let order = |dependent: &Dependent| (dependent.object.kind.clone(), dependent.object.name.clone());
        self.dependents.sort_by_cached_key(order);
    }

    fn add(&mut self, cache: &Cache, watches: &[WatchId], tombstones: &Tombstones, key: &JobKey, uid: &str) {
        let tables = watches.iter().filter_map(|id| cache.table(*id));
        for object in tables.flat_map(|table| table.owned_by(&key.namespace, uid)) {
            self.unreadable = self.unreadable.take().or_else(|| object.unreadable.clone());
            match &object.held {
                Held::Pod(pod) => self.pods.push(pod.clone()),
                Held::Child(child) => self.others.push(child.clone()),
                Held::Job(_) => {}
            }
        }
        for held in tombstones.owned_by(key, watches, uid) {
            match held {
                Held::Pod(pod) => {
                    let live = self.pods.iter_mut().find(|other| other.name == pod.name);
                    let missing = bury(live, pod, |live| live.uid == pod.uid && !live.phase.is_terminal());
                    self.pods.extend(missing);
                }
                Held::Child(child) => {
                    let missing = bury(self.named(child), child, |live| live.uid == child.uid && !live.job_is_over());
                    self.others.extend(missing);
                }
                Held::Job(_) => {}
            }
        }
        // A list does not show how what it lacks has ended. Until another watch shows the deletion, too, it has no tombstone.
        for over in cache.ended_elsewhere(watches, &key.namespace, uid) {
            if self.named(over).is_none() {
                self.others.push(Arc::new(Child { terminating: true, ..Child::clone(over) }));
            }
        }
    }

    /// Returns the child of this one's kind and name.
    fn named(&mut self, child: &Child) -> Option<&mut Arc<Child>> {
        self.others.iter_mut().find(|other| (&other.kind, &other.name) == (&child.kind, &child.name))
    }
}

/// Returns the tombstone if no object has its name. If a live object reuses the name, ignores the tombstone. If it is the
/// same object without its end, its watch is behind another's: the tombstone takes its place.
fn bury<T>(known: Option<&mut Arc<T>>, tombstone: &Arc<T>, is_behind: impl Fn(&T) -> bool) -> Option<Arc<T>> {
    let Some(known) = known else { return Some(tombstone.clone()) };
    if is_behind(known) {
        *known = tombstone.clone();
    }
    None
}
