//! Digests that jobs need and that are not loaded: loaded from the archive, or reported as lost, and sought again.
//!
//! Only those that the host has accepted are sought, and only in its own namespace: what a job says loads nothing.

use super::{
    Delivery, Ending, Errand, Handles,
    archive::{Archive, ArchiveError},
    census,
    mark::Mark,
    names, settings,
    shared::Shared,
    statuses::{active, named},
};
use crate::{api::names::NamesError, error::chain, observe::layout::Route, plugin_resource::PluginStatus};
use decide::{
    Digest,
    plan::{Budget, Fault},
};
use sandbox::{ConfigError, LoadError, Prepared, Settings};
use std::{collections::BTreeMap, time::Duration};
use tokio::{sync::Semaphore, time::Instant};
use tracing::{info, warn};

/// The number of attempts that may fail before the jobs that need the digest say so.
pub(super) const QUIET: u32 = 3;

/// Between two attempts, at most.
const LONGEST: Duration = Duration::from_secs(60);

/// The same where the next attempt ends as the last one did unless somebody changes something: it may compile a component.
const LONGEST_IN_VAIN: Duration = Duration::from_secs(600);

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
        Self::within(LONGEST, before, asked)
    }

    fn within(longest: Duration, before: Option<Self>, asked: Duration) -> Self {
        let attempts = before.map_or(0, |before| before.attempts).saturating_add(1);
        let pause = Duration::from_secs(1 << (attempts - 1).min(10)).min(longest);
        Self { attempts, at: Instant::now() + pause.max(asked) }
    }
}

