//! The loop body: observe, ask, decide, apply, publish.

use crate::{
    clock::Clock,
    control::{
        host_ports::PortAllocator,
        memory::Memory,
        pace::{Later, Pace},
        queue::Queue,
    },
    delivery::Handles,
    error::chain,
    job_key::JobKey,
    measure::{
        Policies,
        jobs::{Jobs, PassResult},
        passes,
    },
    observe::{
        contents::Contents,
        stores::{Observed, Stores},
    },
    record::passes::{Pass, Passes, RecordedPass},
    traces::{Traces, spans},
    write::{
        apply::{Attempted, DecisionInput, Writer},
        error::WriteError,
        publish::{Publisher, StatusState},
    },
};
use decide::{
    Applied, Decision, Digest, Report, Snapshot, Triage, Waiting, Wake, decide,
    difference::touches_live,
    ledger::HostPorts,
    plan::{Answer, Fault, Plan},
    ports::{self, NoPorts},
    status, triage,
};
use fairness::Turn;
use futures::future::BoxFuture;
use sandbox::{PassAnswer, Plugins};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use tracing::warn;

/// A reconcile error: why a job is requeued with back-off.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Some of the writes failed.
    #[error("{failed} of {all} writes failed, the first: {first}")]
    Writes {
        /// How many failed.
        failed: usize,
        /// How many writes the pass had.
        all: usize,
        /// The first write that failed, and why.
        first: String,
        /// How long the API server asks to wait.
        retry_after: Option<Duration>,
    },
    /// The status could not be written.
    #[error("failed to write the status")]
    Status(#[source] WriteError),
    /// It could not be read whether a create has succeeded.
    #[error("failed to read what a lost create has done")]
    InDoubt(#[source] WriteError),
    /// A ConfigMap or Secret that the job names could not be read.
    #[error("failed to read what the job names")]
    Contents(#[source] WriteError),
}

impl ReconcileError {
    /// Returns how long the API server asks to wait before the next pass over the job.
    pub(crate) fn retry_after(&self) -> Duration {
        let asked = match self {
            Self::Writes { retry_after, .. } => *retry_after,
            Self::Status(error) | Self::InDoubt(error) | Self::Contents(error) => error.retry_after(),
        };
        asked.unwrap_or_default()
    }
}

/// Returns whether the failure lasts, so that no back-off is of use: the stores say when the next attempt is made.
fn is_for_good(failure: &Waiting) -> bool {
    matches!(failure, Waiting::NamespaceTerminating { .. })
}

/// Returns whether the next pass is to come with back-off.
fn is_tried_again(failure: &Waiting) -> bool {
    !is_for_good(failure) && !matches!(failure, Waiting::Paced { .. })
}

/// Returns whether a pass had nothing to write. It is not recorded: the same pass can be made again when somebody asks.
fn is_quiet(decision: &Decision, status: Option<&Result<StatusState, WriteError>>) -> bool {
    decision.actions.is_empty() && matches!(status, Some(Ok(StatusState { is_complete: true, .. })))
}

/// The state that all passes share.
pub struct Context {
    pub(crate) clock: Clock,
    pub(crate) stores: Arc<Stores>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) writer: Writer,
    /// For passes over large jobs.
    pub(crate) memory: Memory,
    /// Of the runs of schedules.
    pub(crate) pace: Pace,
    pub(crate) contents: Arc<Contents>,
    pub(crate) publisher: Publisher,
    pub(crate) ports: Arc<PortAllocator>,
    pub(crate) passes: Passes,
    pub(crate) stands_by: std::sync::atomic::AtomicBool,
    /// The name of the lease that this host seeks or holds, if there is one.
    pub(crate) lease: Option<String>,
    /// Counters and times of passes.
    pub(crate) measured: passes::Passes,
    /// Counters and times of jobs.
    pub(crate) jobs: Jobs,
    /// What is known of the policies around the host.
    pub(crate) policies: Policies,
    /// Whether its metrics have the original operators' names too.
    pub(crate) has_compat_metrics: bool,
    /// What passes leave for the delivery of plugins.
    pub(crate) delivery: Arc<Handles>,
    /// The traces of passes, if they are sent.
    pub(crate) traces: Option<Arc<Traces>>,
}

/// The result of looking at a job.
pub enum Reconciled {
    /// The job is gone.
    Gone,
    /// It is not known whether there is such a job. If there is, the list of its kind wakes it.
    Unlisted,
    /// The job is not decided until something changes.
    NotYet,
    /// The job cannot be observed.
    Failed(ReconcileError),
    /// A pass over the job was made.
    Passed(Box<Passed>),
}

/// What follows a pass that did not fail.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing: the job is gone, or no job of its kind is known yet.
    Nothing,
    /// The job is not decided until something changes.
    NotYet,
    /// The job was decided, and is looked at again then.
    Again(Wake),
}

