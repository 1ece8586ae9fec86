//! The plan of an MPIJob: workers, the launcher's Job, the Service, the ConfigMap, the SSH keys and the gang.

use crate::spec::{self, given};
use crate::validate::{CleanPods, Implementation, Replicas, Valid, validate};
use crate::{MpiJob, env, gang, hostfile, launcher, pods};
use serde_json::json;
use std::collections::BTreeMap;
use troupe_plugin::types::{
    Algorithm, Backing, Body, Clean, Criterion, Event, Failure, FailureRule, JobPlan, Object, Piece, Policy, Reached,
    Refusal, Remedy, Role, SecretRecipe, Success, Template, Ttl, Upkeep,
};
use troupe_plugin::{PodTemplate, job_name, json_text, pod_name, pods_are, text, unsupported, warn_of_gang};

/// The workers' role.
pub(crate) const WORKER: &str = "worker";

/// The roles of every job.
pub(crate) const ROLES: [&str; 2] = [WORKER, launcher::ROLE];

/// Returns the plan, or a refusal with all errors of the job.
pub(crate) fn plan(job: &MpiJob) -> Result<JobPlan, Refusal> {
    let valid = validate(job)?;
    if let Some(bytes) = hostfile::too_large(job) {
        return Err(unsupported(format!(
            "{} workers: their hostfile and discover_hosts.sh would be {bytes} bytes, more than one object may hold",
            job.spec.workers(),
        )));
    }
    Ok(JobPlan {
        roles: vec![worker_role(job, valid.worker.as_ref())?, launcher_role(job, &valid)?],
        objects: vec![service(job), config_map()],
        secrets: vec![ssh_keys(job)],
        series: vec![],
        gang: gang::gang(job, &valid),
        success_criteria: vec![vec![Criterion { role: launcher::ROLE.into(), indices: vec![], at_least: None }]],
        host_ports: 0,
        policy: policy(job, valid.clean_pods),
        warnings: warnings(job, &valid),
    })
}

/// Returns the workers' role. Without a Worker entry it has 0 replicas, so that the workers of a removed entry are
/// deleted.
fn worker_role(job: &MpiJob, worker: Option<&Replicas<'_>>) -> Result<Role, Refusal> {
    let first = i32::from(job.spec.launcher_is_a_host());
    let replicas = worker.map_or(0, |worker| worker.replicas);
    let template = worker.map_or_else(|| Ok(Template::Whole("{}".into())), |worker| pods::worker(job, worker))?;
    Ok(Role {
        hostname: Some(vec![pod_name()]),
        subdomain: Some(vec![job_name()]),
        labels: vec![(pods::REPLICA_INDEX.into(), vec![Piece::Index(first)])],
        // A worker serves the launcher: its success does not finish it, and a resumed job needs it again.
        success: Success::Momentary,
        // Better: a launcher that is tried again needs all its workers.
        failures: vec![FailureRule { about: Failure::Any, then: Remedy::Replace }],
        ..Role::new(WORKER, replicas, vec![job_name(), text("-worker-"), Piece::Index(0)], template)
    })
}

fn launcher_role(job: &MpiJob, valid: &Valid<'_>) -> Result<Role, Refusal> {
    let waits = job.spec.launcher_waits_for_workers() && valid.worker.is_some();
    let name = || vec![job_name(), text("-launcher")];
    Ok(Role {
        backing: Backing::Job(launcher::job_body(job)),
        hostname: Some(name()),
        subdomain: Some(vec![job_name()]),
        after: waits.then(|| pods_are(WORKER, Reached::Ready)).into_iter().collect(),
        ..Role::new(launcher::ROLE, 1, name(), pods::launcher(job, valid)?)
    })
}

/// Returns the headless Service that resolves the names of the job's pods, ready or not. Better: the original publishes ready
/// pods alone unless the launcher is a host. `mpirun` waits for an SSH server that is not there yet, and for no name, and
/// the workers of Intel MPI and MPICH connect back to the launcher's name.
fn service(job: &MpiJob) -> Object {
    let body = json!({
        "metadata": { "labels": { "app": job.name() } },
        "spec": {
            "clusterIP": "None",
            "selector": { pods::OPERATOR_NAME: pods::MPI_OPERATOR, pods::JOB_NAME: job.name() },
            "publishNotReadyAddresses": true,
        },
    });
    Object {
        key: "service".into(),
        api_version: "v1".into(),
        kind: "Service".into(),
        name: vec![job_name()],
        per_pod_of: None,
        body: Body::Fixed((json_text(&body), vec![])),
        upkeep: Upkeep::CreateOnly,
        after: vec![],
        remove_when: vec![],
    }
}

