//! What happens to Plugins, and to the ConfigMaps that may be sources of theirs, as the watches show it.

use super::{
    Delivery,
    seen::{self, Seen},
};
use crate::{
    api::{
        back_off::{BackOff, Waits},
        patient::patient,
    },
    error::chain,
};
use futures::{
    Stream, StreamExt,
    stream::{select, select_all},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        utils::ResetTimerBackoff,
        watcher::{self, Event, watcher},
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
};
use tracing::debug;

/// How long a watch lives, in seconds.
const LIFE: u32 = 60;

/// Something happened to a Plugin, or to a ConfigMap of a namespace that has sources.
pub(super) enum Happened {
    Plugin(Box<Seen>),
    PluginGone(String),
    /// A list of Plugins begins; what it does not show is gone when it has ended.
    Listing,
    Listed,
    /// In this namespace.
    ConfigMap(String, Change),
    /// What the host keeps is another.
    Archived,
}

/// Something happened to the ConfigMaps of a namespace.
pub(super) enum Change {
    /// A list begins; what it does not show is gone when it has ended.
    Listing,
    /// The list has one, of this name and version.
    Shown(String, String),
    Listed,
    /// One of this name has this version now.
    Version(String, String),
    Gone(String),
    /// The watch broke and is started again.
    Broke,
}

/// What is known of a Plugin's source without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Version {
    /// The ConfigMap has this one.
    Of(String),
    /// There is no ConfigMap, or none that can be watched.
    Nothing,
    /// The ConfigMaps of its namespace are still being listed.
    NotYet,
}

/// The versions of the ConfigMaps that may be sources, by namespace.
#[derive(Debug, Default)]
pub(super) struct Versions {
    namespaces: BTreeMap<String, Maps>,
}

/// The ConfigMaps of one namespace.
#[derive(Debug, Default)]
struct Maps {
    versions: BTreeMap<String, String>,
    /// Names that the list under way has shown so far.
    listing: BTreeSet<String>,
    /// A list has ended, or cannot be had: nobody has to wait for it.
    settled: bool,
}

impl Versions {
    /// Takes note; true where some Plugin may have another source by now.
    pub(super) fn record(&mut self, namespace: &str, change: Change) -> bool {
        let maps = self.namespaces.entry(namespace.to_owned()).or_default();
        match change {
            Change::Listing => {
                maps.listing.clear();
                false
            }
            Change::Shown(name, version) => {
                maps.listing.insert(name.clone());
                maps.versions.insert(name, version);
                false
            }
            Change::Listed => {
                let listed = std::mem::take(&mut maps.listing);
                maps.versions.retain(|name, _| listed.contains(name));
                maps.settled = true;
                true
            }
            Change::Version(name, version) => {
                maps.versions.insert(name, version);
                true
            }
            Change::Gone(name) => maps.versions.remove(&name).is_some(),
            Change::Broke => !std::mem::replace(&mut maps.settled, true),
        }
    }

    /// The version of a ConfigMap.
    pub(super) fn of(&self, namespace: &str, name: &str) -> Version {
        let Some(maps) = self.namespaces.get(namespace) else { return Version::NotYet };
        match maps.versions.get(name) {
            Some(version) => Version::Of(version.clone()),
            None if maps.settled => Version::Nothing,
            None => Version::NotYet,
        }
    }
}

/// How delivery watches: kube-runtime's watches do not ask for a sign of life, so a connection that has died in silence is
/// noticed when the watch was to end. The next one goes on where it ended, without a list.
pub(super) fn watching() -> watcher::Config {
    watcher::Config::default().timeout(LIFE)
}

/// The waits of one of the delivery's watches after failures in a row. Their numbers count down from the greatest, those of
/// the watches for jobs up from the least.
pub(super) fn waits(seed: [u8; 32], number: u64) -> ResetTimerBackoff<Waits> {
    Waits::of(BackOff::new(seed, u64::MAX - number))
}

impl Delivery {
    /// Plugins, and the metadata of ConfigMaps: of those that may be sources, and of what is kept.
    pub(super) fn watched(&mut self) -> Pin<Box<dyn Stream<Item = Happened> + Send>> {
        let (client, sources) = (patient(self.shared.sources.client.clone()), &self.shared.sources);
        let plugins = watcher(seen::plugins(&client), watching());
        let seed = self.shared.handles.seed;
        let plugins = plugins.backoff(waits(seed, 0)).filter_map(async |event| match event {
            Ok(Event::Apply(plugin) | Event::InitApply(plugin)) => Some(Happened::Plugin(Box::new(plugin.into()))),
            Ok(Event::Delete(plugin)) => Some(Happened::PluginGone(plugin.name_any())),
            Ok(Event::Init) => Some(Happened::Listing),
            Ok(Event::InitDone) => Some(Happened::Listed),
            Err(error) => {
                debug!(error = chain(&error), "watch of Plugins broke and is started again");
                None
            }
        });
        // Two watches of one namespace would take each other's lists for their own.
        let namespaces: BTreeSet<String> = sources.namespace.iter().chain(&sources.allowed).cloned().collect();
        let maps = (2..).zip(namespaces).map(|(number, namespace)| {
            let maps = Api::<PartialObjectMeta<ConfigMap>>::namespaced(client.clone(), &namespace);
            let changes = watcher(maps, watching()).backoff(waits(seed, number));
            changes.map(move |event| Happened::ConfigMap(namespace.clone(), change(&namespace, event))).boxed()
        });
        let sources = select(plugins, select_all(maps));
        let Some(archive) = &self.shared.archive else { return sources.boxed() };
        let (archive_store, changes) = archive.watched(waits(seed, 1));
        self.archive_store = Some(archive_store);
        select(sources, changes.map(|()| Happened::Archived)).boxed()
    }

