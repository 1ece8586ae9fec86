//! The loaded plugins, and the two calls that the reconcile loop makes: `plan` and `judge`.

mod adapt;
mod apart;
mod bundled;
mod loaded;
mod repeat;

use super::{
    allowance::Allowances,
    breaker::{BreakerState, Breakers, Case},
    call::{Callee, Caller, NoPlan, Said},
    compile::{compile, twice},
    compiler::{Compiled, Compiler},
    convert::{Bodies, Exports, JobInput, Seen},
    description::{self, DescriptionError},
    executor::{Executor, Runner},
    limits::Limits,
    load_error::LoadError,
    plan_cache::{PlanCache, Planned, Shown},
    settings::{ConfigError, Settings, configured, wanted, with_config},
    stats::CallStats,
    twin::Twin,
};
use decide::{
    Digest, Outlook, Snapshot,
    grants::Grants,
    plan::{Answer, Descriptor, Fault, JobKind, Objection, Plan},
    snapshot::Job,
};
use jiff::Timestamp;
use loaded::Loaded;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use std::{fmt, path::PathBuf, sync::Arc};

/// Maximum bytes of cached plans, enough for about thirty jobs. Calling `plan` again costs little.
const REMEMBERED: usize = 2 << 20;

/// Checks a plan and returns an objection if it is refused.
pub type Vet = fn(&Descriptor, &Job, &Grants, &Plan) -> Result<(), Objection>;

/// Options of the loaded plugins.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where calls run.
    pub executor: Executor,
    /// Limits of a plugin that has none of its own.
    pub limits: Limits,
    /// The check of plans.
    pub vet: Vet,
    /// Where foreign components are compiled.
    pub compiler: Compiler,
    /// The folder with the compiled code of the built-in plugins, by [`precompile`](crate::precompile). It has to be as
    /// trustworthy as the program's own file. A plugin whose code is not there, or does not fit, is compiled.
    pub precompiled: Option<PathBuf>,
}

impl Options {
    /// Returns options with the default limits, the host's own check of plans, and compilation in this process.
    #[must_use]
    pub fn new(executor: Executor) -> Self {
        let (limits, compiler) = (Limits::default(), Compiler::InProcess);
        Self { executor, limits, vet: decide::vet::vet, compiler, precompiled: None }
    }
}

/// A component that is compiled and has described itself, but is not in service.
#[derive(Clone)]
pub struct Prepared {
    /// The digest of the component's bytes.
    pub digest: Digest,
    /// The plugin's description of itself, without what settings add to it.
    pub descriptor: Arc<Descriptor>,
    exports: Exports,
    twin: Twin,
}

/// The loaded plugins.
pub struct Plugins {
    caller: Arc<Caller>,
    loaded: Arc<RwLock<Vec<Arc<Loaded>>>>,
    plan_cache: Arc<Mutex<PlanCache>>,
    breakers: Arc<Breakers>,
    allowances: Arc<Allowances>,
    /// Fuel of calls that no live job waits for.
    aside: Arc<Allowances>,
    compiler: Compiler,
    vet: Vet,
    runner: Runner,
}

impl fmt::Debug for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.loaded().iter().map(|plugin| &plugin.descriptor.name)).finish()
    }
}

impl Plugins {
    /// Creates the engine without plugins.
    ///
    /// # Errors
    /// Returns an error if this machine cannot run WebAssembly.
    pub fn empty(options: Options) -> Result<Self, LoadError> {
        let caller = Arc::new(Caller::new(options.limits)?);
        if options.executor != Executor::Inline {
            caller.start_clock().map_err(|error| LoadError::Engine(error.into()))?;
        }
        let plan_cache = Arc::new(Mutex::new(PlanCache::new(REMEMBERED)));
        let (breakers, allowances, aside) = (Arc::default(), Arc::default(), Arc::default());
        let runner = Runner::new(options.executor).map_err(|error| LoadError::Engine(error.into()))?;
        let loaded = Arc::default();
        let Options { compiler, vet, .. } = options;
        Ok(Self { caller, loaded, plan_cache, breakers, allowances, aside, compiler, vet, runner })
    }

