//! The layout: kinds of job that are served, the digests that plan them, and the watches that they need.

mod route;
mod unserved;

use crate::{
    api::resource::Resource,
    job_key::GroupKind,
    observe::{
        accepted::{Acceptance, Accepted},
        places::Places,
    },
};
use decide::{
    Digest, RecordedDigest,
    ledger::{Finished, Ledger},
    plan::{ChildKind, Descriptor, Fault, JobKind, OwnedBy},
    snapshot::Job,
    workload::{CLASSES, Class, WORKLOADS},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};
use unserved::{describes, unplanned};

pub use route::Route;
pub use unserved::Unserved;

/// A kind of job with the framework that serves it.
#[derive(Debug, Clone)]
pub struct Served {
    /// The kind, as the active digest describes it.
    pub kind: Arc<JobKind>,
    /// The framework, as the active digest describes it.
    pub framework: Arc<Descriptor>,
    /// The digests for jobs that have none yet.
    pub route: Route,
    /// Why the kind is watched if no plugin ever served it. Then its jobs report that, and nothing else that the refused
    /// plugin describes counts.
    pub unserved: Option<Unserved>,
}

/// The digest that plans a job, or why none does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Planner {
    /// This digest.
    Digest(Digest),
    /// This digest, which is being loaded.
    Loading(Digest),
    /// None, for this reason, although the job belongs to this digest, if to any.
    Held(Option<Digest>, Fault),
    /// None: the job has ended, and its ledger names no digest that may plan its kind.
    Nobody,
    /// None: the Plugin that would serve its kind was refused, and another controller writes the job's status.
    Another,
}

/// What is known of a digest for jobs of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DigestState<'a> {
    /// The digest is loaded and plans these jobs.
    Plans,
    /// The digest can be loaded, or it is not known yet whether it can.
    Absent,
    /// The bytes of the digest cannot be loaded, for this reason.
    Lost(&'a str),
    /// Nothing says that the host ever accepted the digest.
    Stranger,
    /// The digest counts as none: it serves other kinds, or is not loaded and the host archives no bytes.
    Ignored,
}

impl Planner {
    fn lost(digest: Option<Digest>, why: &str) -> Self {
        Self::Held(digest.clone(), Fault::Missing { digest, why: why.to_owned() })
    }
}

/// The purpose of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// Jobs of this kind.
    Jobs(GroupKind),
    /// Pods. Of each, the values at these JSON pointers are kept beside what the host reads itself.
    Pods(Places),
    /// Other children. Of each, only the values at these JSON pointers are kept.
    Children(Places),
    /// Objects whose controller is a pod of a job, kept likewise.
    Dependents(Places),
    /// Objects of the cluster that Workloads refer to, kept likewise.
    Classes(Places),
}

/// The number of a watch, which no other watch gets for as long as the host runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId(pub(crate) u64);

/// A watch: which objects, and for which purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchSpec {
    /// The kind of object.
    pub resource: Resource,
    /// Label selector; `None` selects all objects.
    pub selector: Option<String>,
    /// The purpose.
    pub purpose: Purpose,
    /// Whether jobs are served even if the API server does not serve this kind.
    pub optional: bool,
}

/// The part of a loaded plugin that watches and snapshots need.
#[derive(Debug, Clone)]
struct Revision {
    descriptor: Arc<Descriptor>,
    kinds: Vec<Arc<JobKind>>,
    /// Whether it may plan jobs; else it is a candidate, which is asked and never acts.
    plans: bool,
}

impl Revision {
    fn kind(&self, served: &JobKind) -> Option<&Arc<JobKind>> {
        self.kinds.iter().find(|kind| kind.is_same(served))
    }
}

/// Which kinds are served, by which digests, and which watches that takes.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    kinds: BTreeMap<GroupKind, Served>,
    watches: BTreeMap<WatchId, WatchSpec>,
    /// The number of watches that there have been.
    numbered: u64,
    revisions: BTreeMap<Digest, Revision>,
    /// Digests whose bytes cannot be loaded, and why.
    lost: BTreeMap<Digest, String>,
    /// Digests that plan no new job until their bytes are archived, and why archiving fails, once it took several
    /// attempts.
    unarchived: BTreeMap<Digest, Option<String>>,
    /// The accepted digests, if the host archives the bytes of each digest that plans a job. Without it a digest that
    /// is not loaded counts as none.
    accepted: Option<Accepted>,
}

