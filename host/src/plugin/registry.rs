//! The plugins that are loaded, and the two questions that the loop has for them.

use super::{
    call::{Caller, NoPlan, Said, internal},
    compile::{LoadError, compile},
    convert::{Exports, JobInput, Seen},
    limits::Limits,
    memo::{Memo, Planned, Shown},
    seam::{Seam, Seat},
    stats::CallStats,
};
use decide::{
    Outlook, Snapshot,
    plan::{Answer, Descriptor, Fault, JobKind, Plan},
    snapshot::Job,
};
use serde_json::Value;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// Plans are remembered up to so many bytes.
const REMEMBERED: usize = 64 << 20;

/// Which plans are refused, and why.
pub type Vet = fn(&Descriptor, &Job, &Plan) -> Result<(), String>;

/// How plugins are run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where calls run.
    pub seam: Seam,
    /// What one call may use up.
    pub limits: Limits,
    /// Which plans are refused.
    pub vet: Vet,
}

impl Options {
    /// The usual limits and the host's own rules.
    #[must_use]
    pub fn new(seam: Seam) -> Self {
        Self { seam, limits: Limits::default(), vet: decide::vet::vet }
    }
}

/// A plugin that is loaded.
struct Loaded {
    /// SHA-256 of the component's bytes, in hex.
    digest: Arc<str>,
    /// What it says of itself.
    descriptor: Arc<Descriptor>,
    /// The cluster operator's settings for it.
    config: String,
    exports: Exports,
}

/// Settings that a plugin cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No plugin of this name is loaded.
    #[error("there is no plugin {name}, there are: {there_are}")]
    NoSuchPlugin {
        /// The name that was given.
        name: String,
        /// The names of those that are loaded.
        there_are: String,
    },
    /// The plugin's own schema makes no sense.
    #[error("the schema of plugin {plugin} for its settings is wrong: {message}")]
    Schema {
        /// Which plugin.
        plugin: String,
        /// What is wrong.
        message: String,
    },
    /// The schema does not allow them.
    #[error("plugin {plugin} does not allow these settings: {message}")]
    Refused {
        /// Which plugin.
        plugin: String,
        /// Where they are wrong, and how.
        message: String,
    },
}

/// The plugins that are loaded.
pub struct Plugins {
    caller: Arc<Caller>,
    loaded: Vec<Arc<Loaded>>,
    memo: Mutex<Memo>,
    vet: Vet,
    seat: Seat,
}

impl fmt::Debug for Plugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.loaded.iter().map(|plugin| &plugin.descriptor.name)).finish()
    }
}

impl Plugins {
    /// An engine without plugins.
    ///
    /// # Errors
    /// This machine cannot run WebAssembly.
    pub fn empty(options: Options) -> Result<Self, LoadError> {
        let caller = Arc::new(Caller::new(options.limits)?);
        if options.seam != Seam::Inline {
            caller.start_clock().map_err(|error| LoadError::Engine(error.into()))?;
        }
        let memo = Mutex::new(Memo::new(REMEMBERED));
        Ok(Self { caller, loaded: Vec::new(), memo, vet: options.vet, seat: Seat::new(options.seam) })
    }

    /// The plugins that come with the host, with the usual limits.
    ///
    /// # Errors
    /// One of them does not load.
    pub fn builtin(seam: Seam) -> Result<Self, LoadError> {
        let mut plugins = Self::empty(Options::new(seam))?;
        for (name, wasm) in BUILTIN {
            plugins.load(name, wasm)?;
        }
        Ok(plugins)
    }

