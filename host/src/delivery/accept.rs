//! Whether a component that describes itself may serve: it is who the Plugin says, takes its settings, asks for nothing
//! that is not granted, and answers for the jobs that are there.

use super::{
    Delivery, names,
    report::{Stage, Trouble},
    short, trial,
};
use crate::{
    plugin::{ConfigError, Prepared, Settings, wanted},
    plugin_resource::Comparison,
    stores::Observed,
};
use decide::{
    Snapshot,
    difference::differences,
    grants::{self, Grants},
    plan::{Answer, Descriptor, Fault},
};

/// So many jobs are asked about twice, to see whether the answers are the same.
const REPEATED: usize = 16;

impl Delivery {
    /// Loads the component beside the active one and lets it answer for every job that is there. Nobody is routed to it.
    pub(super) async fn accept(
        &self,
        name: &str,
        new: &Prepared,
        settings: &Settings,
        active: Option<&str>,
    ) -> Result<Comparison, Trouble> {
        let plugins = &self.context.plugins;
        let refused = |reason, message| Trouble { at: Stage::Accepted, reason, message };
        if new.descriptor.name != name {
            let (called, version) = (&new.descriptor.name, &new.descriptor.version);
            let message =
                format!("the component is {called} {version}: name the Plugin {called}, or give it another source");
            return Err(refused("WrongName", message));
        }
        plugins.at_peace(&new.descriptor).map_err(|message| refused("Conflict", message))?;
        let names = names::check(&self.client, &new.descriptor).await;
        names.map_err(|message| refused("KindMismatch", message))?;
        if let Some(old) = active.and_then(|active| self.context.stores.layout().descriptor(active).cloned()) {
            serves_the_same(&old, &new.descriptor).map_err(|message| refused("Incompatible", message))?;
        }
        if let Some(granted) = &settings.grants {
            let config = settings.config.clone().unwrap_or_default();
            let missing = grants::missing(&wanted(&new.descriptor, &config), granted);
            if missing != Grants::default() {
                let message =
                    format!("the plugin asks for more than spec.grants has; add to it, if you agree:\n{missing}");
                return Err(refused("GrantMissing", message));
            }
        }
        let was_loaded = plugins.has(&new.digest);
        plugins.add(new, settings).map_err(|error| match error {
            ConfigError::Refused { message, .. } => {
                refused("InvalidConfig", format!("spec.config is not what the plugin's schema allows: {message}"))
            }
            error => refused("InvalidSchema", error.to_string()),
        })?;
        let Some(active) = active.filter(|active| *active != new.digest) else { return Ok(Comparison::default()) };
        let (comparison, some) = self.preflight(name, active, &new.digest).await;
        if let Err(fault) = plugins.repeats(&new.digest, some).await {
            if !was_loaded {
                plugins.unload(&new.digest);
            }
            return Err(refused("NonDeterministic", fault.to_string()));
        }
        match comparison.examples.first() {
            Some(example) if comparison.failed > 0 => {
                if !was_loaded {
                    plugins.unload(&new.digest);
                }
                let (failed, passes, digest) = (comparison.failed, comparison.passes, short(&new.digest));
                let message = format!(
                    "{digest} does not answer for {failed} of the {passes} jobs that are there, where {} does: {example}",
                    short(active)
                );
                Err(refused("PreflightFailed", message))
            }
            _ => Ok(comparison),
        }
    }

    /// What the new digest would do to the jobs of the framework that are not over, and some of its answers.
    async fn preflight(&self, name: &str, active: &str, new: &str) -> (Comparison, Vec<(Snapshot, Answer)>) {
        let (stores, plugins) = (&self.context.stores, &self.context.plugins);
        let mut comparison = Comparison::default();
        let mut some = Vec::new();
        for key in stores.keys_of(name) {
            let Observed::Ready(snapshot) = stores.observe(&key, self.context.clock.now()) else { continue };
            if snapshot.ledger.finished.is_some() || snapshot.job.deleting || snapshot.managed_by_another() {
                continue;
            }
            let by = if plugins.has(&snapshot.digest) { snapshot.digest.as_str() } else { active };
            let (old_answer, new_answer) = (plugins.answer(&snapshot, by).await, plugins.answer(&snapshot, new).await);
            if let Answer::Faulted(Fault::Throttled { .. }) = new_answer {
                continue;
            }
            let different = differences(&snapshot, &old_answer, &new_answer);
            trial::note(&mut comparison, &format!("{}/{}", key.namespace, key.name), &different, &new_answer);
            if some.len() < REPEATED {
                some.push((*snapshot, new_answer));
            }
        }
        (comparison, some)
    }
}

/// Whoever was served by the old one is by the new one, under the same names.
fn serves_the_same(old: &Descriptor, new: &Descriptor) -> Result<(), String> {
    for kind in &old.kinds {
        let same = new.kinds.iter().find(|other| other.is_same(kind));
        match same {
            None => {
                return Err(format!(
                    "version {} does not serve {}, which {} does; keep the kind, or make a Plugin of another name",
                    new.version, kind.kind, old.version
                ));
            }
            Some(same) if (&same.version, &same.plural) != (&kind.version, &kind.plural) => {
                return Err(format!(
                    "version {} serves {} as {}/{}, jobs are watched as {}/{}",
                    new.version, kind.kind, same.version, same.plural, kind.version, kind.plural
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}