impl Layout {
    /// Returns the kinds of job that are served.
    #[must_use]
    pub fn kinds(&self) -> &BTreeMap<GroupKind, Served> {
        &self.kinds
    }

    /// Returns the watches that feed the stores.
    #[must_use]
    pub fn watches(&self) -> &BTreeMap<WatchId, WatchSpec> {
        &self.watches
    }

    /// Returns the descriptor of the plugin with this digest, if it is loaded.
    #[must_use]
    pub fn descriptor(&self, digest: &Digest) -> Option<&Arc<Descriptor>> {
        self.revisions.get(digest).map(|revision| &revision.descriptor)
    }

    /// Returns whether the plugin with this digest is loaded and plans jobs; a candidate may be loaded and plan none.
    pub(crate) fn plans(&self, digest: &Digest) -> bool {
        self.revisions.get(digest).is_some_and(|revision| revision.plans)
    }

    /// Returns the framework of a kind as the plugin with this digest describes it, else as the active one does.
    #[must_use]
    pub fn framework(&self, kind: &GroupKind, digest: Option<&Digest>) -> Option<&Arc<Descriptor>> {
        let served = self.kinds.get(kind)?;
        let own = digest.and_then(|digest| self.revisions.get(digest)).filter(|by| by.kind(&served.kind).is_some());
        Some(own.map_or(&served.framework, |by| &by.descriptor))
    }

    /// Adds an accepted plugin, which is loaded: it may plan its jobs, and what it needs is watched.
    pub fn add(&mut self, descriptor: &Arc<Descriptor>, digest: &Digest) {
        self.watch_for(descriptor, digest, true);
    }

    /// Adds a candidate, which is loaded: what it needs is watched. It plans jobs only if it was accepted before.
    pub(crate) fn add_candidate(&mut self, descriptor: &Arc<Descriptor>, digest: &Digest) {
        let plans = self.plans(digest);
        self.watch_for(descriptor, digest, plans);
    }

    /// Replaces the descriptor of a loaded plugin, whose settings have changed.
    pub(crate) fn describe(&mut self, descriptor: &Arc<Descriptor>, digest: &Digest) {
        if let Some(plans) = self.revisions.get(digest).map(|known| known.plans) {
            self.watch_for(descriptor, digest, plans);
        }
    }

    fn watch_for(&mut self, descriptor: &Arc<Descriptor>, digest: &Digest, plans: bool) {
        let kinds: Vec<_> = descriptor.kinds.iter().cloned().map(Arc::new).collect();
        self.remove_unserved(|served| served.framework.name == descriptor.name || describes(descriptor, served));
        for kind in &kinds {
            let key = GroupKind::from(&**kind);
            let (kind, framework) = (Arc::clone(kind), Arc::clone(descriptor));
            let resource = (&*kind).into();
            let served = || Served { kind, framework, route: Route::default(), unserved: None };
            self.kinds.entry(key.clone()).or_insert_with(served);
            self.watch(WatchSpec { resource, selector: None, purpose: Purpose::Jobs(key), optional: false });
        }
        for watch in watches_for(descriptor) {
            self.watch(watch);
        }
        self.lost.remove(digest);
        self.revisions.insert(digest.clone(), Revision { descriptor: Arc::clone(descriptor), kinds, plans });
    }

    /// Records that the bytes of this digest cannot be loaded, and why: its jobs report that.
    pub fn record_lost(&mut self, digest: &Digest, why: &str) {
        self.lost.insert(digest.clone(), why.to_owned());
    }

    /// Returns whether the bytes of this digest cannot be loaded.
    pub(crate) fn is_lost(&self, digest: &Digest) -> bool {
        self.lost.contains_key(digest)
    }

    /// Forgets that the bytes of this digest could not be loaded: the next job that needs it has them sought again.
    pub(crate) fn forget_lost(&mut self, digest: &Digest) {
        self.lost.remove(digest);
    }

    /// Records that the host archives the bytes of each digest that plans a job.
    pub(crate) fn keep_bytes(&mut self) {
        self.accepted.get_or_insert_default();
    }

    /// Returns the accepted digests, so that the caller can change them; `None` if the host archives no bytes.
    pub(crate) fn accepted(&mut self) -> Option<&mut Accepted> {
        self.accepted.as_mut()
    }

