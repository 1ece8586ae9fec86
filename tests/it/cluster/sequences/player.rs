//! The driver of one sequence: it plays the user and the kubelet, for pods that nobody schedules.

use super::{
    super::objects::{Kind, at, text},
    kubelet::{Kubelet, NODE, ago, delete, end_of, second, set_status},
    step::{Act, Ended, Step},
    text::{Command, Sequence},
    view::{View, index, is_held, is_live},
};
use anyhow::{Context, Result, bail};
use decide::{condition::Condition, own_conditions::current_true};
use jiff::Timestamp;
use kube::{
    Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy},
    core::Request,
};
use serde_json::{Value, json};
use std::{cell::Cell, collections::BTreeMap, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

/// How long a step waits for its pod, and a result for what is expected.
pub(super) const SOON: Duration = Duration::from_secs(75);
/// A job that did not change for this long, with its pods, is done with what was done to it. The controller waits for a
/// second after an event of a pod, to sync once for many.
const QUIET: Duration = Duration::from_secs(3);
/// The same where nobody says what to expect.
const SURELY_QUIET: Duration = Duration::from_secs(5);

/// Who controls the jobs.
pub(super) struct Side {
    pub(super) kind: &'static Kind,
    pub(super) api_version: &'static str,
    pub(super) name: &'static str,
    /// What a command is expected to say.
    pub(super) expects: fn(&Command) -> Vec<String>,
    /// It is the kind of ours.
    pub(super) is_ours: bool,
}

/// Plays one sequence in a namespace.
pub(super) struct Player<'a> {
    pub(super) client: Client,
    pub(super) namespace: &'a str,
    pub(super) side: &'a Side,
    pub(super) sequence: &'a Sequence,
    pub(super) view: watch::Receiver<View>,
    /// Nobody says what to expect: what happens is taken.
    pub(super) blesses: bool,
    /// Pods of a job without indexes, by the number that they have here.
    numbers: BTreeMap<usize, String>,
    /// The latest pod at an index that was ended or deleted: its name, its uid, and when.
    ended: BTreeMap<usize, (String, String, Timestamp)>,
}

impl<'a> Player<'a> {
    pub(super) fn new(
        client: Client,
        namespace: &'a str,
        side: &'a Side,
        sequence: &'a Sequence,
        view: watch::Receiver<View>,
        blesses: bool,
    ) -> Self {
        Self { client, namespace, side, sequence, view, blesses, numbers: BTreeMap::new(), ended: BTreeMap::new() }
    }

    /// What each command printed. A command that could not be done prints why, and is the last.
    pub(super) async fn play(mut self) -> Vec<Vec<String>> {
        let holds = Cell::new(false);
        let kubelet = Kubelet { client: self.client.clone(), namespace: self.namespace, view: self.view.clone() };
        let steps = async {
            let mut results = Vec::new();
            for command in &self.sequence.commands {
                let said = self.step(command, &holds).await;
                let stuck = said.as_ref().err().map(|error| vec![format!("stuck: {error:#}")]);
                let is_stuck = stuck.is_some();
                results.push(stuck.or(said.ok()).unwrap_or_default());
                if is_stuck {
                    break;
                }
            }
            results
        };
        tokio::select! {
            results = steps => results,
            error = kubelet.run(&holds) => vec![vec![format!("stuck: the kubelet: {error:#}")]],
        }
    }

