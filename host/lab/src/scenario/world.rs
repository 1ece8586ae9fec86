//! The world of a scenario: a simulated cluster in which nothing happens by itself, its host, and one job.

use super::{host::Host, sent::Sent, words};
use crate::{
    campaign,
    children::{children, serve_children},
};
use anyhow::{Context, ensure};
use decide::{
    plan::JobKind,
    status::merge_patch,
    workload::{CLASSES, WORKLOADS},
};
use sandbox::{PluginLimits, Plugins, Settings};
use serde_json::{Value, json};
use sim::{ApiError, Kind, Life, Matching, Refusal, Running, Sim, Uids};
use std::{sync::Arc, time::Duration};
use troupe::{
    api::resource::Resource,
    job_key::{GroupKind, JobKey},
};

/// How many consecutive idle turns count as rest: an event passes through fewer tasks on its way.
const HOPS: u32 = 32;

/// The maximum number of turns to come to rest; more means that the world never does.
const MOST_TURNS: u32 = 100_000;

/// The error if the API server refuses what a scenario does.
const REFUSED: &str = "the API server refuses it";

/// The job of a scenario.
pub(super) struct Submitted {
    kind: JobKind,
    pub(super) key: JobKey,
    /// The manifest as submitted, for submitting it again.
    manifest: Value,
}

/// All that a scenario can change.
pub(super) struct World {
    pub(super) sim: Sim,
    pub(super) plugins: Arc<Plugins>,
    /// The objects as they were sent in creates.
    pub(super) sent: Sent,
    host: Option<Host>,
    job: Option<Submitted>,
    refusals: Vec<Refusal>,
    _running: Running,
}

impl World {
    /// Returns a cluster that serves the kinds of the plugins, and a host that has listed it.
    pub(super) async fn new(plugins: Plugins) -> anyhow::Result<Self> {
        let kinds = campaign::kinds(&plugins);
        let sim = Sim::new(sim::Options { kinds, life: Life::still(), uids: Uids::Counted, ..sim::Options::default() });
        serve_children(&sim, &plugins);
        let (running, plugins, sent) = (sim.start(), Arc::new(plugins), Sent::of(&sim));
        let mut world = Self { sim, plugins, sent, host: None, job: None, refusals: vec![], _running: running };
        world.start_host();
        world.come_to_rest().await?;
        Ok(world)
    }

    /// Sets the config of a plugin. If that adds kinds, they are served, and a host starts that watches them.
    pub(super) fn configure(&mut self, plugin: &str, config: &Value) -> anyhow::Result<()> {
        let before = children(&self.plugins).len();
        self.plugins.configure(plugin, config)?;
        if children(&self.plugins).len() != before {
            serve_children(&self.sim, &self.plugins);
            self.start_host();
        }
        Ok(())
    }

    /// Starts a new process of the host.
    pub(super) fn start_host(&mut self) {
        self.host = Some(Host::start(&self.sim, Arc::clone(&self.plugins)));
    }

    /// Serves the kinds of queues, and starts a host that finds them.
    pub(super) fn serve_queues(&mut self) {
        queues().for_each(|kind| self.sim.serve(kind));
        self.start_host();
    }

    /// Returns whether objects of this kind are in a namespace.
    pub(super) fn is_namespaced(&self, kind: &Resource) -> bool {
        self.sim.kind(&kind.group, &kind.plural).is_none_or(|kind| kind.namespaced)
    }

    /// Ends the host's process; nothing is watched any more.
    pub(super) fn stop_host(&mut self) {
        self.host = None;
    }

    pub(super) fn host(&self) -> anyhow::Result<&Host> {
        self.host.as_ref().context("there is no host")
    }

    /// Returns when no more happens without time passing: garbage is collected, and the host has received all watch
    /// events.
    pub(super) async fn come_to_rest(&self) -> anyhow::Result<()> {
        let so_far = || (self.sim.log_hash(), self.sent.shown());
        let (mut seen, mut quiet) = (so_far(), 0);
        for _ in 0..MOST_TURNS {
            tokio::task::yield_now().await;
            let now = so_far();
            quiet = if now == seen { quiet + 1 } else { 0 };
            seen = now;
            if quiet >= HOPS && self.host.as_ref().is_none_or(Host::is_ready) {
                return Ok(());
            }
        }
        anyhow::bail!("the world does not come to rest")
    }

