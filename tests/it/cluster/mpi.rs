//! MPIJobs behave as those of mpi-operator v2beta1: acceptance cases M01 to M06.

use super::{
    jobs::{Mpi, mpi},
    objects::{BATCH_JOBS, CONFIG_MAPS, MPI_JOBS, PODS, SECRETS, SERVICES, at, env, owner, text},
    played::{failed, launcher_pods, running, succeeded, unready},
    world::World,
};

use serde_json::{Value, json};

impl World {
    async fn run_mpi(&self, job: &Mpi) -> Value {
        self.create(&MPI_JOBS, &job.manifest).await
    }

    /// Once its conditions are these, as `Type=Status`, those of the host left out.
    async fn mpi_is(&self, name: &str, conditions: &[&str]) -> Value {
        self.is(&MPI_JOBS, name, &format!("{conditions:?}"), |job| order(job) == conditions).await
    }

    async fn replicas_are(&self, name: &str, launcher: &Value, worker: &Value) -> Value {
        let wanted = json!({ "Launcher": launcher, "Worker": worker });
        let seen = |job: &Value| at(job, "/status/replicaStatuses") == &wanted;
        self.is(&MPI_JOBS, name, &format!("counted as {wanted}"), seen).await
    }

    async fn discovers(&self, job: &str, hosts: &[&str]) -> Value {
        let script = hosts.iter().map(|host| format!("echo {host}\n")).collect::<String>();
        let script = format!("#!/bin/sh\n{script}");
        let seen = |map: &Value| text(map, "/data/discover_hosts.sh") == script;
        self.is(&CONFIG_MAPS, &format!("{job}-config"), &format!("discovering {hosts:?}"), seen).await
    }
}

fn order(job: &Value) -> Vec<String> {
    let conditions = at(job, "/status/conditions").as_array().into_iter().flatten();
    conditions.map(|one| format!("{}={}", text(one, "/type"), text(one, "/status"))).collect()
}

/// Reason and message of a condition.
fn condition<'a>(job: &'a Value, kind: &str) -> (&'a str, &'a str) {
    let found = of_type(job, kind);
    (text(found, "/reason"), text(found, "/message"))
}

fn of_type<'a>(job: &'a Value, kind: &str) -> &'a Value {
    let mut conditions = at(job, "/status/conditions").as_array().into_iter().flatten();
    conditions.find(|one| text(one, "/type") == kind).unwrap_or_else(|| panic!("no {kind} in {job:#}"))
}

