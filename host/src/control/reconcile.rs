//! The loop body: observe, ask, decide, apply, publish.

use crate::{
    clock::Clock,
    control::queue::Queue,
    delivery::Handles,
    job_key::JobKey,
    observe::stores::{Observed, Stores},
    record::passes::{Pass, Passes, RecordedPass},
    write::{
        apply::{Attempted, Ground, WriteError, Writer},
        publish::{Publisher, Said},
    },
};
use decide::{
    Applied, Decision, Report, Snapshot, Triage, Waiting, Wake, decide,
    difference::touches_live,
    ledger::HostPorts,
    plan::{Answer, Fault},
    ports::{self, NoPorts},
    triage,
};
use sandbox::{Asked, Plugins};
use std::{sync::Arc, time::Duration};

/// Why a pass has to be tried again.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Some of its writes did not happen.
    #[error("{failed} of {all} writes failed, the first: {first}")]
    Writes {
        /// How many failed.
        failed: usize,
        /// How many there were.
        all: usize,
        /// The first that failed, and why.
        first: String,
        /// How long the API server asks to wait.
        retry_after: Option<Duration>,
    },
    /// The status could not be written.
    #[error("failed to write the status")]
    Status(#[source] WriteError),
}

impl ReconcileError {
    /// How long the API server asks to wait before the job is looked at again.
    pub(crate) fn retry_after(&self) -> Duration {
        let asked = match self {
            Self::Writes { retry_after, .. } => *retry_after,
            Self::Status(error) => error.retry_after(),
        };
        asked.unwrap_or_default()
    }
}

/// Trying again does not help.
fn is_for_good(failure: &Waiting) -> bool {
    matches!(failure, Waiting::NamespaceTerminating { .. })
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
    pub(crate) stands_by: std::sync::atomic::AtomicBool,
    pub(crate) panics: std::sync::atomic::AtomicU32,
    /// Passes that have to be tried again.
    pub(crate) failed: std::sync::atomic::AtomicU64,
    /// What this pass leaves for the delivery of plugins.
    pub(crate) delivery: Arc<Handles>,
}

/// What came of looking at a job.
pub enum Looked {
    /// It is gone.
    Gone,
    /// It is not decided before something changes.
    NotYet,
    /// A pass was made over it.
    Passed(Box<Passed>),
}

/// One pass, as it went.
pub struct Passed {
    /// What was seen.
    pub snapshot: Snapshot,
    /// What was decided.
    pub decision: Decision,
    /// What came of the writes.
    pub applied: Applied,
    /// How the status stands; None if it was not come to, or could not be written.
    pub said: Option<Said>,
    /// When to look again, or why the pass has to be tried again.
    pub next: Result<Wake, ReconcileError>,
}

impl Context {
    /// One pass over one job: what is decided from one snapshot is written, and nothing is read back. None: it is gone.
    pub(crate) async fn reconcile(&self, key: &JobKey) -> Result<Option<Wake>, ReconcileError> {
        match self.look(key).await {
            Looked::Gone => Ok(None),
            Looked::NotYet => Ok(Some(Wake::OnChange)),
            Looked::Passed(passed) => passed.next.map(Some),
        }
    }

    /// The same, with everything that a pass came to.
    pub async fn look(&self, key: &JobKey) -> Looked {
        // What goes while the pass is under way is not in its snapshot, and so not in what it writes down.
        let tombstones = self.stores.count_tombstones(key);
        let (mut snapshot, held) = match self.stores.observe(key, self.clock.now()) {
            Observed::Ready(snapshot) => (snapshot, None),
            Observed::Held(snapshot, why) => (snapshot, Some(why)),
            Observed::Stale => return Looked::NotYet,
            Observed::Loading(digest) => {
                self.delivery.wanted.add(digest, key);
                return Looked::NotYet;
            }
            Observed::Gone => return Looked::Gone,
        };
        let (pass, decision) = match triage(&snapshot) {
            Triage::Settled(decision) => (None, decision),
            Triage::NeedsPlan => {
                let (pass, decision) = self.ask(key, &mut snapshot, held).await;
                (Some(pass), decision)
            }
        };
        if !ports::keeps(&snapshot, &decision) {
            self.stores.release_ports(key, &snapshot.job.uid);
        }
        let ground = Ground { snapshot: &snapshot, answer: pass.as_ref().map(|pass| &pass.answer) };
        let Attempted { applied, retry_after } = self.writer.apply(key, ground, &decision.actions).await;
        if let Report::Verdict { ledger, .. } = &decision.report {
            self.stores.retain_made(key, &ledger.made);
        }
        self.stores.note_applied(key, &snapshot.job, &applied);
        if applied.failures.iter().any(is_for_good) {
            self.stores.note_namespace_terminating(key, &snapshot.job.uid);
        }
        let failed =
            applied.failures.iter().find(|failure| !is_for_good(failure)).map(|first| ReconcileError::Writes {
                failed: applied.failures.len(),
                all: decision.actions.len(),
                first: first.to_string(),
                retry_after,
            });
        let said = match (&failed, retry_after) {
            // Asked to wait, it does not write the status either.
            (Some(_), Some(_)) => None,
            _ => Some(self.publisher.publish(key, &snapshot, &decision, &applied).await),
        };
        if let (Some(pass), Some(Ok(_))) = (&pass, &said) {
            self.delivery.try_candidate(pass, &decision);
        }
        let (said, next) = match (said.transpose(), failed) {
            (Err(error), _) => (None, Err(ReconcileError::Status(error))),
            (Ok(said), Some(failed)) => (said, Err(failed)),
            (Ok(said), None) => (said, Ok(self.wake(key, tombstones, &decision, said))),
        };
        Looked::Passed(Box::new(Passed { snapshot: *snapshot, decision, applied, said, next }))
    }

