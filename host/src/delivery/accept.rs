//! Whether a component that describes itself may serve: it is who the Plugin says, takes its settings, asks for nothing
//! that is not granted, and answers for the jobs that are there.

use super::{
    census,
    look::Question,
    names,
    report::{Stage, StageFailure},
    shared::Shared,
    trial,
};
use crate::{
    api::{answer, names::NamesError},
    job_key::JobKey,
    observe::stores::Observed,
    plugin_resource::{Comparison, PluginSpec},
};
use decide::{
    Digest, Snapshot,
    difference::differences,
    grants::{self, Grants},
    plan::{Answer, Descriptor, Fault, JobKind},
    weight,
};
use sandbox::{ConfigError, Plugins, Prepared, Settings, wanted};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::Instant;

/// So many jobs are asked about twice, to see whether the answers are the same.
const REPEATED: usize = 16;

/// They take no more than so many bytes, as estimated.
const MOST_HELD: usize = 16 << 20;

/// So many jobs without an answer are enough to refuse a component.
const ENOUGH_FAILED: u32 = 20;

/// The jobs that are there are asked about for no longer than this.
const PREFLIGHT: Duration = Duration::from_secs(60);

/// Another Plugin serves a kind that the component serves.
pub(super) const CONFLICT: &str = "Conflict";

/// The component asks for more than the Plugin grants: it is refused, or serves within that if it comes with the host.
pub(super) const GRANT_MISSING: &str = "GrantMissing";

/// The component is called otherwise than its Plugin.
const WRONG_NAME: &str = "WrongName";

/// The API server calls a kind otherwise than the component does.
const KIND_MISMATCH: &str = "KindMismatch";

/// The API server did not say what it calls the kinds. It is asked again.
const KINDS_UNKNOWN: &str = "KindsUnknown";

/// The settings are not what the plugin's schema allows, or name what is not there.
pub(super) const INVALID_CONFIG: &str = "InvalidConfig";

/// Returns whether a component was refused since it is not this Plugin's, or its kinds are another's, or are not what it
/// says, as far as is known: then the Plugin would serve none of them.
pub(super) fn is_of_kinds(reason: &str) -> bool {
    [WRONG_NAME, KIND_MISMATCH, KINDS_UNKNOWN, CONFLICT].contains(&reason)
}

/// A component that may serve.
pub(super) struct Accepted {
    /// What it describes with its settings.
    pub(super) descriptor: Arc<Descriptor>,
    /// What it would do to the jobs that are there.
    pub(super) preflight: Comparison,
}

