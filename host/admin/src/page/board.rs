//! The rows of all jobs. A row is made again only when its job has changed, and all viewers share the rows.

use decide::{condition::Condition, own_conditions::current_true, summary};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
    time::Duration,
};
use tokio::{sync::Mutex, time::Instant};
use troupe::{
    control::reconcile::Context,
    job_key::{GroupKind, JobKey},
    measure::jobs::Phase,
    observe::{
        cache::Cache,
        wire::{Held, Object},
    },
};

/// Rows are looked at again no sooner than this after the last time, however many viewers there are.
pub(super) const FRESH: Duration = Duration::from_secs(1);

/// A sentence of the list has at most so many bytes.
const LONGEST_WHY: usize = 600;

/// At most this many namespaces are offered to choose from.
const NAMESPACES: usize = 500;

/// Where a job is, as a viewer looks for it. The order is that of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Group {
    /// Somebody has to act: the job is rejected, its plugin fails, or another writer is at work.
    Attention,
    /// Something is in its way.
    Waiting,
    /// It has failed.
    Failed,
    /// Not all of its pods run yet.
    Pending,
    /// It runs.
    Running,
    /// It is being deleted.
    Deleting,
    /// Its user has suspended it.
    Suspended,
    /// Another manager runs it.
    External,
    /// It has succeeded.
    Succeeded,
}

impl Group {
    /// Returns the group of a job with this status, by the host's last pass over it if there was one.
    pub(super) fn of(phase: Option<Phase>, deleting: bool, status: &Value) -> Self {
        let is_true = |kind: Condition| current_true(status, kind).is_some();
        let is_refused = [Condition::Rejected, Condition::PluginFaulted, Condition::Contested].into_iter().any(is_true);
        let outcome = status.pointer("/troupe/finished/outcome").and_then(Value::as_str);
        match phase {
            _ if deleting => Self::Deleting,
            Some(Phase::Succeeded) => Self::Succeeded,
            Some(Phase::Failed) => Self::Failed,
            Some(Phase::External) => Self::External,
            _ if outcome == Some("succeeded") => Self::Succeeded,
            _ if outcome.is_some() => Self::Failed,
            _ if is_refused => Self::Attention,
            Some(Phase::Rejected | Phase::Faulted) => Self::Attention,
            _ if is_true(Condition::Waiting) => Self::Waiting,
            Some(Phase::Running) => Self::Running,
            Some(Phase::Suspended) => Self::Suspended,
            Some(Phase::Deleting) => Self::Deleting,
            Some(Phase::Pending) | None => Self::Pending,
        }
    }
}

/// A job in the list.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    #[serde(skip)]
    key: JobKey,
    #[serde(skip)]
    uid: String,
    #[serde(skip)]
    version: u64,
    #[serde(skip)]
    phase: Option<Phase>,
    /// What a viewer may search for, in lower case.
    #[serde(skip)]
    text: Box<str>,
    kind: String,
    /// The plural with its group, as in a path of the page.
    resource: String,
    namespace: String,
    name: String,
    group: Group,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    created: Timestamp,
}

/// A job as the cache has it, before its status is read.
struct Seen {
    key: JobKey,
    resource: String,
    uid: String,
    version: u64,
    deleting: bool,
    created: Timestamp,
    status: Box<str>,
}

/// Returns a sentence at a limited length; the page of the job has all of it.
fn shortened(why: String) -> String {
    if why.len() <= LONGEST_WHY { why } else { format!("{} ...", &why[..why.floor_char_boundary(LONGEST_WHY)]) }
}

impl Seen {
    fn of(cache: &Cache, kind: &GroupKind, object: &Object) -> Option<Self> {
        let Held::Job(packed) = &object.held else { return None };
        Some(Self {
            key: JobKey::new(kind, &object.namespace, &object.name),
            resource: cache.layout().kinds().get(kind)?.kind.crd(),
            uid: object.uid.clone(),
            version: object.resource_version,
            deleting: packed.job().deleting,
            created: packed.job().created,
            status: packed.status_text().into(),
        })
    }
}

impl Row {
    fn new(seen: Seen, phase: Option<Phase>) -> Self {
        // It was written from a value.
        let status: Value = serde_json::from_str(&seen.status).unwrap_or_default();
        let (state, why) = (shortened(summary::state(&status)), summary::why(&status).map(shortened));
        let kind = seen.key.kind.kind().to_owned();
        let JobKey { namespace, name, .. } = &seen.key;
        let text = format!("{kind}/{name} {namespace} {state} {}", why.as_deref().unwrap_or_default()).to_lowercase();
        Self {
            group: Group::of(phase, seen.deleting, &status),
            uid: seen.uid,
            version: seen.version,
            phase,
            text: text.into(),
            kind,
            resource: seen.resource,
            namespace: namespace.clone(),
            name: name.clone(),
            state,
            why,
            created: seen.created,
            key: seen.key,
        }
    }
}

/// What a viewer wants to see.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// The kinds that he may list.
    pub(super) kinds: BTreeSet<GroupKind>,
    /// Only this namespace.
    pub(super) namespace: Option<String>,
    /// Only jobs with all of these words.
    pub(super) words: Vec<String>,
    /// Only this group.
    pub(super) group: Option<Group>,
    /// At most this many rows.
    pub(super) limit: usize,
}

