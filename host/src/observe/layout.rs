//! What is served: kinds of job, the digests that plan them, and the watches that this takes. It only grows, so that a
//! place in it means the same for as long as the host runs.

use crate::{
    api::resource::Resource,
    observe::accepted::{Acceptance, Accepted, is_digest},
    plugin_resource::Canary,
};
use decide::{
    ledger::Ledger,
    plan::{ChildKind, Descriptor, Fault, JobKind},
    snapshot::Job,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A kind of job with the framework that serves it.
#[derive(Debug, Clone)]
pub struct Served {
    /// The kind, as the active digest describes it.
    pub kind: Arc<JobKind>,
    /// The framework, as the active digest describes it.
    pub framework: Arc<Descriptor>,
    /// Which digest plans a job that has none yet.
    pub route: Route,
}

/// Which digest plans a job of a framework that has none yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// The active one. None: nobody serves new jobs.
    pub active: Option<String>,
    /// Another one that serves some of them.
    pub canary: Option<(String, Canary)>,
    /// Jobs of other digests move to the active one where that touches no live pod.
    pub migrate: bool,
}

impl Route {
    /// All new jobs by this digest.
    #[must_use]
    pub fn to(digest: &str) -> Self {
        Self { active: Some(digest.to_owned()), ..Self::default() }
    }

    /// The digest of a job that has none yet.
    #[must_use]
    pub fn of(&self, job: &Job) -> Option<&String> {
        match &self.canary {
            Some((digest, canary)) if selects(canary, job) => Some(digest),
            _ => self.active.as_ref(),
        }
    }
}

/// The job is one of the canary's: a function of its uid, its labels and the percentage alone.
#[must_use]
pub fn selects(canary: &Canary, job: &Job) -> bool {
    let labelled = canary.match_labels.iter().all(|(name, value)| job.labels.get(name) == Some(value));
    labelled && hundredth(&job.uid) < canary.percent
}

/// A number below 100 that is the uid's own (FNV-1a).
fn hundredth(uid: &str) -> u32 {
    let hash = uid.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash % 100
}

/// Which digest plans a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Planner {
    /// This one.
    Digest(String),
    /// This one, which is being loaded.
    Loading(String),
    /// None, for this reason, although the job belongs to this one; "" where it belongs to none.
    Held(String, Fault),
}

/// What is known of a digest that may plan jobs of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing<'a> {
    /// It is loaded, and plans them.
    Plans,
    /// It can be loaded, or it is not known yet whether it can.
    Absent,
    /// It was accepted, and its bytes cannot be had: why.
    Lost(&'a str),
    /// Nothing says that it was ever accepted.
    Stranger,
    /// It never planned a job of this kind: it is no digest, or serves others.
    Nonsense,
}

impl Planner {
    fn lost(digest: String, why: &str) -> Self {
        Self::Held(digest.clone(), Fault::Missing { digest, why: why.to_owned() })
    }
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

/// A digest that is loaded, as far as watches and snapshots go.
#[derive(Debug, Clone)]
struct Revision {
    descriptor: Arc<Descriptor>,
    kinds: Vec<Arc<JobKind>>,
    /// It may plan jobs; else it is a candidate that is asked and never acts.
    plans: bool,
}

impl Revision {
    fn kind(&self, served: &JobKind) -> Option<&Arc<JobKind>> {
        self.kinds.iter().find(|kind| kind.is_same(served))
    }
}

/// What is served.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    kinds: Vec<Served>,
    watches: Vec<WatchSpec>,
    revisions: BTreeMap<String, Revision>,
    /// Digests whose bytes cannot be had, and why.
    lost: BTreeMap<String, String>,
    /// Digests that plan no new job before their bytes are kept, and why those are not once it took several attempts.
    unkept: BTreeMap<String, Option<String>>,
    /// What the host has accepted, where it keeps the bytes of each digest that plans a job. Without it a digest that is not
    /// loaded counts as none.
    accepted: Option<Accepted>,
}

impl Layout {
    /// The kinds of job that are served, by place.
    #[must_use]
    pub fn kinds(&self) -> &[Served] {
        &self.kinds
    }

    /// The watches that feed the stores, by place.
    #[must_use]
    pub fn watches(&self) -> &[WatchSpec] {
        &self.watches
    }

    /// What a plugin that is loaded says of itself.
    #[must_use]
    pub fn descriptor(&self, digest: &str) -> Option<&Arc<Descriptor>> {
        self.revisions.get(digest).map(|revision| &revision.descriptor)
    }

    /// The framework of a kind as the plugin with this digest describes it, else as the active one does.
    pub(crate) fn framework(&self, kind: usize, digest: &str) -> Option<&Arc<Descriptor>> {
        let served = self.kinds.get(kind)?;
        let own = self.revisions.get(digest).filter(|by| by.kind(&served.kind).is_some());
        Some(own.map_or(&served.framework, |by| &by.descriptor))
    }

