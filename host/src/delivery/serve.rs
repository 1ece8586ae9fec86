//! Into service, at once and as a whole: settings, grants and limits belong to a digest of one source, and change only when
//! what they came with was accepted.

use super::{
    accept::{Accepted, CONFLICT, INVALID_CONFIG},
    look::{Acceptable, Refused},
    plugin_task::PluginTask,
    report::{Stage, StageFailure},
    statuses,
    upgrade::Step,
};
use crate::{
    error::chain,
    observe::layout::Route,
    plugin_resource::{Candidate, CandidateState, PluginSpec, Strategy},
};
use decide::{Digest, grants::Grants};
use sandbox::Prepared;
use tracing::{info, warn};

impl PluginTask {
    /// Has an acceptable component serve, or tries it, as the Plugin says.
    pub(super) fn serve(&mut self, spec: &PluginSpec, acceptable: Acceptable) -> Result<(), Refused> {
        let Acceptable { prepared, settings, accepted: Accepted { preflight, .. }, step, resolved } = acceptable;
        let Prepared { digest, .. } = &prepared;
        let refused = |reason, message| {
            Refused::plainly(Some(digest.clone()), StageFailure::new(Stage::Accepted, reason, message))
        };
        let (name, handles) = (&self.seen.name, &self.shared.handles);
        let mut all = self.shared.statuses();
        // Another Plugin may have come first since it was looked at.
        if let Some(message) = handles.stores.layout().conflict(&prepared.descriptor, &all.keys().cloned().collect()) {
            return Err(refused(CONFLICT, message));
        }
        let added = handles.plugins.add(&prepared, &settings);
        let descriptor = added.map_err(|error| refused(INVALID_CONFIG, error.to_string()))?;
        handles.stores.change(|layout| match step.plans_jobs() {
            true => layout.add(&descriptor, digest),
            false => layout.add_candidate(&descriptor, digest),
        });

        let active = self.serving();
        let status = &mut self.status;
        status.resolved = resolved.or(status.resolved.take());
        let candidate = status.candidate.take().filter(|candidate| candidate.digest == digest.as_str());
        let migrate = spec.upgrade.strategy == Strategy::Migrate;
        let mut route = Route { active: active.clone(), canary: None, migrate };
        match step {
            Step::Serve => {
                if status.digest.as_deref() != Some(digest.as_str()) {
                    let replaced = active.filter(|active| active != digest);
                    status.previous = replaced.map(|digest| digest.to_string()).or(status.previous.take());
                }
                route.active = Some(digest.clone());
                handles.trials.end(name);
                handles.settle_others(name, digest, &settings);
            }
            Step::Candidate(state, canary) => {
                route.canary = canary.map(|canary| (digest.clone(), canary));
                handles.trials.begin(name, digest, state);
                let known = candidate.unwrap_or_default();
                let (live, message) = (known.live, known.message.filter(|_| state == CandidateState::Stopped));
                let (digest, version) = (digest.to_string(), descriptor.version.clone());
                status.candidate = Some(Candidate { digest, version, state, preflight, live, message });
            }
        }
        info!(
            plugin = name,
            found = digest.short(),
            active = route.active.as_ref().map(Digest::short),
            "checked the Plugin"
        );
        handles.route(name, &route);
        statuses::report_active(status, route.active.as_ref(), &handles.stores.layout());
        all.insert(name.clone(), status.clone());
        Ok(())
    }

    /// A cluster operator has taken grants away from the digest that the Plugin serves. There is no other component that
    /// this could be meant for, so it holds at once, and for the older ones that jobs are pinned to.
    pub(super) async fn withdraw(&self, digest: Option<&Digest>) {
        let (name, handles) = (&self.seen.name, &self.shared.handles);
        let (Some(digest), Ok(spec)) = (digest, &self.seen.spec) else { return };
        let is_tried = handles.trials.candidate(name).as_ref() == Some(digest);
        let serves = self.status.digest.as_deref() == Some(digest.as_str());
        let mut from = match (serves, is_tried) {
            (true, _) => handles.plugins.digests_of(name),
            (false, true) => vec![digest.clone()],
            (false, false) => vec![],
        };
        // What came with a host is not this Plugin's.
        let is_its = |digest: &Digest| self.shared.marks().get(digest).is_none_or(|mark| mark.is_of(name));
        let is_meant = |digest: &Digest| {
            spec.source.built_in.is_some() || handles.bundled.digests().all(|bundled| bundled != digest)
        };
        from.retain(|digest| is_its(digest) && is_meant(digest));
        let mut is_news = false;
        for digest in &from {
            if handles.plugins.withdraw(digest, &spec.grants) {
                warn!(plugin = name, digest = digest.short(), "grants were withdrawn from a digest that plans jobs");
                is_news = true;
            }
        }
        if is_news {
            handles.wake(name);
        }
        for digest in &from {
            self.remember_withdrawn(digest, &spec.grants).await;
        }
    }

    /// The next host loads the digest with the grants of its mark, before it has looked at the Plugin, and even if the source
    /// cannot be read then. What fails is tried again with the next look.
    async fn remember_withdrawn(&self, digest: &Digest, grants: &Grants) {
        let Some(archive) = &self.shared.archive else { return };
        let narrower = self.shared.marks().get(digest).and_then(|mark| mark.within(grants));
        let Some(mark) = narrower else { return };
        match archive.mark(digest, Some(&mark)).await {
            Ok(_) => drop(self.shared.marks().insert(digest.clone(), mark)),
            Err(error) => warn!(digest = digest.short(), error = chain(&error), "the next host gives the grants again"),
        }
    }
}
