//! The validation of an MPIJob. It reports all errors at once, each with its field.

use crate::MpiJob;
use crate::lost;
use crate::spec::{self, LostWorker, ReplicaSpec, RunPolicy, given};
use serde_json::Value;
use troupe_plugin::types::Refusal;
use troupe_plugin::{Mistakes, PodTemplate, UserTemplate, Word, dns_label_problem};

/// A valid job with its defaults.
#[derive(Debug)]
pub(crate) struct Valid<'a> {
    pub(crate) launcher: Replicas<'a>,
    /// None if the spec has no Worker entry.
    pub(crate) worker: Option<Replicas<'a>>,
    pub(crate) implementation: Implementation,
    pub(crate) clean_pods: CleanPods,
    pub(crate) lost_worker: LostWorker,
}

/// The replicas of the launcher or of the workers.
#[derive(Debug)]
pub(crate) struct Replicas<'a> {
    /// The name of its entry: `Launcher` or `Worker`.
    pub(crate) entry: &'static str,
    pub(crate) replicas: u32,
    pub(crate) restart_policy: &'a str,
    pub(crate) template: &'a UserTemplate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Implementation {
    OpenMpi,
    Intel,
    Mpich,
}

/// `runPolicy.cleanPodPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CleanPods {
    None,
    Running,
    All,
}

/// Returns the job with its defaults, or a refusal with all errors.
pub(crate) fn validate(job: &MpiJob) -> Result<Valid<'_>, Refusal> {
    let mut errors = Errors::default();
    let of = &job.spec;
    errors.name(job);
    let replica_specs = of.mpi_replica_specs.is_some();
    if !replica_specs {
        errors.0.add("spec.mpiReplicaSpecs", "must have replica specs");
    }
    let launcher = of.replica_spec("Launcher").and_then(|launcher| errors.launcher(launcher));
    if replica_specs && of.replica_spec("Launcher").is_none() {
        errors.0.add("spec.mpiReplicaSpecs[Launcher]", "must have Launcher replica spec");
    }
    let worker = of.replica_spec("Worker").and_then(|worker| errors.worker(worker));
    // Better: the original takes 0, with which no MPI starts a rank.
    errors.0.number(&spec::SLOTS_PER_WORKER, of.slots_per_worker.map(i64::from));
    let no_policy = RunPolicy::default();
    let clean_pods = errors.run_policy(of.run_policy.as_ref().unwrap_or(&no_policy));
    let lost_worker = errors.lost_worker(job);
    let implementation = errors.implementation(given(of.mpi_implementation.as_ref()));
    match (launcher, implementation, clean_pods) {
        (Some(launcher), Some(implementation), Some(clean_pods)) if errors.0.is_empty() => {
            Ok(Valid { launcher, worker, implementation, clean_pods, lost_worker })
        }
        _ => Err(errors.0.refusal()),
    }
}

#[derive(Default)]
struct Errors(Mistakes);

impl Errors {
    /// Checks the name of the last worker, which is the longest name that contains the job's name and is a host name.
    fn name(&mut self, job: &MpiJob) {
        let last = job.spec.workers().max(1) - 1;
        let label = format!("{}-worker-{last}", job.name());
        if let Some(problem) = dns_label_problem(&label) {
            let message =
                format!("will not able to create pod and service with invalid DNS label {label:?}: {problem}");
            self.0.add("metadata.name", message);
        }
    }

