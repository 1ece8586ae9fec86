//! What can be done to a job.

use anyhow::{Context, Error, Result, bail, ensure};
use serde_json::{Map, Value, json};
use std::{str::FromStr, time::Duration};

/// A step of a sequence. Pods are addressed by their completion index; those of a job without indexes by a number that
/// a pod has from when it is first seen until it has ended.
#[derive(Debug)]
pub(super) enum Step {
    /// `job {completions: 2}`: makes the job. The fields are those of its spec; `restartPolicy`, `containers` and
    /// `initContainers` (names) are of its template, which is filled in. Prints `refused` if the API server refuses it,
    /// `exists` if there is one already.
    Job(Value),
    /// `run 0 1`, and others: something happens to pods, one after the other, each once it is there.
    Pods(Vec<usize>, Act),
    /// `patch {parallelism: 3}`: changes the spec. Prints `refused` if the API server refuses it.
    Patch(Value),
    /// `status {succeeded: 1}`: writes the job's status as somebody else. Prints `refused` if the API server refuses it.
    Status(Value),
    /// `delete-job`, `delete-job Orphan`: with this propagation policy, `Background` if none is said.
    DeleteJob(String),
    /// `hold`: from now on pods on a node stay terminating until they are let go.
    Hold,
    /// `settle`: prints what the job is like once nothing happens any more; `settle 12`, nothing for 12 s at least.
    Settle(Duration),
    /// `replaced 0`: prints how long after the end of the last pod at this index the next one was made.
    Replaced(usize),
}

/// What happens to a pod.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// `run`: it is bound to a node, runs and is ready.
    Run,
    /// `unready`: it is bound to a node, runs and is not ready.
    Unready,
    /// `bind`: it is bound to a node and does nothing.
    Bind,
    /// `restarts 0 count=2`: its first container was restarted so often; `phase=Pending` leaves it pending,
    /// `init` counts the restarts of its first init container.
    Restarts { count: u32, phase: String, init: bool },
    /// `succeed`: its containers end with 0.
    Succeed(Ended),
    /// `fail 0 exit=3`: its containers end with this code.
    Fail(Ended),
    /// `delete 0`: somebody deletes it; `delete 0 now` without grace.
    Delete { now: bool },
    /// `remove 0`: somebody deletes the latest pod at this index that has ended.
    Remove,
    /// `stop 0 exit=143`: its kubelet ends a terminating pod, and leaves it there.
    Stop(Ended),
    /// `gone 0`: a terminating pod goes.
    Gone(Ended),
}

/// How a pod ends.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    /// `exit=3`, `exit=main:0,side:3`: exit codes of containers by name, `*` for all others. None: nothing is known of them.
    pub(super) codes: Vec<(String, i32)>,
    /// `condition=DisruptionTarget`, `condition=DisruptionTarget:False`: a condition of the pod, and its status.
    pub(super) condition: Option<(String, String)>,
    /// `ago=5`: seconds since it has ended. An hour if nothing is said, which is longer than a replacement is held back;
    /// less than 0 to hold it back for longer.
    pub(super) ago: i64,
}

impl Act {
    /// It happens to pods that have neither ended nor been deleted.
    pub(super) fn is_of_live_pods(&self) -> bool {
        !matches!(self, Self::Remove | Self::Stop(_) | Self::Gone(_))
    }
}

impl FromStr for Step {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        Ok(match word {
            "job" => Self::Job(spec(yaml(rest)?)?),
            "patch" => Self::Patch(yaml(rest)?),
            "status" => Self::Status(yaml(rest)?),
            "delete-job" => Self::DeleteJob(if rest.is_empty() { "Background" } else { rest }.into()),
            "hold" => Self::Hold,
            "settle" => Self::Settle(Duration::from_secs(if rest.is_empty() { 0 } else { rest.parse()? })),
            "replaced" => Self::Replaced(rest.parse()?),
            _ => {
                let mut words: Vec<_> = rest.split(' ').collect();
                let count = words.iter().take_while(|word| word.parse::<usize>().is_ok()).count();
                let options = words.split_off(count);
                ensure!(count > 0, "no pod is named");
                let indexes = words.iter().map(|word| Ok(word.parse()?)).collect::<Result<_>>()?;
                Self::Pods(indexes, act(word, &options)?)
            }
        })
    }
}

fn act(word: &str, options: &[&str]) -> Result<Act> {
    let option = |name: &str| options.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
    let has = |name: &str| options.contains(&name);
    let known = ["exit", "condition", "ago", "count", "phase"];
    for option in options {
        let name = option.split('=').next().unwrap_or_default();
        ensure!(known.contains(&name) || ["now", "init"].contains(option), "no option {option}");
    }
    let ended = |code: i32| -> Result<Ended> {
        let codes = match option("exit") {
            None => vec![("*".to_owned(), code)],
            Some("none") => vec![],
            Some(codes) => codes.split(',').map(exit).collect::<Result<_>>()?,
        };
        let ago = option("ago").map_or(Ok(if has("now") { 0 } else { 3600 }), str::parse)?;
        let condition = option("condition").map(|it| it.split_once(':').unwrap_or((it, "True")));
        Ok(Ended { codes, condition: condition.map(|(kind, status)| (kind.into(), status.into())), ago })
    };
    Ok(match word {
        "run" => Act::Run,
        "unready" => Act::Unready,
        "bind" => Act::Bind,
        "restarts" => Act::Restarts {
            count: option("count").context("count=?")?.parse()?,
            phase: option("phase").unwrap_or("Running").into(),
            init: has("init"),
        },
        "succeed" => Act::Succeed(ended(0)?),
        "fail" => Act::Fail(ended(1)?),
        "delete" => Act::Delete { now: has("now") },
        "remove" => Act::Remove,
        "stop" => Act::Stop(ended(143)?),
        "gone" => Act::Gone(ended(143)?),
        _ => bail!("no command {word}"),
    })
}

fn exit(text: &str) -> Result<(String, i32)> {
    let (name, code) = text.split_once(':').unwrap_or(("*", text));
    Ok((name.to_owned(), code.parse()?))
}

fn yaml(text: &str) -> Result<Value> {
    Ok(serde_norway::from_str(text)?)
}

/// A spec with its template.
fn spec(mut fields: Value) -> Result<Value> {
    let spec = fields.as_object_mut().context("the spec is no object")?;
    let containers = containers(spec.remove("containers").unwrap_or(json!(["main"])))?;
    let inits = containers_of(spec, "initContainers")?;
    let policy = spec.remove("restartPolicy").unwrap_or(json!("Never"));
    let pod = json!({ "restartPolicy": policy, "containers": containers, "initContainers": inits });
    spec.insert("template".into(), json!({ "metadata": {}, "spec": pod }));
    Ok(fields)
}

fn containers_of(spec: &mut Map<String, Value>, field: &str) -> Result<Value> {
    spec.remove(field).map_or(Ok(json!([])), containers)
}

fn containers(names: Value) -> Result<Value> {
    let names: Vec<String> = serde_json::from_value(names)?;
    Ok(names.iter().map(|name| json!({ "name": name, "image": "docker.io/local/x:1" })).collect())
}
