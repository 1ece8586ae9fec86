//! What is served: kinds of job, the digests that plan them, and the watches that this takes. It only grows, so that a
//! place in it means the same for as long as the host runs.

use crate::{plugin_resource::Canary, resource::Resource};
use decide::{
    ledger::Ledger,
    plan::{ChildKind, Descriptor, JobKind},
    snapshot::Job,
};
use std::{collections::BTreeMap, sync::Arc};

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
    /// None: the framework has no plugin for new jobs.
    Nobody,
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
}

/// What is served.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    kinds: Vec<Served>,
    watches: Vec<WatchSpec>,
    revisions: BTreeMap<String, Revision>,
    /// Digests whose bytes cannot be had, and why.
    lost: BTreeMap<String, String>,
    /// A digest that is not loaded can be, since the host keeps the bytes of each that plans a job.
    pub keeps_bytes: bool,
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
        self.descriptor(digest).or_else(|| Some(&self.kinds.get(kind)?.framework))
    }

    /// A plugin is loaded: jobs that it planned can be planned again, and what it needs is watched.
    pub fn add(&mut self, descriptor: &Arc<Descriptor>, digest: &str) {
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
        self.revisions.insert(digest.to_owned(), Revision { descriptor: Arc::clone(descriptor), kinds });
    }

    /// The bytes of this digest cannot be had: its jobs are told so, and why.
    pub fn lose(&mut self, digest: &str, why: &str) {
        self.lost.insert(digest.to_owned(), why.to_owned());
    }

    /// Digests whose bytes cannot be had, and why.
    pub(crate) fn lost(&self) -> impl Iterator<Item = (&String, &String)> {
        self.lost.iter()
    }

    /// Why the bytes of this digest cannot be had.
    pub(crate) fn why_lost(&self, digest: &str) -> Option<&String> {
        self.lost.get(digest)
    }

    /// No job is planned by this digest any more.
    pub fn remove(&mut self, digest: &str) {
        self.revisions.remove(digest);
    }

    /// New jobs of the framework with this name go this way.
    pub fn route(&mut self, framework: &str, route: &Route) {
        let active = route.active.as_ref().and_then(|digest| self.revisions.get(digest)).cloned();
        for served in self.kinds.iter_mut().filter(|served| served.framework.name == framework) {
            served.route = route.clone();
            let Some(active) = &active else { continue };
            if let Some(kind) = active.kinds.iter().find(|kind| kind.is_same(&served.kind)) {
                served.kind = Arc::clone(kind);
            }
            served.framework = Arc::clone(&active.descriptor);
        }
    }

    /// Which digest plans the job: its ledger's, else the one that its children were made by before there was a ledger,
    /// else the one that serves. A job that is over needs none.
    #[must_use]
    pub fn planner(
        &self,
        kind: usize,
        job: &Job,
        ledger: &Ledger,
        of_children: impl FnOnce() -> Option<String>,
    ) -> Planner {
        let chosen = match ledger.digest.is_empty() {
            false => Some(ledger.digest.clone()),
            true if ledger.headline.is_empty() => of_children(),
            true => None,
        };
        match chosen {
            Some(digest) if self.revisions.contains_key(&digest) || ledger.finished.is_some() => {
                Planner::Digest(digest)
            }
            Some(digest) if self.keeps_bytes && self.lost.contains_key(&digest) => Planner::Digest(digest),
            Some(digest) if self.keeps_bytes => Planner::Loading(digest),
            _ => self
                .kinds
                .get(kind)
                .and_then(|served| served.route.of(job))
                .cloned()
                .map_or(Planner::Nobody, Planner::Digest),
        }
    }

    /// The kind as the plugin with this digest describes it, else as the active one does.
    #[must_use]
    pub(crate) fn kind_by(&self, kind: usize, digest: &str) -> Option<Arc<JobKind>> {
        let served = self.kinds.get(kind)?;
        let own = self.revisions.get(digest).and_then(|by| by.kinds.iter().find(|kind| kind.is_same(&served.kind)));
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
mod tests {
    use super::*;
    use serde_json::json;

    fn descriptor(version: &str, keep: &str) -> Arc<Descriptor> {
        let kind = JobKind {
            group: "example.com".into(),
            version: "v1".into(),
            kind: "Play".into(),
            plural: "plays".into(),
            suspend: None,
            managed_by: None,
            own_manager: None,
            retired_finalizers: vec![],
            roles: vec![],
        };
        let child = ChildKind {
            api_version: "v1".into(),
            kind: "Service".into(),
            plural: "services".into(),
            selector: None,
            keep: vec![keep.into()],
            optional: false,
        };
        Arc::new(Descriptor {
            name: "plays".into(),
            version: version.into(),
            kinds: vec![kind],
            children: vec![child],
            config_schema: json!({}),
            event_source: "plays".into(),
            asks: decide::grants::Grants::default(),
        })
    }

    fn layout() -> Layout {
        let mut layout = Layout { keeps_bytes: true, ..Layout::default() };
        layout.add(&descriptor("1.0.0", "/a"), "one");
        layout.route("plays", &Route::to("one"));
        layout
    }

    fn job(uid: &str, labels: &[(&str, &str)]) -> Job {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Job { labels, ..decide::testkit::job("hamlet", uid) }
    }

    fn planner(layout: &Layout, ledger: &Ledger, of_children: Option<&str>) -> Planner {
        layout.planner(0, &job("u", &[]), ledger, || of_children.map(str::to_owned))
    }

    #[test]
    fn a_job_stays_with_the_digest_in_its_ledger() {
        let mut layout = layout();
        layout.add(&descriptor("2.0.0", "/a"), "two");
        layout.route("plays", &Route::to("two"));
        let pinned = Ledger { digest: "one".into(), ..Ledger::default() };
        assert_eq!(planner(&layout, &pinned, None), Planner::Digest("one".into()));
        assert_eq!(planner(&layout, &Ledger::default(), None), Planner::Digest("two".into()));
        // Its status was not written yet, its children were made.
        assert_eq!(planner(&layout, &Ledger::default(), Some("one")), Planner::Digest("one".into()));
        // It was released: its status was written and names none.
        let released = Ledger { headline: "Suspended".into(), ..Ledger::default() };
        assert_eq!(planner(&layout, &released, Some("one")), Planner::Digest("two".into()));
    }

    #[test]
    fn a_digest_that_is_not_loaded_is_loaded_where_bytes_are_kept() {
        let mut layout = layout();
        let pinned = Ledger { digest: "gone".into(), ..Ledger::default() };
        assert_eq!(planner(&layout, &pinned, None), Planner::Loading("gone".into()));
        layout.lose("gone", "nobody has it");
        assert_eq!(layout.why_lost("gone").map(String::as_str), Some("nobody has it"));
        assert_eq!(planner(&layout, &pinned, None), Planner::Digest("gone".into()));
        layout.keeps_bytes = false;
        assert_eq!(planner(&layout, &pinned, None), Planner::Digest("one".into()));
    }

    #[test]
    fn a_framework_that_nobody_serves_has_no_planner_for_new_jobs() {
        let mut layout = layout();
        layout.route("plays", &Route::default());
        let pinned = Ledger { digest: "one".into(), ..Ledger::default() };
        assert_eq!(planner(&layout, &pinned, None), Planner::Digest("one".into()));
        assert_eq!(planner(&layout, &Ledger::default(), None), Planner::Nobody);
    }

    #[test]
    fn a_digest_that_keeps_other_fields_has_watches_of_its_own_and_places_stay() {
        let mut layout = layout();
        let before = layout.tables_of(0, "one");
        layout.add(&descriptor("2.0.0", "/b"), "two");
        assert_eq!(layout.tables_of(0, "one"), before);
        assert_eq!((before, layout.tables_of(0, "two")), (vec![0, 1], vec![0, 2]));
        assert_eq!(layout.kinds().len(), 1);
    }

    #[test]
    fn a_canary_serves_its_share_of_the_jobs_that_it_selects() {
        let canary = Canary { percent: 30, match_labels: BTreeMap::from([("team".into(), "a".into())]) };
        let route = Route { canary: Some(("two".into(), canary)), ..Route::to("one") };
        let uids: Vec<String> = (0..1000).map(|number| format!("uid-{number}")).collect();
        let by_two =
            |labels: &[(&str, &str)]| uids.iter().filter(|uid| route.of(&job(uid, labels)).unwrap() == "two").count();
        assert_eq!(by_two(&[("team", "b")]), 0);
        assert!((250..350).contains(&by_two(&[("team", "a")])), "{}", by_two(&[("team", "a")]));
    }
}
