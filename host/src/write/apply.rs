//! The order and pace of writes, and their results. Reads no store and makes no choices: the same actions make the same
//! calls.

use crate::{
    api::{DEADLINE, FIELD_MANAGER, answer, back_off::BackOff, resource::Resource},
    error::chain,
    job_key::JobKey,
    observe::{
        stores::{Doubt, Expected, Stores},
        wire::Written,
    },
    traces::spans,
    write::{bodies::Bodies, error::WriteError, keys, warnings::FieldValidation},
};
use decide::{
    Action, Applied, Snapshot, Waiting, Write, build,
    decision::{Part, in_order},
    plan::{Answer, ChildKind, SecretRecipe},
    waiting::object,
};
use fairness::{Rank, Share, Turns};
use futures::future::join_all;
use kube::{
    Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy},
};
use parking_lot::Mutex;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tracing::{Instrument, debug, warn};

/// Requests at once; kube's client speaks HTTP/1.1, with one connection for each.
const IN_FLIGHT: usize = 80;

/// Requests at once for jobs of one namespace: slow requests leave room for other namespaces, and many do not make
/// those of others slow (`bench crowd`).
const IN_FLIGHT_OF_ONE: Share = Share { alone: 32, beside: 8 };

/// Size of the first batch of a pass; each batch without a failure is followed by a batch twice as large.
const SLOW_START: usize = 32;

/// The result of the writes of a pass.
#[derive(Debug, Default)]
pub struct Attempted {
    /// Which writes succeeded, and which failed and why.
    pub applied: Applied,
    /// How long the API server asks to wait before the next attempt.
    pub retry_after: Option<Duration>,
}

/// Applies the actions of decisions.
pub struct Writer {
    client: Client,
    stores: Arc<Stores>,
    validation: FieldValidation,
    turns: Turns,
    bodies: Bodies,
    back_off: BackOff,
    random: Mutex<ChaCha20Rng>,
}

/// The input of a decision; bodies are built from it.
#[derive(Debug, Clone, Copy)]
pub struct DecisionInput<'a> {
    /// The snapshot.
    pub snapshot: &'a Snapshot,
    /// The plugin's answer, if it was asked.
    pub answer: Option<&'a Answer>,
}

/// One action, with its job and its resource.
struct One<'a> {
    key: &'a JobKey,
    input: DecisionInput<'a>,
    resource: &'a Resource,
    action: &'a Action,
}

impl One<'_> {
    /// Returns the kind and the name of the object.
    fn of(&self) -> (&str, &str) {
        (&self.action.kind, &self.action.name)
    }

    fn requests(&self) -> kube::core::Request {
        self.resource.requests(Some(&self.key.namespace))
    }

    /// Returns whether the next pass must know if this create has succeeded. What the ledger records must not be created
    /// twice, and may be deleted before the next attempt finds it. While a pod that takes turns with others is not seen,
    /// another would take its turn, and one too many would run.
    fn must_be_known(&self) -> bool {
        self.action.ledger_key.is_some() || takes_turns(self.input.answer, self.action)
    }
}

/// Returns whether the action creates a pod of a role whose replicas do not all run at once.
fn takes_turns(answer: Option<&Answer>, action: &Action) -> bool {
    let (Some(Answer::Judged { plan, .. }), Write::Create(Part::Pod { role, .. })) = (answer, action.write()) else {
        return false;
    };
    plan.roles.get(*role).is_some_and(|role| role.most_at_once() < role.replicas)
}

fn version(written: &Written) -> Expected {
    Expected::Version(written.version())
}

/// Asks the API server to answer with the metadata of the object alone: nothing else is read.
fn for_metadata(mut request: http::Request<Vec<u8>>) -> http::Request<Vec<u8>> {
    const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static(METADATA));
    request
}

impl Writer {
    /// Returns a writer. Its keys and jitter come from the seed; its creates use this field validation.
    #[must_use]
    pub fn new(client: Client, stores: Arc<Stores>, seed: [u8; 32], validation: FieldValidation) -> Self {
        let random = Mutex::new(ChaCha20Rng::from_seed(seed));
        let turns = Turns::new(IN_FLIGHT, IN_FLIGHT_OF_ONE);
        Self { client, stores, validation, turns, bodies: Bodies::default(), back_off: BackOff::new(seed, 1), random }
    }

