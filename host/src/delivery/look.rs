//! A look at a Plugin: everything from its source to a component that may serve. It changes nothing of what serves, so that
//! it may fail, hang or panic at any point.

use super::{
    Handles,
    accept::{self, Accepted},
    archive::ArchiveError,
    fetch::{FetchError, Fetched},
    looking::Begins,
    mark::Mark,
    refusals::Refusal,
    report::{Stage, StageFailure},
    shared::Shared,
    upgrade::{Found, Step, step},
    watched::Version,
};
use crate::{
    error::chain,
    plugin_resource::{Candidate, CandidateState, PluginSpec, PluginStatus},
};
use decide::{Digest, digest::InvalidDigest, plan::Descriptor};
use futures::FutureExt;
use sandbox::{LoadError, Prepared, Settings, wanted};
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

/// A look takes no longer than this: a pull, a compilation, and the questions about the jobs that are there.
const LOOK: Duration = Duration::from_secs(300);

/// Looks under way at once.
pub(super) const AT_ONCE: usize = 8;

/// What a look depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LookedAt {
    pub(super) generation: i64,
    pub(super) source: Version,
}

/// What is looked at.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) name: String,
    pub(super) spec: PluginSpec,
    pub(super) at: LookedAt,
    /// The digest that serves new jobs now.
    pub(super) active: Option<Digest>,
    pub(super) status: PluginStatus,
    /// How the last look ended.
    pub(super) refusal: Option<Refusal>,
}

impl Question {
    /// What is done with a digest that is acceptable.
    fn step(&self, digest: &Digest) -> Step {
        let PluginStatus { previous, candidate, .. } = &self.status;
        let is_stopped = |it: &Candidate| it.digest == digest.as_str() && it.state == CandidateState::Stopped;
        let stopped = candidate.as_ref().is_some_and(is_stopped);
        let previous = previous.as_ref().and_then(|previous| previous.parse().ok());
        let found = Found { digest, active: self.active.as_ref(), previous: previous.as_ref(), stopped };
        step(&self.spec.upgrade, &found)
    }

    /// What is written down of a component that this Plugin has plan jobs.
    fn mark(&self, accepted: &Accepted, settings: &Settings) -> Mark {
        let by = Mark::by_plugin(&self.name, self.at.generation);
        let descriptor = &accepted.descriptor;
        let grants = settings.grants.clone().unwrap_or_else(|| wanted(descriptor, &settings.config()));
        Mark::new(by, descriptor, settings, grants)
    }
}

/// A component that may serve.
pub(super) struct Acceptable {
    pub(super) prepared: Prepared,
    pub(super) settings: Settings,
    /// What it would do to the jobs that are there.
    pub(super) accepted: Accepted,
    /// How it comes to serve.
    pub(super) step: Step,
    /// What the reference of a registry resolved to.
    pub(super) resolved: Option<String>,
}

/// Why there is none.
#[derive(Debug)]
pub(super) struct Refused {
    /// What the source has, if it was read.
    pub(super) digest: Option<Digest>,
    /// What its component says of itself, if only what it may do or how it answers stands in its way.
    pub(super) descriptor: Option<Arc<Descriptor>>,
    pub(super) failure: StageFailure,
}

impl Refused {
    /// Of a digest, if it is known, without a descriptor.
    pub(super) fn plainly(digest: Option<Digest>, failure: StageFailure) -> Self {
        Self { digest, descriptor: None, failure }
    }
}

/// How a look ended.
pub(super) struct Looked {
    pub(super) question: Question,
    pub(super) result: Result<Acceptable, Refused>,
}