    fn launcher<'a>(&mut self, of: &'a ReplicaSpec) -> Option<Replicas<'a>> {
        if of.replicas.unwrap_or(1) != 1 {
            self.0.add("spec.mpiReplicaSpecs[Launcher].replicas", "must be 1");
        }
        self.replicas("Launcher", of, 1, "OnFailure")
    }

    fn worker<'a>(&mut self, of: &'a ReplicaSpec) -> Option<Replicas<'a>> {
        let wanted = of.replicas.unwrap_or(0);
        self.0.number_at(&["spec.mpiReplicaSpecs[Worker].replicas"], &spec::REPLICAS, Some(wanted));
        self.replicas("Worker", of, u32::try_from(wanted).unwrap_or(0), "Never")
    }

    fn replicas<'a>(
        &mut self,
        entry: &'static str,
        of: &'a ReplicaSpec,
        replicas: u32,
        restart: &'a str,
    ) -> Option<Replicas<'a>> {
        let path = format!("spec.mpiReplicaSpecs[{entry}]");
        let restart_policy = given(of.restart_policy.as_ref()).unwrap_or(restart);
        self.0.word_at(&[&path, ".restartPolicy"], &spec::RESTART_POLICY, Some(restart_policy));
        let template = of.template.as_ref().filter(|template| has_containers(template));
        if template.is_none() {
            self.0.add(format!("{path}.template.spec.containers"), "must define at least one container");
        }
        Some(Replicas { entry, replicas, restart_policy, template: template? })
    }

    fn run_policy(&mut self, policy: &RunPolicy) -> Option<CleanPods> {
        self.0.word(&spec::CLEAN_POD_POLICY, policy.clean_pod_policy.as_deref());
        self.0.number(&spec::TTL, policy.ttl_seconds_after_finished.map(i64::from));
        self.0.number(&spec::DEADLINE, policy.active_deadline_seconds);
        self.0.number(&spec::BACKOFF_LIMIT, policy.backoff_limit.map(i64::from));
        self.0.word(&spec::MANAGED_BY, policy.managed_by.as_deref());
        if let Some(gang) = &policy.scheduling_policy {
            self.gang(gang);
        }
        match policy.clean_pod_policy.as_deref().unwrap_or("None") {
            "None" => Some(CleanPods::None),
            "Running" => Some(CleanPods::Running),
            "All" => Some(CleanPods::All),
            _ => None,
        }
    }

    fn gang(&mut self, policy: &Value) {
        let text = |field: &str| policy[field].as_str();
        self.0.number(&spec::MIN_AVAILABLE, policy["minAvailable"].as_i64());
        self.0.number(&spec::SCHEDULE_TIMEOUT, policy["scheduleTimeoutSeconds"].as_i64());
        self.0.name(&spec::QUEUE, text("queue"));
        self.0.name(&spec::PRIORITY_CLASS, text("priorityClass"));
        self.0.amounts("spec.runPolicy.schedulingPolicy.minResources", policy.get("minResources"));
    }

    /// Returns what the job says, or else what the settings say.
    fn lost_worker(&mut self, job: &MpiJob) -> LostWorker {
        let said =
            job.view.annotations.iter().find(|(key, _)| key == lost::ANNOTATION).map(|(_, value)| value.as_str());
        match said {
            None => job.config.lost_worker,
            Some("fail") => LostWorker::Fail,
            Some("warn") => LostWorker::Warn,
            Some(other) => {
                let word = Word { path: "", words: &["fail", "warn"], may_be_empty: false };
                self.0.word_at(&["metadata.annotations[", lost::ANNOTATION, "]"], &word, Some(other));
                LostWorker::Fail
            }
        }
    }

    fn implementation(&mut self, name: Option<&str>) -> Option<Implementation> {
        match name.unwrap_or("OpenMPI") {
            "OpenMPI" => Some(Implementation::OpenMpi),
            "Intel" => Some(Implementation::Intel),
            "MPICH" => Some(Implementation::Mpich),
            other => {
                self.0.word(&spec::IMPLEMENTATION, Some(other));
                None
            }
        }
    }
}

