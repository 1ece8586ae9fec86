//! Plugins by `Plugin` resources: fetched, compiled, checked, tried, brought into service and kept, while jobs run.
//!
//! One task for all Plugins, one Plugin at a time. What it decides is in `upgrade`, what it says in `report`.

mod accept;
mod comparisons;
mod fetch;
mod kept;
mod lost;
mod mark;
mod names;
mod report;
mod startup;
#[cfg(test)]
mod tests;
mod trial;
mod trials;
mod upgrade;
mod wanted;
mod watched;

pub(crate) use comparisons::Comparisons;
pub(crate) use kept::short;
pub(crate) use trials::Trials;
pub(crate) use wanted::Wanted;

use crate::{
    layout::Route,
    plugin::{BreakerState, Plugins, Position, Prepared, Settings},
    plugin_resource::{Candidate, CandidateState, Plugin, PluginSpec, PluginStatus, Strategy},
    reconcile::Context,
    watch::chain,
};
use decide::status::merge_patch;
use fetch::{FetchError, Fetched, Sources};
use futures::StreamExt;
use kept::{Kept, Shelf};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use lost::Again;
use mark::Mark;
use report::{Stage, Trouble};
use serde_json::{Value, json};
use startup::Unkept;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tracing::{debug, info, warn};
use upgrade::{Found, Step, step};
use watched::{Version, Versions};

/// Counts in statuses are no older than this, and what failed is tried again after it.
const REFRESH: Duration = Duration::from_secs(10);

/// How often bytes that nothing needs are looked for.
const SWEEP: Duration = Duration::from_secs(600);

/// Where plugins may come from, and where their bytes are kept.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The host's own namespace. Without one no bytes are kept, and no ConfigMap is a source.
    pub namespace: Option<String>,
    /// Other namespaces whose ConfigMaps may be sources.
    pub source_namespaces: BTreeSet<String>,
}

/// What is known of a Plugin.
struct Known {
    resource: Plugin,
    /// What the last look was at; None looks again.
    looked_at: Option<LookedAt>,
    status: PluginStatus,
}

impl Known {
    /// Digests that the host says in the status to have accepted.
    fn named(&self) -> Vec<String> {
        let PluginStatus { digest, previous, candidate, .. } = &self.status;
        let planned = |it: &&Candidate| matches!(it.state, CandidateState::Canary | CandidateState::Stopped);
        let candidate = candidate.as_ref().filter(planned).map(|candidate| &candidate.digest);
        digest.iter().chain(previous).chain(candidate).cloned().collect()
    }

    fn names(&self, digest: &str) -> bool {
        self.named().iter().any(|named| named == digest)
    }
}

/// What a look depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LookedAt {
    generation: i64,
    source: Version,
}

/// The task that delivers plugins.
pub(crate) struct Delivery {
    client: Client,
    context: Arc<Context>,
    sources: Sources,
    kept: Option<Kept>,
    /// What the watch of it has shown.
    shelf: Option<Shelf>,
    /// Marks of what is kept, by digest.
    marks: BTreeMap<String, Mark>,
    versions: Versions,
    known: BTreeMap<String, Known>,
    /// Plugins that a list has shown so far.
    listed: Option<BTreeSet<String>>,
    swept: Instant,
    /// Digests that jobs need, that were accepted and cannot be loaded so far.
    sought: BTreeMap<String, Again>,
    unkept: Unkept,
}

