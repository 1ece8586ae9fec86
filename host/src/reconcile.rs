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
use decide::{Decision, Report, Snapshot, Triage, Wake, decide, outlook, plan::Answer, triage};
use std::{ops::RangeInclusive, sync::Arc};

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

/// The ledger that was observed says all that this pass found out.
fn is_written_down(snapshot: &Snapshot, decision: &Decision) -> bool {
    match &decision.report {
        Report::Unchanged => true,
        Report::Verdict { ledger, .. } => **ledger == snapshot.ledger,
        Report::Trouble(_) => false,
    }
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
    pub(crate) host_ports: RangeInclusive<u32>,
    pub(crate) stands_by: std::sync::atomic::AtomicBool,
    pub(crate) panics: std::sync::atomic::AtomicU32,
}

impl Context {
    /// One pass over one job: what is decided from one snapshot is written, and nothing is read back.
    pub(crate) async fn reconcile(&self, key: &JobKey) -> Result<Wake, ReconcileError> {
        let mut snapshot = match self.stores.observe(key, self.clock.now()) {
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
            Triage::NeedsPlan => self.ask(key, &mut snapshot).await.1,
        };
        let applied = self.writer.apply(key, &snapshot, &decision.actions).await;
        self.stores.note_made(&snapshot.job.uid, &applied.made);
        let wake = self.publisher.publish(key, &snapshot, &decision, &applied).await.map_err(ReconcileError::Status)?;
        match applied.failures.first() {
            Some(first) => Err(ReconcileError::Writes {
                failed: applied.failures.len(),
                all: decision.actions.len(),
                first: first.to_string(),
            }),
            None if is_written_down(&snapshot, &decision) && self.stores.forget_departed(key) => {
                Ok(Wake::At(self.clock.now()))
            }
            None => Ok(wake.min(decision.wake)),
        }
    }

    /// What a pass over the job would do, without doing it: what is seen, what the plugin answers if it is asked, and what
    /// is decided. None for a job that is not seen as it is.
    pub(crate) async fn rehearse(&self, key: &JobKey) -> Option<(Snapshot, Option<Answer>, Decision)> {
        let Observed::Ready(mut snapshot) = self.stores.observe(key, self.clock.now()) else { return None };
        let (answer, decision) = match triage(&snapshot) {
            Triage::Settled(decision) => (None, decision),
            Triage::NeedsPlan => {
                let (answer, decision) = self.ask(key, &mut snapshot).await;
                (Some(answer), decision)
            }
        };
        Some((*snapshot, answer, decision))
    }

    /// Asks the plugin about this instant, and decides.
    async fn ask(&self, key: &JobKey, snapshot: &mut Snapshot) -> (Answer, Decision) {
        let mut seen = None;
        let answer = match self.plugins.plan(snapshot).await {
            Ok(plan) => {
                if plan.host_ports > 0 && snapshot.ledger.host_ports.is_none() {
                    snapshot.set_aside = self.stores.set_aside(&snapshot.job.uid, plan.host_ports, &self.host_ports);
                }
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
        (answer, decision)
    }
}