impl Shared {
    /// Lets the component answer for every job that is there, beside what serves and unseen by it.
    pub(super) async fn accept(
        &self,
        question: &Question,
        new: &Prepared,
        settings: &Settings,
    ) -> Result<Accepted, StageFailure> {
        let Question { name, active, spec, .. } = question;
        let layout = self.handles.stores.layout();
        let refused = |reason, message| StageFailure::new(Stage::Accepted, reason, message);
        let unknown = |source: &kube::Error, message| {
            refused(KINDS_UNKNOWN, message).asking(answer::retry_after(source).unwrap_or_default())
        };
        if new.descriptor.name != *name {
            let (called, version) = (&new.descriptor.name, &new.descriptor.version);
            let message =
                format!("the component is {called} {version}: name the Plugin {called}, or give it another source");
            return Err(refused(WRONG_NAME, message));
        }
        if let Some(message) = layout.conflict(&new.descriptor, &self.names()) {
            return Err(refused(CONFLICT, message));
        }
        // Before anything that the component says is worked off: who grants less has not agreed to it.
        not_granted(&new.descriptor.wanted_grants(), spec, settings).map_or(Ok(()), Err)?;
        let apart = self.handles.plugins.apart();
        let descriptor = apart.add(new, settings).map_err(|error| match error {
            ConfigError::Refused { message, .. } => {
                refused(INVALID_CONFIG, format!("spec.config is not what the plugin's schema allows: {message}"))
            }
            ConfigError::NotChecked { .. } => refused("SchemaTooCostly", error.to_string()),
            error => refused("InvalidSchema", error.to_string()),
        })?;
        let names = names::check(&self.sources.client, &new.descriptor).await;
        names.map_err(|error| match &error {
            NamesError::Mismatch { .. } => refused(KIND_MISMATCH, format!("{error}; the plugin has to be mended")),
            NamesError::LookUp { source, .. } => unknown(source, error.to_string()),
        })?;
        let names = names::check(&self.sources.client, &added(&new.descriptor, &descriptor)).await;
        names.map_err(|error| match &error {
            NamesError::Mismatch { .. } => {
                refused(INVALID_CONFIG, format!("spec.config names a kind otherwise: {error}"))
            }
            NamesError::LookUp { source, .. } => unknown(source, error.to_string()),
        })?;
        if let Some(old) = active.as_ref().and_then(|active| layout.descriptor(active)) {
            serves_the_same(old, &descriptor).map_err(|error| refused("Incompatible", error.to_string()))?;
        }
        not_granted(&wanted(&descriptor, &settings.config()), spec, settings).map_or(Ok(()), Err)?;
        let Some(active) = active.as_ref().filter(|active| **active != new.digest) else {
            return Ok(Accepted { descriptor, preflight: Comparison::default() });
        };
        let (preflight, some) = self.preflight(name, active, &apart, (&new.digest, &descriptor)).await;
        let repeats = apart.repeats(&new.digest, some).await;
        repeats.map_err(|fault| refused("NonDeterministic", fault.to_string()))?;
        match preflight.examples.first() {
            Some(example) if preflight.failed > 0 => {
                let (failed, passes, digest) = (preflight.failed, preflight.passes, new.digest.short());
                let message = format!(
                    "{digest} gives no answer about {failed} of {passes} existing jobs, about which {} does: {example}",
                    active.short()
                );
                Err(refused("PreflightFailed", message))
            }
            _ => Ok(Accepted { descriptor, preflight }),
        }
    }

    /// What the new digest, loaded in `apart`, would do to the jobs of the framework that are not over, and some of its
    /// answers.
    async fn preflight(
        &self,
        name: &str,
        active: &Digest,
        apart: &Plugins,
        (new, descriptor): (&Digest, &Descriptor),
    ) -> (Comparison, Vec<(Snapshot, Answer)>) {
        let (stores, plugins, began) = (&self.handles.stores, self.handles.plugins.apart(), Instant::now());
        let mut comparison = Comparison::default();
        let (mut some, mut held) = (Vec::new(), 0);
        for key in in_turns(census::keys_of(stores, name)) {
            if comparison.failed >= ENOUGH_FAILED || began.elapsed() > PREFLIGHT {
                break;
            }
            let Observed::Ready(snapshot) = stores.observe(&key, self.handles.clock.now()) else { continue };
            if snapshot.ledger.finished.is_some() || snapshot.job.deleting || snapshot.managed_by_another() {
                continue;
            }
            let by = snapshot.digest.as_ref().filter(|digest| plugins.has(digest)).unwrap_or(active);
            let mut snapshot_of_new = snapshot.clone();
            let Some(of_old) = self.handles.with_contents(&snapshot, by).await else { continue };
            let Ok(None) = self.handles.contents.add(&mut snapshot_of_new, descriptor).await else { continue };
            let (old_answer, new_answer) =
                (plugins.answer(&of_old, by).await, apart.answer(&snapshot_of_new, new).await);
            if let Answer::Faulted(Fault::Throttled { .. }) = new_answer {
                continue;
            }
            let different = differences(&snapshot, &old_answer, &new_answer);
            trial::count(&mut comparison, &format!("{}/{}", key.namespace, key.name), &different, &new_answer);
            let bytes = weight::values(&snapshot_of_new.job) + weight::answer(&new_answer);
            if some.len() < REPEATED && held + bytes <= MOST_HELD {
                held += bytes;
                some.push((*snapshot_of_new, new_answer));
            }
        }
        (comparison, some)
    }
}

