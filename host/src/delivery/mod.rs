//! Plugins by `Plugin` resources: fetched, compiled, checked, tried, brought into service and kept, while jobs run.
//!
//! One task for all Plugins. Looks at them (`look`) run side by side and change nothing; what they find comes into service
//! here, at once and as a whole. What is decided is in `upgrade`, what is said in `report` and `statuses`.

mod accept;
mod archive;
mod bundled;
mod census;
mod comparisons;
mod fetch;
mod look;
mod lost;
mod mark;
mod names;
mod refusals;
mod report;
mod seen;
mod serve;
mod startup;
mod statuses;
mod trial;
mod trials;
mod upgrade;
mod wanted;
mod watched;

pub use archive::short;

use crate::{
    clock::Clock,
    control::{queue::Queue, supervise::Restarts},
    error::chain,
    observe::stores::Stores,
    plugin_resource::{Candidate, CandidateState, PluginSpec, PluginStatus},
};
use archive::{Archive, ArchiveStore};
use bundled::Bundled;
use comparisons::Comparisons;
use fetch::Sources;
use futures::StreamExt;
use kube::Client;
use look::{Looked, LookedAt, Looker, Question, Refused};
use lost::Again;
use mark::Mark;
use refusals::Refusal;
use report::{Stage, Trouble};
use sandbox::{Plugins, Settings};
use seen::Seen;
use startup::NotArchived;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use tracing::{debug, info, warn};
use trials::Trials;
use wanted::Wanted;
use watched::{Version, Versions};

/// Counts in statuses are no older than this, and what was refused is tried again as soon as it is due.
const REFRESH: Duration = Duration::from_secs(10);

/// How often bytes that nothing needs are looked for.
const SWEEP: Duration = Duration::from_secs(600);

/// Where plugins may come from, and where their bytes are kept.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The host's own namespace. Without one no bytes are kept, and no ConfigMap is a source.
    pub namespace: Option<String>,
    /// Other namespaces whose ConfigMaps may be sources.
    pub source_namespaces: BTreeSet<String>,
}

/// The parts of the host that the delivery works with, and what passes leave for it.
#[derive(Debug)]
pub(crate) struct Handles {
    pub(crate) clock: Clock,
    pub(crate) stores: Arc<Stores>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) plugins: Arc<Plugins>,
    /// How often long-lived tasks had to be started again.
    pub(crate) restarts: Arc<Restarts>,
    /// Digests that jobs need and that are not loaded.
    pub(crate) wanted: Wanted,
    /// Candidates beside the digests that serve.
    pub(crate) trials: Trials,
    /// Passes that candidates are to be shown.
    comparisons: Comparisons,
    /// What serves where no Plugin says otherwise: what is loaded when the host starts.
    bundled: Bundled,
}

impl Handles {
    /// Of a host that serves what is loaded now.
    pub(crate) fn new(clock: Clock, stores: Arc<Stores>, queue: Arc<Queue>, plugins: Arc<Plugins>) -> Self {
        let bundled = Bundled::of(&plugins);
        Self {
            clock,
            stores,
            queue,
            plugins,
            restarts: Arc::default(),
            wanted: Wanted::default(),
            trials: Trials::default(),
            comparisons: Comparisons::default(),
            bundled,
        }
    }
}

/// What is known of a Plugin.
struct Known {
    seen: Seen,
    /// The look that is under way.
    looking: Option<u64>,
    /// What the last look was at; None looks again.
    looked_at: Option<LookedAt>,
    /// How it ended, unless well.
    refusal: Option<Refusal>,
    status: PluginStatus,
}

impl Known {
    /// Digests that the host says in the status to have accepted.
    fn named(&self) -> Vec<String> {
        let PluginStatus { digest, previous, candidate, .. } = &self.status;
        let planned = |it: &&Candidate| matches!(it.state, CandidateState::Canary | CandidateState::Stopped);
        let candidate = candidate.as_ref().filter(planned).map(|candidate| &candidate.digest);
        digest.iter().chain(previous).chain(candidate).cloned().collect()
    }

    fn names(&self, digest: &str) -> bool {
        self.named().iter().any(|named| named == digest)
    }
}

/// The task that delivers plugins.
pub(crate) struct Delivery {
    client: Client,
    handles: Arc<Handles>,
    sources: Sources,
    archive: Option<Archive>,
    /// What the watch of it has shown.
    archive_store: Option<ArchiveStore>,
    /// Marks of what is kept, by digest.
    marks: BTreeMap<String, Mark>,
    versions: Versions,
    known: BTreeMap<String, Known>,
    /// Looks under way, how many there were, and how many there may be at once.
    looks: JoinSet<Looked>,
    begun: u64,
    places: Arc<Semaphore>,
    /// Plugins that a list has shown so far.
    listed: Option<BTreeSet<String>>,
    swept: Instant,
    /// Digests that jobs need, that were accepted and cannot be loaded so far.
    sought: BTreeMap<String, Again>,
    not_archived: NotArchived,
}