    async fn step(&mut self, command: &Command, holds: &Cell<bool>) -> Result<Vec<String>> {
        let name = self.sequence.name.as_str();
        let jobs = self.side.kind.requests(self.namespace);
        let merge = PatchParams::default();
        match &command.step {
            Step::Job(spec) => {
                let mut spec = spec.clone();
                if self.side.is_ours && spec["completionMode"].is_null() {
                    // The default of ours is the other.
                    spec["completionMode"] = json!("NonIndexed");
                }
                let metadata = json!({ "name": name });
                let job = json!({ "apiVersion": self.side.api_version, "kind": self.side.name, "metadata": metadata, "spec": spec });
                let request = jobs.create(&PostParams::default(), serde_json::to_vec(&job)?)?;
                let said = match self.ask(request).await {
                    Err(error) if is_taken(&error) => return Ok(vec!["exists".to_owned()]),
                    made => self.known(made?).await?,
                };
                if self.side.is_ours && said.is_empty() && spec["managedBy"].is_null() && self.is_rejected().await? {
                    // What the schema cannot say is told by a condition instead of a refusal.
                    self.client.request::<Value>(jobs.delete(name, &DeleteParams::default())?).await?;
                    self.until("the job to be gone", |view| view.job.is_null()).await?;
                    return Ok(vec!["refused".to_owned()]);
                }
                return Ok(said);
            }
            Step::Patch(spec) => {
                let done = self.ask(jobs.patch(name, &merge, &Patch::Merge(json!({ "spec": spec })))?).await?;
                return self.known(done).await;
            }
            Step::Status(status) => {
                let patch = Patch::Merge(json!({ "status": status }));
                let done = self.ask(jobs.patch_subresource("status", name, &merge, &patch)?).await?;
                return self.known(done).await;
            }
            Step::DeleteJob(policy) => {
                let policy = match policy.as_str() {
                    "Background" => PropagationPolicy::Background,
                    "Foreground" => PropagationPolicy::Foreground,
                    "Orphan" => PropagationPolicy::Orphan,
                    other => bail!("no propagation policy {other}"),
                };
                let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
                let uid = text(&self.view.borrow().job, "/metadata/uid").to_owned();
                self.client.request::<Value>(jobs.delete(name, &params)?).await?;
                let is_known = |view: &View| {
                    let job = &view.job;
                    text(job, "/metadata/uid") != uid || !at(job, "/metadata/deletionTimestamp").is_null()
                };
                self.until("the deletion to be seen", is_known).await?;
            }
            Step::Hold => holds.set(true),
            Step::Settle(least) => return Ok(self.settled(&(self.side.expects)(command), *least).await),
            Step::Replaced(index) => return Ok(vec![self.replaced(*index).await?]),
            Step::Pods(indexes, act) => {
                // A pod that is seen late takes the number of one that has ended.
                if !self.view.borrow().is_indexed() && act.is_of_live_pods() {
                    self.live(indexes.iter().copied().max().unwrap_or_default()).await?;
                }
                for index in indexes {
                    self.act(*index, act).await.with_context(|| format!("pod {index}"))?;
                }
            }
        }
        Ok(vec![])
    }

    /// Whether the host's first word about the job is that it is wrong.
    async fn is_rejected(&mut self) -> Result<bool> {
        let is_judged = |view: &View| !view.job["status"]["troupe"].is_null();
        self.until("the host's word on the job", is_judged).await?;
        Ok(current_true(&self.view.borrow().job["status"], Condition::Rejected).is_some())
    }