/// The jobs of the namespaces in turn, one of each in every round: there may be no time for all of them.
fn in_turns(keys: Vec<JobKey>) -> Vec<JobKey> {
    let mut so_far = BTreeMap::<String, usize>::new();
    let in_round = |key: JobKey| {
        let round = so_far.entry(key.namespace.clone()).or_default();
        *round += 1;
        (*round, key)
    };
    let mut keys: Vec<_> = keys.into_iter().map(in_round).collect();
    keys.sort_by_key(|(round, _)| *round);
    keys.into_iter().map(|(_, key)| key).collect()
}

/// A description of the kinds of child alone that the settings add.
fn added(described: &Descriptor, configured: &Descriptor) -> Descriptor {
    let children = configured.children[described.children.len()..].to_vec();
    Descriptor { kinds: vec![], children, ..configured.clone() }
}

/// What of that which the component asks for the Plugin does not grant. What comes with the host serves all the same, within
/// what is granted.
fn not_granted(asked: &Grants, spec: &PluginSpec, settings: &Settings) -> Option<StageFailure> {
    if spec.source.built_in.is_some() {
        return None;
    }
    let missing = grants::missing(asked, settings.grants.as_ref()?);
    let message = format!("the plugin needs these grants, which spec.grants lacks; add them if you agree:\n{missing}");
    (missing != Grants::default()).then(|| StageFailure::new(Stage::Accepted, GRANT_MISSING, message))
}

/// Why a component cannot take the place of another one.
#[derive(Debug, thiserror::Error)]
enum Incompatible {
    #[error("version {new} does not serve {kind}, which {old} does; keep the kind, or make a Plugin of another name")]
    KindGone { kind: String, old: String, new: String },
    #[error("version {new} serves {kind} as {is}, but the host watches {was}")]
    KindRenamed { kind: String, new: String, is: String, was: String },
}

/// Whoever was served by the old one is by the new one, under the same names.
fn serves_the_same(old: &Descriptor, new: &Descriptor) -> Result<(), Incompatible> {
    let names = |kind: &JobKind| format!("{}/{}", kind.version, kind.plural);
    for kind in &old.kinds {
        let (name, version) = (kind.kind.clone(), new.version.clone());
        let Some(same) = new.kinds.iter().find(|other| other.is_same(kind)) else {
            return Err(Incompatible::KindGone { kind: name, old: old.version.clone(), new: version });
        };
        if (&same.version, &same.plural) != (&kind.version, &kind.plural) {
            return Err(Incompatible::KindRenamed { kind: name, new: version, is: names(same), was: names(kind) });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_key::GroupKind;

    #[test]
    fn the_many_jobs_of_one_namespace_come_after_the_first_of_every_other() {
        let (tale, opera) = (GroupKind::new("example.com", "Tale"), GroupKind::new("example.com", "Opera"));
        let many = (0..1000).map(|number| JobKey::new(&opera, "aaa", &format!("job-{number:03}")));
        let few = [("bbb", "hamlet"), ("bbb", "othello"), ("ccc", "lear")];
        let few = few.map(|(namespace, name)| JobKey::new(&tale, namespace, name));
        let keys: Vec<_> = many.chain(few).collect();
        let turns = in_turns(keys.clone());
        let first: Vec<_> = turns.iter().take(6).map(|key| format!("{}/{}", key.namespace, key.name)).collect();
        assert_eq!(first, ["aaa/job-000", "bbb/hamlet", "ccc/lear", "aaa/job-001", "bbb/othello", "aaa/job-002"]);
        let sorted = |mut keys: Vec<JobKey>| {
            keys.sort();
            keys
        };
        assert_eq!(sorted(turns), sorted(keys));
    }
}