    /// Applies the actions, and records what the watches must show before the job is decided again. Creates come last:
    /// a deletion may free the quota that they need, and refused creates must not delay it. Nothing is created while a
    /// required object is missing, or if the API server asks to wait.
    pub async fn apply(&self, key: &JobKey, input: DecisionInput<'_>, actions: &[Action]) -> Attempted {
        let [others, creates] = in_order(actions);
        let Attempted { mut applied, retry_after } = self.in_batches(key, input, &others).await;
        if retry_after.is_some() || applied.lacks_required_object() {
            return Attempted { applied, retry_after };
        }
        let created = self.in_batches(key, input, &creates).await;
        applied.made.extend(created.applied.made);
        applied.created.extend(created.applied.created);
        applied.failures.extend(created.applied.failures);
        applied.warnings.extend(created.applied.warnings);
        Attempted { applied, retry_after: created.retry_after }
    }

    /// Applies the actions in growing batches, each in parallel. Stops after a batch with a failure.
    async fn in_batches(&self, key: &JobKey, input: DecisionInput<'_>, actions: &[&Action]) -> Attempted {
        let Attempted { mut applied, mut retry_after } = Attempted::default();
        let mut size = SLOW_START;
        let mut rest = actions;
        while !rest.is_empty() && applied.failures.is_empty() {
            let (batch, later) = rest.split_at(size.min(rest.len()));
            let results = join_all(batch.iter().map(|action| self.write(key, input, action))).await;
            log_failed(batch, &results);
            for (action, result) in batch.iter().zip(results) {
                match result {
                    Ok(warnings) => {
                        debug!(%action, "written");
                        applied.made.extend(action.ledger_key.clone());
                        applied.created.extend(action.creates().then(|| object(&action.kind, &action.name)));
                        for warning in warnings {
                            applied.warnings.entry(warning).or_insert_with(|| object(&action.kind, &action.name));
                        }
                    }
                    Err(error) => {
                        retry_after = retry_after.max(error.retry_after());
                        applied.failures.push(failure(key, action, &error));
                    }
                }
            }
            rest = later;
            size *= 2;
        }
        Attempted { applied, retry_after }
    }

    /// Returns how long a job waits after this many failures in a row: doubled each time, with seeded jitter.
    #[must_use]
    pub fn back_off(&self, failures: u32) -> Duration {
        self.back_off.after(failures)
    }

    /// Applies one action, and returns the warnings of the API server.
    async fn write(&self, key: &JobKey, input: DecisionInput<'_>, action: &Action) -> Result<Vec<String>, WriteError> {
        let _turn = self.turns.wait(rank(action), &key.namespace).await;
        let resource = self.resource(key, input.snapshot, action);
        let one = One { key, input, resource: &resource, action };
        match action.write() {
            Write::Create(part) => return self.create_part(&one, *part).await,
            Write::CreateSecret { recipe, metadata } => {
                return self.create(&one, text(&self.secret(recipe, metadata)?)).await;
            }
            Write::Require => self.require(&one).await,
            Write::Patch(patch) => self.patch(&one, None, patch).await,
            Write::PatchStatus(patch) => self.patch(&one, Some("status"), patch).await,
            Write::Delete { uid, resource_version } => {
                let seen = Preconditions { uid: Some(uid.clone()), resource_version: Some(resource_version.clone()) };
                self.delete(&one, seen).await
            }
        }?;
        Ok(vec![])
    }

    /// Waits for a permit for the body, then builds the body and sends it.
    async fn create_part(&self, one: &One<'_>, part: Part) -> Result<Vec<String>, WriteError> {
        let answer = one.input.answer.ok_or(WriteError::NoSuchPart)?;
        let bytes = build::bytes(one.input.snapshot, answer, part).ok_or(WriteError::NoSuchPart)?;
        let _room = self.bodies.room(bytes, rank(one.action), &one.key.namespace).await;
        let body = build::body(one.input.snapshot, answer, part).map(|body| text(&body));
        self.create(one, body.ok_or(WriteError::NoSuchPart)?).await
    }