// M01, M03 and M04.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn an_mpi_job_is_made_of_the_originals_objects_and_succeeds_with_its_launcher() {
    let world = World::shared("mpi-life").await;
    let operator = world.operator().await;
    let pi = mpi("pi").of_mpiuser().cleaned().run_policy("ttlSecondsAfterFinished", json!(1)).by_hand();
    let job = world.run_mpi(&pi).await;

    // M01: the first pass.
    let begun = world.replicas_are("pi", &json!({}), &json!({})).await;
    assert_eq!(order(&begun), ["Created=True"]);
    assert_eq!(condition(&begun, "Created"), ("MPIJobCreated", "MPIJob mpi-life/pi is created."));
    assert!(!text(&begun, "/status/startTime").is_empty());
    assert_eq!(at(&begun, "/status/completionTime"), &Value::Null);
    assert_objects(&world, &job).await;

    // M03: workers run, then the launcher.
    let launcher = &launcher_pods(&world, "pi", 1).await[0];
    world.discovers("pi", &[]).await;
    for worker in ["pi-worker-0", "pi-worker-1"] {
        world.set_status(&PODS, worker, &unready("worker")).await;
    }
    let workers = world.replicas_are("pi", &json!({}), &json!({ "active": 2 })).await;
    assert_eq!(order(&workers), ["Created=True"]);
    world.discovers("pi", &["pi-worker-0.pi.mpi-life.svc", "pi-worker-1.pi.mpi-life.svc"]).await;
    world.set_status(&PODS, launcher, &running("launcher")).await;
    let run = world.mpi_is("pi", &["Created=True", "Running=True"]).await;
    assert_eq!(condition(&run, "Running"), ("MPIJobRunning", "MPIJob mpi-life/pi is running."));
    world.replicas_are("pi", &json!({ "active": 1 }), &json!({ "active": 2 })).await;

    // M04: the launcher ends well.
    world.set_status(&PODS, launcher, &succeeded()).await;
    let done = world.mpi_is("pi", &["Created=True", "Running=False", "Succeeded=True"]).await;
    assert_eq!(condition(&done, "Succeeded"), ("MPIJobSucceeded", "MPIJob mpi-life/pi successfully completed."));
    assert_eq!(condition(&done, "Running").0, "MPIJobRunning");
    let transition = |job: &Value| text(of_type(job, "Running"), "/lastTransitionTime").to_owned();
    assert_eq!(transition(&done), transition(&run));
    assert!(!text(&done, "/status/completionTime").is_empty());
    assert_eq!(done["status"]["replicaStatuses"], json!({ "Launcher": { "succeeded": 1 }, "Worker": {} }));
    for worker in ["pi-worker-0", "pi-worker-1"] {
        world.is_gone(&PODS, worker).await;
    }
    // After its time to live the Job goes, and does not come back.
    world.is_gone(&BATCH_JOBS, "pi-launcher").await;
    for (kind, name) in [(&SERVICES, "pi"), (&CONFIG_MAPS, "pi-config"), (&SECRETS, "pi-ssh")] {
        assert!(!world.get(kind, name).await.unwrap().is_null(), "{name}");
    }
    let expected = [
        "Normal MPIJobCreated: MPIJob mpi-life/pi is created.",
        "Normal MPIJobRunning: MPIJob mpi-life/pi is running",
        "Normal MPIJobSucceeded: MPIJob mpi-life/pi successfully completed.",
    ];
    assert_eq!(world.events("MPIJob", "pi").await, expected);
    // A job submitted later is served after the Job was seen to go.
    world.run_mpi(&mpi("later").by_hand()).await;
    world.mpi_is("later", &["Created=True"]).await;
    assert_eq!(world.get(&BATCH_JOBS, "pi-launcher").await.unwrap(), Value::Null);
    assert_eq!(world.get(&MPI_JOBS, "pi").await.unwrap()["status"], done["status"]);
    operator.stop().await;
}

