//! The jobs of a campaign: each framework in all its modes, with the lives of its pods and the end that these lead to.

use super::draw::Draw;
use serde_json::{Value, json};
use std::time::Duration;

/// One job.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// What a user submits.
    pub(super) manifest: Value,
    /// How its pods live: pattern of names, key, value, as [`sim::Life::rule`] has them.
    pub(super) lives: Vec<[String; 3]>,
    /// How it ends if nobody interferes, as the exit codes of its pods say.
    pub(super) outcome: &'static str,
    /// Some of its pods fail, and are created again.
    pub(super) is_restarted: bool,
    /// Where the spec of a guest says that it is suspended, if it can be.
    pub(super) suspend: Option<String>,
}

/// A kind of training job.
struct Training {
    kind: &'static str,
    field: &'static str,
    container: &'static str,
    /// The type of replica that decides how the job stands; "" is all workers.
    leader: &'static str,
}

const TRAINING: [Training; 4] = [
    Training { kind: "TFJob", field: "tfReplicaSpecs", container: "tensorflow", leader: "Chief" },
    Training { kind: "PyTorchJob", field: "pytorchReplicaSpecs", container: "pytorch", leader: "Master" },
    Training { kind: "XGBoostJob", field: "xgbReplicaSpecs", container: "xgboost", leader: "Master" },
    Training { kind: "JAXJob", field: "jaxReplicaSpecs", container: "jax", leader: "" },
];

/// The most pods that a job may have.
const MOST_REPLICAS: u32 = 10_000;

/// The annotation by which a training job has all its pods start again.
const RESTART_SCOPE: &str = "kubeflow.troupe.dev/restart-scope";

/// Where a job belongs and what may become of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobParams<'a> {
    pub(super) namespace: &'a str,
    /// Unique in the run; part of the job's name.
    pub(super) number: u32,
    /// Its pods exit well.
    pub(super) sound: bool,
    /// Users may change how many workers it has.
    pub(super) is_edited: bool,
}

/// The frameworks there are.
pub(super) const FRAMEWORKS: [fn(&mut Draw, JobParams<'_>, &Config) -> Job; 4] = [paddle, mpi, rhino, training];

/// The cluster operator's settings in a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Config {
    lean: bool,
    without_servers: bool,
    ttl_deletes: bool,
    /// The gang scheduler, if there is one.
    pub(super) gang_scheduler: Option<&'static str>,
}

impl Config {
    /// The settings of a seed.
    pub(super) fn drawn(draw: &mut Draw, gang_scheduler: Option<&'static str>) -> Self {
        let (lean, without_servers, ttl_deletes) = (draw.one_in(3), draw.one_in(4), draw.one_in(4));
        Self { lean, without_servers, ttl_deletes, gang_scheduler }
    }

    /// Returns whether the job itself is removed when its time to live has passed, and not only its launcher.
    pub(super) fn removes(&self, job: &Job) -> bool {
        self.ttl_deletes || job.kind() != "MPIJob"
    }

    /// Each plugin's settings, by its name.
    pub(super) fn of_plugins(&self) -> Vec<(&'static str, Value)> {
        let mut paddle = json!({ "lean": self.lean, "completeWithoutServers": self.without_servers });
        let mut mpi = json!({ "ttl-deletes-mpijob": self.ttl_deletes });
        if let Some(scheduler) = self.gang_scheduler {
            paddle["scheduling"] = json!(scheduler);
            mpi["gang-scheduling"] = json!(scheduler);
        }
        let kubeflow = self.gang_scheduler.map(|scheduler| ("kubeflow", json!({ "gang-scheduler-name": scheduler })));
        [("paddle", paddle), ("mpi", mpi)].into_iter().chain(kubeflow).collect()
    }
}

/// The names of the plugins that come with the host.
pub(super) const PLUGINS: [&str; 5] = ["paddle", "mpi", "rhino", "kubeflow", "job"];

/// What users change in a spec.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    /// More or fewer workers.
    Scale,
    /// Suspended, and resumed.
    Suspend,
    /// Refused by the plugin, and valid again.
    Invalid,
    /// Another time to live.
    Ttl,
    /// Many pods of one role in the place of many of another.
    Swap,
}