    pub(super) async fn on_event(&mut self, event: Happened) {
        match event {
            Happened::Plugin(plugin) => {
                if let Some(listed) = &mut self.listed {
                    listed.insert(plugin.name.clone());
                }
                self.learn(*plugin).await;
                self.start_tasks();
            }
            Happened::PluginGone(name) => self.forget(&name).await,
            Happened::Listing => self.listed = Some(BTreeSet::new()),
            Happened::Listed => {
                let listed = self.listed.take().unwrap_or_default();
                let gone: Vec<_> = self.plugins.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                for name in gone {
                    self.forget(&name).await;
                }
            }
            Happened::ConfigMap(namespace, change) => {
                self.shared.versions.send_if_modified(|versions| versions.record(&namespace, change));
            }
            Happened::Archived => self.look_at_archive(),
        }
    }
}

fn change(namespace: &str, event: watcher::Result<Event<PartialObjectMeta<ConfigMap>>>) -> Change {
    let version = |map: &PartialObjectMeta<ConfigMap>| map.resource_version().unwrap_or_default();
    match event {
        Ok(Event::Init) => Change::Listing,
        Ok(Event::InitApply(map)) => Change::Shown(map.name_any(), version(&map)),
        Ok(Event::InitDone) => Change::Listed,
        Ok(Event::Apply(map)) => Change::Version(map.name_any(), version(&map)),
        Ok(Event::Delete(map)) => Change::Gone(map.name_any()),
        Err(error) => {
            debug!(namespace, error = chain(&error), "watch of ConfigMaps broke and is started again");
            Change::Broke
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known of the ConfigMap `a` after these changes, and whether the last of them was worth a look.
    fn after(changes: Vec<Change>) -> (Version, bool) {
        let mut versions = Versions::default();
        let mut worth = false;
        for change in changes {
            worth = versions.record("ns", change);
        }
        (versions.of("ns", "a"), worth)
    }

    fn shown(name: &str, version: &str) -> Change {
        Change::Shown(name.into(), version.into())
    }

    fn version(text: &str) -> Version {
        Version::Of(text.into())
    }

    #[test]
    fn nothing_is_said_of_a_configmap_before_its_namespace_is_listed() {
        assert_eq!(after(vec![]).0, Version::NotYet);
        assert_eq!(after(vec![Change::Listing, shown("b", "1")]), (Version::NotYet, false));
        assert_eq!(after(vec![Change::Listing, shown("b", "1"), Change::Listed]), (Version::Nothing, true));
        assert_eq!(after(vec![Change::Listing, shown("a", "1"), Change::Listed]), (version("1"), true));
    }

    #[test]
    fn a_configmap_has_the_version_that_was_seen_last_until_it_goes() {
        let listed = || vec![Change::Listing, shown("a", "1"), Change::Listed];
        let with = |more: Vec<Change>| after(listed().into_iter().chain(more).collect());
        let newer = || Change::Version("a".into(), "2".into());
        assert_eq!(with(vec![newer()]), (version("2"), true));
        assert_eq!(with(vec![newer(), Change::Gone("a".into())]), (Version::Nothing, true));
        assert_eq!(with(vec![Change::Gone("b".into())]), (version("1"), false));
    }

    #[test]
    fn what_a_later_list_does_not_show_is_gone_when_it_has_ended() {
        let relist = |end: Vec<Change>| {
            let start = vec![Change::Listing, shown("a", "1"), Change::Listed, Change::Broke, Change::Listing];
            after(start.into_iter().chain(end).collect())
        };
        assert_eq!(relist(vec![shown("b", "2")]), (version("1"), false));
        assert_eq!(relist(vec![shown("b", "2"), Change::Listed]), (Version::Nothing, true));
        // A list that broke off shows nothing of what comes after it.
        let again = vec![shown("a", "1"), Change::Broke, Change::Listing, shown("b", "2"), Change::Listed];
        assert_eq!(relist(again).0, Version::Nothing);
    }

    #[test]
    fn nobody_waits_for_a_list_that_cannot_be_had() {
        assert_eq!(after(vec![Change::Listing, Change::Broke]), (Version::Nothing, true));
        let (_, worth_a_look) = after(vec![Change::Listing, Change::Broke, Change::Listing, Change::Broke]);
        assert!(!worth_a_look);
    }
}