fn config_map() -> Object {
    Object {
        key: hostfile::KEY.into(),
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: vec![job_name(), text("-config")],
        per_pod_of: None,
        body: Body::Bound,
        upkeep: Upkeep::Follow(vec!["/data".into()]),
        after: vec![],
        remove_when: vec![],
    }
}

fn ssh_keys(job: &MpiJob) -> SecretRecipe {
    SecretRecipe {
        key: "ssh".into(),
        name: vec![job_name(), text("-ssh")],
        secret_type: "kubernetes.io/ssh-auth".into(),
        labels: vec![("app".into(), job.name().into())],
        private_key: "ssh-privatekey".into(),
        public_key: "ssh-publickey".into(),
        algorithm: Algorithm::EcdsaP521,
    }
}

/// Returns the clean-pod policy and the time to live. A suspended job keeps no pod, whatever the clean-pod policy of
/// the finished job: a failed worker would not run again and would block the job once it is resumed.
fn policy(job: &MpiJob, clean: CleanPods) -> Policy {
    let finished = match clean {
        CleanPods::None => Clean::Keep,
        CleanPods::Running => Clean::Active,
        CleanPods::All => Clean::All,
    };
    let after = job.spec.run_policy.as_ref().and_then(|policy| policy.ttl_seconds_after_finished);
    let after = after.filter(|_| job.config.ttl_deletes_mpijob).and_then(|seconds| u32::try_from(seconds).ok());
    Policy {
        clean_on_success: finished,
        clean_on_failure: finished,
        clean_on_suspend: Clean::All,
        ttl: after.map(Ttl::AfterFinished),
    }
}

