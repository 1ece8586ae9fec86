//! The task of one Plugin. It owns what is known of it: what the last look was at, how that ended, and what the status
//! says. It looks again when the Plugin or its source has changed, or when what was refused is due.

use super::{
    accept,
    look::{Looked, LookedAt, Question, Refused},
    looking::{Begin, Begins},
    refusals::Refusal,
    report::{self, Stage, StageFailure},
    seen::Seen,
    shared::Shared,
    statuses,
    watched::Version,
};
use crate::plugin_resource::{Candidate, CandidateState, PluginSpec, PluginStatus};
use decide::Digest;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tracing::warn;

/// Counts in statuses are no older than this, and what was refused is tried again as soon as it is due.
const REFRESH: Duration = Duration::from_secs(10);

/// What is known of a Plugin.
pub(super) struct PluginTask {
    pub(super) shared: Arc<Shared>,
    pub(super) seen: Seen,
    /// The look that is under way, if there is one.
    looks: JoinSet<Looked>,
    /// Where it asks whether it may go on, and what it asks.
    begins: Begins,
    asked: mpsc::Receiver<Begin>,
    /// What the last look was at; None looks again.
    looked_at: Option<LookedAt>,
    /// How it ended, unless well.
    refusal: Option<Refusal>,
    pub(super) status: PluginStatus,
    /// The API server asks not to be written a status before.
    pub(super) status_not_before: Instant,
}

impl PluginTask {
    /// Serves the Plugin until it is dropped. Where it was started again, the status goes on from what it said last.
    pub(super) async fn run(shared: Arc<Shared>, mut shown: watch::Receiver<Seen>) {
        let mut versions = shared.versions.subscribe();
        let mut vacancies = shared.vacancies.subscribe();
        let mut stops = shared.handles.trials.stops();
        let seen = shown.borrow_and_update().clone();
        let status = shared.statuses().get(&seen.name).unwrap_or(&seen.status).clone();
        let (looks, status_not_before) = (JoinSet::new(), Instant::now());
        let ((begins, asked), looked_at, refusal) = (Begins::new(), None, None);
        let mut task = Self { shared, seen, looks, begins, asked, looked_at, refusal, status, status_not_before };
        task.look_at().await;
        let mut tick = interval(REFRESH);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.reset();
        loop {
            tokio::select! {
                biased;
                Some(Ok(looked)) = task.looks.join_next() => task.looked(looked).await,
                Some(begin) = task.asked.recv() => task.begin(begin).await,
                Ok(()) = shown.changed() => {
                    task.seen = shown.borrow_and_update().clone();
                    task.look_at().await;
                }
                Ok(()) = versions.changed() => task.look_at().await,
                Ok(()) = vacancies.changed() => {
                    if task.refusal.as_ref().is_some_and(Refusal::is_conflict) {
                        task.look_again().await;
                    }
                }
                Ok(()) = stops.changed() => task.refresh().await,
                _ = tick.tick() => {
                    task.look_at().await;
                    task.refresh().await;
                }
            }
        }
    }

    /// Looks at the Plugin whatever is known of it.
    async fn look_again(&mut self) {
        (self.looked_at, self.refusal) = (None, None);
        self.look_at().await;
    }

    /// Begins a look at the Plugin, unless one is under way, or neither it nor its source has changed since the last one
    /// and that need not be repeated. While its source's namespace is listed it waits for the end of that.
    async fn look_at(&mut self) {
        if !self.looks.is_empty() {
            return;
        }
        let source = self.seen.spec.as_ref().map_or(Version::Nothing, |spec| self.shared.version_of_source(spec));
        let at = LookedAt { generation: self.seen.generation, source };
        let is_due = self.refusal.as_ref().is_some_and(|refusal| refusal.again <= Instant::now());
        if at.source == Version::NotYet || (self.looked_at.as_ref() == Some(&at) && !is_due) {
            return;
        }
        match self.seen.spec.clone() {
            Ok(spec) => {
                let question = Question {
                    name: self.seen.name.clone(),
                    spec,
                    at,
                    active: self.serving(),
                    status: self.status.clone(),
                    refusal: self.refusal.clone(),
                };
                self.looks.spawn(self.shared.clone().look(question, self.begins.clone()));
            }
            Err(why) => {
                let message = format!("the spec cannot be read, and the digest that served keeps serving: {why}");
                let failure = StageFailure::new(Stage::Fetched, "InvalidSpec", message);
                self.refused(at, Refused::plainly(None, failure)).await;
            }
        }
    }