async fn assert_objects(world: &World, job: &Value) {
    let pods = "training.kubeflow.org";
    let label = |object: &Value, name: &str| at(object, &format!("/metadata/labels/{pods}~1{name}")).clone();
    let get = async |kind, name: &str| {
        let object = world.get(kind, name).await.unwrap();
        assert_eq!(object["metadata"]["ownerReferences"], owner(job), "{name}");
        object
    };
    let service = get(&SERVICES, "pi").await;
    assert_eq!((text(&service, "/metadata/labels/app"), text(&service, "/spec/clusterIP")), ("pi", "None"));
    let selector =
        json!({ "training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "pi" });
    assert_eq!(service["spec"]["selector"], selector);
    assert_eq!(
        (at(&service, "/spec/ports"), at(&service, "/spec/publishNotReadyAddresses")),
        (&Value::Null, &json!(true))
    );

    let map = get(&CONFIG_MAPS, "pi-config").await;
    let hosts = "pi-worker-0.pi.mpi-life.svc slots=1\npi-worker-1.pi.mpi-life.svc slots=1\n";
    assert_eq!(map["data"], json!({ "hostfile": hosts, "discover_hosts.sh": "#!/bin/sh\n" }));

    let secret = get(&SECRETS, "pi-ssh").await;
    assert_eq!((text(&secret, "/metadata/labels/app"), text(&secret, "/type")), ("pi", "kubernetes.io/ssh-auth"));
    assert_eq!(secret["data"].as_object().unwrap().keys().collect::<Vec<_>>(), ["ssh-privatekey", "ssh-publickey"]);
    assert_keys_match(world, &secret);

    let keys = |mode: u32| {
        let item = |key: &str, path: &str| json!({ "key": key, "path": path });
        let items = [
            item("ssh-privatekey", "id_rsa"),
            item("ssh-publickey", "id_rsa.pub"),
            item("ssh-publickey", "authorized_keys"),
        ];
        json!({ "name": "ssh-auth", "secret": { "secretName": "pi-ssh", "defaultMode": mode, "items": items } })
    };
    for index in 0..2 {
        let name = format!("pi-worker-{index}");
        let pod = get(&PODS, &name).await;
        for (key, value) in [
            ("operator-name", "mpi-operator"),
            ("job-name", "pi"),
            ("job-role", "worker"),
            ("replica-index", &index.to_string()),
        ] {
            assert_eq!(label(&pod, key), value);
        }
        let spec = &pod["spec"];
        assert_eq!((text(spec, "/hostname"), text(spec, "/subdomain")), (name.as_str(), "pi"));
        assert_eq!(spec["restartPolicy"], "Never");
        assert_eq!(spec["dnsConfig"]["searches"], json!(["pi.mpi-life.svc.cluster.local"]));
        assert_eq!(spec["volumes"], json!([keys(0o644)]));
        let container = &spec["containers"][0];
        assert_eq!(container["command"], json!(["/usr/sbin/sshd"]));
        assert_eq!(container["args"], json!(["-De", "-f", "/home/mpiuser/.sshd_config"]));
        assert_eq!(env(container), ["K_MPI_JOB_ROLE=worker"]);
        assert_eq!(container["volumeMounts"], json!([{ "name": "ssh-auth", "mountPath": "/home/mpiuser/.ssh" }]));
        assert_eq!(container["resources"]["limits"], json!({ "cpu": "1", "memory": "1Gi" }));
    }

    let launcher = get(&BATCH_JOBS, "pi-launcher").await;
    assert_eq!(text(&launcher, "/metadata/labels/app"), "pi");
    let spec = &launcher["spec"];
    let limits = (at(spec, "/ttlSecondsAfterFinished"), at(spec, "/backoffLimit"), at(spec, "/suspend"));
    assert_eq!(limits, (&json!(1), &json!(6), &json!(false)), "the last two are the API server's defaults");
    assert_eq!(spec["podReplacementPolicy"], "Failed");
    let template = &spec["template"];
    assert_eq!((label(template, "job-role"), label(template, "replica-index")), (json!("launcher"), Value::Null));
    let spec = &template["spec"];
    assert_eq!((text(spec, "/hostname"), text(spec, "/subdomain")), ("pi-launcher", "pi"));
    assert_eq!(spec["restartPolicy"], "OnFailure");
    let container = &spec["containers"][0];
    let expected = [
        "K_MPI_JOB_ROLE=launcher",
        "OMPI_MCA_orte_keep_fqdn_hostnames=true",
        "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
        "OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=10",
        "OMPI_MCA_orte_set_default_slots=1",
        "NVIDIA_VISIBLE_DEVICES=",
        "NVIDIA_DRIVER_CAPABILITIES=",
    ];
    // Better: Open MPI 5 reads variables of other names.
    let originals: Vec<_> = env(container).into_iter().filter(|entry| !entry.starts_with("PRTE_MCA_")).collect();
    assert_eq!(originals, expected);
    let mounts = json!([
        { "name": "ssh-auth", "mountPath": "/home/mpiuser/.ssh" },
        { "name": "mpi-job-config", "mountPath": "/etc/mpi" },
    ]);
    assert_eq!(container["volumeMounts"], mounts);
    let items = json!([
        { "key": "hostfile", "path": "hostfile", "mode": 0o444 },
        { "key": "discover_hosts.sh", "path": "discover_hosts.sh", "mode": 0o555 },
    ]);
    let config = json!({ "name": "pi-config", "items": items, "defaultMode": 0o644 });
    assert_eq!(spec["volumes"], json!([keys(0o644), { "name": "mpi-job-config", "configMap": config }]));
}

/// OpenSSH makes the public key of the private one.
fn assert_keys_match(world: &World, secret: &Value) {
    use std::os::unix::fs::OpenOptionsExt;
    let decoded = |key: &str| {
        let encoded: k8s_openapi::ByteString = serde_json::from_value(secret["data"][key].clone()).unwrap();
        String::from_utf8(encoded.0).unwrap()
    };
    let path = world.plane.dir().join("id_ecdsa");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    std::io::Write::write_all(&mut file, decoded("ssh-privatekey").as_bytes()).unwrap();
    let done = std::process::Command::new("ssh-keygen").arg("-y").arg("-f").arg(&path).output();
    let public = decoded("ssh-publickey");
    assert!(public.starts_with("ecdsa-sha2-nistp521 ") && public.ends_with('\n'), "{public}");
    // Not every machine that can run a control plane has OpenSSH.
    if let Ok(done) = done {
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(String::from_utf8(done.stdout).unwrap().trim(), public.trim());
    }
}

// M02.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn an_mpi_job_gets_the_originals_defaults_and_keeps_its_workers() {
    let world = World::shared("mpi-defaults").await;
    let operator = world.operator().await;
    world.run_mpi(&mpi("foo").workers(1).runs("3s")).await;
    let done = world.mpi_is("foo", &["Created=True", "Running=False", "Succeeded=True"]).await;
    assert_eq!(done["spec"]["sshAuthMountPath"], "/root/.ssh");
    let worker = world.get(&PODS, "foo-worker-0").await.unwrap();
    assert_eq!(at(&worker, "/status/phase"), "Running", "cleanPodPolicy is None");
    let container = &worker["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["/usr/sbin/sshd", "-De"]));
    assert_eq!(text(container, "/volumeMounts/0/mountPath"), "/root/.ssh");
    assert_eq!(at(&worker, "/spec/volumes/0/secret/defaultMode"), 384);
    let launcher = world.get(&BATCH_JOBS, "foo-launcher").await.unwrap();
    let policies = (text(&launcher, "/spec/template/spec/restartPolicy"), text(&worker, "/spec/restartPolicy"));
    assert_eq!(policies, ("OnFailure", "Never"));
    let map = world.get(&CONFIG_MAPS, "foo-config").await.unwrap();
    assert_eq!(map["data"]["hostfile"], "foo-worker-0.foo.mpi-defaults.svc slots=1\n");
    operator.stop().await;
}

// M05.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn an_mpi_job_that_was_never_seen_running_says_so() {
    let world = World::shared("mpi-unseen").await;
    let operator = world.operator().await;
    world.run_mpi(&mpi("pi").by_hand()).await;
    let launcher = &launcher_pods(&world, "pi", 1).await[0];
    world.set_status(&PODS, launcher, &succeeded()).await;
    let done = world.mpi_is("pi", &["Created=True", "Succeeded=True", "Running=False"]).await;
    let message = "MPIJob mpi-unseen/pi is finished but Running condition was never set.";
    assert_eq!(condition(&done, "Running"), ("MPIJobRunning", message));
    let ended = world.get(&BATCH_JOBS, "pi-launcher").await.unwrap();
    let at_end = text(&ended, "/status/completionTime");
    assert_eq!(text(&done, "/status/completionTime"), at_end);
    assert_eq!(text(of_type(&done, "Running"), "/lastTransitionTime"), at_end);
    operator.stop().await;
}

// M06.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_launcher_that_is_tried_again_fails_its_job_only_when_it_is_given_up() {
    let world = World::shared("mpi-retry").await;
    let operator = world.operator().await;
    world.run_mpi(&mpi("pi").cleaned().run_policy("backoffLimit", json!(1)).by_hand()).await;
    let first = launcher_pods(&world, "pi", 1).await.remove(0);
    for worker in ["pi-worker-0", "pi-worker-1"] {
        world.set_status(&PODS, worker, &running("worker")).await;
    }
    world.set_status(&PODS, &first, &running("launcher")).await;
    world.mpi_is("pi", &["Created=True", "Running=True"]).await;

    // A launcher pod that fails is no failure of the job.
    let why = |number: u32, message: &str| {
        let mut status = failed();
        status["reason"] = json!(format!("FailedReason{number}"));
        status["message"] = json!(message);
        status
    };
    world.set_status(&PODS, &first, &why(1, "first message")).await;
    let retried = world.replicas_are("pi", &json!({ "failed": 1 }), &json!({ "active": 2 })).await;
    assert_eq!(order(&retried), ["Created=True", "Running=True"]);

    // The Job controller gives up after the second.
    let second = launcher_pods(&world, "pi", 2).await.remove(1);
    world.set_status(&PODS, &second, &why(2, "second message")).await;
    let given_up = world.mpi_is("pi", &["Created=True", "Running=False", "Failed=True"]).await;
    let (reason, message) =
        ("BackoffLimitExceeded/FailedReason2", "Job has reached the specified backoff limit: second message");
    assert_eq!(condition(&given_up, "Failed"), (reason, message));
    assert!(!text(&given_up, "/status/completionTime").is_empty());
    assert_eq!(given_up["status"]["replicaStatuses"], json!({ "Launcher": { "failed": 2 }, "Worker": {} }));
    for worker in ["pi-worker-0", "pi-worker-1"] {
        world.is_gone(&PODS, worker).await;
    }
    let told = world.events("MPIJob", "pi").await;
    assert_eq!(told.last().unwrap(), &format!("Warning {reason}: {message}"));
    operator.stop().await;
}