impl Delivery {
    /// Serves until it is dropped.
    pub(crate) async fn run(mut self) {
        let mut happened = self.watched();
        let context = self.context.clone();
        let mut tick = interval(REFRESH);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                digests = context.wanted.take() => {
                    for digest in digests {
                        self.seek(&digest).await;
                    }
                }
                () = sleep_until(self.next_attempt()) => self.try_again().await,
                Some(event) = happened.next() => self.note(event).await,
                () = context.trials.changed() => self.refresh().await,
                _ = tick.tick() => {
                    self.look_at_all(true).await;
                    self.refresh().await;
                    self.sweep().await;
                }
            }
        }
    }

    /// When something is tried again that has failed.
    fn next_attempt(&self) -> Instant {
        let all = self.sought.values().chain(&self.unkept.again).map(|again| again.at);
        all.min().unwrap_or_else(|| Instant::now() + SWEEP)
    }

    async fn try_again(&mut self) {
        if self.unkept.again.is_some_and(|again| again.at <= Instant::now()) {
            self.keep_built_ins().await;
        }
        self.seek_again().await;
    }

    /// Takes note of what a Plugin asks for.
    fn learn(&mut self, resource: Plugin) {
        let name = resource.name_any();
        match self.known.get_mut(&name) {
            Some(known) => known.resource = resource,
            None => {
                let status = resource.status.clone().unwrap_or_default();
                self.known.insert(name, Known { resource, looked_at: None, status });
            }
        }
    }

    /// A Plugin was deleted: what comes with the host serves new jobs again, or nobody does. Jobs that run stay with theirs.
    fn forget(&mut self, name: &str) {
        if self.known.remove(name).is_none() {
            return;
        }
        let built_in = Plugins::built_in(name).map(crate::plugin::source::digest);
        let route = built_in.map_or_else(Route::default, |digest| Route::to(&digest));
        info!(plugin = name, serves = route.active, "the Plugin is gone");
        self.context.trials.end(name);
        self.route(name, &route);
    }

    async fn look_at_all(&mut self, again: bool) {
        for name in self.names() {
            let failed = self.known.get(&name).is_some_and(|known| known.status.last_error.is_some());
            if let Some(known) = self.known.get_mut(&name).filter(|_| again && failed) {
                known.looked_at = None;
            }
            self.look_at(&name).await;
        }
    }

    fn names(&self) -> Vec<String> {
        self.known.keys().cloned().collect()
    }

    /// Looks at a Plugin, unless neither it nor its source has changed since the last time. While its source's namespace is
    /// listed it waits for the end of that, when all are looked at.
    async fn look_at(&mut self, name: &str) {
        let Some(known) = self.known.get(name) else { return };
        let plugin = known.resource.clone();
        let now = LookedAt {
            generation: plugin.metadata.generation.unwrap_or_default(),
            source: self.version_of_source(&plugin.spec),
        };
        if now.source == Version::NotYet || known.looked_at.as_ref() == Some(&now) {
            return;
        }
        let mut status = known.status.clone();
        let trouble = self.look(&plugin, &mut status).await.err();
        if let Some(trouble) = &trouble {
            warn!(plugin = name, reason = trouble.reason, message = trouble.message, "a plugin is not served");
        }
        let generation = now.generation;
        status.observed_generation = Some(generation);
        report::progress(&mut status, trouble.as_ref(), generation, self.context.clock.now());
        report::serving(&mut status, generation, self.context.clock.now());
        if let Some(known) = self.known.get_mut(name) {
            let before = known.looked_at.replace(now);
            known.status = status;
            // What it may do, or how it is set up, may be another.
            if before.is_some_and(|before| before.generation != generation) {
                self.wake(name);
            }
        }
        self.refresh_one(name).await;
    }

    /// Everything from the source to the service; says why it got no further.
    async fn look(&mut self, plugin: &Plugin, status: &mut PluginStatus) -> Result<(), Trouble> {
        let name = plugin.name_any();
        // What served before and is not loaded again so far is not passed over.
        let active = self.active(&name).or_else(|| status.digest.clone());
        let settings = settings(&plugin.spec);
        self.apply_settings(&name, &settings);
        let (digest, fetched) = self.find(plugin, status).await?;
        let refuse = |status: &mut PluginStatus, trouble: Trouble| {
            if active.as_ref() != Some(&digest) {
                let candidate =
                    Candidate { digest: digest.clone(), state: CandidateState::Refused, ..Candidate::default() };
                status.candidate = Some(Candidate { message: Some(trouble.message.clone()), ..candidate });
            }
            trouble
        };
        let prepared = match self.context.plugins.prepared(&digest) {
            Some(prepared) => prepared,
            None => {
                let wasm = fetched.as_ref().map(|fetched| fetched.wasm.as_slice()).unwrap_or_default();
                self.prepare(&name, wasm).await.map_err(|trouble| refuse(status, trouble))?
            }
        };
        let preflight = self.accept(&name, &prepared, &settings, active.as_deref()).await;
        let preflight = preflight.map_err(|trouble| refuse(status, trouble))?;
        let candidate = status.candidate.take().filter(|candidate| candidate.digest == digest);
        let stopped = candidate.as_ref().is_some_and(|candidate| candidate.state == CandidateState::Stopped);
        let found = Found { digest: &digest, active: active.as_deref(), previous: status.previous.as_deref(), stopped };
        let mut route =
            Route { active: active.clone(), canary: None, migrate: plugin.spec.upgrade.strategy == Strategy::Migrate };
        let step = step(&plugin.spec.upgrade, &found);
        let mark = step.plans_jobs().then(|| self.mark_of(plugin, &prepared, &settings));
        let kept = self.keep(&digest, fetched.as_ref(), mark.as_ref()).await;
        if let Err(trouble) = kept {
            status.candidate = candidate;
            return Err(refuse(status, trouble));
        }
        match step {
            Step::Serve => {
                if status.digest.as_ref() != Some(&digest) {
                    status.previous = active.clone().filter(|active| *active != digest).or(status.previous.take());
                }
                route.active = Some(digest.clone());
                self.context.trials.end(&name);
            }
            Step::Candidate(state, canary) => {
                route.canary = canary.map(|canary| (digest.clone(), canary));
                self.context.trials.begin(&name, &digest, state);
                let version = prepared.descriptor.version.clone();
                let known = candidate.unwrap_or_default();
                let (live, message) = (known.live, known.message.filter(|_| state == CandidateState::Stopped));
                status.candidate = Some(Candidate { digest: digest.clone(), version, state, preflight, live, message });
            }
        }
        self.context.stores.change(|layout| match mark {
            Some(_) => layout.add(&prepared.descriptor, &digest),
            None => layout.try_out(&prepared.descriptor, &digest),
        });
        self.tell_active(status, route.active.as_deref());
        info!(plugin = name, found = short(&digest), active = route.active.as_deref().map(short), "looked at");
        self.route(&name, &route);
        Ok(())
    }

    /// The digest that a Plugin asks for, and its bytes unless it is loaded.
    async fn find(&self, plugin: &Plugin, status: &mut PluginStatus) -> Result<(String, Option<Fetched>), Trouble> {
        let pin = plugin.spec.digest.as_ref();
        if let Some(pin) = pin.filter(|pin| self.context.plugins.has(pin)) {
            return Ok((pin.clone(), None));
        }
        let failed = |error: &FetchError| Trouble { at: Stage::Fetched, reason: error.reason(), message: chain(error) };
        let fetched = self.sources.fetch(&plugin.name_any(), &plugin.spec).await;
        let found = match (pin, fetched) {
            (None, fetched) => fetched.map_err(|error| failed(&error))?,
            (Some(pin), Ok(fetched)) if fetched.digest == *pin => fetched,
            (Some(pin), fetched) => {
                let has = match fetched {
                    Ok(fetched) => format!("the source has {}", short(&fetched.digest)),
                    Err(error) => chain(&error),
                };
                let wasm = self.bring(pin).await.map_err(|why| Trouble {
                    at: Stage::Fetched,
                    reason: "DigestMismatch",
                    message: format!(
                        "spec.digest asks for {}, but {why}, and {has}; put the right digest or remove it",
                        short(pin)
                    ),
                })?;
                return Ok((pin.clone(), Some(Fetched { wasm, digest: pin.clone(), artifact: None })));
            }
        };
        status.resolved = found.artifact.as_ref().map(|artifact| artifact.reference.clone());
        Ok((found.digest.clone(), Some(found)))
    }

    /// Compiles what is a stranger's, in a process of its own.
    async fn prepare(&self, name: &str, wasm: &[u8]) -> Result<Prepared, Trouble> {
        let prepared = self.context.plugins.prepare_foreign(name, wasm).await;
        prepared.map_err(|error| Trouble { at: Stage::Compiled, reason: "NotAPlugin", message: chain(&error) })
    }

    /// Every digest that plans jobs gets the Plugin's settings: grants and limits at once, whatever becomes of the rest of
    /// the look, and the config where its schema allows it.
    fn apply_settings(&self, name: &str, settings: &Settings) {
        let plugins = &self.context.plugins;
        for digest in plugins.digests_of(name) {
            let Some(prepared) = plugins.prepared(&digest) else { continue };
            // That the Plugin trusts what comes with the host says nothing of what came from elsewhere.
            let own =
                || Plugins::built_in_digests().all(|own| own != digest).then(|| plugins.grants(&digest)).flatten();
            let settings = &Settings { grants: settings.grants.clone().or_else(own), ..settings.clone() };
            if let Err(error) = plugins.add(&prepared, settings) {
                info!(plugin = name, digest = short(&digest), %error, "it keeps the config that it had");
                plugins.restrict(&digest, settings);
            }
        }
    }

    /// The digest that serves new jobs of a framework now.
    fn active(&self, name: &str) -> Option<String> {
        let layout = self.context.stores.layout();
        let served = layout.kinds().iter().find(|served| served.framework.name == name)?;
        served.route.active.clone()
    }

    /// Sends new jobs this way, and has the jobs looked at that go another way now.
    fn route(&self, name: &str, route: &Route) {
        let stores = &self.context.stores;
        let before = stores.layout();
        stores.change(|layout| layout.route(name, route));
        let changed = before.kinds().iter().any(|old| old.framework.name == name && old.route != *route);
        if !changed {
            return;
        }
        if route.migrate {
            self.wake(name);
        } else {
            // Those that a digest plans stay with it.
            stores.unplanned_keys_of(name).into_iter().for_each(|key| self.context.queue.add(key));
        }
    }

    /// Has all jobs of the framework looked at.
    fn wake(&self, name: &str) {
        self.context.stores.keys_of(name).into_iter().for_each(|key| self.context.queue.add(key));
    }

    fn tell_active(&self, status: &mut PluginStatus, active: Option<&str>) {
        let layout = self.context.stores.layout();
        status.digest = active.map(str::to_owned);
        status.short_digest = active.map(|digest| short(digest).to_owned());
        status.version = active.and_then(|digest| layout.descriptor(digest)).map(|framework| framework.version.clone());
    }

    /// Counts, and what became of candidates that are tried.
    async fn refresh(&mut self) {
        for name in self.names() {
            self.refresh_one(&name).await;
        }
    }

    async fn refresh_one(&mut self, name: &str) {
        let (all, in_use) = self.context.stores.digests_in_use(name);
        let Some(known) = self.known.get_mut(name) else { return };
        let status = &mut known.status;
        status.jobs = Some(all);
        status.jobs_by_digest = in_use.into_iter().map(|(digest, jobs)| (short(&digest).to_owned(), jobs)).collect();
        let mut stops = false;
        if let (Some(candidate), Some(trial)) = (&mut status.candidate, self.context.trials.read(name)) {
            candidate.live = trial.live;
            stops = trial.stopped.is_some() && candidate.state == CandidateState::Canary;
            if stops {
                candidate.state = CandidateState::Stopped;
                candidate.message = trial.stopped;
            }
        }
        let mut why = Vec::new();
        if let Some(candidate) = &status.candidate {
            let message = candidate.message.clone().unwrap_or_default();
            match candidate.state {
                CandidateState::Refused => why.push(("CandidateRefused", message)),
                CandidateState::Stopped => why.push(("CanaryStopped", message)),
                CandidateState::Waiting | CandidateState::Shadow | CandidateState::Canary => {}
            }
        } else if let Some(error) = &status.last_error {
            why.push(("SourceFailed", error.clone()));
        }
        let active = status.digest.clone().unwrap_or_default();
        let breakers = self.context.plugins.breakers(self.context.clock.now());
        let is_open = |breaker: &&BreakerState| matches!(breaker.position, Position::Open { .. });
        if breakers.iter().filter(|breaker| breaker.digest == active).any(|breaker| is_open(&breaker)) {
            let message = "the plugin failed in several namespaces and is not asked for a while; see the conditions of their jobs";
            why.push(("BreakerOpen", message.to_owned()));
        }
        let generation = known.resource.metadata.generation.unwrap_or_default();
        report::degraded(status, &why, generation, self.context.clock.now());
        if stops {
            let active = status.digest.clone();
            warn!(plugin = name, "the canary was stopped");
            self.context.trials.end(name);
            let migrate = known.resource.spec.upgrade.strategy == Strategy::Migrate;
            self.route(name, &Route { active, canary: None, migrate });
        }
        self.write_status(name).await;
    }

    async fn write_status(&mut self, name: &str) {
        let Some(known) = self.known.get_mut(name) else { return };
        let json = |status: &PluginStatus| serde_json::to_value(status).unwrap_or_default();
        let stored = known.resource.status.as_ref().map_or_else(|| json!({}), json);
        let wanted = json(&known.status);
        let patch = merge_patch(&stored, &wanted);
        if patch.as_object().is_none_or(serde_json::Map::is_empty) {
            return;
        }
        let plugins = Api::<Plugin>::all(self.client.clone());
        let params = PatchParams { field_manager: Some(crate::apply::FIELD_MANAGER.into()), ..PatchParams::default() };
        let patch: Value = json!({ "status": patch });
        match plugins.patch_status(name, &params, &Patch::Merge(patch)).await {
            Ok(stored) => known.resource.status = stored.status,
            Err(error) => debug!(plugin = name, error = chain(&error), "status not written, it is tried again"),
        }
    }

    /// Releases what neither a job nor a Plugin needs, once it is known what jobs there are.
    async fn sweep(&mut self) {
        let Some(kept) = &self.kept else { return };
        if self.swept.elapsed() < SWEEP || !self.context.is_ready() {
            return;
        }
        self.swept = Instant::now();
        let stores = &self.context.stores;
        let mut needed: BTreeSet<String> = stores.all_digests_in_use();
        let statuses = self.known.values().map(|known| &known.status);
        needed.extend(statuses.flat_map(|status| {
            let candidate = status.candidate.as_ref().map(|candidate| candidate.digest.clone());
            status.digest.iter().chain(&status.previous).cloned().chain(candidate)
        }));
        // Whenever a Plugin goes, what comes with the host serves again.
        needed.extend(Plugins::built_in_digests());
        needed.extend(stores.layout().kinds().iter().filter_map(|served| served.route.active.clone()));
        if let Err(error) = kept.sweep(&needed, self.context.clock.now()).await {
            debug!(error = chain(&error), "bytes of plugins are looked at again later");
        }
        for digest in self.context.plugins.digests().into_iter().filter(|digest| !needed.contains(digest)) {
            info!(digest = short(&digest), "nobody needs this plugin any more");
            self.context.plugins.unload(&digest);
            stores.change(|layout| layout.remove(&digest));
        }
    }
}

/// What a Plugin says about its component.
fn settings(spec: &PluginSpec) -> Settings {
    // What comes with the host is trusted as the host is.
    let grants = spec.source.built_in.is_none().then(|| spec.grants.clone());
    Settings { config: spec.config.clone(), grants, limits: spec.limits.clone() }
}