    /// A look has ended. What it says of a Plugin that has changed since does not count.
    async fn looked(&mut self, Looked { question, result }: Looked) {
        let Question { spec, at, active, status, .. } = question;
        self.end_look();
        let is_as_asked = self.seen.generation == at.generation && self.serving() == active;
        // A canary may have been stopped.
        if !is_as_asked || tried(&self.status) != tried(&status) {
            return self.look_again().await;
        }
        match result.and_then(|acceptable| self.serve(&spec, acceptable)) {
            Ok(()) => self.accepted(at).await,
            Err(refused) => self.refused(at, refused).await,
        }
        // Its source may have changed meanwhile.
        self.look_at().await;
    }

    async fn accepted(&mut self, at: LookedAt) {
        let (now, generation) = (self.shared.handles.clock.now(), at.generation);
        self.status.observed_generation = Some(generation);
        // What hosts have ended by is not what the Plugin has now.
        self.status.looking = None;
        report::progress(&mut self.status, None, generation, now);
        report::serving(&mut self.status, generation, now);
        self.refusal = None;
        // What it may do, or how it is set up, may be another.
        if self.looked_at.replace(at).is_some_and(|before| before.generation != generation) {
            self.shared.handles.wake(&self.seen.name);
        }
        self.refresh().await;
    }

    /// Nothing of what was refused acts; the Plugin says why.
    async fn refused(&mut self, at: LookedAt, Refused { digest, descriptor, failure }: Refused) {
        let name = &self.seen.name;
        warn!(plugin = name, reason = failure.reason, message = failure.message, "a component was refused");
        let (active, is_tried) = (self.serving(), self.shared.handles.trials.candidate(name).is_some());
        if let (None, Some(descriptor)) = (&active, descriptor) {
            self.shared.handles.refuse(&descriptor, failure.reason);
        }
        let (now, clock) = (Instant::now(), self.shared.handles.clock.now());
        let status = &mut self.status;
        if let Some(digest) = digest.as_ref().filter(|digest| !is_tried && active.as_ref() != Some(digest)) {
            let candidate =
                Candidate { digest: digest.to_string(), state: CandidateState::Refused, ..Candidate::default() };
            status.candidate = Some(Candidate { message: Some(failure.message.clone()), ..candidate });
        }
        status.observed_generation = Some(at.generation);
        report::progress(status, Some(&failure), at.generation, clock);
        report::serving(status, at.generation, clock);
        let stands = |refusal: &Refusal| digest.as_ref().is_some_and(|it| refusal.stands(it, at.generation, now));
        self.refusal = Some(match self.refusal.take() {
            Some(refusal) if stands(&refusal) => refusal,
            before => Refusal::new(digest.clone(), at.generation, failure.clone(), before.as_ref(), now),
        });
        self.looked_at = Some(at);
        // Of what comes with the host nobody says that grants are missing: it serves within those that are named.
        let names_grants = |spec: &PluginSpec| spec.granted_to_built_in().is_some();
        if failure.reason == accept::GRANT_MISSING || self.seen.spec.as_ref().is_ok_and(names_grants) {
            self.withdraw(digest.as_ref()).await;
        }
        self.refresh().await;
    }

    /// The digest of this Plugin, or of the host, that serves new jobs now, or will once it is loaded again.
    pub(super) fn serving(&self) -> Option<Digest> {
        self.shared.handles.active(&self.seen.name).or_else(|| statuses::active(&self.status))
    }
}

/// The digest that is a candidate, and how far it has come.
fn tried(status: &PluginStatus) -> Option<(&str, CandidateState)> {
    status.candidate.as_ref().map(|candidate| (candidate.digest.as_str(), candidate.state))
}
