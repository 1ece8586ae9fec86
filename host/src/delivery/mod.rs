//! Plugins by `Plugin` resources: fetched, compiled, checked, tried, put into service and kept, while jobs run.
//!
//! Each Plugin has a task (`plugin_task`), which looks at it (`look`) without changing anything, puts what it finds into
//! service at once and as a whole (`serve`), and says in the status what came of that (`report`, `statuses`). What is
//! decided is in `upgrade`. Here is the task that starts and ends those, and owns what is not of one Plugin.

mod accept;
mod archive;
mod bundled;
mod census;
mod comparisons;
mod fetch;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod look;
mod looking;
mod lost;
mod mark;
mod names;
mod plugin_task;
mod refusals;
mod report;
mod routes;
mod seen;
mod serve;
mod shared;
mod startup;
mod statuses;
pub mod trial;
pub mod trials;
mod upgrade;
mod wanted;
mod watched;

use crate::{
    clock::Clock,
    control::{
        queue::Queue,
        supervise::{AbortOnDrop, Restarts, supervise},
    },
    error::chain,
    observe::{contents::Contents, stores::Stores},
    plugin_resource::{PluginSpec, PluginStatus},
    write::published::PublishedStatuses,
};
use archive::{ArchiveError, ArchiveStore};
use bundled::Bundled;
use comparisons::Comparisons;
use decide::Digest;
use futures::{FutureExt, StreamExt};
use looking::Begun;
use lost::Again;
use parking_lot::Mutex;
use plugin_task::PluginTask;
use sandbox::{Plugins, Settings};
use seen::Seen;
use shared::Shared;
use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Semaphore, watch},
    task::{JoinError, JoinSet},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use tracing::{debug, info};
use trials::Trials;
use wanted::Wanted;

/// How often bytes that nothing needs are looked for, and how often it is seen whether it is time.
const SWEEP: Duration = Duration::from_secs(600);
const TICK: Duration = Duration::from_secs(10);

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
    /// The seed of jitter.
    seed: [u8; 32],
    pub(crate) stores: Arc<Stores>,
    /// What was last written to the statuses of jobs.
    published: Arc<PublishedStatuses>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) plugins: Arc<Plugins>,
    /// What jobs name, and plans depend on.
    pub(crate) contents: Arc<Contents>,
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
    /// The last look at bytes that did not serve, by Plugin.
    begun: Mutex<BTreeMap<String, Begun>>,
    /// The host starts: until the first attempt to load each digest that served before has ended, not every kind that it
    /// will serve need be watched.
    pub(crate) is_starting: Arc<AtomicBool>,
}

impl Handles {
    /// Of a host that serves what is loaded now.
    pub(crate) fn new(
        clock: Clock,
        seed: [u8; 32],
        (stores, published): (Arc<Stores>, Arc<PublishedStatuses>),
        queue: Arc<Queue>,
        (plugins, contents): (Arc<Plugins>, Arc<Contents>),
    ) -> Self {
        let bundled = Bundled::of(&plugins);
        Self {
            clock,
            seed,
            stores,
            published,
            queue,
            plugins,
            contents,
            restarts: Arc::default(),
            wanted: Wanted::default(),
            trials: Trials::default(),
            comparisons: Comparisons::default(),
            bundled,
            begun: Mutex::default(),
            is_starting: Arc::default(),
        }
    }
}

/// A Plugin that there is.
struct Supervised {
    /// What the watch has shown of it, for its task.
    shown: watch::Sender<Seen>,
    /// None until the host knows what served before.
    task: Option<AbortOnDrop>,
}

/// What an attempt is made for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Errand {
    /// To keep the bytes of this digest, which comes with the host.
    Keep(Digest),
    /// To load this digest.
    Seek(Digest),
}

/// What follows from the answer to an attempt.
type Ending = Box<dyn FnOnce(&mut Delivery) + Send>;