/// What a viewer sees.
#[derive(Debug, Serialize)]
pub(super) struct View {
    /// The number of jobs that he may list, in the namespace that he wants.
    jobs: usize,
    /// The number of those that he wants to see.
    matching: usize,
    /// The number of jobs in each group, whichever group he wants.
    groups: BTreeMap<Group, usize>,
    /// The namespaces of these jobs.
    namespaces: BTreeSet<String>,
    /// The first of the jobs that he wants to see.
    rows: Vec<Arc<Row>>,
    /// Whether every watch has listed: before, jobs may be missing.
    complete: bool,
}

/// The rows of all jobs.
#[derive(Default)]
pub(super) struct Board(Mutex<Rows>);

#[derive(Default)]
struct Rows {
    looked: Option<Instant>,
    by_kind: BTreeMap<GroupKind, BTreeMap<(String, String), Arc<Row>>>,
    sorted: Arc<[Arc<Row>]>,
    /// How many rows were made.
    made: u64,
}

impl Board {
    /// Returns what a viewer sees as JSON, at most [`FRESH`] old. Rows are made, selected and written beside the threads of
    /// passes.
    pub(super) async fn view(&self, context: &Context, wanted: &Arc<Wanted>) -> Option<String> {
        let sorted = {
            let mut rows = self.0.lock().await;
            if rows.looked.is_none_or(|looked| looked.elapsed() >= FRESH) {
                let changed = rows.changed(context);
                if let Some(changed) = changed {
                    let mut before = mem::take(&mut *rows);
                    let make = move || {
                        before.refresh(changed);
                        before
                    };
                    *rows = context.plugins().run_beside(make).await;
                }
                rows.looked = Some(Instant::now());
            }
            Arc::clone(&rows.sorted)
        };
        let (wanted, complete) = (Arc::clone(wanted), context.stores().have_listed());
        let write = move || serde_json::to_string(&view(&sorted, &wanted, complete)).ok();
        context.plugins().run_beside(write).await
    }

    /// Forgets all rows if nobody has looked for this long.
    pub(super) async fn forget_after(&self, unseen: Duration) {
        let mut rows = self.0.lock().await;
        if rows.looked.is_some_and(|looked| looked.elapsed() >= unseen) {
            *rows = Rows::default();
        }
    }
}

impl Rows {
    /// Forgets the rows of jobs that are gone. Returns the jobs that have changed, with their phases; `None` where nothing has.
    fn changed(&mut self, context: &Context) -> Option<Vec<(Seen, Option<Phase>)>> {
        let jobs = context.jobs();
        let (mut changed, mut gone) = (vec![], false);
        context.stores().read(|cache| {
            let served: BTreeSet<_> = cache.tables_of_jobs().map(|(kind, _)| kind).collect();
            let before = self.by_kind.len();
            self.by_kind.retain(|kind, _| served.contains(kind));
            gone |= self.by_kind.len() < before;
            for (kind, table) in cache.tables_of_jobs() {
                let rows = self.by_kind.entry(kind.clone()).or_default();
                let before = rows.len();
                rows.retain(|here, _| table.objects.contains_key(here));
                gone |= rows.len() < before;
                for (here, object) in &table.objects {
                    let is_known = |row: &Arc<Row>| {
                        let is_same = row.uid == object.uid && row.version == object.resource_version;
                        is_same && row.phase == jobs.phase(&row.key, &row.uid)
                    };
                    if !rows.get(here).is_some_and(is_known) {
                        changed.extend(Seen::of(cache, kind, object));
                    }
                }
            }
        });
        let with_phase = |seen: Seen| {
            let phase = jobs.phase(&seen.key, &seen.uid);
            (seen, phase)
        };
        (gone || !changed.is_empty()).then(|| changed.into_iter().map(with_phase).collect())
    }

    /// Makes the rows of these jobs anew.
    fn refresh(&mut self, changed: Vec<(Seen, Option<Phase>)>) {
        for (seen, phase) in changed {
            self.made += 1;
            let here = (seen.key.namespace.clone(), seen.key.name.clone());
            let rows = self.by_kind.entry(seen.key.kind.clone()).or_default();
            rows.insert(here, Arc::new(Row::new(seen, phase)));
        }
        let mut sorted: Vec<_> = self.by_kind.values().flat_map(BTreeMap::values).cloned().collect();
        sorted.sort_by(|a, b| (a.group, Reverse(a.created), &a.key).cmp(&(b.group, Reverse(b.created), &b.key)));
        self.sorted = sorted.into();
    }
}

fn view(sorted: &[Arc<Row>], wanted: &Wanted, complete: bool) -> View {
    let mut view =
        View { jobs: 0, matching: 0, groups: BTreeMap::new(), namespaces: BTreeSet::new(), rows: vec![], complete };
    for row in sorted.iter().filter(|row| wanted.kinds.contains(&row.key.kind)) {
        if wanted.namespace.as_ref().is_some_and(|only| *only != row.namespace) {
            continue;
        }
        view.jobs += 1;
        // His rights may end with the namespace: the names of others are not shown.
        if !view.namespaces.contains(&row.namespace) && view.namespaces.len() < NAMESPACES {
            view.namespaces.insert(row.namespace.clone());
        }
        if !wanted.words.iter().all(|word| row.text.contains(word.as_str())) {
            continue;
        }
        *view.groups.entry(row.group).or_default() += 1;
        if wanted.group.is_some_and(|only| only != row.group) {
            continue;
        }
        view.matching += 1;
        if view.rows.len() < wanted.limit {
            view.rows.push(Arc::clone(row));
        }
    }
    view
}