    async fn create(&self, one: &One<'_>, body: Vec<u8>) -> Result<Vec<String>, WriteError> {
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        let mut request = self.validation.of(for_metadata(one.requests().create(&params, body)?));
        let (kind, name) = one.of();
        let span = spans::request(&mut request, kind, name);
        match send_warned(&self.client, request).instrument(span).await {
            Ok((created, warnings)) => {
                self.expect(one, version(&created));
                Ok(warnings)
            }
            Err(error) if error.code() == Some(409) => self.adopt(one).await.map(|()| vec![]),
            Err(error) if error.is_of_doubt() && one.must_be_known() => match self.adopt(one).await {
                Ok(()) => Ok(vec![]),
                Err(answer) => {
                    if error.may_come_late() || !answer.says_that_there_is_none() {
                        self.expect(one, Expected::InDoubt { name: one.action.name.clone() });
                    }
                    Err(error)
                }
            },
            Err(error) => Err(error),
        }
    }

    /// Ends a doubt about a create: the watch must show the object, or, if there is none, all that has happened so far,
    /// before the job is decided again. An object that was created and deleted is found as a tombstone then.
    ///
    /// # Errors
    ///
    /// If the API server does not say what there is; the doubt stays.
    pub(crate) async fn settle(&self, key: &JobKey, doubt: &Doubt) -> Result<(), WriteError> {
        let requests = doubt.resource.requests(Some(&key.namespace));
        let of = (doubt.resource.kind.as_str(), doubt.name.as_str());
        let found = self.send(of, requests.get_metadata(&doubt.name, &kube::api::GetParams::default())?).await;
        let newest = match found {
            Err(error) if error.code() == Some(404) => {
                self.send(of, requests.list_metadata(&ListParams::default().limit(1))?).await?
            }
            found => found?,
        };
        self.stores.settle(key, doubt, newest.version());
        Ok(())
    }

    /// Reads the object that has the name already. An object of the job counts as created; any other is not touched.
    async fn adopt(&self, one: &One<'_>) -> Result<(), WriteError> {
        let request = one.requests().get_metadata(&one.action.name, &kube::api::GetParams::default())?;
        let there = self.send(one.of(), request).await?;
        if there.controller() == Some(&one.input.snapshot.job.uid) {
            self.expect(one, version(&there));
            return Ok(());
        }
        Err(WriteError::NameTaken)
    }

    async fn require(&self, one: &One<'_>) -> Result<(), WriteError> {
        let request = one.requests().get_metadata(&one.action.name, &kube::api::GetParams::default())?;
        match self.send(one.of(), request).await {
            Err(error) if error.code() == Some(404) => Err(WriteError::Deleted),
            other => other.map(|_| ()),
        }
    }

    async fn patch(&self, one: &One<'_>, subresource: Option<&str>, patch: &Value) -> Result<(), WriteError> {
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let (requests, patch) = (one.requests(), Patch::Merge(patch));
        let request = match subresource {
            Some(subresource) => requests.patch_subresource(subresource, &one.action.name, &params, &patch)?,
            None => requests.patch(&one.action.name, &params, &patch)?,
        };
        let patched = self.send(one.of(), for_metadata(request)).await?;
        self.expect(one, version(&patched));
        Ok(())
    }

    /// Deletes an object; one that is gone already counts as deleted. If the object has changed since it was seen, it
    /// stays: the watch event of that change causes a new pass, as in Kubernetes' garbage collector.
    async fn delete(&self, one: &One<'_>, seen: Preconditions) -> Result<(), WriteError> {
        let uid = seen.uid.clone().unwrap_or_default();
        let params = DeleteParams {
            preconditions: Some(seen),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        let request = one.requests().delete(&one.action.name, &params)?;
        match self.send(one.of(), for_metadata(request)).await {
            Err(error) if has_changed(&error) => Ok(()),
            Err(error) if error.code() != Some(404) => Err(error),
            _ => {
                self.expect(one, Expected::Going { name: one.action.name.clone(), uid });
                Ok(())
            }
        }
    }

    /// Sends a request about the object of this kind and name.
    async fn send(
        &self,
        (kind, name): (&str, &str),
        mut request: http::Request<Vec<u8>>,
    ) -> Result<Written, WriteError> {
        let span = spans::request(&mut request, kind, name);
        send(&self.client, request).instrument(span).await
    }

    fn expect(&self, one: &One<'_>, expected: Expected) {
        let of = (one.action.api_version.as_str(), one.action.kind.as_str());
        self.stores.expect(one.key, one.input.snapshot.digest.as_ref(), of, expected);
    }

    fn secret(&self, recipe: &SecretRecipe, metadata: &Value) -> Result<Value, WriteError> {
        let pair = {
            let mut random = self.random.lock();
            keys::pair(recipe.algorithm, &mut *random).map_err(WriteError::Keys)?
        };
        let mut metadata = metadata.clone();
        metadata["labels"] = json!(recipe.labels);
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": recipe.secret_type,
            "stringData": { &recipe.private_key: pair.private, &recipe.public_key: pair.public },
        }))
    }

    fn resource(&self, key: &JobKey, snapshot: &Snapshot, action: &Action) -> Resource {
        let of_action = |kind: &&ChildKind| kind.kind == action.kind && kind.api_version == action.api_version;
        let layout = self.stores.layout();
        let framework = layout.framework(&key.kind, snapshot.digest.as_ref());
        match framework.and_then(|framework| framework.own_children().find(of_action)) {
            Some(child) => child.into(),
            None if action.kind == snapshot.kind.kind => (&*snapshot.kind).into(),
            None => Resource::new(&action.api_version, &action.kind, &format!("{}s", action.kind.to_lowercase())),
        }
    }
}