    /// Lets time pass.
    pub(super) async fn wait(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Submits a job as a user.
    pub(super) fn submit(&mut self, manifest: Value) -> anyhow::Result<()> {
        let kind = (text(&manifest, "/apiVersion"), text(&manifest, "/kind"));
        let kinds = self.plugins.kinds();
        let served = kinds.iter().find(|known| (known.api_version(), known.kind.clone()) == kind);
        let served = served.with_context(|| format!("no plugin serves {} {}", kind.0, kind.1))?;
        let (namespace, name) = (text(&manifest, "/metadata/namespace"), text(&manifest, "/metadata/name"));
        let key = JobKey::new(&GroupKind::from(served), &namespace, &name);
        self.make(manifest.clone())?;
        self.job = Some(Submitted { kind: served.clone(), key, manifest });
        Ok(())
    }

    /// Deletes the job and submits it again, as a user.
    pub(super) fn recreate(&mut self) -> anyhow::Result<()> {
        let manifest = self.submitted()?.manifest.clone();
        self.delete_job("Background")?;
        ensure!(self.job().is_none(), "the job is still being deleted");
        self.submit(manifest)
    }

    /// Deletes the job as a user. With foreground propagation it stays until its dependents are gone.
    pub(super) fn delete_job(&self, propagation: &str) -> anyhow::Result<()> {
        let job = self.job().context("there is no job")?;
        self.delete(&job, &json!({ "propagationPolicy": propagation }))
    }

    /// Returns the job if it exists.
    pub(super) fn job(&self) -> Option<Value> {
        let Submitted { kind, key, .. } = self.job.as_ref()?;
        self.sim.get(&kind.api_version(), &kind.kind, &key.namespace, &key.name)
    }

    /// Returns the job that was submitted last; it may be gone.
    pub(super) fn submitted(&self) -> anyhow::Result<&Submitted> {
        self.job.as_ref().context("there is no job")
    }

    /// Returns all objects of the kinds that a job may have, those of others included, by kind and name.
    pub(super) fn objects(&self) -> Vec<Value> {
        let kinds = self.kinds();
        let mut objects: Vec<Value> =
            kinds.iter().flat_map(|kind| self.sim.list(&kind.api_version(), &kind.kind, "")).collect();
        // A job is a child of another job, or the job itself.
        let jobs = self.plugins.kinds();
        let is_job = |object: &Value| {
            let of = (text(object, "/apiVersion"), text(object, "/kind"));
            jobs.iter().any(|kind| (kind.api_version(), kind.kind.clone()) == of)
        };
        objects.retain(|object| !is_job(object) || object.pointer("/metadata/ownerReferences").is_some());
        objects.sort_by_key(|object| (text(object, "/kind"), text(object, "/metadata/name")));
        objects
    }

    /// Returns the object with the name `kind/name`.
    pub(super) fn object(&self, called: &str) -> anyhow::Result<Value> {
        let (kind, name) = self.named(called)?;
        let is = |object: &Value| text(object, "/kind") == kind.kind && text(object, "/metadata/name") == name;
        self.objects().into_iter().find(is).with_context(|| format!("there is no {called}"))
    }

    /// Splits `kind/name` into a known kind and a name.
    pub(super) fn named<'a>(&self, called: &'a str) -> anyhow::Result<(Resource, &'a str)> {
        let (kind, name) = called.split_once('/').with_context(|| format!("{called} is no kind/name"))?;
        let known = self.kinds().into_iter().find(|known| known.kind.eq_ignore_ascii_case(kind));
        Ok((known.with_context(|| format!("{kind} is no kind of object here"))?, name))
    }