/// A pass that was made for a reader.
pub struct Rehearsal {
    /// Snapshot, answer and decision.
    pub pass: Pass,
    /// For a large job, the memory that the pass takes.
    _room: Option<Turn>,
}

/// The results of one pass.
pub struct Passed {
    /// The snapshot.
    pub snapshot: Box<Snapshot>,
    /// The decision.
    pub decision: Decision,
    /// The results of the writes.
    pub applied: Applied,
    /// The state of the status; `None` if the write of the status was skipped or failed.
    pub status: Option<StatusState>,
    /// When to look again, or why the job is requeued.
    pub next: Result<Wake, ReconcileError>,
}

impl Context {
    /// Runs one pass over one job: decides from one snapshot, writes, and reads nothing back.
    pub(crate) async fn reconcile(&self, key: &JobKey) -> Result<Next, ReconcileError> {
        match self.pass_over(key).await {
            Reconciled::Gone | Reconciled::Unlisted => Ok(Next::Nothing),
            Reconciled::NotYet => Ok(Next::NotYet),
            Reconciled::Failed(error) => Err(error),
            Reconciled::Passed(passed) => passed.next.map(Next::Again),
        }
    }

    /// Does the same as `reconcile`, and returns all results of the pass.
    pub fn run_pass<'a>(&'a self, key: &'a JobKey) -> BoxFuture<'a, Reconciled> {
        Box::pin(self.pass_over(key))
    }

