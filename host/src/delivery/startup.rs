//! What a host does about plugins before it plans the first job: learns which Plugins there are and what served before.
//! What fails then is tried again until it is known; only jobs that need it wait.

use super::{
    Delivery, Handles, Options, census,
    lost::{Again, QUIET},
    mark::Mark,
    seen::{self, Seen},
    shared::Shared,
    statuses::{active, named},
};
use crate::{error::chain, observe::layout::Route};
use decide::Digest;
use kube::{Client, api::ListParams};
use sandbox::Plugins;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use tracing::{info, warn};

/// Between two attempts to learn which Plugins there are.
const AGAIN: Duration = Duration::from_secs(1);

/// Built-in plugins whose bytes are not kept yet.
pub(super) struct NotArchived {
    digests: BTreeSet<Digest>,
    pub(super) again: Option<Again>,
}

impl Delivery {
    /// Whatever served before serves again once this returns, or is sought.
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
        };
        delivery.withhold_built_ins();
        delivery.keep_built_ins().await;
        for plugin in delivery.list().await {
            delivery.restore(plugin).await;
        }
        delivery.give_back_what_nobody_names();
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

    /// No job gets a digest before that is kept.
    fn withhold_built_ins(&self) {
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
    }

    /// Keeps the bytes of what comes with this host, since the next host may come with others. What fails is tried again.
    pub(super) async fn keep_built_ins(&mut self) {
        let began = Instant::now();
        let Some(archive) = self.shared.archive.clone() else { return };
        let again = Again::after(self.not_archived.again, began);
        for digest in self.not_archived.digests.clone() {
            let Some((name, wasm, mark)) = self.built_in(&digest) else { continue };
            let Err(error) = archive.keep(&digest, wasm, None, Some(&mark)).await else {
                self.not_archived.digests.remove(&digest);
                self.shared.handles.stores.change(|layout| layout.admit_new_jobs(&digest));
                self.wake_new(&name, &digest);
                continue;
            };
            let why = chain(&error);
            warn!(plugin = name, why, "the bytes of a plugin cannot be kept; it plans no new job until they are");
            if again.attempts >= QUIET {
                self.shared.handles.stores.change(|layout| layout.hold_new_jobs(&digest, Some(&why)));
                self.wake_new(&name, &digest);
            }
        }
        self.not_archived.again = (!self.not_archived.digests.is_empty()).then_some(again);
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

    /// All Plugins; none where the API server does not have them. Asks until there is an answer, since a job must not be
    /// planned by what a Plugin has replaced.
    async fn list(&self) -> Vec<Seen> {
        loop {
            match seen::plugins(&self.shared.sources.client).list(&ListParams::default()).await {
                Ok(list) => return list.items.into_iter().map(Seen::from).collect(),
                Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
                    warn!(why = status.message, "no Plugins can be seen: apply crds/ and deploy/rbac.yaml for them");
                    return vec![];
                }
                Err(error) => warn!(error = chain(&error), "failed to list Plugins, trying again"),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The digest that served last serves again, whatever has become of its source. New jobs wait for it, since what a
    /// Plugin has replaced must not plan them.
    async fn restore(&mut self, plugin: Seen) {
        let name = plugin.name.clone();
        let (named, active) = (named(&plugin.status), active(&plugin.status));
        self.learn(plugin).await;
        self.shared.handles.stores.change(|layout| {
            let Some(accepted) = layout.accepted() else { return };
            named.iter().for_each(|digest| accepted.name(digest));
        });
        let Some(active) = active else { return };
        let is_loaded = self.shared.handles.plugins.has(&active);
        if self.shared.archive.is_none() && !is_loaded {
            warn!(plugin = name, digest = active.short(), "the digest that served is lost; new jobs wait for another");
            return self.shared.handles.route(&name, &Route::default());
        }
        self.settle_as_accepted(&name, &active).await;
        self.shared.handles.route(&name, &Route::to(&active));
        self.seek(&active).await;
    }

    /// What comes with the host has the settings again with which its Plugin had it serve, before any pass.
    async fn settle_as_accepted(&self, name: &str, digest: &Digest) {
        let Shared { handles, archive: Some(archive), .. } = &*self.shared else { return };
        let Some(prepared) = handles.plugins.prepared(digest) else { return };
        match archive.read_mark(digest).await {
            Ok(Some(mark)) if mark.is_of(name) => handles.settle(name, &prepared, &mark.settings()),
            Ok(_) => {}
            Err(error) => {
                warn!(plugin = name, error = chain(&error), "its settings come with the first look at its Plugin");
            }
        }
    }
}