impl Shared {
    /// Looks within bounds, whatever happens.
    pub(super) async fn look(self: Arc<Self>, question: Question, begins: Begins) -> Looked {
        let _place = self.places.acquire().await;
        let result = match AssertUnwindSafe(timeout(LOOK, self.answer(&question, &begins))).catch_unwind().await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(late()),
            Err(_) => {
                self.handles.restarts.add("look");
                Err(panicked())
            }
        };
        Looked { question, result }
    }

    async fn answer(&self, question: &Question, begins: &Begins) -> Result<Acceptable, Refused> {
        let found = self.find(question).await;
        let (digest, fetched) = found.map_err(|failure| Refused::plainly(None, failure))?;
        let refused = |failure| Refused::plainly(Some(digest.clone()), failure);
        if let Some(refusal) = &question.refusal
            && refusal.stands(&digest, question.at.generation, Instant::now())
        {
            return Err(refused(refusal.failure.clone()));
        }
        let Handles { plugins, bundled, .. } = &*self.handles;
        let known = plugins.prepared(&digest).or_else(|| bundled.with(&digest).map(|(prepared, _)| prepared.clone()));
        let prepared = match (known, &fetched) {
            (Some(prepared), _) => prepared,
            (None, Some(fetched)) => {
                if question.active.as_ref() != Some(&digest) {
                    begins.look_at(&digest, question.at.generation).await.map_err(refused)?;
                }
                let prepared = plugins.prepare_foreign(&question.name, &fetched.wasm).await;
                prepared.map_err(|error| refused(not_a_plugin(&error)))?
            }
            (None, None) => return Err(refused(unloaded(&digest))),
        };
        let settings = self.settings(&question.spec, &digest);
        let would_serve = |failure: StageFailure| {
            let descriptor = (!accept::is_of_kinds(failure.reason)).then(|| Arc::clone(&prepared.descriptor));
            Refused { descriptor, ..refused(failure) }
        };
        let accepted = self.accept(question, &prepared, &settings).await.map_err(would_serve)?;
        let step = question.step(&digest);
        let mark = step.plans_jobs().then(|| question.mark(&accepted, &settings));
        self.keep(&digest, fetched.as_ref(), mark.as_ref()).await.map_err(would_serve)?;
        let artifact = fetched.and_then(|fetched| fetched.artifact);
        Ok(Acceptable { prepared, settings, accepted, step, resolved: artifact.map(|artifact| artifact.reference) })
    }

    /// The digest that a Plugin asks for, and its bytes unless it is loaded.
    async fn find(&self, question: &Question) -> Result<(Digest, Option<Fetched>), StageFailure> {
        let pin = question.spec.digest.as_ref().map(|pin| pin.parse::<Digest>()).transpose().map_err(not_a_digest)?;
        if let Some(pin) = pin.as_ref().filter(|pin| self.handles.plugins.has(pin)) {
            return Ok((pin.clone(), None));
        }
        let failed = |error: &FetchError| {
            StageFailure::new(Stage::Fetched, error.reason(), chain(error)).asking(error.retry_after())
        };
        let fetched = self.sources.fetch(&question.name, &question.spec).await;
        let found = match (&pin, fetched) {
            (None, fetched) => fetched.map_err(|error| failed(&error))?,
            (Some(pin), Ok(fetched)) if fetched.digest == *pin => fetched,
            (Some(pin), fetched) => {
                let has = match fetched {
                    Ok(fetched) => format!("the source has {}", fetched.digest.short()),
                    Err(error) => chain(&error),
                };
                let wasm = self.archived_bytes(pin).await;
                let wasm = wasm.map_err(|error| mismatch(pin, &chain(&error), &has).asking(error.retry_after()))?;
                Fetched { wasm, digest: pin.clone(), artifact: None }
            }
        };
        Ok((found.digest.clone(), Some(found)))
    }

    /// What a Plugin says about this component. It trusts what comes with the host, if anything, as the host is trusted; what
    /// came from elsewhere, and is pinned, has no more than it was accepted with.
    fn settings(&self, spec: &PluginSpec, digest: &Digest) -> Settings {
        let settings = super::settings(spec);
        if settings.grants.is_some() || self.handles.bundled.digests().any(|bundled| bundled == digest) {
            return settings;
        }
        let accepted = self.marks().get(digest).and_then(|mark| mark.settings().grants);
        Settings { grants: Some(accepted.unwrap_or_default()), ..settings }
    }

    /// What the host has kept of a digest.
    pub(super) async fn archived_bytes(&self, digest: &Digest) -> Result<Vec<u8>, ArchiveError> {
        self.archive.as_ref().ok_or(ArchiveError::NoNamespace)?.load(digest).await
    }

    /// Keeps the bytes, and that they were accepted, before any job is planned by them.
    async fn keep(&self, digest: &Digest, fetched: Option<&Fetched>, mark: Option<&Mark>) -> Result<(), StageFailure> {
        let Some(archive) = &self.archive else { return Ok(()) };
        match fetched {
            Some(Fetched { wasm, artifact, .. }) => {
                archive.keep(digest, wasm, artifact.as_ref(), mark).await.map_err(|error| not_kept(&error))
            }
            None if mark.is_none_or(|mark| self.marks().get(digest) == Some(mark)) => Ok(()),
            None => match archive.mark(digest, mark).await.map_err(|error| not_kept(&error))? {
                true => Ok(()),
                false => Err(not_kept(&ArchiveError::NotKept(digest.short().to_owned()))),
            },
        }
    }
}

fn not_a_plugin(error: &LoadError) -> StageFailure {
    StageFailure::new(Stage::Compiled, "NotAPlugin", chain(error))
}

fn not_kept(error: &ArchiveError) -> StageFailure {
    StageFailure::new(Stage::Accepted, "NotKept", chain(error)).asking(error.retry_after())
}

/// The API server refuses such a Plugin where it has the host's CRD.
fn not_a_digest(error: InvalidDigest) -> StageFailure {
    let message = format!("spec.digest: {error}; put the right digest or remove it");
    StageFailure::new(Stage::Fetched, "DigestMismatch", message)
}

fn mismatch(pin: &Digest, why: &str, has: &str) -> StageFailure {
    let pin = pin.short();
    let message = format!("spec.digest asks for {pin}, but {why}, and {has}; put the right digest or remove it");
    StageFailure::new(Stage::Fetched, "DigestMismatch", message)
}

fn unloaded(digest: &Digest) -> StageFailure {
    let message = format!("{} was unloaded while the host checked it; the host checks it again", digest.short());
    StageFailure::new(Stage::Fetched, "FetchFailed", message)
}

fn late() -> Refused {
    let message =
        format!("pulling, compiling and calling it took longer than {} s; the host tries again", LOOK.as_secs());
    Refused::plainly(None, StageFailure::new(Stage::Accepted, "TimedOut", message))
}

fn panicked() -> Refused {
    let message = "the host panicked while it checked this Plugin; report the panic in its log".to_owned();
    Refused::plainly(None, StageFailure::new(Stage::Accepted, "InternalError", message))
}
