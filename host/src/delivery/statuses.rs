//! What Plugins' statuses say: counts, what became of candidates, and what a person should look at.

use super::{accept::GRANT_MISSING, census, plugin_task::PluginTask, report, seen, shared::Shared};
use crate::{
    api::answer,
    error::chain,
    job_key::GroupKind,
    observe::layout::{Layout, Route},
    plugin_resource::{Candidate, CandidateState, PluginSpec, PluginStatus},
};
use decide::{
    Digest,
    grants::{self, Grants},
    status::merge_patch,
};
use kube::api::{Patch, PatchParams};
use sandbox::{BreakerState, Position, wanted};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::{debug, warn};

/// Digests that the host says in a status to have accepted.
pub(super) fn named(status: &PluginStatus) -> Vec<Digest> {
    let PluginStatus { digest, previous, candidate, .. } = status;
    let planned = |it: &&Candidate| matches!(it.state, CandidateState::Canary | CandidateState::Stopped);
    let candidate = candidate.as_ref().filter(planned).map(|candidate| &candidate.digest);
    digest.iter().chain(previous).chain(candidate).filter_map(|digest| digest.parse().ok()).collect()
}

/// Returns the digest that serves new jobs, as a status says.
pub(super) fn active(status: &PluginStatus) -> Option<Digest> {
    status.digest.as_ref()?.parse().ok()
}

/// Says that this digest serves new jobs.
pub(super) fn report_active(status: &mut PluginStatus, active: Option<&Digest>, layout: &Layout) {
    status.digest = active.map(Digest::to_string);
    status.short_digest = active.map(|digest| digest.short().to_owned());
    status.version = active.and_then(|digest| layout.descriptor(digest)).map(|framework| framework.version.clone());
}

impl PluginTask {
    /// Counts, and what became of a candidate that is tried.
    pub(super) async fn refresh(&mut self) {
        let (name, handles) = (&self.seen.name, &self.shared.handles);
        let (all, in_use) = census::digests_in_use(&handles.stores, name);
        let status = &mut self.status;
        status.jobs = Some(all);
        status.jobs_by_digest = in_use.into_iter().map(|(digest, jobs)| (digest.short().to_owned(), jobs)).collect();
        let mut stops = false;
        let trial = handles.trials.read(name);
        if let (Some(candidate), Some(trial)) = (&mut status.candidate, trial)
            && candidate.digest == trial.digest.as_str()
        {
            candidate.live = trial.live;
            stops = trial.stopped.is_some() && candidate.state == CandidateState::Canary;
            if stops {
                candidate.state = CandidateState::Stopped;
                candidate.message = trial.stopped;
            }
        }
        let mut why = worth_a_look(status);
        let active = active(status);
        let spec = self.seen.spec.as_ref().ok();
        let lacks = spec.and_then(|spec| self.shared.lacked_by_built_in(spec, active.as_ref()?));
        why.extend(lacks.map(|message| (GRANT_MISSING, message)));
        let breakers = handles.plugins.breakers(handles.clock.now());
        let is_open = |breaker: &&BreakerState| matches!(breaker.position, Position::Open { .. });
        if breakers.iter().filter(|breaker| Some(&breaker.digest) == active.as_ref()).any(|breaker| is_open(&breaker)) {
            let message =
                "the plugin failed in several namespaces and is not called for a while; see the conditions of its jobs";
            why.push(("BreakerOpen", message.to_owned()));
        }
        why.extend(self.shared.pruned(active.as_ref()).map(|message| ("StatusPruned", message)));
        report::degraded(status, &why, self.seen.generation, handles.clock.now());
        if stops {
            warn!(plugin = name, "the canary was stopped");
            handles.trials.end(name);
            let migrate = handles.route_of(name).is_some_and(|route| route.migrate);
            handles.route(name, &Route { active, canary: None, migrate });
        }
        self.write_status().await;
    }

    /// Returns whether the API server has the status.
    pub(super) async fn write_status(&mut self) -> bool {
        let (name, client) = (&self.seen.name, &self.shared.sources.client);
        self.shared.statuses().insert(name.clone(), self.status.clone());
        let json = |status: &PluginStatus| serde_json::to_value(status).unwrap_or_default();
        let patch = merge_patch(&json(&self.seen.status), &json(&self.status));
        if patch.as_object().is_none_or(serde_json::Map::is_empty) {
            return true;
        }
        if Instant::now() < self.status_not_before {
            return false;
        }
        let params = PatchParams { field_manager: Some(crate::api::FIELD_MANAGER.into()), ..PatchParams::default() };
        let metadata = json!({ "resourceVersion": self.seen.version });
        let patch: Value = json!({ "metadata": metadata, "status": patch });
        match seen::plugins(client).patch_status(name, &params, &Patch::Merge(patch)).await {
            Ok(stored) => {
                let stored = seen::Seen::from(stored);
                (self.seen.version, self.seen.status) = (stored.version, stored.status);
                true
            }
            Err(error) => {
                self.status_not_before = Instant::now() + answer::retry_after(&error).unwrap_or_default();
                debug!(plugin = name, error = chain(&error), "status not written, it is tried again");
                false
            }
        }
    }
}

impl Shared {
    /// Returns what the grants of a Plugin lack of what serves, if it has what comes with the host serve: anything else is
    /// refused for that.
    fn lacked_by_built_in(&self, spec: &PluginSpec, active: &Digest) -> Option<String> {
        let (granted, layout) = (spec.granted_to_built_in()?, self.handles.stores.layout());
        let config = spec.config.clone().unwrap_or_else(|| json!({}));
        let missing = grants::missing(&wanted(layout.descriptor(active)?, &config), granted);
        (missing != Grants::default()).then(|| {
            format!(
                "spec.grants lacks these grants, which the plugin asks for; plans that make use of them are refused: add them, or \
                 remove spec.grants to trust what comes with the host with all that it asks for:\n{missing}"
            )
        })
    }

    /// Returns what to do if the CRD of a kind that this digest serves drops what the host remembers of its jobs.
    fn pruned(&self, active: Option<&Digest>) -> Option<String> {
        let layout = self.handles.stores.layout();
        let kinds = &layout.descriptor(active?)?.kinds;
        let kind = kinds.iter().find(|kind| self.handles.published.prunes(&GroupKind::from(*kind)))?;
        Some(format!(
            "the CRD {} drops status.troupe, so that none of its jobs can be cleaned up; `troupe plugin inspect FILE --crd \
             CRD` says what it has to keep",
            kind.crd()
        ))
    }
}

/// What a person should look at, as the candidate and the last look have it.
fn worth_a_look(status: &PluginStatus) -> Vec<(&'static str, String)> {
    let mut why = Vec::new();
    if let Some(candidate) = &status.candidate {
        let message = candidate.message.clone().unwrap_or_default();
        match candidate.state {
            CandidateState::Refused => why.push(("CandidateRefused", message)),
            CandidateState::Stopped => why.push(("CanaryStopped", message)),
            CandidateState::Waiting | CandidateState::Shadow | CandidateState::Canary => {}
        }
    }
    match &status.last_error {
        Some(error) if why.is_empty() => why.push(("SourceFailed", error.clone())),
        _ => {}
    }
    why
}