    async fn pass_over(&self, key: &JobKey) -> Reconciled {
        // A child that is deleted during the pass is not in its snapshot, so the pass does not record how it ended.
        let tombstones = self.stores.count_tombstones(key);
        let (observed, _room) = match self.observe_in_room(key).await {
            Ok(observed) => observed,
            Err(error) => return Reconciled::Failed(ReconcileError::InDoubt(error)),
        };
        let (mut snapshot, held) = match observed {
            Observed::Ready(snapshot) => (snapshot, None),
            Observed::Held(snapshot, why) => (snapshot, Some(why)),
            Observed::Stale | Observed::InDoubt(_) | Observed::Another => return Reconciled::NotYet,
            Observed::Loading(digest) => {
                self.delivery.wanted.add(digest, key);
                return Reconciled::NotYet;
            }
            Observed::Gone => return Reconciled::Gone,
            Observed::Unlisted => return Reconciled::Unlisted,
        };
        self.stores.forget_shown_writes(key);
        let (snapshot, pass, mut decision) = match triage(&snapshot) {
            Triage::Settled(decision) => (snapshot, None, decision),
            Triage::NeedsPlan => match self.held(&mut snapshot, held).await {
                Ok(held) => {
                    let (snapshot, pass, decision) = self.ask(key, snapshot, held).await;
                    (snapshot, Some(pass), decision)
                }
                Err(error) => return Reconciled::Failed(ReconcileError::Contents(error)),
            },
        };
        spans::decided(&snapshot);
        if !ports::keeps(&snapshot, &decision) {
            self.ports.release(key, &snapshot.job.uid);
        }
        let input = DecisionInput { snapshot: &snapshot, answer: pass.as_ref().map(|pass| &pass.answer) };
        let actions = std::mem::take(&mut decision.actions);
        let (actions, later) = self.pace.admit(&key.namespace, actions, Instant::now());
        decision.actions = actions;
        let Attempted { mut applied, retry_after } = self.writer.apply(key, input, &decision.actions).await;
        if let Some(Later { waiting, after }) = later {
            applied.failures.push(waiting);
            let at = self.clock.now().checked_add(after).map_or(Wake::OnChange, Wake::At);
            decision.wake = decision.wake.min(at);
        }
        if let Report::Verdict { ledger, .. } = &decision.report {
            self.stores.retain_made(key, &ledger.made);
        }
        self.stores.record_applied(key, &snapshot.job, &applied);
        if applied.failures.iter().any(is_for_good) {
            self.stores.record_namespace_terminating(key, &snapshot.job.uid, self.clock.now());
        }
        let failed =
            applied.failures.iter().find(|failure| is_tried_again(failure)).map(|first| ReconcileError::Writes {
                failed: applied.failures.len(),
                all: decision.actions.len(),
                first: first.to_string(),
                retry_after,
            });
        let status = match (&failed, retry_after) {
            // If the API server asks to wait, neither the status nor an event is written.
            (Some(_), Some(_)) if self.publisher.hold(key, &snapshot.job.uid, &applied.created) => None,
            _ => {
                let fold = status::fold(self.queue.busy());
                Some(self.publisher.publish(key, &snapshot, &decision, &applied, fold).await)
            }
        };
        let result = PassResult {
            now: self.clock.now(),
            snapshot: &snapshot,
            answer: input.answer,
            decision: &decision,
            applied: &applied,
            is_published: matches!(status, Some(Ok(_))),
        };
        self.jobs.record(key, &result);
        if let (Some(pass), Some(Ok(_))) = (&pass, &status) {
            self.delivery.try_candidate(pass, &decision);
        }
        let noted = pass.filter(|_| !is_quiet(&decision, status.as_ref()));
        if let Some(full) = noted.and_then(|pass| self.passes.record(pass)) {
            self.plugins.begin_beside(move || full.compress());
        }
        let (status, next) = match (status.transpose(), failed) {
            // The status comes with the next pass, which the API server asks to put off for longer.
            (Err(error), Some(failed)) if failed.retry_after() > error.retry_after().unwrap_or_default() => {
                warn!(error = chain(&error), "failed to write the status");
                (None, Err(failed))
            }
            (Err(error), _) => (None, Err(ReconcileError::Status(error))),
            (Ok(status), Some(failed)) => (status, Err(failed)),
            (Ok(status), None) => (status, Ok(self.wake(key, tombstones, &decision, status))),
        };
        Reconciled::Passed(Box::new(Passed { snapshot, decision, applied, status, next }))
    }

    /// Observes the job, a large one once there is room for it.
    async fn observe_in_room(&self, key: &JobKey) -> Result<(Observed, Option<Turn>), WriteError> {
        let observed = self.without_doubt(key).await?;
        let Some(bytes) = observed.snapshot().and_then(|snapshot| Memory::needed(&snapshot.job)) else {
            return Ok((observed, None));
        };
        // Whoever waits holds nothing, and decides from what is shown then.
        drop(observed);
        let room = self.memory.room(bytes, &key.namespace).await;
        Ok((self.without_doubt(key).await?, Some(room)))
    }

    /// Observes the job once it is known which of its creates have succeeded.
    async fn without_doubt(&self, key: &JobKey) -> Result<Observed, WriteError> {
        let mut observed = self.observe(key);
        while let Observed::InDoubt(doubt) = observed {
            self.writer.settle(key, &doubt).await?;
            observed = self.observe(key);
        }
        Ok(observed)
    }

