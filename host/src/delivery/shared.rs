//! What the tasks of all Plugins share: where plugins come from and are kept, and what one has to know of the others.

use super::{
    Handles, Options,
    archive::{Archive, LARGEST},
    fetch::Sources,
    look,
    mark::Mark,
    watched::{Version, Versions},
};
use crate::{
    api::patient::explicit,
    plugin_resource::{PluginSpec, PluginStatus},
};
use decide::Digest;
use kube::Client;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::sync::{Semaphore, watch};

/// What the tasks of all Plugins share.
pub(super) struct Shared {
    pub(super) handles: Arc<Handles>,
    pub(super) sources: Sources,
    /// None: no bytes are kept.
    pub(super) archive: Option<Archive>,
    /// How many looks there may be at once.
    pub(super) places: Semaphore,
    /// What the watches have shown of sources.
    pub(super) versions: watch::Sender<Versions>,
    /// Changes when a Plugin has gone, whose kinds another may have.
    pub(super) vacancies: watch::Sender<()>,
    marks: Mutex<BTreeMap<Digest, Mark>>,
    statuses: Mutex<BTreeMap<String, PluginStatus>>,
}

impl Shared {
    pub(super) fn new(client: Client, handles: Arc<Handles>, options: Options) -> Self {
        let sources = Sources {
            client: explicit(client),
            namespace: options.namespace,
            allowed: options.source_namespaces,
            limit: handles.plugins.limits().component,
        };
        let archive =
            sources.namespace.as_ref().map(|namespace| Archive::new(&sources, &handles.plugins, namespace, LARGEST));
        Self {
            handles,
            sources,
            archive,
            places: Semaphore::new(look::AT_ONCE),
            versions: watch::Sender::default(),
            vacancies: watch::Sender::default(),
            marks: Mutex::default(),
            statuses: Mutex::default(),
        }
    }

    /// The status of every Plugin that there is, as its task has it. Whoever puts a Plugin into service, or takes one
    /// out of it, holds this meanwhile: of two that want the same kind the first one has it.
    pub(super) fn statuses(&self) -> MutexGuard<'_, BTreeMap<String, PluginStatus>> {
        self.statuses.lock()
    }

    /// The names of all Plugins.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.statuses().keys().cloned().collect()
    }

    /// Marks of what is kept, by digest.
    pub(super) fn marks(&self) -> MutexGuard<'_, BTreeMap<Digest, Mark>> {
        self.marks.lock()
    }

    /// Whether a source may have changed. A reference to a registry is looked at when the Plugin changes.
    pub(super) fn version_of_source(&self, spec: &PluginSpec) -> Version {
        let Some(map) = &spec.source.config_map else { return Version::Nothing };
        match self.sources.namespace_of(map) {
            Ok(namespace) => self.versions.borrow().of(&namespace, &map.name),
            // Whoever fetches it says why it may not be one.
            Err(_) => Version::Nothing,
        }
    }
}