    /// When to look again after a pass all of whose writes went well.
    fn wake(&self, key: &JobKey, tombstones: usize, decision: &Decision, said: Option<Said>) -> Wake {
        let Some(said) = said else { return decision.wake };
        // All that this pass found out is written down, as far as the CRD keeps it.
        let noted = said.all && !matches!(decision.report, Report::Trouble(_));
        if noted && self.stores.forget_tombstones(key, tombstones) {
            return Wake::At(self.clock.now());
        }
        said.wake.min(decision.wake)
    }

    /// The pass over the job as it would be now, without its writes and without taking ports: what is seen, what the plugin
    /// answers, and what is decided. None for a job that is not seen as it is.
    pub async fn rehearse(&self, key: &JobKey) -> Option<Pass> {
        let (mut snapshot, held) = match self.stores.observe(key, self.clock.now()) {
            Observed::Ready(snapshot) => (snapshot, None),
            Observed::Held(snapshot, why) => (snapshot, Some(why)),
            Observed::Stale | Observed::Gone | Observed::Loading(_) => return None,
        };
        let triaged = triage(&snapshot);
        let uid = snapshot.job.uid.clone();
        let noted = self.answered(&mut snapshot, held, |count| self.stores.offer_ports(key, &uid, count)).await;
        Some(match triaged {
            Triage::Settled(decision) => noted.with(decision),
            Triage::NeedsPlan => noted.decided(),
        })
    }

    /// Moves a job that an older digest plans to the active one, where the framework's jobs are to move and that touches
    /// nothing that lives.
    async fn migrate(&self, key: &JobKey, snapshot: &mut Snapshot) {
        let layout = self.stores.layout();
        let Some(served) = layout.kinds().get(key.kind).filter(|served| served.route.migrate) else { return };
        let moves = |active: &String| *active != snapshot.digest && layout.has_kept(active);
        let Some(active) = served.route.active.clone().filter(moves) else { return };
        let mut moved = snapshot.clone();
        moved.digest.clone_from(&active);
        let (Ok(old), Ok(new)) = (self.plugins.plan(snapshot).await, self.plugins.plan(&moved).await) else { return };
        if touches_live(snapshot, &old, &new).is_none() {
            snapshot.kind = layout.kind_by(key.kind, &active).unwrap_or_else(|| snapshot.kind.clone());
            snapshot.digest = active;
        }
    }

    /// Asks the plugin about this instant, unless the job is held, and decides.
    async fn ask(&self, key: &JobKey, snapshot: &mut Snapshot, held: Option<Fault>) -> (Arc<RecordedPass>, Decision) {
        if held.is_none() {
            self.migrate(key, snapshot).await;
        }
        let uid = snapshot.job.uid.clone();
        let pass = Arc::new(self.answered(snapshot, held, |count| self.stores.set_aside(key, &uid, count)).await);
        let decision = decide(snapshot, &pass.answer);
        self.passes.note(Arc::clone(&pass));
        (pass, decision)
    }

    /// What its plugin answers about this instant. Nobody is asked about a job that is held, and what is said is none of its
    /// plugin's.
    async fn answered(
        &self,
        snapshot: &mut Snapshot,
        held: Option<Fault>,
        ports: impl FnOnce(u32) -> Result<HostPorts, NoPorts> + Send,
    ) -> RecordedPass {
        let (Asked { answer, outlook }, asked) = match held {
            Some(why) => (Asked { answer: Answer::Faulted(why), outlook: None }, None),
            None => (self.plugins.ask(snapshot, ports).await, self.plugins.identity(&snapshot.digest)),
        };
        let (plugin, config) = asked.unwrap_or_default();
        RecordedPass { plugin, config, snapshot: snapshot.clone(), outlook, answer }
    }
}
