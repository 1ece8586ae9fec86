//! Passes that candidates are shown: after their writes, by a task of its own, so that a slow candidate delays nobody.
//! What there is no time for is dropped and counted.

use super::{Handles, trials::Trials};
use crate::record::passes::RecordedPass;
use decide::{Decision, Digest, Report, Snapshot, difference::differences, plan::Answer};
use parking_lot::Mutex;
use std::{borrow::Cow, collections::VecDeque, sync::Arc};
use tokio::sync::Notify;

/// So many passes of a plugin wait for its candidate.
const WAITING: usize = 64;

/// Passes that candidates are shown, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Comparisons {
    waiting: Mutex<VecDeque<Arc<RecordedPass>>>,
    changed: Notify,
}

impl Comparisons {
    /// The pass waits for the candidate of its plugin. If too many do, it is dropped, and the trial counts it.
    fn add(&self, pass: &Arc<RecordedPass>, trials: &Trials) {
        let mut waiting = self.waiting.lock();
        if waiting.iter().filter(|other| other.plugin == pass.plugin).count() >= WAITING {
            trials.record_dropped(&pass.plugin);
            return;
        }
        waiting.push_back(Arc::clone(pass));
        self.changed.notify_one();
    }

    async fn next(&self) -> Arc<RecordedPass> {
        loop {
            let pass = self.waiting.lock().pop_front();
            if let Some(pass) = pass {
                return pass;
            }
            self.changed.notified().await;
        }
    }
}

/// `namespace/name`.
fn job(pass: &RecordedPass) -> String {
    format!("{}/{}", pass.snapshot.job.namespace, pass.snapshot.job.name)
}

impl Handles {
    /// Notes for the candidate of the job's plugin, if one is tried, how the pass went; has it shown a pass of another digest.
    pub(crate) fn try_candidate(&self, pass: &Arc<RecordedPass>, decision: &Decision) {
        let (trials, plugin) = (&self.trials, pass.plugin.clone());
        let Some(candidate) = trials.candidate(&plugin) else { return };
        if pass.snapshot.ledger.finished.is_none()
            && let Report::Verdict { ledger, .. } = &decision.report
            && let Some(finished) = &ledger.finished
        {
            trials.record_end(&plugin, pass.snapshot.digest.as_ref(), finished.outcome);
        }
        match &pass.answer {
            Answer::Faulted(fault) if pass.snapshot.digest.as_ref() == Some(&candidate) => {
                trials.record_fault(&plugin, &job(pass), fault);
            }
            _ if pass.snapshot.digest.as_ref() == Some(&candidate) => {}
            _ => self.comparisons.add(pass, trials),
        }
    }

    /// Returns the snapshot with the content that plans of this digest depend on; `None` if it cannot be read.
    pub(super) async fn with_contents<'a>(&self, snapshot: &'a Snapshot, digest: &Digest) -> Option<Cow<'a, Snapshot>> {
        let layout = self.stores.layout();
        let reads = layout.descriptor(digest).filter(|descriptor| !descriptor.reads.is_empty());
        if reads.is_none() && snapshot.contents.is_empty() {
            return Some(Cow::Borrowed(snapshot));
        }
        let mut own = Snapshot { contents: vec![], ..snapshot.clone() };
        if let Some(descriptor) = reads
            && !matches!(self.contents.add(&mut own, descriptor).await, Ok(None))
        {
            return None;
        }
        Some(Cow::Owned(own))
    }

    /// Shows the passes that wait to the candidates of their plugins, for ever.
    pub(crate) async fn show_to_candidates(&self) {
        loop {
            let pass = self.comparisons.next().await;
            let Some(candidate) = self.trials.candidate(&pass.plugin) else { continue };
            if pass.snapshot.digest.as_ref() != Some(&candidate) {
                let Some(snapshot) = self.with_contents(&pass.snapshot, &candidate).await else { continue };
                let other = self.plugins.answer(&snapshot, &candidate).await;
                let different = differences(&pass.snapshot, &pass.answer, &other);
                self.trials.record_compared(&pass.plugin, &job(&pass), &different, &other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin_resource::CandidateState;
    use decide::{plan::Rejection, testkit};

    fn pass_of(plugin: &str) -> Arc<RecordedPass> {
        let snapshot = testkit::snapshot(testkit::job("hamlet", "u"));
        let answer = Answer::Rejected(Rejection::Unsupported("tales".into()));
        Arc::new(RecordedPass { plugin: plugin.into(), config: "{}".into(), snapshot, outlook: None, answer })
    }

    #[test]
    fn a_candidate_that_is_behind_has_its_passes_dropped_and_counted_and_no_other_has() {
        let (comparisons, trials) = (Comparisons::default(), Trials::default());
        for plugin in ["behind", "other"] {
            trials.begin(plugin, &testkit::digest("candidate"), CandidateState::Shadow);
        }
        let waiting = |plugin: &str| comparisons.waiting.lock().iter().filter(|pass| pass.plugin == plugin).count();
        let dropped = |plugin: &str| trials.read(plugin).unwrap().dropped;
        for _ in 0..WAITING {
            comparisons.add(&pass_of("behind"), &trials);
        }
        assert_eq!((waiting("behind"), dropped("behind")), (WAITING, 0));
        comparisons.add(&pass_of("behind"), &trials);
        assert_eq!((waiting("behind"), dropped("behind")), (WAITING, 1));
        comparisons.add(&pass_of("other"), &trials);
        assert_eq!((waiting("other"), dropped("other")), (1, 0));
    }
}
