//! The loop body: observe, ask, decide, apply, publish.

use crate::{
    apply::{WriteError, Writer},
    clock::Clock,
    passes::{Pass, Passes},
    plugin::Plugins,
    publish::Publisher,
    queue::Queue,
    stores::{JobKey, Observed, Stores},
};
use decide::{Decision, Snapshot, Triage, Wake, decide, outlook, plan::Answer, triage};
use std::sync::Arc;

/// Why a pass has to be tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// Some of its writes did not happen.
    #[error("{failed} of {all} writes failed, the first: {first}")]
    Writes {
        /// How many failed.
        failed: usize,
        /// How many there were.
        all: usize,
        /// The first that failed, and why.
        first: String,
    },
    /// The status could not be written.
    #[error("failed to write the status")]
    Status(#[source] WriteError),
}

/// What a pass works with.
pub struct Context {
    pub(crate) clock: Clock,
    pub(crate) stores: Arc<Stores>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) writer: Writer,
    pub(crate) publisher: Publisher,
    pub(crate) passes: Passes,
    pub(crate) panics: std::sync::atomic::AtomicU32,
}

impl Context {
    /// One pass over one job: what is decided from one snapshot is written, and nothing is read back.
    pub(crate) async fn reconcile(&self, key: &JobKey) -> Result<Wake, ReconcileError> {
        let snapshot = match self.stores.observe(key, self.clock.now()) {
            Observed::Ready(snapshot) => snapshot,
            Observed::Stale => return Ok(Wake::OnChange),
            Observed::Gone => {
                self.queue.forget(key);
                self.passes.forget(key);
                return Ok(Wake::OnChange);
            }
        };
        let decision = match triage(&snapshot) {
            Triage::Settled(decision) => decision,
            Triage::NeedsPlan => self.ask(key, &snapshot).await,
        };
        let applied = self.writer.apply(key, &snapshot, &decision.actions).await;
        let wake = self.publisher.publish(key, &snapshot, &decision, &applied).await.map_err(ReconcileError::Status)?;
        match applied.failures.first() {
            Some(first) => Err(ReconcileError::Writes {
                failed: applied.failures.len(),
                all: decision.actions.len(),
                first: first.to_string(),
            }),
            None => Ok(wake.min(decision.wake)),
        }
    }

    /// Asks the plugin about this instant, and decides.
    async fn ask(&self, key: &JobKey, snapshot: &Snapshot) -> Decision {
        let mut seen = None;
        let answer = match self.plugins.plan(snapshot).await {
            Ok(plan) => {
                let (outlook, wanted) = outlook(snapshot, &plan);
                seen = Some(outlook.clone());
                self.plugins.judge(snapshot, &plan, &wanted, outlook).await
            }
            Err(refused) => Answer::from(refused),
        };
        let decision = decide(snapshot, &answer);
        self.passes.note(key, || Pass {
            snapshot: snapshot.clone(),
            answer: answer.clone(),
            outlook: seen,
            decision: decision.clone(),
        });
        decision
    }
}