impl Change {
    /// Those that any job may see.
    pub(super) const ALL: [Self; 4] = [Self::Scale, Self::Suspend, Self::Invalid, Self::Ttl];
}

impl Job {
    /// Its manifest with so many seconds to its end, if its kind has such a limit.
    pub(super) fn ended_after(&self, seconds: u32) -> Option<Value> {
        let mut manifest = self.manifest.clone();
        let policy = match self.kind() {
            "IndexedJob" => &mut manifest["spec"],
            kind if kind == "MPIJob" || TRAINING.iter().any(|training| training.kind == kind) => {
                &mut manifest["spec"]["runPolicy"]
            }
            _ => return None,
        };
        policy["activeDeadlineSeconds"] = json!(seconds);
        Some(manifest)
    }

    /// The merge patch that makes a change, and the one that takes it back if the job needs that to come to its end.
    pub(super) fn edit(&self, draw: &mut Draw, change: Change) -> Option<(Value, Option<Value>)> {
        if let (Some(switch), Change::Suspend) = (&self.suspend, change) {
            return Some((patch(switch, json!(true)), Some(patch(switch, json!(false)))));
        }
        let training = TRAINING.iter().find(|training| training.kind == self.kind());
        let (count, policy) = match self.kind() {
            "PaddleJob" => ("/worker/replicas".to_owned(), None),
            "MPIJob" => ("/mpiReplicaSpecs/Worker/replicas".to_owned(), Some("/runPolicy/ttlSecondsAfterFinished")),
            "RhinoJob" => ("/parallelism".to_owned(), Some("/ttl")),
            "IndexedJob" => ("/parallelism".to_owned(), Some("/ttlSecondsAfterFinished")),
            _ => (format!("/{}/Worker/replicas", training?.field), Some("/runPolicy/ttlSecondsAfterFinished")),
        };
        let count = count.as_str();
        let now = self.manifest["spec"].pointer(count)?;
        Some(match change {
            Change::Scale => (patch(count, json!(1 + draw.below(4))), None),
            Change::Invalid if ["PaddleJob", "IndexedJob"].contains(&self.kind()) || training.is_some() => {
                (patch(count, json!(-1)), Some(patch(count, now.clone())))
            }
            Change::Invalid => (patch(count, json!(0)), Some(patch(count, now.clone()))),
            Change::Ttl => (patch(policy?, json!(1 + draw.below(20))), None),
            Change::Suspend if self.kind() == "MPIJob" || training.is_some() => {
                let suspend = |suspended: bool| patch("/runPolicy/suspend", json!(suspended));
                (suspend(true), Some(suspend(false)))
            }
            Change::Suspend if self.kind() == "IndexedJob" => {
                (patch("/suspend", json!(true)), Some(patch("/suspend", json!(false))))
            }
            Change::Suspend | Change::Swap => return None,
        })
    }