    /// Returns whether the host has accepted this digest for any kind.
    pub(crate) fn is_accepted(&self, digest: &Digest) -> bool {
        self.accepted.as_ref().is_some_and(|accepted| accepted.has(digest))
    }

    /// Holds back new jobs of this digest until its bytes are archived. The jobs report `why`, if there is one.
    pub(crate) fn hold_new_jobs(&mut self, digest: &Digest, why: Option<&str>) {
        self.unarchived.insert(digest.clone(), why.map(str::to_owned));
    }

    /// Lets this digest plan new jobs: its bytes are archived.
    pub(crate) fn admit_new_jobs(&mut self, digest: &Digest) {
        self.unarchived.remove(digest);
    }

    /// Returns whether new jobs of this digest need not wait for its bytes to be archived.
    pub(crate) fn admits_new_jobs(&self, digest: &Digest) -> bool {
        !self.unarchived.contains_key(digest)
    }

    /// Removes a digest that plans no job any more. Its kinds and watches stay until they are pruned.
    pub fn remove(&mut self, digest: &Digest) {
        self.revisions.remove(digest);
    }

    /// Removes the kinds that no loaded plugin serves and that are not `in_use`, and the watches that only they needed.
    pub(crate) fn prune(&mut self, in_use: &BTreeSet<GroupKind>) {
        let revisions = &self.revisions;
        self.kinds.retain(|key, served| {
            let is_served = revisions.values().any(|revision| revision.kind(&served.kind).is_some());
            let is_refused = matches!(served.unserved, Some(Unserved::Refused(_)));
            is_served || served.route.active.is_some() || is_refused || in_use.contains(key)
        });
        let active = self.kinds.values().filter(|served| served.unserved.is_none()).map(|served| &served.framework);
        let descriptors = revisions.values().map(|revision| &revision.descriptor).chain(active);
        let needed: Vec<_> = descriptors.flat_map(|descriptor| watches_for(descriptor)).collect();
        let kinds = &self.kinds;
        self.watches.retain(|_, watch| match &watch.purpose {
            Purpose::Jobs(kind) => kinds.contains_key(kind),
            Purpose::Pods(_) | Purpose::Children(_) | Purpose::Dependents(_) | Purpose::Classes(_) => {
                needed.iter().any(|one| is_same_watch(one, watch))
            }
        });
    }

    /// Returns why a framework may not serve its kinds: another framework serves one of them, or served it before and
    /// has its Plugin in `plugins`.
    pub(crate) fn conflict(&self, new: &Descriptor, plugins: &BTreeSet<String>) -> Option<String> {
        let is_held = |served: &&Served| {
            let (holder, wanted) = (&served.framework.name, |kind: &JobKind| kind.is_same(&served.kind));
            let is_in_use = served.route.active.is_some() || plugins.contains(holder);
            *holder != new.name && is_in_use && served.unserved.is_none() && new.kinds.iter().any(wanted)
        };
        let Served { kind, framework, .. } = self.kinds.values().find(is_held)?;
        let (kind, holder) = (&kind.kind, &framework.name);
        Some(format!(
            "kind {kind} is already served by plugin {holder}; this Plugin is checked again when {holder} is deleted"
        ))
    }

    /// Sets the route of the framework's kinds, and of the kinds of its active digest that no framework serves.
    pub fn route(&mut self, framework: &str, route: &Route) {
        let active = route.active.as_ref().and_then(|digest| self.revisions.get(digest)).cloned();
        for served in self.kinds.values_mut() {
            let kind = active.as_ref().and_then(|active| active.kind(&served.kind));
            let is_free = served.route.active.is_none() && kind.is_some();
            if served.framework.name != framework && !is_free {
                continue;
            }
            served.route = route.clone();
            if let Some(kind) = kind {
                served.kind = Arc::clone(kind);
            }
            if let Some(active) = &active {
                served.framework = Arc::clone(&active.descriptor);
            }
        }
    }