    /// Compiles a component in this process and calls its `describe`. `label` names it until then. Blocks.
    ///
    /// # Errors
    /// Returns an error if it is not a plugin.
    fn prepare(&self, label: &str, wasm: &[u8]) -> Result<Prepared, LoadError> {
        let (exports, digest) = compile(self.caller.engine(), self.caller.limits(), wasm)?;
        self.described(label, twice(self.caller.engine(), exports)?, digest)
    }

    /// Compiles a foreign component with the compiler of the options and calls its `describe`.
    ///
    /// # Errors
    /// Returns an error if it is not a plugin, or cannot be compiled within bounds.
    pub async fn prepare_foreign(&self, label: &str, wasm: &[u8]) -> Result<Prepared, LoadError> {
        let (exports, digest) = self.compiler.foreign(self.caller.engine(), self.caller.limits(), wasm).await?;
        self.described(label, twice(self.caller.engine(), exports)?, digest)
    }

    /// Calls `describe` of both copies of a component, and keeps the first.
    fn described(&self, label: &str, copies: [Exports; 2], digest: Digest) -> Result<Prepared, LoadError> {
        let [exports, again] = copies;
        let (limits, allowances, twin) = (self.caller.limits(), &Allowances::default(), Twin::default());
        let bodies = &Bodies::default();
        let callee = |exports| Callee { plugin: label, exports, twin: &twin, bodies, limits, allowances };
        let descriptor = self.caller.describe_twice(callee(&exports), callee(&again))?;
        description::sound(&descriptor).map_err(|why| LoadError::Description { plugin: label.to_owned(), why })?;
        Ok(Prepared { digest, descriptor: Arc::new(descriptor), exports, twin })
    }

    /// Puts this digest into service with these settings, which replace those that it had, and returns what it describes
    /// with them.
    ///
    /// # Errors
    /// Returns an error if the plugin's schema does not allow the settings.
    pub fn add(&self, prepared: &Prepared, settings: &Settings) -> Result<Arc<Descriptor>, ConfigError> {
        let config = settings.config();
        let descriptor = Arc::new(self.configured(&prepared.digest, &prepared.descriptor, &config)?);
        let grants = settings.grants.clone().unwrap_or_else(|| wanted(&descriptor, &config));
        let limits = self.limits_of(settings);
        self.put(Loaded {
            digest: prepared.digest.clone(),
            described: Arc::clone(&prepared.descriptor),
            accepted: grants.clone(),
            grants,
            descriptor: Arc::clone(&descriptor),
            config: config.to_string(),
            exports: prepared.exports.clone(),
            twin: prepared.twin.clone(),
            bodies: Bodies::default(),
            share: self.runner.share(&prepared.descriptor.name, limits.concurrency),
            limits,
        });
        Ok(descriptor)
    }

    /// Returns what a plugin describes with this config. What comes with the host is trusted as the host is; the schema of
    /// anything else is asked within bounds.
    fn configured(&self, digest: &Digest, described: &Descriptor, config: &Value) -> Result<Descriptor, ConfigError> {
        if Self::built_in_digests().any(|built_in| built_in == *digest) {
            return configured(described, config);
        }
        self.compiler.allows(described, config)?;
        with_config(described, config)
    }

    /// Loads another plugin and returns its digest. `label` names it until it has described itself.
    ///
    /// # Errors
    /// Returns an error if it is not a plugin, or conflicts with a loaded one.
    pub fn load(&self, label: &str, wasm: &[u8]) -> Result<Digest, LoadError> {
        self.add_new(label, &self.prepare(label, wasm)?)
    }

    /// Loads a foreign plugin like [`load`](Self::load), with the compiler of the options.
    ///
    /// # Errors
    /// Returns the errors of `load`, or an error if it cannot be compiled within bounds.
    pub async fn load_foreign(&self, label: &str, wasm: &[u8]) -> Result<Digest, LoadError> {
        self.add_new(label, &self.prepare_foreign(label, wasm).await?)
    }