    fn kinds(&self) -> Vec<Resource> {
        let usual = [("v1", "Pod"), ("v1", "Service"), ("v1", "ConfigMap"), ("v1", "Secret"), ("batch/v1", "Job")];
        let usual =
            usual.map(|(api_version, kind)| Resource::new(api_version, kind, &format!("{}s", kind.to_lowercase())));
        let is_served = |kind: &Kind| self.sim.kind(&kind.group, &kind.plural).is_some();
        let children: Vec<_> = children(&self.plugins).into_iter().chain(queues().filter(is_served)).collect();
        let children = children.iter().map(|kind| Resource::new(&kind.api_version(), &kind.kind, &kind.plural));
        let mut kinds: Vec<Resource> = usual.into_iter().chain(children).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// Returns the namespace of the job, even if the job is gone.
    pub(super) fn namespace(&self) -> String {
        self.job.as_ref().map_or_else(|| "default".to_owned(), |job| job.key.namespace.clone())
    }

    /// Creates an object as a user.
    pub(super) fn make(&self, object: Value) -> anyhow::Result<()> {
        self.sim.try_create(object).map(drop).context(REFUSED)
    }

    /// Deletes an object as a user.
    pub(super) fn delete(&self, object: &Value, options: &Value) -> anyhow::Result<()> {
        let [api_version, kind, namespace, name] = address(object);
        self.sim.delete_with(&api_version, &kind, &namespace, &name, options).context(REFUSED)
    }

    /// Sets a field of an object as a user.
    pub(super) fn set(&self, object: &Value, path: &str, value: Value) -> anyhow::Result<()> {
        let mut wanted = object.clone();
        words::set(&mut wanted, path, value)?;
        if path.starts_with("metadata.deletionTimestamp") {
            return self.alter(object, |object| *object = wanted);
        }
        let [api_version, kind, namespace, name] = address(object);
        let patch = merge_patch(object, &wanted);
        let patched = match path.split('.').next() {
            Some("status") => self.sim.patch_status(&api_version, &kind, &namespace, &name, patch),
            _ => self.sim.patch(&api_version, &kind, &namespace, &name, patch),
        };
        patched.map(drop).context(REFUSED)
    }

    /// Changes an object as a controller with every right.
    pub(super) fn alter(&self, object: &Value, change: impl FnOnce(&mut Value)) -> anyhow::Result<()> {
        let [api_version, kind, namespace, name] = address(object);
        self.sim.alter(&api_version, &kind, &namespace, &name, change).context(REFUSED)
    }

    /// Refuses creates that match the pattern, as an admission webhook does; `*` is any text.
    pub(super) fn refuse(&mut self, pattern: &str, why: &str) -> anyhow::Result<()> {
        let (kind, name) = self.named(pattern)?;
        let error = ApiError::new(403, "Forbidden", why);
        self.refusals.push(self.sim.refuse(Matching::create(&kind.plural).named(name), error));
        Ok(())
    }

    /// Lifts all refusals.
    pub(super) fn admit(&mut self) {
        self.refusals.drain(..).for_each(|refusal| self.sim.lift(refusal));
    }

    /// Makes the CRDs of jobs drop `status.troupe`, or keep it.
    pub(super) fn prune(&self, prunes: bool) {
        for kind in campaign::kinds(&self.plugins) {
            self.sim.serve(if prunes { kind.pruning("troupe") } else { kind });
        }
    }

    /// Removes the fuel of all plugins, so that each call traps, or restores it.
    pub(super) fn starve(&self, starves: bool) {
        let fuel = PluginLimits { fuel: Some(1), ..PluginLimits::default() };
        let settings = Settings { limits: starves.then_some(fuel), ..Settings::default() };
        self.plugins.digests().iter().for_each(|digest| self.plugins.restrict(digest, &settings));
    }
}

/// Returns the kinds of queues.
fn queues() -> impl Iterator<Item = Kind> {
    let workloads = Kind::new(WORKLOADS.api_version, WORKLOADS.kind, WORKLOADS.plural, true, true);
    let classes = CLASSES.iter().map(|class| Kind::new(class.api_version, class.kind, class.plural, false, false));
    std::iter::once(workloads).chain(classes)
}

/// Returns API version, kind, namespace and name.
fn address(object: &Value) -> [String; 4] {
    ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"].map(|pointer| text(object, pointer))
}

/// Returns the text at a JSON pointer, or "".
pub(super) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