    /// The answer, or none if the API server refused what was asked for.
    async fn ask(&self, request: http::Request<Vec<u8>>) -> Result<Option<Value>> {
        match self.client.request::<Value>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if [400, 403, 422].contains(&status.code) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns when the watch has told of this version of the job.
    async fn known(&mut self, job: Option<Value>) -> Result<Vec<String>> {
        let Some(job) = job else { return Ok(vec!["refused".to_owned()]) };
        let is_known = |view: &View| view.job.is_null() || version(&view.job) >= version(&job);
        let was_there = !self.view.borrow().job.is_null();
        self.until("the job to be seen", |view| is_known(view) && (was_there || !view.job.is_null())).await?;
        Ok(vec![])
    }

    async fn act(&mut self, index: usize, act: &Act) -> Result<()> {
        match act {
            Act::Run => self.play_up(index, "Running", true, 0, false).await,
            Act::Unready => self.play_up(index, "Running", false, 0, false).await,
            Act::Restarts { count, phase, init } => self.play_up(index, phase, phase == "Running", *count, *init).await,
            Act::Bind => {
                let pod = self.live(index).await?;
                self.bind(&pod).await
            }
            Act::Succeed(ended) | Act::Fail(ended) => {
                let phase = if matches!(act, Act::Succeed(_)) { "Succeeded" } else { "Failed" };
                let pod = self.live(index).await?;
                self.note(index, &pod, ago(ended.ago));
                self.set_status(&pod, &end_of(&pod, phase, ended)).await
            }
            Act::Delete { now } => {
                let pod = self.live(index).await?;
                self.note(index, &pod, ago(0));
                delete(&self.client, self.namespace, &pod, now.then_some(0)).await?;
                self.until("the pod's deletion to be seen", |view| {
                    view.pods.get(text(&pod, "/metadata/uid")).is_none_or(|pod| !is_live(pod))
                })
                .await
            }
            Act::Remove => {
                let (name, uid, _) = self.ended.get(&index).context("nothing has ended there")?.clone();
                let pod = json!({ "metadata": { "name": name, "uid": uid } });
                delete(&self.client, self.namespace, &pod, None).await?;
                self.until("the ended pod to be gone", |view| !view.pods.contains_key(&uid)).await
            }
            Act::Stop(ended) => {
                let pod = self.held(index).await?;
                let phase = if ended.codes.iter().all(|(_, code)| *code == 0) { "Succeeded" } else { "Failed" };
                self.set_status(&pod, &end_of(&pod, phase, ended)).await
            }
            Act::Gone(ended) => {
                let pod = self.held(index).await?;
                let phase = if ended.codes.iter().all(|(_, code)| *code == 0) { "Succeeded" } else { "Failed" };
                let status = end_of(&pod, phase, &Ended { ago: 0, ..ended.clone() });
                let held = Kubelet { client: self.client.clone(), namespace: self.namespace, view: self.view.clone() };
                held.end(&pod, &status).await
            }
        }
    }

    fn note(&mut self, index: usize, pod: &Value, when: Timestamp) {
        let of = |pointer: &str| text(pod, pointer).to_owned();
        self.ended.insert(index, (of("/metadata/name"), of("/metadata/uid"), when));
    }

    async fn play_up(&mut self, index: usize, phase: &str, is_ready: bool, restarts: u32, init: bool) -> Result<()> {
        let pod = self.live(index).await?;
        self.bind(&pod).await?;
        let state = json!({ "running": { "startedAt": second(ago(3600)) } });
        let status = |name: &str, count: u32| json!({ "name": name, "image": "", "imageID": "", "ready": is_ready, "restartCount": count, "state": state });
        let of = |pointer: &str, restarts: u32| {
            let containers = at(&pod, pointer).as_array().into_iter().flatten().enumerate();
            let count = |place: usize| if place == 0 { restarts } else { 0 };
            containers.map(|(place, it)| status(text(it, "/name"), count(place))).collect::<Vec<_>>()
        };
        let word = if is_ready { "True" } else { "False" };
        let body = json!({
            "phase": phase,
            "startTime": second(ago(3600)),
            "conditions": [{ "type": "Ready", "status": word, "lastTransitionTime": second(ago(0)) }],
            "containerStatuses": of("/spec/containers", if init { 0 } else { restarts }),
            "initContainerStatuses": of("/spec/initContainers", if init { restarts } else { 0 }),
        });
        self.set_status(&pod, &body).await
    }

    async fn bind(&self, pod: &Value) -> Result<()> {
        if !text(pod, "/spec/nodeName").is_empty() {
            return Ok(());
        }
        let name = text(pod, "/metadata/name");
        let target = json!({ "apiVersion": "v1", "kind": "Node", "name": NODE });
        let binding = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name }, "target": target });
        let path = format!("/api/v1/namespaces/{}/pods/{name}/binding", self.namespace);
        let request = Request::new(path).create(&PostParams::default(), serde_json::to_vec(&binding)?)?;
        // The path of a creation is that of its parent.
        self.client.request::<Value>(request).await?;
        Ok(())
    }

    async fn set_status(&mut self, pod: &Value, status: &Value) -> Result<()> {
        let set = set_status(&self.client, self.namespace, pod, status).await?;
        let (uid, version_now) = (text(&set, "/metadata/uid").to_owned(), version(&set));
        self.until("the pod's status to be seen", |view| {
            view.pods.get(&uid).is_none_or(|pod| version(pod) >= version_now)
        })
        .await
    }

    /// The live pod at an index, once there is one.
    async fn live(&mut self, index: usize) -> Result<Value> {
        let mut numbers = std::mem::take(&mut self.numbers);
        let mut found = Value::Null;
        let there = self.until("a live pod to be there", |view| {
            found = live_at(view, index, &mut numbers).cloned().unwrap_or_default();
            !found.is_null()
        });
        let there = there.await;
        self.numbers = numbers;
        there.map(|()| found)
    }

    /// A terminating pod at an index, or the oldest but so many, once there is one.
    async fn held(&mut self, at_index: usize) -> Result<Value> {
        let mut found = Value::Null;
        self.until("a terminating pod to be there", |view| {
            let held = view.pods(is_held);
            let pod = if view.is_indexed() {
                held.into_iter().find(|pod| index(pod) == Some(at_index))
            } else {
                held.into_iter().nth(at_index)
            };
            found = pod.cloned().unwrap_or_default();
            !found.is_null()
        })
        .await?;
        Ok(found)
    }

    async fn replaced(&mut self, index: usize) -> Result<String> {
        let (_, uid, when) = self.ended.get(&index).context("nothing has ended there")?.clone();
        let pod = self.live(index).await?;
        if text(&pod, "/metadata/uid") == uid {
            bail!("it was not replaced");
        }
        let made: Timestamp = text(&pod, "/metadata/creationTimestamp").parse()?;
        let seconds = made.as_second() - when.as_second();
        Ok(match seconds {
            ..8 => "replaced at once".to_owned(),
            8..18 => "replaced after 10 s".to_owned(),
            18..38 => "replaced after 20 s".to_owned(),
            38..78 => "replaced after 40 s".to_owned(),
            _ => format!("replaced after {seconds} s"),
        })
    }

    /// What the job is like once it is as expected and nothing happens any more, or when it has been too long.
    async fn settled(&mut self, expected: &[String], least: Duration) -> Vec<String> {
        let begun = Instant::now();
        let quiet = least.max(if self.blesses { SURELY_QUIET } else { QUIET });
        loop {
            let (told, changed) = {
                let view = self.view.borrow_and_update();
                (view.told(), view.changed)
            };
            let rest = quiet.saturating_sub(changed.elapsed());
            let fits = self.blesses || told == expected;
            if (fits && rest.is_zero()) || begun.elapsed() >= SOON {
                return told;
            }
            let wait = if fits { rest } else { SOON.saturating_sub(begun.elapsed()) };
            let _ = timeout(wait, self.view.changed()).await;
        }
    }

    async fn until(&mut self, what: &str, seen: impl FnMut(&View) -> bool) -> Result<()> {
        let mut view = self.view.clone();
        let found = timeout(SOON, view.wait_for(seen)).await;
        match found {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => bail!("the watch has ended"),
            Err(_) => bail!("{what}: not within {SOON:?}"),
        }
    }
}

/// The live pod at an index. A pod without one takes the lowest number that is free.
fn live_at<'v>(view: &'v View, at_index: usize, numbers: &mut BTreeMap<usize, String>) -> Option<&'v Value> {
    let live = view.pods(is_live);
    if view.is_indexed() {
        return live.into_iter().find(|pod| index(pod) == Some(at_index));
    }
    let uid = |pod: &Value| text(pod, "/metadata/uid").to_owned();
    numbers.retain(|_, known| live.iter().any(|pod| uid(pod) == *known));
    for pod in &live {
        if !numbers.values().any(|known| *known == uid(pod)) {
            let free = (0..).find(|number| !numbers.contains_key(number)).unwrap_or_default();
            numbers.insert(free, uid(pod));
        }
    }
    let wanted = numbers.get(&at_index)?;
    live.into_iter().find(|pod| uid(pod) == *wanted)
}

/// There is an object of the name.
fn is_taken(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 409)
}

fn version(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap_or_default()
}