    fn add_new(&self, label: &str, prepared: &Prepared) -> Result<Digest, LoadError> {
        let refused = |why| LoadError::Description { plugin: label.to_owned(), why };
        self.check_others(&prepared.descriptor).map_err(refused)?;
        self.add(prepared, &Settings::default()).map_err(|error| refused(error.into()))?;
        Ok(prepared.digest.clone())
    }

    /// Takes the plugin with this digest out of service.
    pub fn unload(&self, digest: &Digest) {
        self.loaded.write().retain(|plugin| plugin.digest != *digest);
    }

    /// Sets the config of a loaded plugin, in all its digests. The default is `{}`.
    ///
    /// # Errors
    /// Returns an error if there is no such plugin, or its schema does not allow the config.
    pub fn configure(&self, name: &str, config: &Value) -> Result<(), ConfigError> {
        let loaded = self.loaded();
        let all: Vec<_> = loaded.iter().filter(|plugin| plugin.descriptor.name == name).collect();
        if all.is_empty() {
            let there_are = loaded.iter().map(|plugin| plugin.descriptor.name.clone()).collect::<Vec<_>>().join(", ");
            return Err(ConfigError::NoSuchPlugin { name: name.to_owned(), there_are });
        }
        for plugin in all {
            let descriptor = self.configured(&plugin.digest, &plugin.described, config)?;
            let (grants, descriptor) = (wanted(&descriptor, config), Arc::new(descriptor));
            let (config, accepted) = (config.to_string(), grants.clone());
            self.put(Loaded { config, grants, accepted, descriptor, ..Loaded::clone(plugin) });
        }
        Ok(())
    }

