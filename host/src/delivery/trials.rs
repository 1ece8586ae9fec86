//! The candidates that are tried now, by plugin: fed by passes, read by the delivery.

use super::trial::Trial;
use crate::plugin_resource::CandidateState;
use decide::{
    Digest,
    difference::Difference,
    plan::{Answer, Fault, Outcome},
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tokio::sync::watch;

/// The candidates that are tried now.
#[derive(Debug, Default)]
pub struct Trials {
    trials: Mutex<BTreeMap<String, Trial>>,
    stops: watch::Sender<()>,
}

impl Trials {
    /// A candidate is tried from now on; one that is tried already goes on.
    pub(super) fn begin(&self, plugin: &str, digest: &Digest, state: CandidateState) {
        let mut trials = self.trials.lock();
        if !matches!(state, CandidateState::Shadow | CandidateState::Canary) {
            trials.remove(plugin);
        } else if trials.get(plugin).is_none_or(|trial| trial.digest != *digest || trial.state != state) {
            trials.insert(plugin.to_owned(), Trial::of(digest, state));
        }
    }

    /// No candidate of this plugin is tried any more.
    pub(super) fn end(&self, plugin: &str) {
        self.trials.lock().remove(plugin);
    }

    /// What is known of a trial.
    #[must_use]
    pub fn read(&self, plugin: &str) -> Option<Trial> {
        self.trials.lock().get(plugin).cloned()
    }

    /// Every trial, by plugin.
    #[must_use]
    pub fn all(&self) -> Vec<(String, Trial)> {
        self.trials.lock().iter().map(|(plugin, trial)| (plugin.clone(), trial.clone())).collect()
    }

    /// The digest that is tried beside the one that plans a job.
    pub(crate) fn candidate(&self, plugin: &str) -> Option<Digest> {
        self.trials.lock().get(plugin).map(|trial| trial.digest.clone())
    }

    /// A job of another digest was shown to the candidate.
    pub(crate) fn record_compared(&self, plugin: &str, job: &str, differences: &[Difference], candidate: &Answer) {
        self.update(plugin, |trial| trial.record_compared(job, differences, candidate));
    }

    /// A job of another digest was not shown to the candidate, which is behind.
    pub(super) fn record_dropped(&self, plugin: &str) {
        self.update(plugin, |trial| trial.dropped += 1);
    }

    /// A job that the candidate plans was not answered.
    pub(crate) fn record_fault(&self, plugin: &str, job: &str, fault: &Fault) {
        self.update(plugin, |trial| trial.record_fault(job, fault));
    }

    /// A job of this digest is over.
    pub(crate) fn record_end(&self, plugin: &str, digest: Option<&Digest>, outcome: Outcome) {
        self.update(plugin, |trial| trial.record_end(digest, outcome));
    }

    /// Changes when a candidate has to stop.
    pub(super) fn stops(&self) -> watch::Receiver<()> {
        self.stops.subscribe()
    }

    fn update(&self, plugin: &str, change: impl FnOnce(&mut Trial)) {
        let mut trials = self.trials.lock();
        let Some(trial) = trials.get_mut(plugin) else { return };
        let before = trial.stopped.is_some();
        change(trial);
        if trial.stopped.is_some() && !before {
            self.stops.send_replace(());
        }
    }
}