/// The task that knows which Plugins there are, and owns what is not of one of them: the watches, the archive, and the
/// digests that jobs wait for.
pub(crate) struct Delivery {
    shared: Arc<Shared>,
    /// What the watch of the archive has shown.
    archive_store: Option<ArchiveStore>,
    plugins: BTreeMap<String, Supervised>,
    /// Plugins that a list has shown so far.
    listed: Option<BTreeSet<String>>,
    swept: Instant,
    /// Digests that jobs need, that were accepted and cannot be loaded so far.
    sought: BTreeMap<Digest, Again>,
    /// Digests that come with the host and whose bytes are not kept so far.
    not_archived: BTreeMap<Digest, Again>,
    /// Attempts under way, at most one for an errand: requests to the API server and to registries. One that panics has no
    /// ending.
    attempts: JoinSet<(Errand, Option<Ending>)>,
    under_way: BTreeSet<Errand>,
    /// Of these the first attempts, which the host starts with.
    first: BTreeSet<Errand>,
    /// For the digests that are loaded at once.
    places: Arc<Semaphore>,
}

impl Delivery {
    /// Serves until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut happened = self.watched();
        let handles = self.shared.handles.clone();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.start_tasks();
        loop {
            if self.first.is_empty() && handles.is_starting.swap(false, Ordering::Relaxed) {
                self.start_tasks();
            }
            let next = self.next_attempt();
            tokio::select! {
                biased;
                Some(ended) = self.attempts.join_next() => self.end(ended),
                digests = handles.wanted.take() => digests.iter().for_each(|digest| self.seek(digest)),
                () = sleep_until(next) => self.try_again(),
                Some(event) = happened.next() => self.on_event(event).await,
                _ = tick.tick() => self.sweep().await,
            }
        }
    }

    /// When something is tried that is due, or again since it has failed.
    fn next_attempt(&self) -> Instant {
        let sought = self.sought.iter().filter(|(digest, _)| !self.is_sought_now(digest));
        let to_keep = self.not_archived.iter().filter(|(digest, _)| !self.is_kept_now(digest));
        sought.chain(to_keep).map(|(_, again)| again.at).min().unwrap_or_else(|| Instant::now() + SWEEP)
    }

    /// An attempt to load this digest is under way.
    fn is_sought_now(&self, digest: &Digest) -> bool {
        self.under_way.contains(&Errand::Seek(digest.clone()))
    }

    /// An attempt to keep the bytes of this digest is under way.
    fn is_kept_now(&self, digest: &Digest) -> bool {
        self.under_way.contains(&Errand::Keep(digest.clone()))
    }

    /// Begins to try all that is due.
    fn try_again(&mut self) {
        self.keep_built_ins();
        self.seek_again();
    }

    /// Begins an attempt for this errand, unless one is under way.
    fn attempt(&mut self, errand: Errand, attempt: impl Future<Output = Ending> + Send + 'static) {
        if self.under_way.insert(errand.clone()) {
            self.attempts.spawn(async move { (errand, AssertUnwindSafe(attempt).catch_unwind().await.ok()) });
        }
    }

    /// Takes note of an attempt that has ended.
    fn end(&mut self, ended: Result<(Errand, Option<Ending>), JoinError>) {
        // Else the runtime shuts down.
        let Ok((errand, ending)) = ended else { return };
        self.under_way.remove(&errand);
        self.first.remove(&errand);
        let has_ended = ending.is_some_and(|ending| catch_unwind(AssertUnwindSafe(|| ending(self))).is_ok());
        if !has_ended {
            self.panicked(&errand);
        }
    }

    /// An attempt has panicked. It is counted, and made again as any other that has failed: while a host starts, it would
    /// otherwise end every host, and later the delivery of all plugins.
    fn panicked(&mut self, errand: &Errand) {
        self.shared.handles.restarts.add("attempt");
        match errand {
            Errand::Keep(digest) => self.is_not_kept(digest, &ArchiveError::Panicked),
            Errand::Seek(digest) => self.is_absent(digest, &ArchiveError::Panicked.into()),
        }
    }

    /// Waits until no attempt is under way. Where this is dropped, they go on.
    async fn end_all(&mut self) {
        while let Some(ended) = self.attempts.join_next().await {
            self.end(ended);
        }
    }

    /// Takes note of what a Plugin asks for. One of the same name that was deleted before is forgotten: where a list took
    /// the place of a watch, nothing else says that it is gone.
    async fn learn(&mut self, seen: Seen) {
        let is_another = |it: &Supervised| it.shown.borrow().uid != seen.uid;
        if self.plugins.get(&seen.name).is_some_and(is_another) {
            self.forget(&seen.name).await;
        }
        match self.plugins.get(&seen.name) {
            Some(supervised) => drop(supervised.shown.send_replace(seen)),
            None => {
                let name = seen.name.clone();
                self.shared.statuses().insert(name.clone(), seen.status.clone());
                self.plugins.insert(name, Supervised { shown: watch::Sender::new(seen), task: None });
            }
        }
    }

    /// Starts the tasks of Plugins that have none. While the host starts there are none: they compare what they find with what
    /// serves, and mark what is kept after the host has done so.
    fn start_tasks(&mut self) {
        if self.shared.handles.is_starting.load(Ordering::Relaxed) {
            return;
        }
        for Supervised { shown, task } in self.plugins.values_mut() {
            task.get_or_insert_with(|| {
                let (shared, shown) = (self.shared.clone(), shown.subscribe());
                let restarts = self.shared.handles.restarts.clone();
                supervise("delivery", &restarts, move || PluginTask::run(shared.clone(), shown.clone()))
            });
        }
    }

    /// A Plugin was deleted: what comes with the host serves new jobs again, with its own settings, or nobody does. Jobs that
    /// run stay with theirs. Whoever waited for its kinds may have them.
    async fn forget(&mut self, name: &str) {
        let Some(Supervised { shown, task }) = self.plugins.remove(name) else { return };
        info!(plugin = name, "the Plugin was deleted");
        drop(task);
        // Until its task has ended, what that has looked at may still come into service.
        shown.closed().await;
        let mut statuses = self.shared.statuses();
        statuses.remove(name);
        self.shared.handles.trials.end(name);
        self.shared.handles.forget_looks(name);
        self.shared.handles.give_back(name);
        drop(statuses);
        self.shared.vacancies.send_replace(());
    }

    /// Releases what neither a job nor a Plugin needs, once it is known what jobs there are.
    async fn sweep(&mut self) {
        let Shared { handles, archive: Some(archive), .. } = &*self.shared else { return };
        if self.swept.elapsed() < SWEEP || !handles.stores.have_listed() {
            return;
        }
        self.swept = Instant::now();
        let needed = self.needed(&self.shared.statuses());
        if let Err(error) = archive.sweep(&needed, handles.clock.now()).await {
            debug!(error = chain(&error), "failed to release unused bytes of plugins, trying again later");
        }
        // Others may have come into service meanwhile; while this is held, none does.
        let statuses = self.shared.statuses();
        let needed = self.needed(&statuses);
        for digest in handles.plugins.digests().into_iter().filter(|digest| !needed.contains(digest)) {
            info!(digest = digest.short(), "unloaded a plugin that no job and no Plugin needs");
            handles.plugins.unload(&digest);
            handles.stores.change(|layout| layout.remove(&digest));
        }
        handles.stores.prune().into_iter().for_each(|key| handles.queue.add(key));
    }

    /// Digests that jobs, Plugins or the host need.
    fn needed(&self, statuses: &BTreeMap<String, PluginStatus>) -> BTreeSet<Digest> {
        let Handles { stores, bundled, .. } = &*self.shared.handles;
        let mut needed = census::all_digests_in_use(stores);
        needed.extend(statuses.values().flat_map(|status| {
            let candidate = status.candidate.as_ref().map(|candidate| &candidate.digest);
            let all = status.digest.iter().chain(&status.previous).chain(candidate);
            all.filter_map(|digest| digest.parse().ok())
        }));
        // Whenever a Plugin goes, what comes with the host serves again.
        needed.extend(bundled.digests().cloned());
        needed.extend(stores.layout().kinds().values().filter_map(|served| served.route.active.clone()));
        needed
    }
}

/// What a Plugin says about its component.
fn settings(spec: &PluginSpec) -> Settings {
    Settings { config: spec.config.clone(), grants: spec.granted().cloned(), limits: spec.limits.clone() }
}