    /// Returns the digest that plans the job: the one in the ledger; if the status was never written, the one that its
    /// children name; else the one for new jobs.
    ///
    /// Everybody who may write a job's status may write any digest there. Therefore only a digest that the host has
    /// accepted for the kind plans the job. A digest that was never accepted holds the job, since its pods may be
    /// another plugin's. A text that is no digest, or the digest of another kind, is ignored.
    #[must_use]
    pub fn planner(
        &self,
        kind: &GroupKind,
        job: &Job,
        ledger: &Ledger,
        of_children: impl FnOnce() -> Option<Digest>,
    ) -> Planner {
        let named = match &ledger.digest {
            RecordedDigest::Digest(digest) => Some(digest.clone()),
            RecordedDigest::Invalid(_) if ledger.finished.is_some() => return Planner::Nobody,
            RecordedDigest::None if ledger.headline.is_empty() => of_children(),
            RecordedDigest::None | RecordedDigest::Invalid(_) => None,
        };
        let Some(digest) = named else { return self.planner_of_new(kind, job) };
        if let Some(finished) = &ledger.finished {
            return self.planner_after_the_end(kind, job, finished, digest);
        }
        match self.state_of(kind, &digest) {
            DigestState::Plans => Planner::Digest(digest),
            DigestState::Absent => Planner::Loading(digest),
            DigestState::Lost(why) => Planner::lost(Some(digest), why),
            DigestState::Stranger => Planner::Held(Some(digest.clone()), Fault::NotAccepted { digest }),
            DigestState::Ignored => self.planner_of_new(kind, job),
        }
    }

    /// Returns the digest that plans a job that has ended: the one in the ledger. It need not be loaded while nobody asks
    /// it. If a plan is needed, it is loaded; if it cannot be, the digest for new jobs says what an edit means, such as
    /// another time to live. Nobody plans the job if the digest is loaded and may not plan the kind.
    fn planner_after_the_end(&self, kind: &GroupKind, job: &Job, finished: &Finished, digest: Digest) -> Planner {
        match self.state_of(kind, &digest) {
            DigestState::Stranger | DigestState::Ignored if self.revisions.contains_key(&digest) => Planner::Nobody,
            _ if job.deleting || !finished.needs_plan(job.generation) => Planner::Digest(digest),
            DigestState::Plans => Planner::Digest(digest),
            DigestState::Absent => Planner::Loading(digest),
            DigestState::Lost(_) | DigestState::Stranger | DigestState::Ignored => self.planner_of_new(kind, job),
        }
    }

    /// Returns the digest for a job that has none yet, or why none plans it.
    pub(crate) fn planner_of_new(&self, kind: &GroupKind, job: &Job) -> Planner {
        let Some(served) = self.kinds.get(kind) else { return Planner::lost(None, "") };
        let Some(digest) = served.route.of(job).cloned() else { return unplanned(served, job) };
        match (self.unarchived.get(&digest), self.state_of(kind, &digest)) {
            (_, DigestState::Lost(why)) => Planner::lost(Some(digest), why),
            (Some(None), _) => Planner::Loading(digest),
            (Some(Some(why)), _) => {
                let plugin = served.framework.name.clone();
                Planner::Held(Some(digest), Fault::NotKept { plugin, why: why.clone() })
            }
            (None, DigestState::Plans) => Planner::Digest(digest),
            (None, _) if self.lacks(&digest, &served.kind) => {
                Planner::lost(None, "the component that serves new jobs of its plugin does not have this kind")
            }
            (None, _) => Planner::Loading(digest),
        }
    }

    /// Returns whether the digest is loaded, and its plugin does not have the kind.
    fn lacks(&self, digest: &Digest, kind: &JobKind) -> bool {
        self.revisions.get(digest).is_some_and(|revision| revision.kind(kind).is_none())
    }

    /// Returns whether this digest may have planned a job of the kind, as far as is known.
    pub(crate) fn may_have_planned(&self, kind: &GroupKind, digest: &Digest) -> bool {
        !matches!(self.state_of(kind, digest), DigestState::Stranger | DigestState::Ignored)
    }

