//! Passes that candidates are shown: after their writes, by a task of its own, so that a slow candidate delays nobody.
//! What there is no time for is dropped and counted.

use super::{Handles, trials::Trials};
use crate::record::passes::RecordedPass;
use decide::{Decision, Digest, Report, Snapshot, difference::differences, plan::Answer, weight};
use parking_lot::Mutex;
use std::{borrow::Cow, collections::VecDeque, sync::Arc};
use tokio::sync::Notify;

/// So many passes of a plugin wait for its candidate, and so many bytes of them as estimated.
const WAITING: Backlog = Backlog { passes: 64, bytes: 16 << 20 };

/// Half of them are the most of one namespace, whose passes leave room for those of others.
const OF_A_NAMESPACE: Backlog = Backlog { passes: WAITING.passes / 2, bytes: WAITING.bytes / 2 };

/// How much waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Backlog {
    passes: usize,
    bytes: usize,
}

/// A pass that waits, with the bytes that it takes.
#[derive(Debug)]
struct Waiting {
    pass: Arc<RecordedPass>,
    bytes: usize,
}

/// Passes that candidates are shown, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Comparisons {
    waiting: Mutex<VecDeque<Waiting>>,
    changed: Notify,
}

impl Comparisons {
    /// The pass waits for the candidate of its plugin. If too many do, it is dropped, and the trial counts it.
    fn add(&self, pass: &Arc<RecordedPass>, trials: &Trials) {
        let bytes = weight::values(&pass.snapshot.job) + weight::answer(&pass.answer);
        let mut waiting = self.waiting.lock();
        let namespace = &pass.snapshot.job.namespace;
        let of_plugin = || waiting.iter().filter(|other| other.pass.plugin == pass.plugin);
        let of_namespace = of_plugin().filter(|other| other.pass.snapshot.job.namespace == *namespace);
        if !sum(of_plugin()).has_room(bytes, WAITING) || !sum(of_namespace).has_room(bytes, OF_A_NAMESPACE) {
            trials.record_dropped(&pass.plugin);
            return;
        }
        waiting.push_back(Waiting { pass: Arc::clone(pass), bytes });
        self.changed.notify_one();
    }

    async fn next(&self) -> Arc<RecordedPass> {
        loop {
            let first = self.waiting.lock().pop_front();
            if let Some(first) = first {
                return first.pass;
            }
            self.changed.notified().await;
        }
    }
}

impl Backlog {
    /// Returns whether one more pass of so many bytes is within the limit.
    fn has_room(self, bytes: usize, limit: Self) -> bool {
        self.passes < limit.passes && self.bytes + bytes <= limit.bytes
    }
}

fn sum<'a>(waiting: impl Iterator<Item = &'a Waiting>) -> Backlog {
    waiting.fold(Backlog::default(), |sum, one| Backlog { passes: sum.passes + 1, bytes: sum.bytes + one.bytes })
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
    use decide::{plan::Rejection, snapshot::Job, testkit};
    use serde_json::{Value, json};

    fn pass_of(plugin: &str, namespace: &str, spec: Value) -> Arc<RecordedPass> {
        let job = Job { namespace: namespace.into(), spec, ..testkit::job("hamlet", "u") };
        let answer = Answer::Rejected(Rejection::Unsupported("tales".into()));
        let snapshot = testkit::snapshot(job);
        Arc::new(RecordedPass { plugin: plugin.into(), config: "{}".into(), snapshot, outlook: None, answer })
    }

    fn trials() -> Trials {
        let trials = Trials::default();
        for plugin in ["behind", "other"] {
            trials.begin(plugin, &testkit::digest("candidate"), CandidateState::Shadow);
        }
        trials
    }

    #[test]
    fn a_candidate_that_is_behind_has_its_passes_dropped_and_counted_and_no_other_has() {
        let (comparisons, trials) = (Comparisons::default(), trials());
        let waiting = |plugin: &str| comparisons.waiting.lock().iter().filter(|it| it.pass.plugin == plugin).count();
        let dropped = |plugin: &str| trials.read(plugin).unwrap().dropped;
        for pass in 0..WAITING.passes {
            comparisons.add(&pass_of("behind", &format!("ns-{}", pass % 2), json!({})), &trials);
        }
        assert_eq!((waiting("behind"), dropped("behind")), (WAITING.passes, 0));
        comparisons.add(&pass_of("behind", "ns-2", json!({})), &trials);
        assert_eq!((waiting("behind"), dropped("behind")), (WAITING.passes, 1));
        comparisons.add(&pass_of("other", "ns-0", json!({})), &trials);
        assert_eq!((waiting("other"), dropped("other")), (1, 0));
    }

    // A text of small objects takes a hundred times its bytes as values.
    #[test]
    fn the_passes_of_one_namespace_leave_room_for_those_of_another_in_number_and_bytes() {
        let large = || json!(vec![json!({ "": 0 }); 2000]);
        for spec in [json!({}), large()] {
            let (comparisons, trials) = (Comparisons::default(), trials());
            for _ in 0..WAITING.passes {
                comparisons.add(&pass_of("behind", "greedy", spec.clone()), &trials);
            }
            let held = sum(comparisons.waiting.lock().iter());
            assert!(held.passes <= OF_A_NAMESPACE.passes && held.bytes <= OF_A_NAMESPACE.bytes, "{held:?}");
            assert!(held.passes > 1 && trials.read("behind").unwrap().dropped > 0, "{held:?}");
            comparisons.add(&pass_of("behind", "modest", spec), &trials);
            assert_eq!(sum(comparisons.waiting.lock().iter()).passes, held.passes + 1);
        }
    }
}
