//! What a host does about plugins before it plans the first job: learns which Plugins there are and what served before.
//! What fails then is tried again until it is known; only jobs that need it wait. So it is with what takes long.

use super::{
    Delivery, Ending, Handles, Options,
    archive::{Archive, ArchiveError},
    census,
    lost::{AT_ONCE, Again, QUIET},
    mark::Mark,
    seen::{self, Seen},
    shared::Shared,
    statuses::{active, named},
};
use crate::{
    api::{
        answer,
        forbidden::{Forbidden, is_forbidden},
    },
    error::chain,
    observe::layout::Route,
};
use decide::Digest;
use kube::Client;
use sandbox::Plugins;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tracing::{info, warn};

/// Between two attempts to learn which Plugins there are, or with which settings one served, at least.
const AGAIN: Duration = Duration::from_secs(1);

/// All jobs wait for no longer than this until what served before is loaded and what comes with the host is kept. Where
/// everything answers in this time, the jobs of all kinds are listed before a new one is given host ports, which some of
/// them hold. Afterwards only jobs that need it wait: a registry that does not answer takes 60 s.
const ORDINARY: Duration = Duration::from_secs(3);

/// Built-in plugins whose bytes are not kept yet.
pub(super) struct NotArchived {
    digests: BTreeSet<Digest>,
    pub(super) again: Option<Again>,
}