    /// The same plugins with a memory of their own; nothing is compiled again.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            caller: Arc::clone(&self.caller),
            loaded: self.loaded.clone(),
            memo: Mutex::new(Memo::new(REMEMBERED)),
            vet: self.vet,
            seat: self.seat.clone(),
        }
    }

    /// Loads one more plugin and returns its digest. `label` names it until it has described itself.
    ///
    /// # Errors
    /// It is not a plugin, or it clashes with one that is loaded.
    pub fn load(&mut self, label: &str, wasm: &[u8]) -> Result<String, LoadError> {
        let (exports, digest) = compile(self.caller.engine(), self.caller.limits(), wasm)?;
        let descriptor = self.caller.describe(label, &exports)?;
        self.sound(&descriptor).map_err(|message| LoadError::Description { plugin: label.to_owned(), message })?;
        let loaded = Loaded {
            digest: digest.as_str().into(),
            descriptor: Arc::new(descriptor),
            config: "{}".to_owned(),
            exports,
        };
        self.loaded.push(Arc::new(loaded));
        Ok(digest)
    }

    /// Gives a loaded plugin its settings, which are `{}` otherwise.
    ///
    /// # Errors
    /// There is no such plugin, or its schema does not allow these settings.
    pub fn configure(&mut self, name: &str, config: &Value) -> Result<(), ConfigError> {
        let names = || self.loaded.iter().map(|plugin| plugin.descriptor.name.clone()).collect::<Vec<_>>().join(", ");
        let Some(place) = self.loaded.iter().position(|plugin| plugin.descriptor.name == name) else {
            return Err(ConfigError::NoSuchPlugin { name: name.to_owned(), there_are: names() });
        };
        let plugin = &self.loaded[place];
        let schema = jsonschema::validator_for(&plugin.descriptor.config_schema)
            .map_err(|error| ConfigError::Schema { plugin: name.to_owned(), message: error.to_string() })?;
        let wrong: Vec<_> =
            schema.iter_errors(config).map(|error| format!("{}: {error}", error.instance_path())).collect();
        if !wrong.is_empty() {
            return Err(ConfigError::Refused { plugin: name.to_owned(), message: wrong.join("; ") });
        }
        let (descriptor, exports) = (Arc::clone(&plugin.descriptor), plugin.exports.clone());
        let configured = Loaded { digest: Arc::clone(&plugin.digest), descriptor, config: config.to_string(), exports };
        self.loaded[place] = Arc::new(configured);
        Ok(())
    }

    /// What each loaded plugin says of itself, with its digest, in the order in which they were loaded.
    #[must_use]
    pub fn frameworks(&self) -> Vec<(Arc<Descriptor>, String)> {
        self.loaded.iter().map(|plugin| (Arc::clone(&plugin.descriptor), plugin.digest.to_string())).collect()
    }

    /// What should exist for the job, remembered under exactly what the plugin is shown.
    ///
    /// # Errors
    /// Whose fault it is that there is no plan.
    pub async fn plan(&self, snapshot: &Snapshot) -> Result<Arc<Plan>, NoPlan> {
        let plugin = self.by_digest(&snapshot.digest, "plan")?;
        let shown = self.shown(&plugin, snapshot);
        if let Some(planned) = self.remembered(&plugin, snapshot, &shown) {
            return Ok(planned?);
        }
        let (caller, asked, job) = (Arc::clone(&self.caller), Arc::clone(&plugin), shown.clone());
        let work = move || caller.plan(&asked.descriptor.name, &asked.exports, &job.input, job.key);
        let planned: Planned = match self.seat.run(work).await {
            Err(NoPlan::Faulted(fault)) => return Err(fault.into()),
            Err(NoPlan::Rejected(rejection)) => Err(rejection),
            Ok(plan) => {
                (self.vet)(&plugin.descriptor, &snapshot.job, &plan).map_err(|message| Fault::Unacceptable {
                    plugin: plugin.descriptor.name.clone(),
                    function: "plan".to_owned(),
                    message,
                })?;
                Ok(Arc::new(plan))
            }
        };
        let mut memo = self.memo();
        memo.put(shown.key, planned.clone(), shown.input.bytes());
        memo.show(&snapshot.job, &plugin.digest, &shown);
        Ok(planned?)
    }

    fn remembered(&self, plugin: &Loaded, snapshot: &Snapshot, shown: &Shown) -> Option<Planned> {
        let mut memo = self.memo();
        let planned = memo.get(&shown.key)?;
        memo.show(&snapshot.job, &plugin.digest, shown);
        Some(planned)
    }

    /// What the plugin is shown of the job: made anew only when the job has changed in any way.
    fn shown(&self, plugin: &Loaded, snapshot: &Snapshot) -> Shown {
        if let Some(shown) = self.memo().shown(&snapshot.job, &plugin.digest) {
            return shown;
        }
        let input = JobInput::new(snapshot, &plugin.config);
        let key = input.key(&plugin.digest);
        Shown { input: Arc::new(input), key }
    }

    /// The wanted bodies and the verdict.
    pub async fn judge(&self, snapshot: &Snapshot, plan: &Arc<Plan>, wanted: &[String], outlook: Outlook) -> Answer {
        match self.pass(snapshot, plan, wanted, outlook).await {
            Ok((bodies, verdict)) => Answer::Judged { plan: Arc::clone(plan), bodies, verdict },
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
        let plugin = self.by_digest(&snapshot.digest, "judge")?;
        let job = self.shown(&plugin, snapshot).input;
        let seen = Seen::new(snapshot, plan);
        let (caller, wanted) = (Arc::clone(&self.caller), wanted.to_vec());
        let work = move || caller.pass(&plugin.descriptor.name, &plugin.exports, (&job, &seen), &wanted, &outlook);
        self.seat.run(work).await
    }

    /// What every function of every plugin has cost so far: plugin, function, numbers.
    #[must_use]
    pub fn calls(&self) -> Vec<(String, String, CallStats)> {
        self.caller.tally().read()
    }

    fn by_digest(&self, digest: &str, function: &str) -> Result<Arc<Loaded>, Fault> {
        let found = self.loaded.iter().find(|plugin| *plugin.digest == *digest);
        found.cloned().ok_or_else(|| internal(digest, function, "no plugin with this digest is loaded"))
    }

    fn memo(&self) -> std::sync::MutexGuard<'_, Memo> {
        self.memo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a description says holds together and is nobody else's.
    fn sound(&self, new: &Descriptor) -> Result<(), String> {
        if !is_label(&new.name) {
            return Err(format!("the name {:?} is no DNS label", new.name));
        }
        if new.kinds.is_empty() {
            return Err("it serves no kind".to_owned());
        }
        for (place, kind) in new.kinds.iter().enumerate() {
            if kind.kind.is_empty() || kind.version.is_empty() || kind.plural.is_empty() {
                return Err(format!("kind {:?} lacks a name, a version or a plural", kind.kind));
            }
            if kind.managed_by.is_some() != kind.own_manager.is_some() {
                return Err(format!("kind {} has a managed-by switch or an own-manager without the other", kind.kind));
            }
            let same = |other: &JobKind| other.group == kind.group && other.kind == kind.kind;
            if new.kinds[..place].iter().any(same) {
                return Err(format!("kind {} stands twice", kind.kind));
            }
            if let Some(other) = self.loaded.iter().find(|other| other.descriptor.kinds.iter().any(same)) {
                return Err(format!("kind {} is served by plugin {} already", kind.kind, other.descriptor.name));
            }
        }
        match self.loaded.iter().any(|other| other.descriptor.name == new.name) {
            true => Err(format!("another plugin is called {}", new.name)),
            false => Ok(()),
        }
    }
}

fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= 63 && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}
