//! Digests that jobs need and that are not loaded: loaded from the archive, or reported as lost, and sought again.
//!
//! Only those that the host has accepted are sought, and only in its own namespace: what a job says loads nothing.

use super::{
    Delivery, Ending, Handles,
    archive::{Archive, ArchiveError},
    census,
    mark::Mark,
    names, settings,
    shared::Shared,
    statuses::{active, named},
};
use crate::{api::names::NamesError, error::chain, observe::layout::Route, plugin_resource::PluginStatus};
use decide::Digest;
use sandbox::{ConfigError, LoadError, Prepared, Settings};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;
use tracing::{info, warn};

/// The number of attempts that may fail before the jobs that need the digest say so.
pub(super) const QUIET: u32 = 3;

/// Between two attempts, at most.
const LONGEST: Duration = Duration::from_secs(60);

/// The number of digests that are loaded at once. The bytes of each are in memory meanwhile.
pub(super) const AT_ONCE: usize = 8;

/// When something that failed is tried again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Again {
    /// Attempts so far.
    pub(super) attempts: u32,
    pub(super) at: Instant,
}

impl Again {
    /// Now, for the first time.
    pub(super) fn now() -> Self {
        Self { attempts: 0, at: Instant::now() }
    }

    /// After one more attempt, and no sooner than the API server asks for.
    pub(super) fn after(before: Option<Self>, asked: Duration) -> Self {
        let attempts = before.map_or(0, |before| before.attempts).saturating_add(1);
        let pause = Duration::from_secs(1 << (attempts - 1).min(6)).min(LONGEST);
        Self { attempts, at: Instant::now() + pause.max(asked) }
    }
}