fn has_containers(template: &UserTemplate) -> bool {
    PodTemplate::from_user(Some(template), "").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{job, pi};
    use serde_json::json;

    fn errors(job: &MpiJob) -> Vec<(String, String)> {
        match validate(job) {
            Err(Refusal::Invalid(errors)) => errors.into_iter().map(|e| (e.path, e.message)).collect(),
            other => panic!("not refused: {other:?}"),
        }
    }

    fn only_error(job: &MpiJob) -> (String, String) {
        let all = errors(job);
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }

    /// Returns pi with one field of the spec set to `value`. Null removes the field.
    fn pi_with(pointer: &str, value: serde_json::Value) -> MpiJob {
        let mut spec = pi();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        spec.pointer_mut(parent).unwrap()[field] = value;
        job("pi", &spec)
    }

    // M17
    #[test]
    fn a_name_that_cannot_be_a_host_name_is_refused() {
        for (name, why) in [("1-foo", "start"), ("my.job", "only"), (&*"a".repeat(60), "63")] {
            let (path, message) = only_error(&job(name, &pi()));
            assert_eq!(path, "metadata.name");
            let begin = format!("will not able to create pod and service with invalid DNS label \"{name}-worker-1\": ");
            assert!(message.starts_with(&begin) && message.contains(why), "{message}");
        }
    }

    // M17: each field that the original refuses is reported by its path
    #[test]
    fn each_wrong_field_is_named() {
        let cases = [
            (
                "/mpiReplicaSpecs/Launcher",
                json!(null),
                "spec.mpiReplicaSpecs[Launcher]",
                "must have Launcher replica spec",
            ),
            ("/mpiReplicaSpecs/Launcher/replicas", json!(2), "spec.mpiReplicaSpecs[Launcher].replicas", "must be 1"),
            (
                "/mpiReplicaSpecs/Worker/replicas",
                json!(null),
                "spec.mpiReplicaSpecs[Worker].replicas",
                "must be greater than or equal to 1",
            ),
            (
                "/mpiReplicaSpecs/Worker/replicas",
                json!(0),
                "spec.mpiReplicaSpecs[Worker].replicas",
                "must be greater than or equal to 1",
            ),
            (
                "/mpiReplicaSpecs/Worker/replicas",
                json!(-3),
                "spec.mpiReplicaSpecs[Worker].replicas",
                "must be greater than or equal to 1",
            ),
            (
                "/mpiReplicaSpecs/Worker/restartPolicy",
                json!("Always"),
                "spec.mpiReplicaSpecs[Worker].restartPolicy",
                "\"Always\" is not supported; supported values: Never, OnFailure",
            ),
            (
                "/mpiReplicaSpecs/Worker/template/spec/containers",
                json!([]),
                "spec.mpiReplicaSpecs[Worker].template.spec.containers",
                "must define at least one container",
            ),
            (
                "/mpiReplicaSpecs/Launcher/template",
                json!(null),
                "spec.mpiReplicaSpecs[Launcher].template.spec.containers",
                "must define at least one container",
            ),
            (
                "/mpiReplicaSpecs/Worker/replicas",
                json!(10_001),
                "spec.mpiReplicaSpecs[Worker].replicas",
                "must be at most 10000, not 10001",
            ),
            (
                "/mpiReplicaSpecs/Worker/replicas",
                json!(4_294_967_296_i64),
                "spec.mpiReplicaSpecs[Worker].replicas",
                "must be at most 10000, not 4294967296",
            ),
            ("/mpiReplicaSpecs", json!(null), "spec.mpiReplicaSpecs", "must have replica specs"),
            (
                "/runPolicy/cleanPodPolicy",
                json!("Foo"),
                "spec.runPolicy.cleanPodPolicy",
                "\"Foo\" is not supported; supported values: All, None, Running",
            ),
            ("/runPolicy/backoffLimit", json!(-1), "spec.runPolicy.backoffLimit", "must be greater than or equal to 0"),
            (
                "/runPolicy/activeDeadlineSeconds",
                json!(-1),
                "spec.runPolicy.activeDeadlineSeconds",
                "must be greater than or equal to 1",
            ),
            (
                "/runPolicy/ttlSecondsAfterFinished",
                json!(-1),
                "spec.runPolicy.ttlSecondsAfterFinished",
                "must be greater than or equal to 0",
            ),
            ("/slotsPerWorker", json!(-1), "spec.slotsPerWorker", "must be greater than or equal to 1"),
            ("/slotsPerWorker", json!(0), "spec.slotsPerWorker", "must be greater than or equal to 1"),
            (
                "/mpiImplementation",
                json!("Foo"),
                "spec.mpiImplementation",
                "\"Foo\" is not supported; supported values: OpenMPI, Intel, MPICH",
            ),
        ];
        for (pointer, value, path, message) in cases {
            assert_eq!(only_error(&pi_with(pointer, value)), (path.into(), message.into()), "{pointer}");
        }
    }

    #[test]
    fn what_a_lost_worker_means_is_said_by_the_job_or_else_by_the_setting() {
        let mut job = job("pi", &pi());
        assert_eq!(validate(&job).unwrap().lost_worker, LostWorker::Fail);
        job.config.lost_worker = LostWorker::Warn;
        assert_eq!(validate(&job).unwrap().lost_worker, LostWorker::Warn);
        job.view.annotations = vec![(lost::ANNOTATION.into(), "fail".into())];
        assert_eq!(validate(&job).unwrap().lost_worker, LostWorker::Fail);
        job.view.annotations[0].1 = "no".into();
        let message = "\"no\" is not supported; supported values: fail, warn";
        assert_eq!(only_error(&job), ("metadata.annotations[mpi.troupe.dev/lost-worker]".into(), message.into()));
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let spec = json!({ "mpiReplicaSpecs": { "Worker": {} }, "runPolicy": { "cleanPodPolicy": "" } });
        let paths: Vec<_> = errors(&job("1", &spec)).into_iter().map(|(path, _)| path).collect();
        let expected = [
            "metadata.name",
            "spec.mpiReplicaSpecs[Launcher]",
            "spec.mpiReplicaSpecs[Worker].replicas",
            "spec.mpiReplicaSpecs[Worker].template.spec.containers",
            "spec.runPolicy.cleanPodPolicy",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn a_job_without_a_spec_is_refused_without_a_panic() {
        assert_eq!(only_error(&job("pi", &json!({}))).0, "spec.mpiReplicaSpecs");
        assert_eq!(errors(&job("", &json!({}))).len(), 2);
    }

    #[test]
    fn the_name_of_the_last_worker_limits_the_name_of_a_large_job() {
        let name = "a".repeat(54);
        let mut spec = pi();
        assert!(validate(&job(&name, &spec)).is_ok());
        spec["mpiReplicaSpecs"]["Worker"]["replicas"] = json!(11);
        assert_eq!(only_error(&job(&name, &spec)).0, "metadata.name");
    }

    #[test]
    fn other_entries_and_empty_texts_count_as_absent() {
        let mut spec = pi();
        spec["mpiReplicaSpecs"]["launcher"] = json!({ "replicas": 7, "restartPolicy": "Always" });
        spec["mpiImplementation"] = json!("");
        spec["sshAuthMountPath"] = json!("");
        spec["mpiReplicaSpecs"]["Worker"]["restartPolicy"] = json!("");
        let job = job("pi", &spec);
        let valid = validate(&job).unwrap();
        assert_eq!(valid.implementation, Implementation::OpenMpi);
        assert_eq!(valid.worker.unwrap().restart_policy, "Never");
        assert_eq!(job.spec.ssh_path(), "/root/.ssh");
    }
}
