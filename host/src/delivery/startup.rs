//! What a host does about plugins before it plans the first job: learns which Plugins there are and what served before.
//! What fails then is tried again until it is known; only jobs that need it wait. So it is with what takes long.

use super::{
    Delivery, Ending, Errand, Handles, Options,
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
use decide::{Digest, grants::Grants};
use kube::Client;
use sandbox::{ConfigError, Plugins, Prepared, Settings};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
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

impl Delivery {
    /// Once this returns, no new job is planned by what a Plugin has replaced. Whatever served before serves again, or is
    /// sought.
    pub(crate) async fn start(client: Client, handles: Arc<Handles>, options: Options) -> Self {
        let mut delivery = Self {
            shared: Arc::new(Shared::new(client, handles, options)),
            archive_store: None,
            plugins: BTreeMap::new(),
            listed: None,
            swept: Instant::now(),
            sought: BTreeMap::new(),
            not_archived: BTreeMap::new(),
            attempts: JoinSet::new(),
            under_way: BTreeSet::new(),
            first: BTreeSet::new(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
        };
        delivery.withhold_built_ins();
        for plugin in delivery.list().await {
            if let Some((name, digest)) = delivery.restore(plugin).await {
                delivery.shared.handles.route(&name, &Route::to(&digest));
                delivery.sought.insert(digest, Again::now());
            }
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
            let own = self.shared.handles.bundled.get(name).map(|(prepared, _)| &prepared.digest);
            let serves = served.route.active.as_ref() == own && own.is_none_or(|own| layout.plans(own));
            if !self.plugins.contains_key(name) && !serves {
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
        let built_in = Plugins::built_in_digests().filter(|digest| self.built_in(digest).is_some());
        self.not_archived = built_in.map(|digest| (digest, Again::now())).collect();
        self.shared.handles.stores.change(|layout| {
            layout.keep_bytes();
            self.not_archived.keys().for_each(|digest| layout.hold_new_jobs(digest, None));
        });
    }

    /// Begins to keep the bytes of what comes with this host where that is due, since the next host may come with others.
    /// What fails is tried again.
    pub(super) fn keep_built_ins(&mut self) {
        let Some(archive) = self.shared.archive.clone() else { return };
        let now = Instant::now();
        let is_due = |(digest, again): &(&Digest, &Again)| again.at <= now && !self.is_kept_now(digest);
        let due: Vec<_> = self.not_archived.iter().filter(is_due).map(|(digest, _)| digest.clone()).collect();
        for kept in due {
            let Some((wasm, mark)) = self.built_in(&kept) else { continue };
            let archive = archive.clone();
            self.attempt(Errand::Keep(kept.clone()), async move {
                let answer = archive.keep(&kept, wasm, None, Some(&mark)).await;
                Box::new(move |delivery: &mut Self| match answer {
                    Ok(()) => delivery.is_kept(&kept),
                    Err(error) => delivery.is_not_kept(&kept, &error),
                }) as Ending
            });
        }
    }

    fn is_kept(&mut self, digest: &Digest) {
        self.not_archived.remove(digest);
        self.shared.handles.stores.change(|layout| layout.admit_new_jobs(digest));
        self.wake_new(digest);
    }

    pub(super) fn is_not_kept(&mut self, digest: &Digest, error: &ArchiveError) {
        let again = Again::after(self.not_archived.get(digest).copied(), error.retry_after());
        self.not_archived.insert(digest.clone(), again);
        let (plugin, why) = (self.name_of_built_in(digest), chain(error));
        warn!(plugin, why, "the bytes of a plugin cannot be kept; it plans no new job until they are");
        if again.attempts >= QUIET {
            self.shared.handles.stores.change(|layout| layout.hold_new_jobs(digest, Some(&why)));
            self.wake_new(digest);
        }
    }

    /// The bytes and the mark of a plugin that comes with this host.
    fn built_in(&self, digest: &Digest) -> Option<(&'static [u8], Mark)> {
        let (Prepared { descriptor, .. }, settings) = self.shared.handles.bundled.with(digest)?;
        let mark = Mark::new(Mark::BY_HOST.to_owned(), descriptor, settings, settings.grants.clone()?);
        Some((Plugins::built_in(&descriptor.name)?, mark))
    }

    fn name_of_built_in(&self, digest: &Digest) -> &str {
        self.shared.handles.bundled.with(digest).map_or("", |(prepared, _)| prepared.descriptor.name.as_str())
    }

    /// Jobs that no digest plans so far look whether this one does.
    fn wake_new(&self, digest: &Digest) {
        let Handles { stores, queue, wanted, .. } = &*self.shared.handles;
        let new = census::unplanned_keys_of(stores, self.name_of_built_in(digest));
        wanted.settle(digest).into_iter().chain(new).for_each(|key| queue.add(key));
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
        self.limit_built_in(&name);
        let active = active?;
        let is_loaded = self.shared.handles.plugins.has(&active);
        if self.shared.archive.is_none() && !is_loaded {
            warn!(plugin = name, digest = active.short(), "the digest that served is lost; new jobs wait for another");
            self.shared.handles.route(&name, &Route::default());
            return None;
        }
        self.withhold(&name, &active);
        Some((name, active))
    }

    /// What comes with the host is not loaded before it is known with which settings its Plugin had it serve: one pass with
    /// others could change pods of jobs that run. It is sought as any other digest is, and holds its own jobs alone. A
    /// delivery that was started again finds it with its settings, or sought.
    fn withhold(&self, name: &str, digest: &Digest) {
        let Handles { plugins, stores, bundled, is_starting, .. } = &*self.shared.handles;
        let is_own = bundled.get(name).is_some_and(|(prepared, _)| prepared.digest == *digest);
        if is_own && self.shared.archive.is_some() && is_starting.load(Ordering::Relaxed) {
            plugins.unload(digest);
            stores.change(|layout| layout.remove(digest));
        }
    }

    /// Loads what comes with the host with the settings with which its Plugin had it serve, as far as they fit.
    ///
    /// # Errors
    /// It takes neither these settings nor its own.
    pub(super) fn add_own(&self, prepared: &Prepared, own: &Settings) -> Result<(), ConfigError> {
        let (Prepared { digest, descriptor, .. }, handles) = (prepared, &self.shared.handles);
        let accepted = self.shared.marks().get(digest).filter(|mark| mark.is_of(&descriptor.name)).map(Mark::settings);
        let Some(accepted) = accepted else { return handles.plugins.add(prepared, own).map(drop) };
        // Its own settings come in only where it has to keep its config: a job that has ended may ask it in between.
        if let Err(error) = handles.plugins.add(prepared, &accepted) {
            let plugin = &descriptor.name;
            info!(plugin, digest = digest.short(), %error, "what comes with the host keeps its own config");
            handles.plugins.add(prepared, own)?;
            handles.plugins.restrict(digest, &accepted);
        }
        Ok(())
    }

    /// What comes with the host is limited to the grants that its Plugin names before it is asked anything.
    pub(super) fn limit_built_in(&self, name: &str) {
        let Handles { plugins, bundled, .. } = &*self.shared.handles;
        if let (Some((prepared, _)), Some(grants)) = (bundled.get(name), self.granted_to_built_in(name)) {
            plugins.withdraw(&prepared.digest, &grants);
        }
    }

    /// The grants that a Plugin names for what comes with the host.
    pub(super) fn granted_to_built_in(&self, name: &str) -> Option<Grants> {
        self.plugins.get(name)?.shown.borrow().spec.as_ref().ok()?.granted_to_built_in().cloned()
    }
}

impl Shared {
    /// Learns with which settings its Plugin had serve what comes with the host. Where the host has no right to know, they come
    /// with the first look at that Plugin.
    ///
    /// # Errors
    /// The API server refuses for another reason, or does not answer.
    pub(super) async fn learn_settings(&self, own: &Prepared) -> Result<(), ArchiveError> {
        let Some(archive) = &self.archive else { return Ok(()) };
        if let Some(mark) = known_mark(archive, own).await? {
            self.marks().insert(own.digest.clone(), mark);
        }
        Ok(())
    }
}

/// The mark on what is kept of a plugin; none where the host has no right to it, which is known once the API server has
/// forbidden it for long enough.
async fn known_mark(archive: &Archive, prepared: &Prepared) -> Result<Option<Mark>, ArchiveError> {
    let mut forbidden = Forbidden::default();
    loop {
        let error = match archive.read_mark(&prepared.digest).await {
            Ok(mark) => return Ok(mark),
            Err(error) => error,
        };
        match error.answer() {
            Some(answer) if forbidden.is_for_good(answer, Instant::now()) => {
                let plugin = &prepared.descriptor.name;
                warn!(plugin, error = chain(&error), "its settings come with the first look at its Plugin");
                return Ok(None);
            }
            Some(answer) if is_forbidden(answer) => pause(answer).await,
            _ => return Err(error),
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
