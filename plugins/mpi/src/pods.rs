//! The pod templates of launcher and workers.

use crate::MpiJob;
use crate::spec::ROOT_SSH;
use crate::validate::{Replicas, Valid};
use crate::{env, gang, hostfile};
use serde_json::{Map, Value, json};
use troupe_plugin::PodTemplate;
use troupe_plugin::types::{Refusal, Template};

pub(crate) const OPERATOR_NAME: &str = "training.kubeflow.org/operator-name";
pub(crate) const JOB_NAME: &str = "training.kubeflow.org/job-name";
pub(crate) const REPLICA_INDEX: &str = "training.kubeflow.org/replica-index";
pub(crate) const MPI_OPERATOR: &str = "mpi-operator";
const JOB_ROLE: &str = "training.kubeflow.org/job-role";

/// Returns the launcher's pod template.
pub(crate) fn launcher(job: &MpiJob, valid: &Valid<'_>) -> Result<Template, Refusal> {
    let mut template = common(job, &valid.launcher, "launcher")?;
    if job.spec.launcher_is_a_host() {
        template.label(REPLICA_INDEX, "0");
    }
    let mut container = template.first_container();
    env::launcher(&mut container, job, valid.implementation);
    container.push("volumeMounts", json!({ "name": "ssh-auth", "mountPath": job.spec.ssh_path() }));
    container.push("volumeMounts", json!({ "name": "mpi-job-config", "mountPath": "/etc/mpi" }));
    template.push("volumes", ssh_auth(job));
    template.push("volumes", mpi_job_config(job));
    Ok(template.into_template())
}

/// Returns the pod template of the workers, without the values that depend on the index.
pub(crate) fn worker(job: &MpiJob, worker: &Replicas<'_>) -> Result<Template, Refusal> {
    let mut template = common(job, worker, "worker")?;
    template.set("dnsConfig", dns_config(job, template.get("dnsConfig").unwrap_or_default()));
    let mut container = template.first_container();
    if container.lacks("command") && container.lacks("args") {
        container.set("command", json!(["/usr/sbin/sshd", "-De"]));
    }
    env::worker(&mut container);
    container.push("volumeMounts", json!({ "name": "ssh-auth", "mountPath": job.spec.ssh_path() }));
    template.push("volumes", ssh_auth(job));
    Ok(template.into_template())
}

fn common<'a>(job: &MpiJob, replicas: &Replicas<'a>, role: &str) -> Result<PodTemplate<'a>, Refusal> {
    let at = format!("/mpiReplicaSpecs/{}/template", replicas.entry);
    let mut template = PodTemplate::from_user(Some(replicas.template), &at)?;
    template.label(OPERATOR_NAME, MPI_OPERATOR);
    template.label(JOB_NAME, job.name());
    template.label(JOB_ROLE, role);
    if template.get("hostNetwork") == Some(true) {
        template.set("dnsPolicy", "ClusterFirstWithHostNet");
    }
    template.set("restartPolicy", replicas.restart_policy);
    gang::mark(job, &mut template);
    Ok(template)
}

/// Returns the user's DNS settings with the job's subdomain as the last search domain, so that workers find each other
/// by short names.
fn dns_config(job: &MpiJob, mut config: Map<String, Value>) -> Map<String, Value> {
    let mut searches = config.get("searches").and_then(Value::as_array).cloned().unwrap_or_default();
    let domain = if job.config.cluster_domain.is_empty() { "cluster.local" } else { &job.config.cluster_domain };
    searches.push(format!("{}.{}.svc.{domain}", job.name(), job.namespace()).into());
    config.insert("searches".to_owned(), searches.into());
    config
}

fn ssh_auth(job: &MpiJob) -> Value {
    let mut secret = json!({
        "secretName": format!("{}-ssh", job.name()),
        "items": [
            { "key": "ssh-privatekey", "path": "id_rsa" },
            { "key": "ssh-publickey", "path": "id_rsa.pub" },
            { "key": "ssh-publickey", "path": "authorized_keys" },
        ],
    });
    if job.spec.ssh_path() == ROOT_SSH {
        secret["defaultMode"] = json!(0o600);
    }
    json!({ "name": "ssh-auth", "secret": secret })
}

fn mpi_job_config(job: &MpiJob) -> Value {
    let items = json!([
        { "key": hostfile::HOSTFILE, "path": hostfile::HOSTFILE, "mode": 0o444 },
        { "key": hostfile::DISCOVER_HOSTS, "path": hostfile::DISCOVER_HOSTS, "mode": 0o555 },
    ]);
    json!({ "name": "mpi-job-config", "configMap": { "name": hostfile::name(job), "items": items } })
}

#[cfg(test)]
mod tests {
    use crate::MpiJob;
    use crate::fixtures::{env, foo, job, parsed, pi, with_domain};
    use crate::validate::validate;
    use serde_json::{Value, json};
    use troupe_plugin::testkit;
    use troupe_plugin::types::Template;