    /// A plugin that the host has accepted is loaded: it plans jobs that are its, and what it needs is watched.
    pub fn add(&mut self, descriptor: &Arc<Descriptor>, digest: &str) {
        self.watch_for(descriptor, digest, true);
    }

    /// A candidate is loaded, which plans no job: what it needs is watched.
    pub(crate) fn try_out(&mut self, descriptor: &Arc<Descriptor>, digest: &str) {
        let plans = self.revisions.get(digest).is_some_and(|known| known.plans);
        self.watch_for(descriptor, digest, plans);
    }

    fn watch_for(&mut self, descriptor: &Arc<Descriptor>, digest: &str, plans: bool) {
        let kinds: Vec<_> = descriptor.kinds.iter().cloned().map(Arc::new).collect();
        for kind in &kinds {
            if self.place(kind).is_none() {
                let (kind, framework) = (Arc::clone(kind), Arc::clone(descriptor));
                self.kinds.push(Served { kind, framework, route: Route::default() });
            }
        }
        for kind in &kinds {
            let Some(place) = self.place(kind) else { continue };
            self.watch(WatchSpec {
                resource: (&**kind).into(),
                selector: None,
                purpose: Purpose::Jobs(place),
                optional: false,
            });
        }
        for child in &descriptor.children {
            self.watch(watch_of(child));
        }
        self.lost.remove(digest);
        self.revisions.insert(digest.to_owned(), Revision { descriptor: Arc::clone(descriptor), kinds, plans });
    }

    /// The bytes of this digest cannot be had: its jobs are told so, and why.
    pub fn lose(&mut self, digest: &str, why: &str) {
        self.lost.insert(digest.to_owned(), why.to_owned());
    }

    /// The bytes of this digest cannot be had.
    pub(crate) fn is_lost(&self, digest: &str) -> bool {
        self.lost.contains_key(digest)
    }

    /// The host keeps the bytes of each digest that plans a job.
    pub(crate) fn keep_bytes(&mut self) {
        self.accepted.get_or_insert_default();
    }

    /// What the host has accepted, to be changed; None where it keeps no bytes.
    pub(crate) fn accepted(&mut self) -> Option<&mut Accepted> {
        self.accepted.as_mut()
    }

    /// The host has accepted this digest, for whatever kind.
    pub(crate) fn is_accepted(&self, digest: &str) -> bool {
        self.accepted.as_ref().is_some_and(|accepted| accepted.has(digest))
    }

    /// This digest plans no new job before its bytes are kept. Its jobs are told `why`, if there is one.
    pub(crate) fn withhold(&mut self, digest: &str, why: Option<&str>) {
        self.unkept.insert(digest.to_owned(), why.map(str::to_owned));
    }

    /// The bytes of this digest are kept.
    pub(crate) fn release(&mut self, digest: &str) {
        self.unkept.remove(digest);
    }

    /// This digest does not have to wait until its bytes are kept.
    pub(crate) fn has_kept(&self, digest: &str) -> bool {
        !self.unkept.contains_key(digest)
    }

    /// No job is planned by this digest any more.
    pub fn remove(&mut self, digest: &str) {
        self.revisions.remove(digest);
    }

    /// Why a framework may not serve its kinds: another one serves one of them, or it has served it and its Plugin is one of
    /// these.
    pub(crate) fn conflict(&self, new: &Descriptor, plugins: &BTreeSet<String>) -> Option<String> {
        let is_held = |served: &&Served| {
            let (holder, wanted) = (&served.framework.name, |kind: &JobKind| kind.is_same(&served.kind));
            let is_in_use = served.route.active.is_some() || plugins.contains(holder);
            *holder != new.name && is_in_use && new.kinds.iter().any(wanted)
        };
        let Served { kind, framework, .. } = self.kinds.iter().find(is_held)?;
        let (kind, holder) = (&kind.kind, &framework.name);
        Some(format!("kind {kind} is served by plugin {holder} already; this one is looked at again when that is gone"))
    }