    /// Fields of its spec, and values with which its plugin refuses it.
    pub(super) fn nonsense(&self) -> Vec<(&'static str, Value)> {
        let policy = [
            ("/runPolicy/activeDeadlineSeconds", json!(0)),
            ("/runPolicy/backoffLimit", json!(-1)),
            ("/runPolicy/ttlSecondsAfterFinished", json!(-1)),
            ("/runPolicy/cleanPodPolicy", json!("Whatever")),
            ("/runPolicy/schedulingPolicy", json!({ "minAvailable": -1 })),
            ("/runPolicy/schedulingPolicy", json!({ "queue": "no name" })),
            ("/runPolicy/schedulingPolicy", json!({ "minResources": { "cpu": "many" } })),
        ];
        let own = match self.kind() {
            "PaddleJob" => vec![
                ("/worker/replicas", json!(-1)),
                ("/worker/replicas", json!(i64::MAX)),
                ("/schedulingPolicy", json!({ "minAvailable": -1 })),
                ("/schedulingPolicy", json!({ "priorityClass": " " })),
            ],
            "MPIJob" => vec![
                ("/slotsPerWorker", json!(0)),
                ("/mpiReplicaSpecs/Launcher/replicas", json!(2)),
                ("/mpiReplicaSpecs/Worker/restartPolicy", json!("Whenever")),
            ],
            "RhinoJob" => vec![
                ("/parallelism", json!(0)),
                ("/ttl", json!(-1)),
                ("/dataPath", json!("relative")),
                ("/image", json!(" ")),
            ],
            "IndexedJob" => vec![
                ("/parallelism", json!(-1)),
                ("/completionMode", json!("Sometimes")),
                ("/activeDeadlineSeconds", json!(0)),
            ],
            "TFJob" => vec![("/tfReplicaSpecs/Chief/replicas", json!(2)), ("/tfReplicaSpecs", json!({}))],
            "PyTorchJob" => {
                vec![("/elasticPolicy", json!({ "minReplicas": 3, "maxReplicas": 1 })), ("/nprocPerNode", json!("0"))]
            }
            "XGBoostJob" | "JAXJob" => vec![],
            // A guest's are its own.
            _ => return vec![],
        };
        let has_policy = !["PaddleJob", "RhinoJob", "IndexedJob"].contains(&self.kind());
        own.into_iter().chain(has_policy.then_some(policy).into_iter().flatten()).collect()
    }

    /// A user who deletes one of its Jobs by hand has to delete the other, too: its workers know one launcher.
    pub(super) fn has_jobs_that_belong_together(&self) -> bool {
        self.kind() == "RhinoJob"
    }

    /// The longest time that its pods may wait in back-offs. Where one worker is left, or one pod runs at once, its failures
    /// come one after the other, and each is followed by a longer wait.
    pub(super) fn longest_back_offs(&self) -> Duration {
        let spec = &self.manifest["spec"];
        let failures = match (self.is_restarted, self.kind()) {
            (false, _) => 0,
            // Each pod fails twice, and a success begins anew.
            (true, "IndexedJob") => 2 * spec["completions"].as_u64().unwrap_or(1),
            (true, _) => spec["runPolicy"]["backoffLimit"].as_u64().unwrap_or(0),
        };
        (0..failures).map(back_off).sum()
    }

    /// All its pods start again when one fails.
    pub(super) fn starts_again_as_a_whole(&self) -> bool {
        self.manifest["metadata"]["annotations"][RESTART_SCOPE] == "Job"
    }

    /// It needs one success, and makes no pod after that.
    pub(super) fn is_work_queue(&self) -> bool {
        self.kind() == "IndexedJob" && self.manifest["spec"]["completions"].is_null()
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        text(&self.manifest["metadata"]["name"])
    }

    /// Its namespace.
    pub(super) fn namespace(&self) -> &str {
        text(&self.manifest["metadata"]["namespace"])
    }

    /// Its kind.
    pub(super) fn kind(&self) -> &str {
        text(&self.manifest["kind"])
    }
}

/// How long is waited after this many failures and one more: as in a Job of Kubernetes, ten seconds, doubled up to ten
/// minutes.
fn back_off(failures: u64) -> Duration {
    Duration::from_secs(10 << failures.min(6)).min(Duration::from_mins(10))
}

/// The merge patch that sets a field of the spec.
fn patch(pointer: &str, value: Value) -> Value {
    let steps = pointer.rsplit('/').filter(|step| !step.is_empty());
    json!({ "spec": steps.fold(value, |inner, step| json!({ step: inner })) })
}

