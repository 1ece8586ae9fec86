//! Into service and out of it, at once and as a whole: settings, grants and limits belong to a digest of one source, and
//! change only when what they came with was accepted.

use super::{
    Delivery,
    accept::{Accepted, CONFLICT},
    census,
    look::{Acceptable, Refused},
    report::{Stage, Trouble},
    short,
    upgrade::Step,
};
use crate::{
    job_key::GroupKind,
    observe::layout::{Route, Served},
    plugin_resource::{Candidate, CandidateState, PluginSpec, PluginStatus, Strategy},
};
use sandbox::{Prepared, Settings};
use tracing::{info, warn};

impl Delivery {
    /// Has an acceptable component serve, or tries it, as the Plugin says. Returns the Plugin's status.
    pub(super) fn serve(&self, name: &str, spec: &PluginSpec, acceptable: Acceptable) -> Result<PluginStatus, Refused> {
        let Acceptable { prepared, settings, accepted: Accepted { preflight }, step, resolved } = acceptable;
        let Prepared { digest, descriptor, .. } = &prepared;
        let refused = |reason, message| Refused {
            digest: Some(digest.clone()),
            trouble: Trouble { at: Stage::Accepted, reason, message },
        };
        // Another Plugin may have come first since it was looked at.
        let others = self.known.keys().cloned().collect();
        let held = self.handles.stores.layout().conflict(descriptor, &others);
        held.map_or(Ok(()), Err).map_err(|message| refused(CONFLICT, message))?;
        let added = self.handles.plugins.add(&prepared, &settings);
        added.map_err(|error| refused("InvalidConfig", error.to_string()))?;
        self.handles.stores.change(|layout| match step.plans_jobs() {
            true => layout.add(descriptor, digest),
            false => layout.try_out(descriptor, digest),
        });

        let mut status = self.known.get(name).map(|known| known.status.clone()).unwrap_or_default();
        status.resolved = resolved.or(status.resolved);
        let active = self.serving(name);
        let candidate = status.candidate.take().filter(|candidate| candidate.digest == *digest);
        let migrate = spec.upgrade.strategy == Strategy::Migrate;
        let mut route = Route { active: active.clone(), canary: None, migrate };
        match step {
            Step::Serve => {
                if status.digest.as_ref() != Some(digest) {
                    status.previous = active.clone().filter(|active| active != digest).or(status.previous.take());
                }
                route.active = Some(digest.clone());
                self.handles.trials.end(name);
                self.settle_others(name, digest, &settings);
            }
            Step::Candidate(state, canary) => {
                route.canary = canary.map(|canary| (digest.clone(), canary));
                self.handles.trials.begin(name, digest, state);
                let known = candidate.unwrap_or_default();
                let (live, message) = (known.live, known.message.filter(|_| state == CandidateState::Stopped));
                let (digest, version) = (digest.clone(), descriptor.version.clone());
                status.candidate = Some(Candidate { digest, version, state, preflight, live, message });
            }
        }
        info!(plugin = name, found = short(digest), active = route.active.as_deref().map(short), "looked at");
        self.route(name, &route);
        self.tell_active(&mut status, route.active.as_deref());
        Ok(status)
    }

    /// Other digests of the Plugin, which jobs are pinned to, get the settings that were accepted, as far as they fit. What
    /// comes with the host keeps its own.
    fn settle_others(&self, name: &str, digest: &str, settings: &Settings) {
        let plugins = &self.handles.plugins;
        let is_own = |other: &String| other != digest && self.handles.bundled.digests().all(|bundled| bundled != other);
        for other in plugins.digests_of(name).into_iter().filter(is_own) {
            if let Some(prepared) = plugins.prepared(&other) {
                self.settle(name, &prepared, settings);
            }
        }
    }

    /// A digest that jobs are pinned to gets the settings that were accepted with another one of its Plugin, as far as they
    /// fit.
    pub(super) fn settle(&self, name: &str, prepared: &Prepared, settings: &Settings) {
        let (plugins, digest) = (&self.handles.plugins, &prepared.digest);
        // That the Plugin trusts what comes with the host says nothing of what came from elsewhere.
        let grants = settings.grants.clone().or_else(|| plugins.grants(digest));
        let settings = Settings { grants, ..settings.clone() };
        if let Err(error) = plugins.add(prepared, &settings) {
            info!(plugin = name, digest = short(digest), %error, "it keeps the config that it had");
            plugins.restrict(digest, &settings);
        }
    }

    /// A cluster operator has taken grants away from the digest that the Plugin serves. There is no other component that
    /// this could be meant for, so it holds at once.
    pub(super) fn withdraw(&self, name: &str, digest: Option<&str>) {
        let Some(known) = self.known.get(name) else { return };
        let (Some(digest), Ok(spec)) = (digest, &known.seen.spec) else { return };
        let is_tried = self.handles.trials.candidate(name).as_deref() == Some(digest);
        let is_its = is_tried || known.status.digest.as_deref() == Some(digest);
        if is_its && self.handles.bundled.digests().all(|bundled| bundled != digest) {
            warn!(plugin = name, digest = short(digest), "grants were taken from what serves");
            self.handles.plugins.grant(digest, &spec.grants);
            self.wake(name);
        }
    }

    /// What comes with the host serves the framework as it did before there was a Plugin; else nobody does.
    pub(super) fn give_back(&self, name: &str) {
        let plugins = &self.handles.plugins;
        let route = match self.handles.bundled.get(name) {
            Some((digest, settings)) => {
                if let Some(prepared) = plugins.prepared(digest)
                    && let Err(error) = plugins.add(&prepared, settings)
                {
                    warn!(plugin = name, %error, "what comes with the host keeps other settings");
                }
                Route::to(digest)
            }
            None => Route::default(),
        };
        self.route(name, &route);
        self.wake(name);
    }

    /// The digest of this Plugin, or of the host, that serves new jobs now, or will once it is loaded again.
    pub(super) fn serving(&self, name: &str) -> Option<String> {
        self.active(name).or_else(|| self.known.get(name)?.status.digest.clone())
    }

    /// The digest that serves new jobs of a framework now.
    pub(super) fn active(&self, name: &str) -> Option<String> {
        self.route_of(name)?.active
    }

    /// Where new jobs of a framework go.
    pub(super) fn route_of(&self, name: &str) -> Option<Route> {
        let layout = self.handles.stores.layout();
        let served = layout.kinds().values().find(|served| served.framework.name == name)?;
        Some(served.route.clone())
    }

    /// Sends new jobs this way, and has the jobs looked at that go another way now.
    pub(super) fn route(&self, name: &str, route: &Route) {
        let stores = &self.handles.stores;
        let before = stores.layout();
        stores.change(|layout| layout.route(name, route));
        let now = stores.layout();
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
            census::unplanned_keys_of(stores, name).into_iter().for_each(|key| self.handles.queue.add(key));
        }
    }

    /// Has all jobs of the framework looked at.
    pub(super) fn wake(&self, name: &str) {
        census::keys_of(&self.handles.stores, name).into_iter().for_each(|key| self.handles.queue.add(key));
    }
}
