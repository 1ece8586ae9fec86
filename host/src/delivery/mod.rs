//! Plugins by `Plugin` resources: fetched, compiled, checked, tried, brought into service and kept, while jobs run.
//!
//! One task for all Plugins, one Plugin at a time. What it decides is in `upgrade`, what it says in `report`.

mod accept;
mod fetch;
mod kept;
mod report;
mod startup;
mod trial;
mod trials;
mod upgrade;
mod wanted;

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
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kept::Kept;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use report::{Stage, Trouble};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{debug, info, warn};
use upgrade::{Found, Step, step};

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

/// Something happened to a Plugin or to a ConfigMap.
enum Happened {
    Plugin(Box<Plugin>),
    PluginGone(String),
    /// A list begins; what it does not show is gone when it has ended.
    Listing,
    Listed,
    ConfigMap,
}

/// What is known of a Plugin.
struct Known {
    resource: Plugin,
    /// What the last look was at; None looks again.
    looked_at: Option<LookedAt>,
    status: PluginStatus,
}

/// What a look depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LookedAt {
    generation: i64,
    /// Version of the ConfigMap that is the source.
    source: Option<String>,
}

/// The task that delivers plugins.
pub(crate) struct Delivery {
    client: Client,
    context: Arc<Context>,
    sources: Sources,
    kept: Option<Kept>,
    known: BTreeMap<String, Known>,
    /// Plugins that a list has shown so far.
    listed: Option<BTreeSet<String>>,
    swept: Instant,
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
                        self.bring_back(&digest).await;
                    }
                }
                Some(event) = happened.next() => self.note(event).await,
                () = context.trials.changed() => self.refresh().await,
                _ = tick.tick() => {
                    self.look_for_lost().await;
                    self.look_at_all(true).await;
                    self.refresh().await;
                    self.sweep().await;
                }
            }
        }
    }

    /// Plugins, and the metadata of ConfigMaps that may be sources.
    fn watched(&self) -> Pin<Box<dyn Stream<Item = Happened> + Send>> {
        let plugins = watcher(Api::<Plugin>::all(self.client.clone()), watcher::Config::default());
        let plugins = plugins.default_backoff().filter_map(async |event| match event {
            Ok(Event::Apply(plugin) | Event::InitApply(plugin)) => Some(Happened::Plugin(Box::new(plugin))),
            Ok(Event::Delete(plugin)) => Some(Happened::PluginGone(plugin.name_any())),
            Ok(Event::Init) => Some(Happened::Listing),
            Ok(Event::InitDone) => Some(Happened::Listed),
            Err(error) => {
                debug!(error = chain(&error), "watch of Plugins broke and is started again");
                None
            }
        });
        let namespaces = self.sources.namespace.iter().chain(&self.sources.allowed);
        let maps = namespaces.map(|namespace| {
            let maps = Api::<PartialObjectMeta<ConfigMap>>::namespaced(self.client.clone(), namespace);
            let changes = watcher(maps, watcher::Config::default()).default_backoff();
            changes.filter_map(async |event| event.ok().map(|_| Happened::ConfigMap)).boxed()
        });
        futures::stream::select(plugins, futures::stream::select_all(maps)).boxed()
    }

    async fn note(&mut self, event: Happened) {
        match event {
            Happened::Plugin(plugin) => {
                let name = plugin.name_any();
                if let Some(listed) = &mut self.listed {
                    listed.insert(name.clone());
                }
                self.learn(*plugin);
                self.look_at(&name).await;
            }
            Happened::PluginGone(name) => self.forget(&name),
            Happened::Listing => self.listed = Some(BTreeSet::new()),
            Happened::Listed => {
                let listed = self.listed.take().unwrap_or_default();
                let gone: Vec<_> = self.known.keys().filter(|name| !listed.contains(*name)).cloned().collect();
                gone.iter().for_each(|name| self.forget(name));
            }
            Happened::ConfigMap => self.look_at_all(false).await,
        }
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

    /// Looks at a Plugin, unless neither it nor its source has changed since the last time.
    async fn look_at(&mut self, name: &str) {
        let Some(known) = self.known.get(name) else { return };
        let plugin = known.resource.clone();
        let now = LookedAt {
            generation: plugin.metadata.generation.unwrap_or_default(),
            source: self.version_of_source(&plugin).await,
        };
        if known.looked_at.as_ref() == Some(&now) {
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

    /// Whether a source may have changed, without its bytes. A reference to a registry is looked at when the Plugin changes.
    async fn version_of_source(&self, plugin: &Plugin) -> Option<String> {
        let map = plugin.spec.source.config_map.as_ref()?;
        let namespace = self.sources.namespace_of(map).ok()?;
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), &namespace);
        let metadata = maps.get_metadata_opt(&map.name).await.ok()??;
        metadata.resource_version()
    }

    /// Everything from the source to the service; says why it got no further.
    async fn look(&mut self, plugin: &Plugin, status: &mut PluginStatus) -> Result<(), Trouble> {
        let name = plugin.name_any();
        let active = self.active(&name);
        let settings = settings(&plugin.spec);
        self.apply_settings(&name, &settings);
        let (digest, wasm) = self.find(plugin, status).await?;
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
            None => self.prepare(&name, wasm.clone()).await.map_err(|trouble| refuse(status, trouble))?,
        };
        let preflight = self.accept(&name, &prepared, &settings, active.as_deref()).await;
        let preflight = preflight.map_err(|trouble| refuse(status, trouble))?;
        self.keep(&digest, wasm).await.map_err(|trouble| refuse(status, trouble))?;
        let candidate = status.candidate.take().filter(|candidate| candidate.digest == digest);
        let stopped = candidate.as_ref().is_some_and(|candidate| candidate.state == CandidateState::Stopped);
        let found = Found { digest: &digest, active: active.as_deref(), previous: status.previous.as_deref(), stopped };
        let mut route =
            Route { active: active.clone(), canary: None, migrate: plugin.spec.upgrade.strategy == Strategy::Migrate };
        match step(&plugin.spec.upgrade, &found) {
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
        self.context.stores.change(|layout| layout.add(&prepared.descriptor, &digest));
        self.tell_active(status, route.active.as_deref());
        info!(plugin = name, found = short(&digest), active = route.active.as_deref().map(short), "looked at");
        self.route(&name, &route);
        Ok(())
    }

    /// The digest that a Plugin asks for, and its bytes unless it is loaded.
    async fn find(&self, plugin: &Plugin, status: &mut PluginStatus) -> Result<(String, Option<Vec<u8>>), Trouble> {
        let pin = plugin.spec.digest.as_ref();
        if let Some(pin) = pin.filter(|pin| self.context.plugins.has(pin)) {
            return Ok((pin.clone(), None));
        }
        let failed = |error: &FetchError| Trouble { at: Stage::Fetched, reason: error.reason(), message: chain(error) };
        let fetched = self.sources.fetch(&plugin.name_any(), &plugin.spec).await;
        let Some(pin) = pin else {
            let Fetched { wasm, digest, resolved } = fetched.map_err(|error| failed(&error))?;
            status.resolved = resolved;
            return Ok((digest, Some(wasm)));
        };
        let has = match fetched {
            Ok(fetched) if fetched.digest == *pin => {
                status.resolved = fetched.resolved;
                return Ok((fetched.digest, Some(fetched.wasm)));
            }
            Ok(fetched) => format!("the source has {}", short(&fetched.digest)),
            Err(error) => chain(&error),
        };
        match self.bring(pin).await {
            Some(wasm) => Ok((pin.clone(), Some(wasm))),
            None => Err(Trouble {
                at: Stage::Fetched,
                reason: "DigestMismatch",
                message: format!(
                    "spec.digest asks for {}, which the host has not kept, and {has}; put the right digest or remove it",
                    short(pin)
                ),
            }),
        }
    }

    /// Compiles what is a stranger's, in a process of its own.
    async fn prepare(&self, name: &str, wasm: Option<Vec<u8>>) -> Result<Prepared, Trouble> {
        let prepared = self.context.plugins.prepare_foreign(name, &wasm.unwrap_or_default()).await;
        prepared.map_err(|error| Trouble { at: Stage::Compiled, reason: "NotAPlugin", message: chain(&error) })
    }

    /// Keeps the bytes before any job is planned by them.
    async fn keep(&self, digest: &str, wasm: Option<Vec<u8>>) -> Result<(), Trouble> {
        let (Some(kept), Some(wasm)) = (&self.kept, wasm) else { return Ok(()) };
        let failed =
            |error: kept::KeptError| Trouble { at: Stage::Accepted, reason: "NotKept", message: chain(&error) };
        kept.keep(digest, &wasm).await.map_err(failed)
    }

    /// Every digest that plans jobs gets the Plugin's settings: grants and limits at once, whatever becomes of the rest of
    /// the look, and the config where its schema allows it.
    fn apply_settings(&self, name: &str, settings: &Settings) {
        let plugins = &self.context.plugins;
        for digest in plugins.digests_of(name) {
            let Some(prepared) = plugins.prepared(&digest) else { continue };
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

    /// Sends new jobs this way, and has all jobs of the framework looked at.
    fn route(&self, name: &str, route: &Route) {
        let stores = &self.context.stores;
        let before = stores.layout();
        stores.change(|layout| layout.route(name, route));
        let changed = before.kinds().iter().any(|old| old.framework.name == name && old.route != *route);
        if changed {
            self.wake(name);
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
        let in_use = self.context.stores.digests_in_use(name);
        let Some(known) = self.known.get_mut(name) else { return };
        let status = &mut known.status;
        status.jobs = Some(in_use.values().sum());
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
            let message =
                "the plugin failed for several jobs in a row and is not asked for a while; see their conditions";
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

    async fn bring(&self, digest: &str) -> Option<Vec<u8>> {
        let brought = self.kept.as_ref()?.bring(digest).await;
        brought.map_err(|error| warn!(error = chain(&error), "the bytes of a plugin cannot be brought back")).ok()
    }

    /// Loads a digest that jobs are pinned to; jobs of one that is lost are told so.
    async fn bring_back(&mut self, digest: &str) {
        let wasm = match self.bring(digest).await {
            Some(wasm) => Some(wasm),
            None => self.in_a_source(digest).await,
        };
        self.load_back(digest, wasm).await;
    }

    async fn load_back(&mut self, digest: &str, wasm: Option<Vec<u8>>) {
        let prepared = match wasm {
            Some(wasm) => self.prepare(short(digest), Some(wasm)).await.map_err(|trouble| trouble.message),
            None => Err("its bytes are nowhere to be found".to_owned()),
        };
        let loaded = prepared.and_then(|prepared| {
            let spec = self.known.get(&prepared.descriptor.name).map(|known| &known.resource.spec);
            let settings = spec.map_or_else(Settings::default, settings);
            let added = self.context.plugins.add(&prepared, &settings);
            let added = added.or_else(|_| self.context.plugins.add(&prepared, &Settings::default()));
            added.map(|()| prepared).map_err(|error| error.to_string())
        });
        match loaded {
            Ok(prepared) => {
                info!(plugin = prepared.descriptor.name, digest = short(digest), "brought back for jobs that run");
                self.context.stores.change(|layout| layout.add(&prepared.descriptor, digest));
            }
            Err(why) => {
                warn!(digest = short(digest), why, "a plugin that jobs need is lost; their pods are left alone");
                self.context.stores.change(|layout| layout.lose(digest));
            }
        }
        self.context.stores.jobs().into_iter().for_each(|key| self.context.queue.add(key));
    }

    /// Digests that were lost may be there again.
    async fn look_for_lost(&mut self) {
        let layout = self.context.stores.layout();
        for digest in layout.lost() {
            let Some(kept) = &self.kept else { return };
            if let Ok(wasm) = kept.bring(digest).await {
                self.load_back(digest, Some(wasm)).await;
            }
        }
    }

    /// The bytes of a digest that some Plugin's source still has.
    async fn in_a_source(&self, digest: &str) -> Option<Vec<u8>> {
        for (name, known) in &self.known {
            if let Ok(fetched) = self.sources.fetch(name, &known.resource.spec).await
                && fetched.digest == digest
            {
                return Some(fetched.wasm);
            }
        }
        None
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