    /// Returns the snapshot of the job, with what this host knows of its ports and of its last status.
    fn observe(&self, key: &JobKey) -> Observed {
        let mut observed = self.stores.observe(key, self.clock.now());
        match &mut observed {
            Observed::Ready(snapshot) | Observed::Held(snapshot, _) => {
                snapshot.pruned = self.publisher.is_pruned(key, &snapshot.job.uid);
                self.ports.correct(key, snapshot);
            }
            Observed::Gone => {
                self.publisher.forget(key);
                self.ports.forget(key);
                self.jobs.forget(key);
            }
            Observed::Unlisted | Observed::Stale | Observed::InDoubt(_) | Observed::Loading(_) | Observed::Another => {}
        }
        observed
    }

    /// Returns when to look again after a pass whose writes all succeeded.
    fn wake(&self, key: &JobKey, tombstones: usize, decision: &Decision, status: Option<StatusState>) -> Wake {
        let Some(status) = status else { return decision.wake };
        // The status holds all that this pass has found, as far as the CRD keeps it.
        let noted = status.is_complete && !matches!(decision.report, Report::Condition(_));
        if noted && self.stores.forget_tombstones(key, tombstones) {
            return Wake::At(self.clock.now());
        }
        let again = self.stores.namespace_terminates_until(key).map_or(Wake::OnChange, Wake::At);
        status.wake.min(decision.wake).min(again)
    }

    /// Observes the job for a reader, a large one once there is room for it that no live pass needs.
    async fn observe_aside(&self, key: &JobKey) -> (Observed, Option<Turn>) {
        let observed = self.observe(key);
        let Some(bytes) = observed.snapshot().and_then(|snapshot| Memory::needed(&snapshot.job)) else {
            return (observed, None);
        };
        drop(observed);
        let room = self.memory.room_aside(bytes, &key.namespace).await;
        (self.observe(key), Some(room))
    }

    /// Returns the pass over the job as it is now, without writes and without taking ports: snapshot, answer and
    /// decision. Returns `None` if the job cannot be observed.
    ///
    /// It takes no room, permit or fuel from live jobs, and counts for no breaker. A fault `Throttled` in its answer says
    /// that passes for readers have used up the fuel that they have of their own.
    pub async fn rehearse(&self, key: &JobKey) -> Option<Rehearsal> {
        let (observed, room) = self.observe_aside(key).await;
        let (mut snapshot, held) = match observed {
            Observed::Ready(snapshot) => (snapshot, None),
            Observed::Held(snapshot, why) => (snapshot, Some(why)),
            Observed::Unlisted
            | Observed::Stale
            | Observed::InDoubt(_)
            | Observed::Gone
            | Observed::Loading(_)
            | Observed::Another => {
                return None;
            }
        };
        let uid = snapshot.job.uid.clone();
        let (ports, of_job) = (Arc::clone(&self.ports), key.clone());
        let held = self.held(&mut snapshot, held).await.ok()?;
        let plugins = self.plugins.rehearsing(&snapshot);
        let triaged = move || {
            let triaged = triage(&snapshot);
            let decided = held.map(|answer| (decide(&snapshot, &answer), answer));
            (snapshot, triaged, decided)
        };
        let (snapshot, triaged, held) = self.plugins.run_beside(triaged).await;
        let preview = move |count| ports.preview(&of_job, &uid, count);
        let (_, pass, decided) = match held {
            Some((decision, answer)) => Self::of_held(snapshot, answer, decision),
            None => Self::asked(&plugins, snapshot, preview).await,
        };
        let pass = match triaged {
            Triage::Settled(decision) => pass.with(decision),
            Triage::NeedsPlan => pass.with(decided),
        };
        Some(Rehearsal { pass, _room: room })
    }

    /// Returns the plugin's plan for the job as it is now; `None` if the job cannot be observed, or the plugin has none.
    /// Costs live jobs as little as [`rehearse`](Self::rehearse).
    pub async fn planned(&self, key: &JobKey) -> Option<Arc<Plan>> {
        let (Observed::Ready(mut snapshot), _room) = self.observe_aside(key).await else { return None };
        if self.held(&mut snapshot, None).await.ok()?.is_some() {
            return None;
        }
        self.plugins.rehearsing(&snapshot).plan_in_one_turn(snapshot).await.ok()
    }