impl Delivery {
    /// Once this returns, no new job is planned by what a Plugin has replaced. Whatever served before serves again, or is
    /// sought.
    pub(crate) async fn start(client: Client, handles: Arc<Handles>, options: Options) -> Self {
        let built_in = Plugins::built_in_digests().filter(|digest| handles.plugins.has(digest)).collect();
        let mut delivery = Self {
            shared: Arc::new(Shared::new(client, handles, options)),
            archive_store: None,
            plugins: BTreeMap::new(),
            listed: None,
            swept: Instant::now(),
            sought: BTreeMap::new(),
            not_archived: NotArchived { digests: built_in, again: None },
            attempts: JoinSet::new(),
            under_way: BTreeSet::new(),
            first: BTreeSet::new(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
        };
        delivery.withhold_built_ins();
        let mut served = Vec::new();
        for plugin in delivery.list().await {
            served.extend(delivery.restore(plugin).await);
        }
        // Before any pass, since one with other settings could change pods. This is one request to the API server for each, or
        // more while that does not answer.
        delivery.end_all().await;
        for (name, digest) in served {
            delivery.shared.handles.route(&name, &Route::to(&digest));
            delivery.sought.insert(digest, Again::now());
        }
        delivery.give_back_what_nobody_names();
        delivery.try_again();
        // What is under way then goes on.
        let _in_time = timeout(ORDINARY, delivery.end_all()).await;
        delivery.first = delivery.under_way.clone();
        delivery
    }

    /// Where the task was started again, a Plugin may have gone unseen.
    fn give_back_what_nobody_names(&self) {
        let layout = self.shared.handles.stores.layout();
        for served in layout.kinds().values() {
            let name = &served.framework.name;
            let own = self.shared.handles.bundled.get(name).map(|(digest, _)| digest);
            if !self.plugins.contains_key(name) && served.route.active.as_ref() != own {
                self.shared.handles.give_back(name);
            }
        }
    }

    /// No job gets a digest before that is kept; that is due now.
    fn withhold_built_ins(&mut self) {
        if self.shared.archive.is_none() {
            info!(
                "without --plugin-namespace no bytes of plugins are kept: after an upgrade of the host, running jobs are \
                   planned by its new plugins"
            );
            return;
        }
        self.shared.handles.stores.change(|layout| {
            layout.keep_bytes();
            self.not_archived.digests.iter().for_each(|digest| layout.hold_new_jobs(digest, None));
        });
        self.not_archived.again = Some(Again::now());
    }

    /// Begins to keep the bytes of what comes with this host, since the next host may come with others. What fails is tried
    /// again.
    pub(super) fn keep_built_ins(&mut self) {
        let Some(archive) = self.shared.archive.clone() else { return };
        let before = self.not_archived.again.take();
        for digest in self.not_archived.digests.clone() {
            let Some((name, wasm, mark)) = self.built_in(&digest) else { continue };
            let (archive, kept) = (archive.clone(), digest.clone());
            self.attempt(&digest, async move {
                let answer = archive.keep(&kept, wasm, None, Some(&mark)).await;
                Box::new(move |delivery: &mut Self| match answer {
                    Ok(()) => delivery.is_kept(&name, &kept),
                    Err(error) => delivery.is_not_kept(&name, &kept, &error, Again::after(before, error.retry_after())),
                }) as Ending
            });
        }
    }

    fn is_kept(&mut self, name: &str, digest: &Digest) {
        self.not_archived.digests.remove(digest);
        self.shared.handles.stores.change(|layout| layout.admit_new_jobs(digest));
        self.wake_new(name, digest);
    }

    fn is_not_kept(&mut self, name: &str, digest: &Digest, error: &ArchiveError, again: Again) {
        self.not_archived.again = Some(again);
        let why = chain(error);
        warn!(plugin = name, why, "the bytes of a plugin cannot be kept; it plans no new job until they are");
        if again.attempts >= QUIET {
            self.shared.handles.stores.change(|layout| layout.hold_new_jobs(digest, Some(&why)));
            self.wake_new(name, digest);
        }
    }

    /// The name, the bytes and the mark of a plugin that comes with this host.
    fn built_in(&self, digest: &Digest) -> Option<(String, &'static [u8], Mark)> {
        let plugins = &self.shared.handles.plugins;
        let prepared = plugins.prepared(digest)?;
        let name = prepared.descriptor.name.clone();
        let (_, settings) = self.shared.handles.bundled.get(&name)?;
        let mark = Mark::new(Mark::BY_HOST.to_owned(), &prepared.descriptor, settings, settings.grants.clone()?);
        let wasm = Plugins::built_in(&name)?;
        Some((name, wasm, mark))
    }

    /// Jobs that no digest plans so far look whether this one does.
    fn wake_new(&self, name: &str, digest: &Digest) {
        let new = census::unplanned_keys_of(&self.shared.handles.stores, name);
        self.shared
            .handles
            .wanted
            .settle(digest)
            .into_iter()
            .chain(new)
            .for_each(|key| self.shared.handles.queue.add(key));
    }

    /// All Plugins; none where the API server does not have them, or the host has no right to list them. Asks until there
    /// is an answer, since a job must not be planned by what a Plugin has replaced.
    async fn list(&self) -> Vec<Seen> {
        let mut forbidden = Forbidden::default();
        loop {
            match seen::list(&self.shared.sources.client).await {
                Ok(plugins) => return plugins,
                Err(error) => {
                    let has_no_right = forbidden.is_for_good(&error, Instant::now())
                        || is_forbidden(&error) && seen::may_list(&self.shared.sources.client).await == Some(false);
                    if is_missing(&error) || has_no_right {
                        warn!(
                            error = chain(&error),
                            "no Plugins can be seen: apply crds/ and deploy/rbac.yaml for them"
                        );
                        return vec![];
                    }
                    warn!(error = chain(&error), "failed to list Plugins, trying again");
                    pause(&error).await;
                }
            }
        }
    }

    /// Takes note of a Plugin. Returns its name and the digest that served last, which serves again, whatever has become of
    /// its source. New jobs wait for it, since what a Plugin has replaced must not plan them.
    async fn restore(&mut self, plugin: Seen) -> Option<(String, Digest)> {
        let name = plugin.name.clone();
        let (named, active) = (named(&plugin.status), active(&plugin.status));
        self.learn(plugin).await;
        self.shared.handles.stores.change(|layout| {
            let Some(accepted) = layout.accepted() else { return };
            named.iter().for_each(|digest| accepted.name(digest));
        });
        let active = active?;
        let is_loaded = self.shared.handles.plugins.has(&active);
        if self.shared.archive.is_none() && !is_loaded {
            warn!(plugin = name, digest = active.short(), "the digest that served is lost; new jobs wait for another");
            self.shared.handles.route(&name, &Route::default());
            return None;
        }
        self.settle_as_accepted(&name, &active);
        Some((name, active))
    }

    /// Begins to give what comes with the host the settings again with which its Plugin had it serve. Asks for them until
    /// there is an answer, since running jobs must not be planned with others, or the host has no right to them.
    fn settle_as_accepted(&mut self, name: &str, digest: &Digest) {
        let Shared { handles, archive: Some(archive), .. } = &*self.shared else { return };
        let Some(prepared) = handles.plugins.prepared(digest) else { return };
        let (name, archive) = (name.to_owned(), archive.clone());
        self.attempt(digest, async move {
            let mark = known_mark(&archive, &name, &prepared.digest).await;
            Box::new(move |delivery: &mut Self| {
                if let Some(mark) = mark.filter(|mark| mark.is_of(&name)) {
                    delivery.shared.handles.settle(&name, &prepared, &mark.settings());
                }
            }) as Ending
        });
    }
}

/// The mark on what is kept of this digest. Asks until there is an answer; none where the host has no right to it.
async fn known_mark(archive: &Archive, plugin: &str, digest: &Digest) -> Option<Mark> {
    let mut forbidden = Forbidden::default();
    loop {
        let error = match archive.read_mark(digest).await {
            Ok(mark) => return mark,
            Err(error) => error,
        };
        match error.answer() {
            Some(answer) if forbidden.is_for_good(answer, Instant::now()) => {
                warn!(plugin, error = chain(&error), "its settings come with the first look at its Plugin");
                return None;
            }
            Some(answer) => {
                warn!(plugin, error = chain(&error), "failed to read its settings, trying again");
                pause(answer).await;
            }
            None => return None,
        }
    }
}

/// Waits before the next attempt, as long as the API server asks for.
async fn pause(error: &kube::Error) {
    sleep(AGAIN.max(answer::retry_after(error).unwrap_or_default())).await;
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