    fn state_of(&self, kind: &GroupKind, digest: &Digest) -> DigestState<'_> {
        let Some(served) = self.kinds.get(kind) else { return DigestState::Ignored };
        match self.revisions.get(digest) {
            _ if self.lacks(digest, &served.kind) => return DigestState::Ignored,
            Some(revision) if revision.plans => return DigestState::Plans,
            _ => {}
        }
        let Some(accepted) = &self.accepted else { return DigestState::Ignored };
        match (accepted.of(digest, &served.kind), self.lost.get(digest)) {
            (Acceptance::Never, _) => DigestState::Stranger,
            (_, Some(why)) => DigestState::Lost(why),
            (Acceptance::Accepted | Acceptance::Unknown, None) => DigestState::Absent,
        }
    }

    /// Returns the kind as the plugin with this digest describes it, else as the active one does.
    #[must_use]
    pub fn kind_by(&self, kind: &GroupKind, digest: Option<&Digest>) -> Option<Arc<JobKind>> {
        let served = self.kinds.get(kind)?;
        let own = digest.and_then(|digest| self.revisions.get(digest)?.kind(&served.kind));
        Some(Arc::clone(own.unwrap_or(&served.kind)))
    }

    /// Returns the tables that jobs of a kind need if this digest plans them. The table of the jobs is the first.
    pub(crate) fn tables_of(&self, kind: &GroupKind, digest: Option<&Digest>) -> Vec<WatchId> {
        let Some(descriptor) = self.framework(kind, digest) else { return vec![] };
        let children = descriptor.children.iter().filter_map(|child| self.find(&watch_of(child)));
        let is_queued = descriptor.may_be_queued_by_host();
        let queues = QUEUES.iter().filter(|_| is_queued).filter_map(|watch| self.find(watch));
        self.jobs_of(kind).into_iter().chain(children).chain(queues).collect()
    }

    /// Returns the watch of Workloads, if the host may make those of this kind where this digest plans the jobs.
    pub(crate) fn workloads_of(&self, kind: &GroupKind, digest: Option<&Digest>) -> Option<WatchId> {
        self.framework(kind, digest)
            .filter(|framework| framework.may_be_queued_by_host())
            .and_then(|_| self.find(QUEUES.first()?))
    }

    /// Returns the table of the jobs of a kind.
    pub(crate) fn jobs_of(&self, kind: &GroupKind) -> Option<WatchId> {
        let of_jobs = |watch: &WatchSpec| matches!(&watch.purpose, Purpose::Jobs(of) if of == kind);
        self.watches.iter().find(|(_, watch)| of_jobs(watch)).map(|(id, _)| *id)
    }

    fn find(&self, wanted: &WatchSpec) -> Option<WatchId> {
        self.watches.iter().find(|(_, watch)| is_same_watch(watch, wanted)).map(|(id, _)| *id)
    }

    fn watch(&mut self, watch: WatchSpec) {
        if self.find(&watch).is_none() {
            self.watches.insert(WatchId(self.numbered), watch);
            self.numbered += 1;
        }
    }
}

fn watch_of(child: &ChildKind) -> WatchSpec {
    WatchSpec {
        resource: child.into(),
        selector: child.selector.clone(),
        purpose: match child.owned_by {
            OwnedBy::Pod => Purpose::Dependents,
            OwnedBy::Job if child.kind == "Pod" => Purpose::Pods,
            OwnedBy::Job => Purpose::Children,
        }(child.keep.iter().cloned().collect()),
        optional: child.optional,
    }
}

/// Returns the watches that the children of a framework's jobs need, and their queues.
fn watches_for(descriptor: &Descriptor) -> Vec<WatchSpec> {
    let is_queued = descriptor.may_be_queued_by_host();
    let queues = QUEUES.iter().filter(|_| is_queued).cloned();
    descriptor.children.iter().map(watch_of).chain(queues).collect()
}

/// The watches of queues: Workloads first.
static QUEUES: LazyLock<Vec<WatchSpec>> = LazyLock::new(|| {
    let (label, value) = WORKLOADS.label;
    let workloads = WatchSpec {
        resource: Resource::new(WORKLOADS.api_version, WORKLOADS.kind, WORKLOADS.plural),
        selector: Some(format!("{label}={value}")),
        purpose: Purpose::Children(WORKLOADS.keep.into_iter().collect()),
        optional: true,
    };
    let class = |class: &Class| WatchSpec {
        resource: Resource::new(class.api_version, class.kind, class.plural),
        selector: None,
        purpose: Purpose::Classes(class.keep.iter().copied().collect()),
        optional: true,
    };
    std::iter::once(workloads).chain(CLASSES.iter().map(class)).collect()
});

/// Returns whether two watches show the same objects with the same content.
fn is_same_watch(one: &WatchSpec, other: &WatchSpec) -> bool {
    let resource = match (&one.purpose, &other.purpose) {
        // A kind of job has one watch, whatever version a digest reads it in.
        (Purpose::Jobs(one), Purpose::Jobs(other)) => return one == other,
        _ => one.resource == other.resource,
    };
    resource && one.selector == other.selector && one.purpose == other.purpose && one.optional == other.optional
}

#[cfg(test)]
mod tests;