    /// Returns the template after the edits, as the host applies them.
    fn made(job: &MpiJob, template: &Template) -> Value {
        testkit::template(template, &parsed(&job.view.spec))
    }

    fn launcher(job: &MpiJob) -> Value {
        made(job, &super::launcher(job, &validate(job).unwrap()).unwrap())
    }

    fn worker(job: &MpiJob) -> Value {
        made(job, &super::worker(job, validate(job).unwrap().worker.as_ref().unwrap()).unwrap())
    }

    // M01
    #[test]
    fn a_worker_of_pi_runs_sshd_with_the_keys_of_its_job() {
        let worker = worker(&job("pi", &pi()));
        let labels = json!({
            "training.kubeflow.org/operator-name": "mpi-operator",
            "training.kubeflow.org/job-name": "pi",
            "training.kubeflow.org/job-role": "worker",
        });
        assert_eq!(worker["metadata"], json!({ "labels": labels }));
        let volume = json!({ "name": "ssh-auth", "secret": { "secretName": "pi-ssh", "items": [
            { "key": "ssh-privatekey", "path": "id_rsa" },
            { "key": "ssh-publickey", "path": "id_rsa.pub" },
            { "key": "ssh-publickey", "path": "authorized_keys" },
        ] } });
        let container = json!({
            "name": "mpi-worker",
            "image": "mpi-pi",
            "command": ["/usr/sbin/sshd"],
            "args": ["-De", "-f", "/home/mpiuser/.sshd_config"],
            "resources": { "limits": { "cpu": 1, "memory": "1Gi" } },
            "env": [{ "name": "K_MPI_JOB_ROLE", "value": "worker" }],
            "volumeMounts": [{ "name": "ssh-auth", "mountPath": "/home/mpiuser/.ssh" }],
        });
        let spec = json!({
            "containers": [container],
            "volumes": [volume],
            "restartPolicy": "Never",
            "dnsConfig": { "searches": ["pi.default.svc.cluster.local"] },
        });
        assert_eq!(worker["spec"], spec);
    }