impl Delivery {
    /// Serves until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut happened = self.watched();
        let handles = self.handles.clone();
        let mut tick = interval(REFRESH);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                digests = handles.wanted.take() => {
                    for digest in digests {
                        self.seek(&digest).await;
                    }
                }
                () = sleep_until(self.next_attempt()) => self.try_again().await,
                Some(Ok(looked)) = self.looks.join_next() => self.looked(looked).await,
                Some(event) = happened.next() => self.on_event(event).await,
                () = handles.trials.changed() => self.refresh().await,
                _ = tick.tick() => {
                    self.look_at_all().await;
                    self.refresh().await;
                    self.sweep().await;
                }
            }
        }
    }

    /// When something is tried again that has failed.
    fn next_attempt(&self) -> Instant {
        let all = self.sought.values().chain(&self.not_archived.again).map(|again| again.at);
        all.min().unwrap_or_else(|| Instant::now() + SWEEP)
    }

    async fn try_again(&mut self) {
        if self.not_archived.again.is_some_and(|again| again.at <= Instant::now()) {
            self.keep_built_ins().await;
        }
        self.seek_again().await;
    }

    /// Takes note of what a Plugin asks for. One of the same name that was deleted before is forgotten: where a list took
    /// the place of a watch, nothing else says that it is gone.
    async fn learn(&mut self, seen: Seen) {
        if self.known.get(&seen.name).is_some_and(|known| known.seen.uid != seen.uid) {
            self.forget(&seen.name).await;
        }
        match self.known.get_mut(&seen.name) {
            Some(known) => known.seen = seen,
            None => {
                let (name, status) = (seen.name.clone(), seen.status.clone());
                self.known.insert(name, Known { seen, looking: None, looked_at: None, refusal: None, status });
            }
        }
    }

    /// A Plugin was deleted: what comes with the host serves new jobs again, with its own settings, or nobody does. Jobs that
    /// run stay with theirs. Whoever waited for its kinds may have them.
    async fn forget(&mut self, name: &str) {
        if self.known.remove(name).is_none() {
            return;
        }
        info!(plugin = name, "the Plugin is gone");
        self.handles.trials.end(name);
        self.give_back(name);
        for name in self.names() {
            if self.known.get(&name).and_then(|known| known.refusal.as_ref()).is_some_and(Refusal::is_conflict) {
                self.look_again(&name).await;
            }
        }
    }

    async fn look_at_all(&mut self) {
        for name in self.names() {
            self.look_at(&name).await;
        }
    }

    fn names(&self) -> Vec<String> {
        self.known.keys().cloned().collect()
    }

    /// Looks at a Plugin whatever is known of it.
    async fn look_again(&mut self, name: &str) {
        if let Some(known) = self.known.get_mut(name) {
            (known.looked_at, known.refusal) = (None, None);
        }
        self.look_at(name).await;
    }

    /// Begins a look at a Plugin, unless one is under way, or neither it nor its source has changed since the last one and
    /// that need not be repeated. While its source's namespace is listed it waits for the end of that, when all are looked
    /// at.
    async fn look_at(&mut self, name: &str) {
        let active = self.serving(name);
        let Some(known) = self.known.get(name).filter(|known| known.looking.is_none()) else { return };
        let source = known.seen.spec.as_ref().map_or(Version::Nothing, |spec| self.version_of_source(spec));
        let at = LookedAt { generation: known.seen.generation, source };
        let is_due = known.refusal.as_ref().is_some_and(|refusal| refusal.again <= Instant::now());
        if at.source == Version::NotYet || (known.looked_at.as_ref() == Some(&at) && !is_due) {
            return;
        }
        match known.seen.spec.clone() {
            Ok(spec) => {
                let question = Question {
                    name: name.to_owned(),
                    spec,
                    at,
                    active,
                    status: known.status.clone(),
                    refusal: known.refusal.clone(),
                    plugins: self.known.keys().cloned().collect(),
                    marks: self.marks.clone(),
                };
                self.begin(question);
            }
            Err(why) => {
                let message = format!("the Plugin cannot be read, so what served goes on: {why}");
                let trouble = Trouble { at: Stage::Fetched, reason: "InvalidSpec", message };
                self.refused(name, at, Refused { digest: None, trouble }).await;
            }
        }
    }

    fn begin(&mut self, question: Question) {
        self.begun += 1;
        if let Some(known) = self.known.get_mut(&question.name) {
            known.looking = Some(self.begun);
        }
        let looker = Looker {
            handles: self.handles.clone(),
            sources: self.sources.clone(),
            archive: self.archive.clone(),
            places: self.places.clone(),
        };
        self.looks.spawn(looker.look(self.begun, question));
    }

    /// A look has ended. What it says of a Plugin that has changed since does not count.
    async fn looked(&mut self, looked: Looked) {
        let Looked { number, question, result } = looked;
        let Question { name, spec, at, active, .. } = question;
        let stays = self.serving(&name) == active;
        // One that was deleted and made again is another Plugin.
        let its = self.known.get_mut(&name).filter(|known| known.looking == Some(number));
        let Some(known) = its else { return };
        known.looking = None;
        if known.seen.generation != at.generation || !stays {
            return self.look_again(&name).await;
        }
        let served = match result {
            Ok(acceptable) => self.serve(&name, &spec, acceptable),
            Err(refused) => Err(refused),
        };
        match served {
            Ok(status) => self.accepted(&name, at, status).await,
            Err(refused) => self.refused(&name, at, refused).await,
        }
        // Its source may have changed meanwhile.
        self.look_at(&name).await;
    }

    async fn accepted(&mut self, name: &str, at: LookedAt, mut status: PluginStatus) {
        let now = self.handles.clock.now();
        status.observed_generation = Some(at.generation);
        report::progress(&mut status, None, at.generation, now);
        report::serving(&mut status, at.generation, now);
        let Some(known) = self.known.get_mut(name) else { return };
        let before = known.looked_at.replace(at.clone());
        (known.status, known.refusal) = (status, None);
        // What it may do, or how it is set up, may be another.
        if before.is_some_and(|before| before.generation != at.generation) {
            self.wake(name);
        }
        self.refresh_one(name).await;
    }

    /// Nothing of what was refused acts; the Plugin says why.
    async fn refused(&mut self, name: &str, at: LookedAt, refused: Refused) {
        let Refused { digest, trouble } = refused;
        warn!(plugin = name, reason = trouble.reason, message = trouble.message, "a plugin is not served");
        let (active, is_tried) = (self.serving(name), self.handles.trials.candidate(name).is_some());
        let (now, clock) = (Instant::now(), self.handles.clock.now());
        let Some(known) = self.known.get_mut(name) else { return };
        let status = &mut known.status;
        if let Some(digest) = digest.as_ref().filter(|digest| !is_tried && active.as_ref() != Some(digest)) {
            let candidate =
                Candidate { digest: digest.clone(), state: CandidateState::Refused, ..Candidate::default() };
            status.candidate = Some(Candidate { message: Some(trouble.message.clone()), ..candidate });
        }
        status.observed_generation = Some(at.generation);
        report::progress(status, Some(&trouble), at.generation, clock);
        report::serving(status, at.generation, clock);
        let before = known.refusal.take();
        let stands = |refusal: &Refusal| digest.as_ref().is_some_and(|it| refusal.stands(it, at.generation, now));
        known.refusal = Some(match before {
            Some(refusal) if stands(&refusal) => refusal,
            before => Refusal::new(digest.clone(), at.generation, trouble.clone(), before.as_ref(), now),
        });
        known.looked_at = Some(at);
        if trouble.reason == accept::GRANT_MISSING {
            self.withdraw(name, digest.as_deref());
        }
        self.refresh_one(name).await;
    }

    /// Releases what neither a job nor a Plugin needs, once it is known what jobs there are.
    async fn sweep(&mut self) {
        let Some(archive) = &self.archive else { return };
        if self.swept.elapsed() < SWEEP || !self.handles.stores.have_listed() {
            return;
        }
        self.swept = Instant::now();
        let stores = &self.handles.stores;
        let mut needed: BTreeSet<String> = census::all_digests_in_use(stores);
        let statuses = self.known.values().map(|known| &known.status);
        needed.extend(statuses.flat_map(|status| {
            let candidate = status.candidate.as_ref().map(|candidate| candidate.digest.clone());
            status.digest.iter().chain(&status.previous).cloned().chain(candidate)
        }));
        // Whenever a Plugin goes, what comes with the host serves again.
        needed.extend(self.handles.bundled.digests().cloned());
        needed.extend(stores.layout().kinds().values().filter_map(|served| served.route.active.clone()));
        if let Err(error) = archive.sweep(&needed, self.handles.clock.now()).await {
            debug!(error = chain(&error), "bytes of plugins are looked at again later");
        }
        for digest in self.handles.plugins.digests().into_iter().filter(|digest| !needed.contains(digest)) {
            info!(digest = short(&digest), "nobody needs this plugin any more");
            self.handles.plugins.unload(&digest);
            stores.change(|layout| layout.remove(&digest));
        }
        stores.prune().into_iter().for_each(|key| self.handles.queue.add(key));
    }
}

/// What a Plugin says about its component.
fn settings(spec: &PluginSpec) -> Settings {
    // What comes with the host is trusted as the host is.
    let grants = spec.source.built_in.is_none().then(|| spec.grants.clone());
    Settings { config: spec.config.clone(), grants, limits: spec.limits.clone() }
}