/// A job of some kind with a spec that has nothing in it.
pub(super) fn bare(draw: &mut Draw, namespace: &str, number: u32) -> Value {
    let kinds = [
        ("batch.paddlepaddle.org/v1", "PaddleJob"),
        ("kubeflow.org/v2beta1", "MPIJob"),
        ("openrhino.org/v1alpha2", "RhinoJob"),
    ];
    let (version, kind) = *draw.of(&kinds);
    manifest(version, kind, JobParams { namespace, number, sound: true, is_edited: true }, "odd", &json!({}))
}

/// A PaddleJob of this name with these roles, whose pods do well.
pub(super) fn of_roles(name: &str, params: JobParams<'_>, roles: &Value, lives: Vec<[String; 3]>) -> Job {
    let manifest = manifest("batch.paddlepaddle.org/v1", "PaddleJob", params, name, roles);
    Job { manifest, lives, outcome: outcome(false), is_restarted: false, suspend: None }
}

/// A role with so many pods of which nothing is asked.
pub(super) fn bare_role(replicas: u32) -> Value {
    json!({ "replicas": replicas, "template": { "spec": { "containers": [{ "name": "main", "image": "x" }] } } })
}

/// A job that wants more pods than a job may have.
pub(super) fn oversized(draw: &mut Draw, namespace: &str, number: u32) -> Value {
    let mut worker = role(draw, false);
    worker["replicas"] = json!(MOST_REPLICAS + 1 + draw.below(1000));
    let params = JobParams { namespace, number, sound: true, is_edited: true };
    manifest("batch.paddlepaddle.org/v1", "PaddleJob", params, "large", &json!({ "worker": worker }))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn manifest(api_version: &str, kind: &str, params: JobParams<'_>, name: &str, spec: &Value) -> Value {
    let metadata = json!({ "name": format!("{name}-{}", params.number), "namespace": params.namespace });
    json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec })
}

/// The plugin of jobs [`of_one_pod`].
pub(super) const PLUGIN_OF_ONE_POD: &str = "paddle";

/// A job of one pod, which has its own address (`PodIP`) or ports of its node (`Host`).
pub(super) fn of_one_pod(namespace: &str, name: &str, intranet: &str) -> Value {
    of_pods(namespace, name, intranet, 1)
}

/// The same with so many pods.
pub(super) fn of_pods(namespace: &str, name: &str, intranet: &str, pods: u32) -> Value {
    json!({
        "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "intranet": intranet, "worker": bare_role(pods) },
    })
}

fn paddle(draw: &mut Draw, params: JobParams<'_>, config: &Config) -> Job {
    let fails = !params.sound && draw.one_in(5);
    let intranet = draw.of(&["", "PodIP", "Service", "Host"]);
    let policy = draw.of(&["", "Always", "Never", "OnCompletion", "OnFailure"]);
    let mut spec = json!({ "intranet": intranet, "cleanPodPolicy": policy, "worker": role(draw, fails) });
    if draw.one_in(2) {
        spec["ps"] = role(draw, false);
        if config.without_servers {
            run_for(&mut spec["ps"], "forever");
        }
        spec["withGloo"] = json!(draw.below(2));
    }
    if draw.one_in(4) {
        spec["heter"] = role(draw, false);
    }
    // Nothing waits for the ConfigMap of an elastic job, which may be over before it is made.
    if params.is_edited && !fails && draw.one_in(6) {
        spec["elastic"] = json!(1);
    }
    Job {
        manifest: manifest("batch.paddlepaddle.org/v1", "PaddleJob", params, "a", &spec),
        lives: vec![],
        outcome: outcome(fails),
        is_restarted: false,
        suspend: None,
    }
}

pub(super) fn outcome(fails: bool) -> &'static str {
    if fails { "failed" } else { "succeeded" }
}