    // M01 and its Better: the order of the variables is guaranteed
    #[test]
    fn the_launcher_of_pi_has_the_hostfile_variables_of_open_mpi_4_and_5() {
        let launcher = launcher(&job("pi", &pi()));
        let expected = [
            ("K_MPI_JOB_ROLE", "launcher"),
            ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
            ("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"),
            ("OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"),
            ("OMPI_MCA_orte_set_default_slots", "1"),
            ("PRTE_MCA_prte_default_hostfile", "/etc/mpi/hostfile"),
            ("PRTE_MCA_prte_set_default_slots", "1"),
            ("PRTE_MCA_plm_ssh_args", "-o ConnectionAttempts=10"),
            ("PRTE_MCA_plm_ssh_no_tree_spawn", "1"),
            ("PRTE_MCA_prte_keep_fqdn_hostnames", "true"),
            ("NVIDIA_VISIBLE_DEVICES", ""),
            ("NVIDIA_DRIVER_CAPABILITIES", ""),
        ];
        assert_eq!(env(&launcher), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(launcher["metadata"]["labels"]["training.kubeflow.org/job-role"], "launcher");
        assert!(launcher["metadata"]["labels"].get("training.kubeflow.org/replica-index").is_none());
        assert_eq!(launcher["spec"]["restartPolicy"], "OnFailure");
        let mounts = json!([
            { "name": "ssh-auth", "mountPath": "/home/mpiuser/.ssh" },
            { "name": "mpi-job-config", "mountPath": "/etc/mpi" },
        ]);
        assert_eq!(launcher["spec"]["containers"][0]["volumeMounts"], mounts);
        let config = json!({ "name": "mpi-job-config", "configMap": { "name": "pi-config", "items": [
            { "key": "hostfile", "path": "hostfile", "mode": 292 },
            { "key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 365 },
        ] } });
        assert_eq!(launcher["spec"]["volumes"][0]["name"], "ssh-auth");
        assert_eq!(launcher["spec"]["volumes"][1], config);
        assert!(launcher["spec"].get("dnsConfig").is_none());
    }

    // M02
    #[test]
    fn a_job_without_optional_fields_gets_sshd_for_root() {
        let job = foo(&json!({}));
        let worker = worker(&job);
        let container = &worker["spec"]["containers"][0];
        assert_eq!(container["command"], json!(["/usr/sbin/sshd", "-De"]));
        assert_eq!(container["volumeMounts"], json!([{ "name": "ssh-auth", "mountPath": "/root/.ssh" }]));
        assert_eq!(worker["spec"]["volumes"][0]["secret"]["defaultMode"], 384);
        assert_eq!(worker["spec"]["restartPolicy"], "Never");
        let launcher = launcher(&job);
        assert_eq!(launcher["spec"]["restartPolicy"], "OnFailure");
        assert!(launcher["spec"]["containers"][0].get("command").is_none());
    }

    // M12
    #[test]
    fn a_launcher_that_is_a_host_is_replica_zero_and_keeps_its_gpus() {
        let launcher = launcher(&foo(&json!({ "runLauncherAsWorker": true })));
        assert_eq!(launcher["metadata"]["labels"]["training.kubeflow.org/replica-index"], "0");
        let env = env(&launcher);
        assert!(env.iter().all(|(name, _)| !name.starts_with("NVIDIA")));
        assert!(env.contains(&("PRTE_MCA_prte_keep_fqdn_hostnames".into(), "false".into())));
    }

    // M13
    #[test]
    fn intel_and_mpich_have_their_own_variables() {
        let nvidia = ["NVIDIA_VISIBLE_DEVICES=", "NVIDIA_DRIVER_CAPABILITIES="];
        let intel = [
            "K_MPI_JOB_ROLE=launcher",
            "I_MPI_HYDRA_HOST_FILE=/etc/mpi/hostfile",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS=-o ConnectionAttempts=10",
            "I_MPI_PERHOST=5",
        ];
        let mpich = [
            "K_MPI_JOB_ROLE=launcher",
            "HYDRA_HOST_FILE=/etc/mpi/hostfile",
            "HYDRA_LAUNCH_EXTRA_ARGS=-o ConnectionAttempts=10",
            "HYDRA_LAUNCHER_EXTRA_ARGS=-o ConnectionAttempts=10",
        ];
        for (implementation, expected) in [("Intel", &intel[..]), ("MPICH", &mpich[..])] {
            let job = foo(&json!({ "mpiImplementation": implementation, "slotsPerWorker": 5 }));
            let env: Vec<_> = env(&launcher(&job)).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(env, [expected, &nvidia[..]].concat());
        }
    }

    // M13: `command:` without a value, and args
    #[test]
    fn a_worker_with_args_and_a_null_command_runs_the_entrypoint_of_its_image() {
        let mut spec = pi();
        let container = spec.pointer_mut("/mpiReplicaSpecs/Worker/template/spec/containers/0").unwrap();
        container["command"] = json!(null);
        let worker = worker(&job("pi", &spec));
        assert_eq!(worker["spec"]["containers"][0]["command"], json!(null));
        assert_eq!(worker["spec"]["containers"][0]["args"][0], "-De");
    }

    // M14
    #[test]
    fn host_network_and_the_clusters_domain_reach_the_pods() {
        let mut spec = pi();
        for role in ["Launcher", "Worker"] {
            spec["mpiReplicaSpecs"][role]["template"]["spec"]["hostNetwork"] = json!(true);
            spec["mpiReplicaSpecs"][role]["template"]["spec"]["dnsPolicy"] = json!("Default");
        }
        spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["dnsConfig"] =
            json!({ "searches": ["mine"], "options": [{ "name": "ndots" }] });
        let job = with_domain("kube.local", &spec);
        assert_eq!(launcher(&job)["spec"]["dnsPolicy"], "ClusterFirstWithHostNet");
        let worker = worker(&job);
        assert_eq!(worker["spec"]["dnsPolicy"], "ClusterFirstWithHostNet");
        let expected = json!({ "searches": ["mine", "pi.default.svc.kube.local"], "options": [{ "name": "ndots" }] });
        assert_eq!(worker["spec"]["dnsConfig"], expected);
    }

    #[test]
    fn a_users_prte_and_nvidia_variables_are_kept_and_precede_the_others() {
        let mut spec = pi();
        let user = json!([
            { "name": "NVIDIA_VISIBLE_DEVICES", "value": "all" },
            { "name": "PRTE_MCA_plm_ssh_args", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
            { "name": "K_MPI_JOB_ROLE", "value": "mine" },
        ]);
        spec.pointer_mut("/mpiReplicaSpecs/Launcher/template/spec/containers/0").unwrap()["env"] = user;
        let names: Vec<_> = env(&launcher(&job("pi", &spec))).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[..4], ["NVIDIA_VISIBLE_DEVICES", "PRTE_MCA_plm_ssh_args", "K_MPI_JOB_ROLE", "K_MPI_JOB_ROLE"]);
        for name in ["NVIDIA_VISIBLE_DEVICES", "PRTE_MCA_plm_ssh_args"] {
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1);
        }
    }

    #[test]
    fn only_the_first_container_is_edited_and_labels_of_the_plugin_replace_the_users() {
        let mut spec = pi();
        let template = spec.pointer_mut("/mpiReplicaSpecs/Worker/template").unwrap();
        template["metadata"] = json!({ "labels": { "training.kubeflow.org/job-name": "x", "a": "b" } });
        template["spec"]["containers"].as_array_mut().unwrap().push(json!({ "name": "side" }));
        template["spec"]["initContainers"] = json!([{ "name": "init" }]);
        let worker = worker(&job("pi", &spec));
        assert_eq!(worker["spec"]["containers"][1], json!({ "name": "side" }));
        assert_eq!(worker["spec"]["initContainers"], json!([{ "name": "init" }]));
        assert_eq!(worker["metadata"]["labels"]["training.kubeflow.org/job-name"], "pi");
        assert_eq!(worker["metadata"]["labels"]["a"], "b");
    }
}