    /// Returns the answer to a job about which no plugin is asked: it is held for this reason, or by what it names. Adds the
    /// content of that to the snapshot.
    async fn held(&self, snapshot: &mut Snapshot, why: Option<Fault>) -> Result<Option<Answer>, WriteError> {
        if let Some(why) = why {
            return Ok(Some(Answer::Faulted(why)));
        }
        let layout = self.stores.layout();
        let descriptor = snapshot.digest.as_ref().and_then(|digest| layout.descriptor(digest));
        match descriptor.filter(|descriptor| !descriptor.reads.is_empty()) {
            Some(descriptor) => self.contents.add(snapshot, descriptor).await,
            None => Ok(None),
        }
    }

    /// Moves a job from an older digest to the active one, if its route says so and no live pod is affected.
    async fn migrate(&self, key: &JobKey, snapshot: &mut Snapshot) {
        let layout = self.stores.layout();
        let Some(served) = layout.kinds().get(&key.kind).filter(|served| served.route.migrate) else { return };
        let moves = |active: &Digest| snapshot.digest.as_ref() != Some(active) && layout.admits_new_jobs(active);
        let Some(active) = served.route.active.clone().filter(moves) else { return };
        let mut moved = snapshot.clone();
        moved.digest = Some(active.clone());
        let Ok(None) = self.held(&mut moved, None).await else { return };
        let (Ok(old), Ok(new)) = (self.plugins.plan(snapshot).await, self.plugins.plan(&moved).await) else { return };
        if touches_live(snapshot, &old, &new).is_none() {
            snapshot.kind = layout.kind_by(&key.kind, Some(&active)).unwrap_or_else(|| snapshot.kind.clone());
            (snapshot.digest, snapshot.contents) = (Some(active), moved.contents);
        }
    }

    /// Asks the plugin about the snapshot, unless the job is held, and decides.
    async fn ask(
        &self,
        key: &JobKey,
        mut snapshot: Box<Snapshot>,
        held: Option<Answer>,
    ) -> (Box<Snapshot>, Arc<RecordedPass>, Decision) {
        if held.is_none() {
            self.migrate(key, &mut snapshot).await;
        }
        let (ports, of_job, uid) = (Arc::clone(&self.ports), key.clone(), snapshot.job.uid.clone());
        let allocate = move |count| ports.allocate(&of_job, &uid, count);
        let (snapshot, pass, decision) = match held {
            Some(answer) => {
                let decision = decide(&snapshot, &answer);
                Self::of_held(snapshot, answer, decision)
            }
            None => Self::asked(&self.plugins, snapshot, allocate).await,
        };
        (snapshot, Arc::new(pass), decision)
    }

    /// Returns the pass over a job about which no plugin is asked; the plugin's name is empty.
    fn of_held(snapshot: Box<Snapshot>, answer: Answer, decision: Decision) -> (Box<Snapshot>, RecordedPass, Decision) {
        let (plugin, config) = Default::default();
        let pass = RecordedPass { plugin, config, snapshot: Snapshot::clone(&snapshot), outlook: None, answer };
        (snapshot, pass, decision)
    }

    /// Returns the answer of one of these plugins to the snapshot, and what follows from it.
    async fn asked(
        plugins: &Plugins,
        snapshot: Box<Snapshot>,
        ports: impl FnOnce(u32) -> Result<HostPorts, NoPorts> + Send + 'static,
    ) -> (Box<Snapshot>, RecordedPass, Decision) {
        let (snapshot, PassAnswer { answer, outlook }, decision) = plugins.ask_and_decide(snapshot, ports).await;
        let (plugin, config) = snapshot.digest.as_ref().and_then(|digest| plugins.identity(digest)).unwrap_or_default();
        let pass = RecordedPass { plugin, config, snapshot: Snapshot::clone(&snapshot), outlook, answer };
        (snapshot, pass, decision)
    }
}