    /// New jobs of the framework with this name go this way; so do those of its kinds that nobody else serves.
    pub fn route(&mut self, framework: &str, route: &Route) {
        let active = route.active.as_ref().and_then(|digest| self.revisions.get(digest)).cloned();
        for served in &mut self.kinds {
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

    /// Which digest plans the job: its ledger's, else the one that its children were made by before there was a ledger,
    /// else the one that serves. A job that is over needs none.
    ///
    /// Whoever may write a job's status may write any digest there. So only one that the host has accepted for the kind
    /// plans it; one that it never accepted holds the job, whose pods may be another plugin's; nonsense counts as nothing.
    #[must_use]
    pub fn planner(
        &self,
        kind: usize,
        job: &Job,
        ledger: &Ledger,
        of_children: impl FnOnce() -> Option<String>,
    ) -> Planner {
        let named = match ledger.digest.is_empty() {
            false => Some(ledger.digest.clone()),
            true if ledger.headline.is_empty() => of_children(),
            true => None,
        };
        let Some(digest) = named else { return self.planner_of_new(kind, job) };
        if ledger.finished.is_some() {
            return Planner::Digest(digest);
        }
        match self.standing(kind, &digest) {
            Standing::Plans => Planner::Digest(digest),
            Standing::Absent => Planner::Loading(digest),
            Standing::Lost(why) => Planner::lost(digest, why),
            Standing::Stranger => Planner::Held(digest.clone(), Fault::NotAccepted { digest }),
            Standing::Nonsense => self.planner_of_new(kind, job),
        }
    }

    /// Which digest plans a job that none plans so far.
    pub(crate) fn planner_of_new(&self, kind: usize, job: &Job) -> Planner {
        let nobody = || Planner::lost(String::new(), "");
        let Some(served) = self.kinds.get(kind) else { return nobody() };
        let Some(digest) = served.route.of(job).cloned() else { return nobody() };
        match (self.unkept.get(&digest), self.standing(kind, &digest)) {
            (_, Standing::Lost(why)) => Planner::lost(digest, why),
            (Some(None), _) => Planner::Loading(digest),
            (Some(Some(why)), _) => {
                let plugin = served.framework.name.clone();
                Planner::Held(digest, Fault::NotKept { plugin, why: why.clone() })
            }
            (None, Standing::Plans) => Planner::Digest(digest),
            (None, _) => Planner::Loading(digest),
        }
    }

    /// A job of the kind may have been planned by this digest, as far as is known.
    pub(crate) fn may_have_planned(&self, kind: usize, digest: &str) -> bool {
        !matches!(self.standing(kind, digest), Standing::Stranger | Standing::Nonsense)
    }

    fn standing(&self, kind: usize, digest: &str) -> Standing<'_> {
        let Some(served) = self.kinds.get(kind) else { return Standing::Nonsense };
        match self.revisions.get(digest) {
            Some(revision) if revision.kind(&served.kind).is_none() => return Standing::Nonsense,
            Some(revision) if revision.plans => return Standing::Plans,
            _ => {}
        }
        let Some(accepted) = self.accepted.as_ref().filter(|_| is_digest(digest)) else { return Standing::Nonsense };
        match (accepted.of(digest, &served.kind), self.lost.get(digest)) {
            (Acceptance::Never, _) => Standing::Stranger,
            (_, Some(why)) => Standing::Lost(why),
            (Acceptance::Accepted | Acceptance::Unknown, None) => Standing::Absent,
        }
    }

    /// The kind as the plugin with this digest describes it, else as the active one does.
    #[must_use]
    pub(crate) fn kind_by(&self, kind: usize, digest: &str) -> Option<Arc<JobKind>> {
        let served = self.kinds.get(kind)?;
        let own = self.revisions.get(digest).and_then(|by| by.kind(&served.kind));
        Some(Arc::clone(own.unwrap_or(&served.kind)))
    }

    /// The tables that jobs of a kind need that this digest plans: their own first.
    pub(crate) fn tables_of(&self, kind: usize, digest: &str) -> Vec<usize> {
        let Some(descriptor) = self.framework(kind, digest) else { return vec![] };
        let place = |wanted: &WatchSpec| self.watches.iter().position(|watch| is_same_watch(watch, wanted));
        let children = descriptor.children.iter().filter_map(|child| place(&watch_of(child)));
        self.jobs_of(kind).into_iter().chain(children).collect()
    }

    /// The table of the jobs of a kind.
    pub(crate) fn jobs_of(&self, kind: usize) -> Option<usize> {
        self.watches.iter().position(|watch| watch.purpose == Purpose::Jobs(kind))
    }

    fn place(&self, kind: &JobKind) -> Option<usize> {
        self.kinds.iter().position(|served| served.kind.is_same(kind))
    }

    fn watch(&mut self, watch: WatchSpec) {
        if !self.watches.iter().any(|known| is_same_watch(known, &watch)) {
            self.watches.push(watch);
        }
    }
}

fn watch_of(child: &ChildKind) -> WatchSpec {
    WatchSpec {
        resource: child.into(),
        selector: child.selector.clone(),
        purpose: if child.kind == "Pod" { Purpose::Pods } else { Purpose::Children(child.keep.clone()) },
        optional: child.optional,
    }
}

/// Two that say of the same objects the same, whether or not jobs do without them.
fn is_same_watch(one: &WatchSpec, other: &WatchSpec) -> bool {
    let resource = match (&one.purpose, &other.purpose) {
        // A kind of job has one place, whatever the version that a digest reads it in.
        (Purpose::Jobs(one), Purpose::Jobs(other)) => return one == other,
        _ => one.resource == other.resource,
    };
    resource && one.selector == other.selector && one.purpose == other.purpose && one.optional == other.optional
}

#[cfg(test)]
mod tests;