fn rank(action: &Action) -> Rank {
    match (action.write(), action.kind.as_str()) {
        (Write::Create(_), "Pod" | "Job") => Rank::Pod,
        _ => Rank::Rest,
    }
}

fn text(object: &Value) -> Vec<u8> {
    serde_json::to_vec(object).expect("its keys are text")
}

/// Sends a request with the deadline, and decodes the answer.
///
/// # Errors
/// The API server refused the request or did not answer in time, or the answer could not be decoded.
pub async fn send<T: DeserializeOwned>(client: &Client, request: http::Request<Vec<u8>>) -> Result<T, WriteError> {
    send_warned(client, request).await.map(|(answer, _)| answer)
}

/// Does the same as [`send`], and returns the warnings of the API server.
async fn send_warned<T: DeserializeOwned>(
    client: &Client,
    request: http::Request<Vec<u8>>,
) -> Result<(T, Vec<String>), WriteError> {
    let reply =
        tokio::time::timeout(DEADLINE, answer::warned(client, request)).await.map_err(|_| WriteError::NoReply)?;
    let (text, warnings) = reply.map_err(WriteError::Client)?;
    let answer = serde_json::from_str(&text).map_err(|error| WriteError::Client(kube::Error::SerdeError(error)))?;
    Ok((answer, warnings))
}

/// Logs the first write of a batch that failed, and how many others did: those of a wide job mostly fail alike.
fn log_failed(batch: &[&Action], results: &[Result<Vec<String>, WriteError>]) {
    let mut failed = batch.iter().zip(results).filter_map(|(action, result)| Some((action, result.as_ref().err()?)));
    if let Some((action, error)) = failed.next() {
        let others = failed.count();
        warn!(%action, error = chain(error), others, "write failed");
    }
}

fn failure(key: &JobKey, action: &Action, error: &WriteError) -> Waiting {
    match error {
        WriteError::Deleted => Waiting::Deleted { kind: action.kind.clone(), name: action.name.clone() },
        WriteError::Client(kube::Error::Api(status)) if is_of_terminating_namespace(status) => {
            Waiting::NamespaceTerminating { namespace: key.namespace.clone() }
        }
        WriteError::NameTaken => Waiting::NameTaken { kind: action.kind.clone(), name: action.name.clone() },
        WriteError::Client(kube::Error::Api(status)) => {
            let why = if status.message.is_empty() { status.reason.clone() } else { status.message.clone() };
            let attempt = action.to_string();
            match status.code {
                // The cluster causes timeouts, conflicts, rate limits and server errors; a person must resolve any
                // other 4xx.
                408 | 409 | 429 | 500.. => Waiting::WriteFailed { attempt, why },
                _ => Waiting::Refused { attempt, why },
            }
        }
        error => Waiting::WriteFailed { attempt: action.to_string(), why: chain(error) },
    }
}

/// Returns whether a precondition failed. A webhook may refuse with the same code, but not with the API server's
/// message.
fn has_changed(error: &WriteError) -> bool {
    let message = match error {
        WriteError::Client(kube::Error::Api(status)) if status.code == 409 => &status.message,
        _ => return false,
    };
    message.contains("precondition") || message.contains("Precondition")
}

/// Returns whether the API server refused a create because the namespace is being deleted.
fn is_of_terminating_namespace(status: &kube::core::Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 403 && causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

#[cfg(test)]
mod tests;
