//! Where new jobs of a framework go, and with which settings its digests answer.

use super::{Handles, census};
use crate::{
    job_key::GroupKind,
    observe::layout::{Route, Served},
};
use decide::{Digest, plan::Descriptor};
use sandbox::Settings;
use std::sync::Arc;
use tracing::{info, warn};

impl Handles {
    /// Other digests of the Plugin, which jobs are pinned to, adapt to the settings that were accepted. What comes with the
    /// host keeps its own.
    pub(super) fn settle_others(&self, name: &str, digest: &Digest, settings: &Settings) {
        let is_own = |other: &Digest| other != digest && self.bundled.digests().all(|bundled| bundled != other);
        for other in self.plugins.digests_of(name).into_iter().filter(is_own) {
            self.adapt(name, &other, settings);
        }
    }

    /// A digest that jobs are pinned to gets the settings that were accepted with another one of its Plugin, as far as they
    /// fit. Of the grants that it was accepted with it keeps those that the settings have, and it gets no other. Settings
    /// without grants take none away: that a Plugin trusts what comes with the host says nothing of what came from elsewhere.
    pub(super) fn adapt(&self, name: &str, digest: &Digest, settings: &Settings) {
        match self.plugins.adapt(digest, settings) {
            Ok(Some(descriptor)) => self.stores.change(|layout| layout.describe(&descriptor, digest)),
            Ok(None) => {}
            Err(error) => {
                info!(plugin = name, digest = digest.short(), %error, "the digest keeps the config that it has");
                self.plugins.restrict(digest, settings);
            }
        }
    }

    /// What comes with the host serves the framework as it did before there was a Plugin; else nobody does.
    pub(super) fn give_back(&self, name: &str) {
        let route = match self.bundled.get(name) {
            Some((prepared, settings)) => {
                let digest = &prepared.digest;
                match self.plugins.add(prepared, settings) {
                    Ok(descriptor) => self.stores.change(|layout| layout.add(&descriptor, digest)),
                    Err(error) => warn!(plugin = name, %error, "the built-in plugin keeps other settings"),
                }
                Route::to(digest)
            }
            None => {
                self.stores.change(|layout| layout.forget_refusal(name));
                Route::default()
            }
        };
        self.route(name, &route);
        self.wake(name);
    }

    /// Has the jobs of kinds that nobody serves report that the Plugin which would serve them was refused.
    pub(super) fn refuse(&self, descriptor: &Arc<Descriptor>, reason: &'static str) {
        let mut is_new = false;
        self.stores.change(|layout| is_new = layout.refuse(descriptor, reason));
        if is_new {
            self.wake(&descriptor.name);
        }
    }

    /// The digest that serves new jobs of a framework now.
    pub(super) fn active(&self, name: &str) -> Option<Digest> {
        self.route_of(name)?.active
    }

    /// Where new jobs of a framework go.
    pub(super) fn route_of(&self, name: &str) -> Option<Route> {
        let layout = self.stores.layout();
        let served = layout.kinds().values().find(|served| served.framework.name == name)?;
        Some(served.route.clone())
    }

    /// Sends new jobs this way, and has the jobs looked at that go another way now.
    pub(super) fn route(&self, name: &str, route: &Route) {
        let before = self.stores.layout();
        self.stores.change(|layout| layout.route(name, route));
        let now = self.stores.layout();
        let is_another = |(kind, new): (&GroupKind, &Served)| {
            new.framework.name == name && before.kinds().get(kind).is_none_or(|old| old.route != new.route)
        };
        if !now.kinds().iter().any(is_another) {
            return;
        }
        if route.migrate {
            self.wake(name);
        } else {
            // Those that a digest plans stay with it.
            census::unplanned_keys_of(&self.stores, name).into_iter().for_each(|key| self.queue.add(key));
        }
    }

    /// Has all jobs of the framework looked at.
    pub(super) fn wake(&self, name: &str) {
        census::keys_of(&self.stores, name).into_iter().for_each(|key| self.queue.add(key));
    }
}