    /// Returns the limits of a plugin that has none of its own.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        self.caller.limits()
    }

    /// Returns the description and digest of each loaded plugin, in load order. If a plugin is loaded in several
    /// digests, it returns the first.
    #[must_use]
    pub fn frameworks(&self) -> Vec<(Arc<Descriptor>, Digest)> {
        let mut first: Vec<(Arc<Descriptor>, Digest)> = Vec::new();
        for plugin in self.loaded() {
            if first.iter().all(|(framework, _)| framework.name != plugin.descriptor.name) {
                first.push((Arc::clone(&plugin.descriptor), plugin.digest.clone()));
            }
        }
        first
    }

    /// Returns the kinds of job that the loaded plugins serve, in load order. If a plugin is loaded in several digests,
    /// they are those of the first.
    #[must_use]
    pub fn kinds(&self) -> Vec<JobKind> {
        self.frameworks().into_iter().flat_map(|(framework, _)| framework.kinds.clone()).collect()
    }

    /// Returns the component with this digest, if it is loaded.
    #[must_use]
    pub fn prepared(&self, digest: &Digest) -> Option<Prepared> {
        let plugin = self.by_digest(digest)?;
        Some(Prepared {
            digest: plugin.digest.clone(),
            descriptor: Arc::clone(&plugin.described),
            exports: plugin.exports.clone(),
            twin: plugin.twin.clone(),
        })
    }

    /// Returns what the plugin with this digest describes with its settings, if it is loaded.
    #[must_use]
    pub fn descriptor(&self, digest: &Digest) -> Option<Arc<Descriptor>> {
        Some(Arc::clone(&self.by_digest(digest)?.descriptor))
    }

    /// Returns what the plans of the plugin with this digest may contain, if it is loaded.
    #[must_use]
    pub fn grants(&self, digest: &Digest) -> Option<Grants> {
        Some(self.by_digest(digest)?.grants.clone())
    }

    /// Returns every loaded digest.
    #[must_use]
    pub fn digests(&self) -> Vec<Digest> {
        self.loaded().iter().map(|plugin| plugin.digest.clone()).collect()
    }

    /// Returns every loaded digest of the plugin of this name.
    #[must_use]
    pub fn digests_of(&self, name: &str) -> Vec<Digest> {
        let loaded = self.loaded();
        let of_name = loaded.iter().filter(|plugin| plugin.descriptor.name == name);
        of_name.map(|plugin| plugin.digest.clone()).collect()
    }

    /// Returns whether this digest is loaded.
    #[must_use]
    pub fn has(&self, digest: &Digest) -> bool {
        self.by_digest(digest).is_some()
    }

    /// Checks that no plugin of another name serves a kind of the new one, and that none has its name.
    fn check_others(&self, new: &Descriptor) -> Result<(), DescriptionError> {
        let loaded = self.loaded();
        for other in loaded.iter().map(|other| &other.descriptor).filter(|other| other.name != new.name) {
            let serves = |kind: &&JobKind| other.kinds.iter().any(|served| served.is_same(kind));
            if let Some(kind) = new.kinds.iter().find(serves) {
                return Err(DescriptionError::KindTaken { kind: kind.kind.clone(), plugin: other.name.clone() });
            }
        }
        match loaded.iter().any(|other| other.descriptor.name == new.name) {
            true => Err(DescriptionError::NameTaken(new.name.clone())),
            false => Ok(()),
        }
    }

    fn limits_of(&self, settings: &Settings) -> Limits {
        let limits = self.caller.limits();
        settings.limits.as_ref().map_or_else(|| limits.clone(), |own| limits.with(own))
    }

    fn put(&self, new: Loaded) {
        let mut loaded = self.loaded.write();
        let new = Arc::new(new);
        match loaded.iter_mut().find(|plugin| plugin.digest == new.digest) {
            Some(old) if old.says_as(&new) => {}
            Some(old) => {
                *old = new;
                *self.plan_cache() = PlanCache::new(REMEMBERED);
            }
            None => loaded.push(new),
        }
    }

    fn loaded(&self) -> Vec<Arc<Loaded>> {
        self.loaded.read().clone()
    }

    /// Returns the name and the config of the plugin with this digest, if it is loaded.
    #[must_use]
    pub fn identity(&self, digest: &Digest) -> Option<(String, String)> {
        let plugin = self.by_digest(digest)?;
        Some((plugin.descriptor.name.clone(), plugin.config.clone()))
    }

    /// Returns the plugin's plan for the job, cached by the plugin's exact input.
    ///
    /// # Errors
    /// Returns the user's mistake or the plugin's fault if there is no plan.
    pub async fn plan(&self, snapshot: &Snapshot) -> Result<Arc<Plan>, NoPlan> {
        let plugin = self.planner_of(snapshot)?;
        decide::vet::job(&snapshot.job, &plugin.grants)?;
        let shown = self.shown(&plugin, snapshot);
        if let Some(planned) = self.cached(&plugin, snapshot, &shown) {
            return Ok(planned?);
        }
        plugin.takes(&shown.input)?;
        let case = plugin.case(snapshot, &shown.input);
        self.admit(&plugin, &case)?;
        let result = self.ask_for_plan(&plugin, &shown, &snapshot.job).await;
        let planned: Planned = match result.map_err(|no_plan| self.breakers.unanswered(&case, no_plan)) {
            Err(NoPlan::Faulted(fault)) => return Err(fault.into()),
            Err(NoPlan::Rejected(rejection)) => Err(rejection),
            Ok(plan) => Ok(Arc::new(plan)),
        };
        // Its settings may have changed meanwhile, and with them the cache; `put` takes the locks in this order.
        let loaded = self.loaded.read();
        if loaded.iter().any(|now| Arc::ptr_eq(now, &plugin)) {
            let mut plan_cache = self.plan_cache();
            plan_cache.put(shown.key, planned.clone(), shown.input.bytes());
            plan_cache.show(snapshot, &plugin.digest, &shown);
        }
        Ok(planned?)
    }

    async fn ask_for_plan(&self, plugin: &Arc<Loaded>, shown: &Shown, job: &Arc<Job>) -> Result<Plan, NoPlan> {
        let (caller, called, shown) = (Arc::clone(&self.caller), Arc::clone(plugin), shown.clone());
        let (allowances, of_job) = (Arc::clone(&self.allowances), Arc::clone(job));
        let work = move || caller.plan_sampled(called.callee(&allowances), (&shown.input, &of_job.spec), shown.key);
        let plan = self.runner.run(&plugin.share, &job.namespace, work).await?;
        let vetted = (self.vet)(&plugin.descriptor, job, &plugin.grants, &plan);
        vetted.map_err(|objection| plugin.objects("plan", objection))?;
        Ok(plan)
    }

    /// Admits a call unless the plugin has used up its fuel or its breaker is open.
    fn admit(&self, plugin: &Loaded, case: &Case<'_>) -> Result<(), NoPlan> {
        self.allowances.admit(case.plugin, &case.job.namespace, plugin.limits.fuel_per_minute, case.now)?;
        self.breakers.admit(case)
    }

    fn cached(&self, plugin: &Loaded, snapshot: &Snapshot, shown: &Shown) -> Option<Planned> {
        let mut plan_cache = self.plan_cache();
        let planned = plan_cache.get(&shown.key)?;
        plan_cache.show(snapshot, &plugin.digest, shown);
        Some(planned)
    }

    /// Returns the plugin's input for the job, built again only if the job has changed.
    fn shown(&self, plugin: &Loaded, snapshot: &Snapshot) -> Shown {
        if let Some(shown) = self.plan_cache().shown(snapshot, &plugin.digest) {
            return shown;
        }
        let input = JobInput::new(snapshot, &plugin.config);
        let key = input.key(plugin.digest.as_str());
        Shown { input: Arc::new(input), key }
    }

    /// Calls `bind` and `judge`, and returns the wanted bodies with the verdict.
    pub async fn judge(&self, snapshot: &Snapshot, plan: &Arc<Plan>, wanted: &[String], outlook: Outlook) -> Answer {
        match self.pass(snapshot, plan, wanted, outlook).await {
            Ok((bindings, verdict)) => Answer::Judged { plan: Arc::clone(plan), bindings, verdict },
            Err(no_plan) => no_plan.into(),
        }
    }

    async fn pass(
        &self,
        snapshot: &Snapshot,
        plan: &Plan,
        wanted: &[String],
        outlook: Outlook,
    ) -> Result<Said, NoPlan> {
        let plugin = self.planner_of(snapshot)?;
        let job = self.shown(&plugin, snapshot).input;
        let case = plugin.case(snapshot, &job);
        self.admit(&plugin, &case)?;
        let seen = Seen::new(snapshot, plan);
        let (caller, called, wanted) = (Arc::clone(&self.caller), Arc::clone(&plugin), wanted.to_vec());
        let allowances = Arc::clone(&self.allowances);
        let work = move || caller.pass(called.callee(&allowances), (&job, &seen), &wanted, &outlook);
        let result =
            self.runner.run(&plugin.share, &snapshot.job.namespace, work).await.and_then(|(bindings, verdict)| {
                decide::vet::bindings(&snapshot.job, &plugin.grants, plan, &bindings)
                    .map_err(|objection| plugin.objects("bind", objection))?;
                Ok((bindings, verdict))
            });
        let result = result.map_err(|no_plan| self.breakers.unanswered(&case, no_plan))?;
        self.breakers.answered(&case);
        Ok(result)
    }

    /// Returns the state of the breaker of each loaded plugin.
    #[must_use]
    pub fn breakers(&self, now: Timestamp) -> Vec<BreakerState> {
        self.loaded().iter().map(|plugin| self.breakers.state(&plugin.descriptor.name, &plugin.digest, now)).collect()
    }

    /// Returns the statistics of every function of every plugin, as (plugin, function, statistics).
    #[must_use]
    pub fn calls(&self) -> Vec<(String, String, CallStats)> {
        self.caller.tally().read()
    }

    fn by_digest(&self, digest: &Digest) -> Option<Arc<Loaded>> {
        let loaded = self.loaded.read();
        loaded.iter().find(|plugin| plugin.digest == *digest).cloned()
    }

    /// Returns the plugin that plans the job.
    fn planner_of(&self, snapshot: &Snapshot) -> Result<Arc<Loaded>, Fault> {
        let digest = snapshot.digest.as_ref();
        digest.and_then(|digest| self.by_digest(digest)).ok_or_else(|| missing(digest))
    }

    fn plan_cache(&self) -> parking_lot::MutexGuard<'_, PlanCache> {
        self.plan_cache.lock()
    }
}

fn missing(digest: Option<&Digest>) -> Fault {
    Fault::Missing { digest: digest.cloned(), why: String::new() }
}