/// A role's pods fail for good, or (where they are restarted in place) once.
fn role(draw: &mut Draw, fails: bool) -> Value {
    let mut template = template(draw, if fails { "1" } else { "0" });
    if fails {
        template["spec"]["restartPolicy"] = json!("Never");
    } else if draw.one_in(5) {
        template["spec"]["restartPolicy"] = json!("OnFailure");
        template["metadata"]["annotations"]["troupe.dev/exit-code"] = json!("1,0");
    }
    json!({ "replicas": 1 + draw.below(3), "template": template })
}

fn run_for(role: &mut Value, time: &str) {
    role["template"]["metadata"]["annotations"]["troupe.dev/run-for"] = json!(time);
}

pub(super) fn template(draw: &mut Draw, exit: &str) -> Value {
    let run = format!("{}ms", draw.ms(200, 5000).as_millis());
    json!({
        "metadata": { "annotations": { "troupe.dev/run-for": run, "troupe.dev/exit-code": exit } },
        "spec": { "containers": [{ "name": "main", "image": "x" }] },
    })
}

fn mpi(draw: &mut Draw, params: JobParams<'_>, _: &Config) -> Job {
    let fails = !params.sound && draw.one_in(5);
    let workers = 1 + draw.below(3);
    let mut policy = json!({ "cleanPodPolicy": draw.of(&["None", "Running", "All"]), "backoffLimit": 2 });
    match draw.below(4) {
        // A host that is away for so long does not see how such a Job ends.
        0 if params.is_edited => policy["ttlSecondsAfterFinished"] = json!(draw.below(3)),
        0 | 1 => policy["ttlSecondsAfterFinished"] = json!(20 + draw.below(20)),
        _ => {}
    }
    if draw.one_in(4) {
        policy["activeDeadlineSeconds"] = json!(3600);
    }
    let restart = draw.of(&["Never", "OnFailure"]);
    // Started again in place, the launcher may do better; another pod begins from the first attempt.
    let second = *restart == "OnFailure" && draw.one_in(3);
    let exit = if fails {
        "1"
    } else if second {
        "1,0"
    } else {
        "0"
    };
    let mut launcher = json!({ "replicas": 1, "restartPolicy": restart, "template": template(draw, exit) });
    let enough = if params.is_edited { 1 } else { workers };
    launcher["template"]["metadata"]["annotations"]["troupe.dev/finish-after"] =
        json!(format!("{enough} b-{}-worker-* Running", params.number));
    let worker =
        json!({ "replicas": workers, "template": { "spec": { "containers": [{ "name": "main", "image": "x" }] } } });
    let spec = json!({
        "runPolicy": policy,
        "launcherCreationPolicy": draw.of(&["", "AtStartup", "WaitForWorkersReady"]),
        "mpiImplementation": draw.of(&["", "OpenMPI", "Intel", "MPICH"]),
        "runLauncherAsWorker": draw.one_in(3),
        "mpiReplicaSpecs": { "Launcher": launcher, "Worker": worker },
    });
    Job {
        manifest: manifest("kubeflow.org/v2beta1", "MPIJob", params, "b", &spec),
        lives: vec![],
        outcome: outcome(fails),
        is_restarted: false,
        suspend: None,
    }
}