/// Why a digest that was accepted is not loaded.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum Absent {
    Archive(#[from] ArchiveError),
    /// The API server calls its kinds otherwise, or did not say what it calls them.
    Names(#[from] NamesError),
    /// Its bytes are here, and are no plugin for this host.
    Load(#[from] LoadError),
    Config(#[from] ConfigError),
}

impl Delivery {
    /// What is kept is another: digests that jobs may need are there, or there again.
    pub(super) fn look_at_archive(&mut self) {
        let Some(archive_store) = &self.archive_store else { return };
        let marks = Archive::marked(archive_store);
        let kinds: BTreeMap<_, _> = marks.iter().map(|(digest, mark)| (digest.clone(), mark.kinds.clone())).collect();
        *self.shared.marks() = marks;
        let Handles { stores, queue, wanted, .. } = &*self.shared.handles;
        let mut new = Vec::new();
        stores.change(|layout| new = layout.accepted().map(|it| it.keep(kinds)).unwrap_or_default());
        // Those that waited to know what is accepted look for themselves.
        wanted.settle_all().into_iter().for_each(|key| queue.add(key));
        for digest in new {
            self.sought.remove(&digest);
            let is_lost = self.shared.handles.stores.layout().is_lost(&digest);
            if is_lost || is_active(&self.shared.statuses(), &digest) {
                self.seek(&digest);
            } else {
                self.wake_pinned(&digest);
            }
        }
    }

    /// Begins to load a digest that jobs are pinned to, unless it is loaded. Jobs of one that is lost say so.
    pub(super) fn seek(&mut self, digest: &Digest) {
        let layout = self.shared.handles.stores.layout();
        if layout.plans(digest) {
            // It was loaded by its Plugin's task after a pass had found that it was not, or its bytes are not archived
            // yet: the jobs that wait for that are woken once they are.
            self.sought.remove(digest);
            if layout.admits_new_jobs(digest) {
                self.wake_pinned(digest);
            }
            return;
        }
        if !layout.is_accepted(digest) {
            self.sought.remove(digest);
            return;
        }
        let (shared, places, sought) = (self.shared.clone(), self.places.clone(), digest.clone());
        self.attempt(digest, async move {
            let _place = places.acquire().await;
            let loaded = shared.load_archived(&sought).await;
            Box::new(move |delivery: &mut Self| delivery.is_sought(&sought, loaded)) as Ending
        });
    }

    /// An attempt to load a digest has ended.
    fn is_sought(&mut self, digest: &Digest, loaded: Result<Prepared, Absent>) {
        match loaded.and_then(|prepared| Ok(self.add_back(digest, &prepared)?)) {
            Ok(()) => {
                self.sought.remove(digest);
                self.wake_pinned(digest);
            }
            Err(absent) => self.is_absent(digest, &absent),
        }
    }

    /// Begins to load the sought digests whose time has come.
    pub(super) fn seek_again(&mut self) {
        let now = Instant::now();
        let is_due = |(digest, again): &(&Digest, &Again)| again.at <= now && !self.under_way.contains(*digest);
        let due: Vec<_> = self.sought.iter().filter(is_due).map(|(digest, _)| digest.clone()).collect();
        for digest in due {
            let is_active = is_active(&self.shared.statuses(), &digest);
            if is_active || !census::keys_pinned_to(&self.shared.handles.stores, &digest).is_empty() {
                self.seek(&digest);
            } else {
                self.sought.remove(&digest);
            }
        }
    }

    /// Jobs that are pinned to it are planned again; so are new ones, where the status of a Plugin says so.
    fn add_back(&self, digest: &Digest, prepared: &Prepared) -> Result<(), ConfigError> {
        let (name, handles) = (&prepared.descriptor.name, &self.shared.handles);
        let statuses = self.shared.statuses();
        // Its Plugin may have put it into service meanwhile, with settings that are newer.
        if handles.stores.layout().descriptor(digest).is_none() {
            self.add_as_accepted(digest, prepared, statuses.get(name))?;
        }
        info!(plugin = name, digest = digest.short(), "loaded again for jobs that run");
        if let Some(descriptor) = handles.plugins.descriptor(digest) {
            handles.stores.change(|layout| layout.add(&descriptor, digest));
        }
        if is_active(&statuses, digest) && handles.active(name).is_none() {
            handles.route(name, &Route::to(digest));
        }
        Ok(())
    }

    /// It gets what it was granted when it was accepted, and no more than its Plugin grants to what serves now.
    fn add_as_accepted(
        &self,
        digest: &Digest,
        prepared: &Prepared,
        status: Option<&PluginStatus>,
    ) -> Result<(), ConfigError> {
        let (name, Handles { plugins, .. }) = (&prepared.descriptor.name, &*self.shared.handles);
        let marks = self.shared.marks();
        let marked = marks.get(digest).map(Mark::settings);
        let is_named = status.is_some_and(|status| named(status).contains(digest));
        let spec = || self.plugins.get(name).and_then(|it| it.shown.borrow().spec.clone().ok()).filter(|_| is_named);
        let granted =
            marked.or_else(|| spec().map(|spec| Settings { grants: Some(spec.grants.clone()), ..settings(&spec) }));
        let granted = granted.unwrap_or_else(|| Settings { grants: Some(Default::default()), ..Settings::default() });
        let without_config = || Settings { config: None, ..granted.clone() };
        plugins.add(prepared, &granted).or_else(|_| plugins.add(prepared, &without_config())).map(drop)?;
        // The Plugin may grant less than it did when this one was accepted.
        let is_its = marks.get(digest).is_none_or(|mark| mark.is_of(name));
        let serves = status.and_then(active);
        if let Some(now) = serves.filter(|_| is_its).and_then(|serves| marks.get(&serves)) {
            self.shared.handles.settle(name, prepared, &now.settings());
        }
        Ok(())
    }

    fn is_absent(&mut self, digest: &Digest, absent: &Absent) {
        let asked = if let Absent::Archive(error) = absent { error.retry_after() } else { Duration::ZERO };
        let again = Again::after(self.sought.get(digest).copied(), asked);
        self.sought.insert(digest.clone(), again);
        let why = chain(absent);
        let is_passing = match absent {
            Absent::Archive(error) => error.is_passing(),
            Absent::Names(error) => matches!(error, NamesError::LookUp { .. }),
            Absent::Load(_) | Absent::Config(_) => false,
        };
        warn!(digest = digest.short(), why, "a plugin that jobs need cannot be loaded; their pods are left alone");
        if !is_passing || again.attempts >= QUIET {
            self.shared.handles.stores.change(|layout| layout.record_lost(digest, &why));
            self.wake_pinned(digest);
        }
    }

    fn wake_pinned(&self, digest: &Digest) {
        let Handles { stores, queue, wanted, .. } = &*self.shared.handles;
        let waiting = wanted.settle(digest).into_iter().chain(census::keys_pinned_to(stores, digest));
        waiting.for_each(|key| queue.add(key));
    }
}

impl Shared {
    async fn load_archived(&self, digest: &Digest) -> Result<Prepared, Absent> {
        let wasm = self.archived_bytes(digest).await?;
        // Before the watch of what is kept has listed, nobody else knows with which settings it was accepted.
        if let Some(archive) = &self.archive
            && let Some(mark) = archive.read_mark(digest).await?
        {
            self.marks().insert(digest.clone(), mark);
        }
        let prepared = self.handles.plugins.prepare_foreign(digest.short(), &wasm).await?;
        // A kind that was not served when it was accepted may be by now.
        names::check(&self.sources.client, &prepared.descriptor).await?;
        Ok(prepared)
    }
}

/// The status of a Plugin says that it serves new jobs.
fn is_active(statuses: &BTreeMap<String, PluginStatus>, digest: &Digest) -> bool {
    statuses.values().any(|status| active(status).as_ref() == Some(digest))
}