/// Returns what of the job has no effect, or another than its user may think.
fn warnings(job: &MpiJob, valid: &Valid<'_>) -> Vec<Event> {
    let Ok(mut launcher) = PodTemplate::from_user(Some(valid.launcher.template), "") else { return vec![] };
    let mut warnings = vec![];
    let mut warn =
        |reason: &str, message: String| warnings.push(Event { warning: true, reason: reason.into(), message });
    if launcher.get("restartPolicy").is_some_and(|policy: String| !policy.is_empty()) {
        let message = "Restart policy in pod template overridden by restart policy in replica spec";
        warn("SetPodTemplateRestartPolicy", message.into());
    }
    if valid.implementation == Implementation::OpenMpi {
        for (name, read) in env::ignored_by_open_mpi_5(&launcher.first_container()) {
            let message = format!("Open MPI 5 ignores the launcher's variable {name} and reads {read}; set both");
            warn("VariableIgnored", message);
        }
    }
    // Better: the original says nothing of these.
    if let Some(policy) = given(job.spec.launcher_creation_policy.as_ref())
        && ![spec::AT_STARTUP, spec::WAIT_FOR_WORKERS].contains(&policy)
    {
        let (first, other) = (spec::AT_STARTUP, spec::WAIT_FOR_WORKERS);
        let message = format!("spec.launcherCreationPolicy: {policy:?} is not {first} and counts as {other}");
        warn("UnknownValue", message);
    }
    if !job.spec.ssh_path().starts_with('/') {
        let path = job.spec.ssh_path();
        let message = format!("spec.sshAuthMountPath: {path:?} is not absolute: the node mounts it below /");
        warn("RelativePath", message);
    }
    for entry in job.spec.mpi_replica_specs.iter().flat_map(BTreeMap::keys) {
        if !["Launcher", "Worker"].contains(&entry.as_str()) {
            let message = format!("spec.mpiReplicaSpecs[{entry}] has no effect: the entries are Launcher and Worker");
            warn("NoEffect", message);
        }
    }
    let policy = job.spec.run_policy.as_ref().and_then(|policy| policy.scheduling_policy.as_ref());
    let least = policy.and_then(|policy| policy["minAvailable"].as_i64());
    warnings.extend(warn_of_gang(spec::MIN_AVAILABLE.path, least, job.spec.workers() + 1));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{foo, job, parsed, pi};
    use serde_json::Value;
    use troupe_plugin::testkit;

    fn planned(spec: &Value) -> JobPlan {
        plan(&job("pi", spec)).unwrap()
    }

    fn role<'a>(plan: &'a JobPlan, name: &str) -> &'a Role {
        plan.roles.iter().find(|role| role.name == name).unwrap()
    }

    /// Returns the text that the host expands for this replica of pi.
    fn filled(pieces: &[Piece], index: i32) -> String {
        let fill = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Index(plus) => (index + plus).to_string(),
            Piece::JobName => "pi".into(),
            Piece::PodName => format!("pi-worker-{index}"),
            Piece::PeerIp(_) | Piece::PeerHost(_) | Piece::Attempt => panic!("no name depends on it"),
        };
        pieces.iter().map(fill).collect()
    }

    fn replica_index(plan: &JobPlan, index: i32) -> String {
        let (label, value) = &role(plan, "worker").labels[0];
        assert_eq!(label, "training.kubeflow.org/replica-index");
        filled(value, index)
    }

    // M01
    #[test]
    fn the_workers_of_pi_are_pods_and_its_launcher_is_a_job() {
        let plan = planned(&pi());
        let names: Vec<_> = plan.roles.iter().map(|role| role.name.as_str()).collect();
        assert_eq!(names, ["worker", "launcher"]);
        let worker = role(&plan, "worker");
        assert_eq!((worker.replicas, &worker.backing), (2, &Backing::Pods));
        assert_eq!(filled(&worker.pod_name, 1), "pi-worker-1");
        assert_eq!(filled(worker.hostname.as_ref().unwrap(), 1), "pi-worker-1");
        assert_eq!(filled(worker.subdomain.as_ref().unwrap(), 1), "pi");
        assert_eq!([replica_index(&plan, 0), replica_index(&plan, 1)], ["0", "1"]);
        let launcher = role(&plan, "launcher");
        assert_eq!((launcher.replicas, filled(&launcher.pod_name, 0)), (1, "pi-launcher".into()));
        assert_eq!(filled(launcher.hostname.as_ref().unwrap(), 0), "pi-launcher");
        assert_eq!(filled(launcher.subdomain.as_ref().unwrap(), 0), "pi");
        let Backing::Job(body) = &launcher.backing else { panic!("not a Job") };
        assert_eq!(parsed(body)["metadata"]["labels"], json!({ "app": "pi" }));
        assert!(launcher.after.is_empty() && launcher.labels.is_empty());
        assert!(plan.warnings.is_empty());
    }

    // M01
    #[test]
    fn the_service_of_pi_finds_all_its_pods() {
        let plan = planned(&pi());
        let service = &plan.objects[0];
        assert_eq!((&*service.kind, filled(&service.name, 0)), ("Service", "pi".into()));
        let Body::Fixed((body, fill)) = &service.body else { panic!("not fixed") };
        let expected = json!({
            "metadata": { "labels": { "app": "pi" } },
            "spec": {
                "clusterIP": "None",
                "selector": {
                    "training.kubeflow.org/operator-name": "mpi-operator",
                    "training.kubeflow.org/job-name": "pi",
                },
                "publishNotReadyAddresses": true,
            },
        });
        assert_eq!((parsed(body), fill.len()), (expected, 0));
    }

    // M01
    #[test]
    fn the_config_map_follows_its_data_and_the_keys_are_made_once() {
        let plan = planned(&pi());
        let config = &plan.objects[1];
        assert_eq!((&*config.key, filled(&config.name, 0), &config.body), ("config", "pi-config".into(), &Body::Bound));
        assert_eq!(config.upkeep, Upkeep::Follow(vec!["/data".into()]));
        let [keys] = &plan.secrets[..] else { panic!("not one secret") };
        assert_eq!(
            (&*keys.key, filled(&keys.name, 0), &*keys.secret_type),
            ("ssh", "pi-ssh".into(), "kubernetes.io/ssh-auth")
        );
        assert_eq!((&*keys.private_key, &*keys.public_key), ("ssh-privatekey", "ssh-publickey"));
        assert_eq!(keys.labels, [("app".to_owned(), "pi".to_owned())]);
    }

    // M07 for a finished job, M10 and its Better for a suspended one
    #[test]
    fn the_clean_pod_policy_applies_to_finished_jobs_and_suspension_deletes_all_pods() {
        let cases = [
            (json!({}), Clean::Keep),
            (json!({ "cleanPodPolicy": "None" }), Clean::Keep),
            (json!({ "cleanPodPolicy": null }), Clean::Keep),
            (json!({ "cleanPodPolicy": "Running" }), Clean::Active),
            (json!({ "cleanPodPolicy": "All" }), Clean::All),
        ];
        for (run_policy, finished) in cases {
            let policy = plan(&foo(&json!({ "runPolicy": run_policy }))).unwrap().policy;
            assert_eq!((policy.clean_on_success, policy.clean_on_failure), (finished, finished), "{run_policy}");
            assert_eq!(policy.clean_on_suspend, Clean::All);
        }
    }

    // M08: the host suspends; a suspended job has the same plan as a resumed job
    #[test]
    fn suspension_does_not_change_the_plan() {
        let mut spec = pi();
        spec["runPolicy"]["suspend"] = json!(true);
        assert_eq!(planned(&spec), planned(&pi()));
    }

    // M11
    #[test]
    fn any_policy_except_at_startup_delays_the_launcher_until_the_workers_are_ready() {
        let gate = pods_are("worker", Reached::Ready);
        for (policy, expected) in
            [("AtStartup", vec![]), ("", vec![]), ("WaitForWorkersReady", vec![gate.clone()]), ("Whatever", vec![gate])]
        {
            let mut spec = pi();
            spec["launcherCreationPolicy"] = json!(policy);
            assert_eq!(role(&planned(&spec), "launcher").after, expected, "{policy}");
        }
        let mut spec = pi();
        spec["launcherCreationPolicy"] = json!("WaitForWorkersReady");
        spec["mpiReplicaSpecs"]["Worker"] = json!(null);
        let plan = planned(&spec);
        assert!(role(&plan, "worker").replicas == 0 && role(&plan, "launcher").after.is_empty());
    }

    // M12; its Better, which pods are deleted, follows from replicas and pod-name: the label does not matter
    #[test]
    fn with_a_launcher_that_is_a_host_the_workers_count_from_one() {
        let mut spec = pi();
        spec["runLauncherAsWorker"] = json!(true);
        let plan = planned(&spec);
        assert_eq!([replica_index(&plan, 0), replica_index(&plan, 1)], ["1", "2"]);
        assert_eq!(filled(&role(&plan, "worker").pod_name, 0), "pi-worker-0");
        spec["mpiReplicaSpecs"]["Worker"] = json!(null);
        assert_eq!(role(&planned(&spec), "worker").replicas, 0);
    }

    // M17
    #[test]
    fn an_invalid_job_has_no_plan() {
        let mut spec = pi();
        spec["mpiReplicaSpecs"]["Worker"]["replicas"] = json!(0);
        assert!(matches!(plan(&job("pi", &spec)), Err(Refusal::Invalid(errors)) if errors.len() == 1));
    }

    #[test]
    fn more_workers_than_a_hostfile_can_hold_are_refused() {
        let mut spec = pi();
        spec["mpiReplicaSpecs"]["Worker"]["replicas"] = json!(10_000);
        assert!(matches!(plan(&job(&"a".repeat(50), &spec)), Err(Refusal::Unsupported(_))));
    }

    // Better: the variables are those of an earlier Open MPI, and all ranks would run in the launcher without a word.
    #[test]
    fn variables_that_open_mpi_5_ignores_are_warned_of_with_what_it_reads() {
        let warnings = |implementation: &str, names: &[&str]| {
            let mut spec = pi();
            spec["mpiImplementation"] = json!(implementation);
            let env: Vec<_> = names.iter().map(|name| json!({ "name": name, "value": "1" })).collect();
            spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["env"] = json!(env);
            planned(&spec).warnings.into_iter().map(|event| event.message).collect::<Vec<_>>()
        };
        let agent = "Open MPI 5 ignores the launcher's variable OMPI_MCA_plm_rsh_agent and reads PRTE_MCA_plm_ssh_agent; set both";
        let tree =
            "Open MPI 5 ignores the launcher's variable OMPI_MCA_orte_tmpdir and reads PRTE_MCA_prte_tmpdir; set both";
        let names = ["OMPI_MCA_plm_rsh_agent", "OMPI_MCA_btl", "OMPI_MCA_plm_rsh_args", "OMPI_MCA_orte_tmpdir"];
        assert_eq!(warnings("OpenMPI", &names), [agent, tree]);
        assert!(warnings("OpenMPI", &["OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"]).is_empty());
        assert!(warnings("Intel", &names).is_empty());
    }

    #[test]
    fn a_restart_policy_in_the_launchers_template_is_overridden_with_a_warning() {
        let mut spec = pi();
        spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["restartPolicy"] = json!("Always");
        spec["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = json!("Never");
        let plan = planned(&spec);
        assert_eq!(plan.warnings[0].reason, "SetPodTemplateRestartPolicy");
        assert!(plan.warnings[0].warning);
        assert_eq!(testkit::template(&role(&plan, "launcher").template, &spec)["spec"]["restartPolicy"], "Never");
        spec = pi();
        spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["restartPolicy"] = json!("Always");
        assert!(planned(&spec).warnings.is_empty());
    }

    // Without a gang scheduler, schedulingPolicy is accepted and has no effect
    #[test]
    fn a_scheduling_policy_without_a_gang_scheduler_has_no_effect() {
        let mut spec = pi();
        spec["runPolicy"]["schedulingPolicy"] =
            json!({ "minAvailable": 2, "minResources": { "cpu": 1, "memory": "1Gi" } });
        assert_eq!(planned(&spec), planned(&pi()));
    }
}