/// mpirun ends after its processes, or fails while they run; or one of them fails.
fn rhino(draw: &mut Draw, params: JobParams<'_>, _: &Config) -> Job {
    let (launcher_fails, worker_fails) = (!params.sound && draw.one_in(10), !params.sound && draw.one_in(10));
    let workers = 1 + draw.below(3);
    let enough = if params.is_edited { 1 } else { workers };
    let ttl = *draw.of(&[0, 5, 30, 3600]);
    let spec = json!({ "image": "x", "appExec": "/app/run", "parallelism": workers, "ttl": ttl });
    let job = format!("c-{}", params.number);
    let (launchers, pods) = (format!("{job}-*-launcher-*"), format!("{job}-*-workers-*"));
    let phase = if launcher_fails { "Running" } else { "Succeeded" };
    let life = |pattern: &String, key: &str, value: String| [pattern.clone(), key.into(), value];
    let exit = |fails: bool| if fails { "1" } else { "0" }.to_owned();
    let lives = vec![
        life(&launchers, "run-for", "1s".into()),
        life(&launchers, "finish-after", format!("{enough} {pods} {phase}")),
        life(&launchers, "exit-code", exit(launcher_fails)),
        life(&pods, "run-for", format!("{}ms", draw.ms(200, 5000).as_millis())),
        life(&pods, "exit-code", exit(worker_fails)),
    ];
    let manifest = manifest("openrhino.org/v1alpha2", "RhinoJob", params, "c", &spec);
    Job { manifest, lives, outcome: outcome(launcher_fails || worker_fails), is_restarted: false, suspend: None }
}

/// Workers that fail with a signal and do better in another pod, which counts towards the limit; or fail for good. What
/// leads the job ends after its workers, so that the same pods are made whatever happens in between.
fn training(draw: &mut Draw, params: JobParams<'_>, _: &Config) -> Job {
    let of = draw.of(&TRAINING);
    let fails = !params.sound && draw.one_in(5);
    let is_restarted = !params.sound && draw.one_in(2);
    let restart = if is_restarted { "ExitCode" } else { *draw.of(&["Never", "ExitCode"]) };
    let exit = match (fails, is_restarted) {
        (true, true) => "137",
        (true, false) => "1",
        (false, true) => *draw.of(&["137,0", "143,255,0"]),
        (false, false) => "0",
    };
    let workers = 1 + draw.below(3);
    let mut policy = json!({ "cleanPodPolicy": draw.of(&["None", "Running", "All"]), "backoffLimit": 2 * workers + 1 });
    if draw.one_in(3) {
        policy["ttlSecondsAfterFinished"] = json!(20 + draw.below(20));
    }
    if draw.one_in(4) {
        policy["activeDeadlineSeconds"] = json!(3600);
    }
    let replicas =
        |count: u32, template: Value| json!({ "replicas": count, "restartPolicy": restart, "template": template });
    let mut worker = template(draw, exit);
    worker["spec"]["containers"][0]["name"] = json!(of.container);
    let mut spec = json!({ "runPolicy": policy, of.field: { "Worker": replicas(workers, worker.clone()) } });
    if !of.leader.is_empty() {
        let enough = if params.is_edited { 1 } else { workers };
        worker["metadata"]["annotations"] = json!({
            "troupe.dev/finish-after": format!("{enough} d-{}-worker-* Succeeded", params.number),
            "troupe.dev/exit-code": "0",
        });
        spec[of.field][of.leader] = replicas(1, worker);
    }
    let mut manifest = manifest("kubeflow.org/v1", of.kind, params, "d", &spec);
    if is_restarted && params.number.is_multiple_of(2) {
        manifest["metadata"]["annotations"] = json!({ RESTART_SCOPE: "Job" });
    }
    Job { manifest, lives: vec![], outcome: outcome(fails), is_restarted, suspend: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(spec: &Value, is_restarted: bool) -> Job {
        let manifest = json!({ "kind": "JAXJob", "spec": spec });
        Job { manifest, lives: vec![], outcome: "failed", is_restarted, suspend: None }
    }

    // Seed 3946: one worker was left of three, which had to fail eight times, and was given five minutes.
    #[test]
    fn what_fails_again_and_again_has_time_for_its_back_offs_and_nothing_else_has() {
        let spec = json!({ "runPolicy": { "backoffLimit": 7 } });
        assert_eq!(job(&spec, true).longest_back_offs().as_secs(), 10 + 20 + 40 + 80 + 160 + 320 + 600);
        assert_eq!(job(&spec, false).longest_back_offs(), Duration::ZERO);
    }
}