/// Why a digest that was accepted is not loaded.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum Absent {
    Archive(#[from] ArchiveError),
    /// The API server calls its kinds otherwise, or did not say what it calls them.
    Names(#[from] NamesError),
    /// Its bytes are here, and are no plugin for this host.
    Load(#[from] LoadError),
    Config(#[from] ConfigError),
}

impl Absent {
    /// The next attempt may well end otherwise, so that jobs wait for a few before they say anything.
    fn is_passing(&self) -> bool {
        match self {
            Self::Archive(error) => error.is_passing(),
            Self::Names(error) => matches!(error, NamesError::LookUp { .. }),
            Self::Load(_) | Self::Config(_) => false,
        }
    }

    /// The bytes are here and this host does not take them: neither time nor anybody in the cluster changes that.
    fn is_in_vain(&self) -> bool {
        match self {
            Self::Archive(_) | Self::Names(_) => false,
            Self::Load(error) => !is_of_the_machine(error),
            Self::Config(error) => error.is_known(),
        }
    }

    /// When the bytes are sought again.
    fn again(&self, before: Option<Again>) -> Again {
        let asked = if let Self::Archive(error) = self { error.retry_after() } else { Duration::ZERO };
        Again::within(if self.is_in_vain() { LONGEST_IN_VAIN } else { LONGEST }, before, asked)
    }
}

/// The cause may be a machine that is short of time, memory or processes, and not the component.
fn is_of_the_machine(error: &LoadError) -> bool {
    match error {
        LoadError::NoCompiler { .. } | LoadError::CompilerBroke { .. } => true,
        LoadError::CompilerStopped { budget, .. } => *budget == "time",
        LoadError::Describe(Fault::OutOfBudget { budget, .. }) => matches!(budget, Budget::Time | Budget::Instances),
        _ => false,
    }
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
        self.attempt(Errand::Seek(digest.clone()), async move {
            let loaded = shared.load(&places, &sought).await;
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

    /// Begins to load the sought digests whose time has come. One that nothing needs any more is sought no longer.
    pub(super) fn seek_again(&mut self) {
        let now = Instant::now();
        let is_due = |(digest, again): &(&Digest, &Again)| again.at <= now && !self.is_sought_now(digest);
        let due: Vec<_> = self.sought.iter().filter(is_due).map(|(digest, _)| digest.clone()).collect();
        for digest in due {
            let Handles { stores, wanted, .. } = &*self.shared.handles;
            let is_needed = is_active(&self.shared.statuses(), &digest)
                || wanted.has(&digest)
                || !census::keys_pinned_to(stores, &digest).is_empty();
            if is_needed {
                self.seek(&digest);
            } else {
                self.sought.remove(&digest);
                // A job that needs it from now on is the first that does, and has it sought again.
                self.shared.handles.stores.change(|layout| layout.forget_lost(&digest));
                self.wake_pinned(&digest);
            }
        }
    }

    /// Jobs that are pinned to it are planned again; so are new ones, where the status of a Plugin says so.
    fn add_back(&self, digest: &Digest, prepared: &Prepared) -> Result<(), ConfigError> {
        let (name, handles) = (&prepared.descriptor.name, &self.shared.handles);
        let statuses = self.shared.statuses();
        // Its Plugin may have put it into service meanwhile, with settings that are newer.
        if handles.stores.layout().descriptor(digest).is_none() {
            match handles.bundled.with(digest) {
                Some((_, own)) => {
                    self.add_own(prepared, own)?;
                    self.limit_built_in(name);
                }
                None => self.add_as_accepted(digest, prepared, statuses.get(name))?,
            }
        }
        info!(plugin = name, digest = digest.short(), "loaded again for jobs that run");
        if let Some(descriptor) = handles.plugins.descriptor(digest) {
            handles.stores.change(|layout| layout.add(&descriptor, digest));
        }
        let route = handles.route_of(name).filter(|route| route.active.is_some()).unwrap_or_else(|| Route::to(digest));
        // New jobs may go there already: what it describes counts for its kinds from now on.
        if is_active(&statuses, digest) && route.active.as_ref() == Some(digest) {
            handles.route(name, &route);
        }
        Ok(())
    }

    /// It gets what it was granted when it was accepted, as far as its Plugin grants that to what serves now.
    fn add_as_accepted(
        &self,
        digest: &Digest,
        prepared: &Prepared,
        status: Option<&PluginStatus>,
    ) -> Result<(), ConfigError> {
        let (name, handles) = (&prepared.descriptor.name, &self.shared.handles);
        let Handles { plugins, bundled, .. } = &**handles;
        let marks = self.shared.marks();
        let marked = marks.get(digest).map(Mark::settings);
        let is_named = status.is_some_and(|status| named(status).contains(digest));
        let spec = || self.plugins.get(name).and_then(|it| it.shown.borrow().spec.clone().ok()).filter(|_| is_named);
        let granted =
            marked.or_else(|| spec().map(|spec| Settings { grants: Some(spec.grants.clone()), ..settings(&spec) }));
        let granted = granted.unwrap_or_else(|| Settings { grants: Some(Default::default()), ..Settings::default() });
        let without_config = || Settings { config: None, ..granted.clone() };
        // If it is unknown whether the config fits, another config could change pods of running jobs.
        match plugins.add(prepared, &granted) {
            Err(error) if error.is_known() => plugins.add(prepared, &without_config()).map(drop)?,
            added => added.map(drop)?,
        }
        // The Plugin may grant less than it did when this one was accepted.
        let is_its = marks.get(digest).is_none_or(|mark| mark.is_of(name));
        let serves = status.and_then(active).filter(|serves| is_its && serves != digest);
        if let Some((serves, now)) = serves.as_ref().and_then(|serves| Some((serves, marks.get(serves)?.settings()))) {
            // What comes with the host is trusted as the host is: what it asks for is no limit for others, unless its Plugin
            // names grants.
            let is_trusted =
                bundled.digests().any(|bundled| bundled == serves) && self.granted_to_built_in(name).is_none();
            handles.adapt(name, digest, &Settings { grants: now.grants.filter(|_| !is_trusted), ..now });
        }
        Ok(())
    }

    pub(super) fn is_absent(&mut self, digest: &Digest, absent: &Absent) {
        let again = absent.again(self.sought.get(digest).copied());
        self.sought.insert(digest.clone(), again);
        let why = chain(absent);
        warn!(digest = digest.short(), why, "a plugin that jobs need cannot be loaded; their pods are left alone");
        if !absent.is_passing() || again.attempts >= QUIET {
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
    /// Loads the digest. What comes with the host is here, and lacks nothing but its settings.
    async fn load(&self, places: &Semaphore, digest: &Digest) -> Result<Prepared, Absent> {
        if let Some((own, _)) = self.handles.bundled.with(digest) {
            self.learn_settings(own).await?;
            return Ok(own.clone());
        }
        let _place = places.acquire().await;
        self.load_archived(digest).await
    }

    async fn load_archived(&self, digest: &Digest) -> Result<Prepared, Absent> {
        let wasm = self.archived_bytes(digest).await?;
        // Before the watch of what is kept has listed, nobody else knows with which settings it was accepted.
        if let Some(archive) = &self.archive
            && let Some(mark) = archive.read_mark(digest).await?
        {
            self.marks().insert(digest.clone(), mark);
        }
        // Metrics count its calls under this name: whoever may write a job's status must not make up others.
        let name = self.name_of(digest).unwrap_or_default();
        let prepared = self.handles.plugins.prepare_foreign(&name, &wasm).await?;
        // A kind that was not served when it was accepted may be by now.
        names::check(&self.sources.client, &prepared.descriptor).await?;
        Ok(prepared)
    }

    /// The plugin that an accepted digest is of: its Plugin's name, or who serves the kinds that it was accepted for.
    fn name_of(&self, digest: &Digest) -> Option<String> {
        let statuses = self.statuses();
        if let Some((name, _)) = statuses.iter().find(|(_, status)| named(status).contains(digest)) {
            return Some(name.clone());
        }
        let (marks, layout) = (self.marks(), self.handles.stores.layout());
        let kinds = &marks.get(digest)?.kinds;
        let served = layout.kinds().values().find(|served| kinds.contains(&served.kind.id()))?;
        Some(served.framework.name.clone())
    }
}

/// The status of a Plugin says that it serves new jobs.
fn is_active(statuses: &BTreeMap<String, PluginStatus>, digest: &Digest) -> bool {
    statuses.values().any(|status| active(status).as_ref() == Some(digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::source::component;

    /// The pauses between attempts that end in this way, in seconds.
    fn pauses(absent: &Absent) -> Vec<u64> {
        let (now, mut before) = (Instant::now(), None);
        let pause = |_| {
            let again = absent.again(before);
            before = Some(again);
            (again.at - now).as_secs()
        };
        (0..12).map(pause).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_this_host_does_not_take_are_loaded_ever_more_rarely_up_to_ten_minutes() {
        let no_component = Absent::Load(LoadError::NotAComponent(component(b"").unwrap_err()));
        assert_eq!(pauses(&no_component), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_again_each_minute() {
        let is_killed = LoadError::CompilerBroke { how: "signal: 9".to_owned(), words: String::new() };
        for absent in [Absent::Load(is_killed), Absent::Archive(ArchiveError::NotKept("one".to_owned()))] {
            assert_eq!(pauses(&absent), [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60], "{absent}");
        }
    }
}
