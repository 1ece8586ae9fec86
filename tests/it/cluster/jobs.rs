//! Manifests of jobs, one word per deviation from the plainest.

use serde_json::{Value, json};

/// A PaddleJob without any role.
#[derive(Clone)]
pub(crate) struct Paddle {
    pub(crate) name: String,
    pub(crate) manifest: Value,
}

pub(crate) fn paddle(name: &str) -> Paddle {
    let manifest = json!({
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": { "name": name },
        "spec": {},
    });
    Paddle { name: name.to_owned(), manifest }
}

impl Paddle {
    pub(crate) fn ps(self, replicas: u32) -> Self {
        self.role("ps", replicas)
    }

    pub(crate) fn worker(self, replicas: u32) -> Self {
        self.role("worker", replicas)
    }

    pub(crate) fn gloo(mut self) -> Self {
        self.manifest["spec"]["withGloo"] = json!(1);
        self
    }

    pub(crate) fn policy(mut self, policy: &str) -> Self {
        self.manifest["spec"]["cleanPodPolicy"] = json!(policy);
        self
    }

    /// Its pods run this long and succeed.
    pub(crate) fn runs(self, time: &str) -> Self {
        self.annotated(harness::RUN_FOR, time)
    }

    /// Its pods fail in the end.
    pub(crate) fn fails(self) -> Self {
        self.annotated(harness::EXIT_CODE, "1")
    }

    /// Nobody schedules its pods: what becomes of them is the test's to say.
    pub(crate) fn by_hand(self) -> Self {
        self.on_templates(|template| template["spec"]["schedulerName"] = json!("nobody"))
    }

    /// Every pod runs this command in this image, which the node has.
    pub(crate) fn of(self, image: &harness::images::Image, command: &[&str]) -> Self {
        self.on_templates(|template| {
            let container = &mut template["spec"]["containers"][0];
            container["image"] = json!(image.name());
            container["imagePullPolicy"] = json!("Never");
            container["command"] = json!(command);
        })
    }

    fn role(mut self, role: &str, replicas: u32) -> Self {
        let container =
            json!({ "name": "paddle", "image": "docker.io/local/paddle:1", "command": ["python", "train.py"] });
        self.manifest["spec"][role] =
            json!({ "replicas": replicas, "template": { "metadata": {}, "spec": { "containers": [container] } } });
        self
    }

    fn annotated(self, key: &str, value: &str) -> Self {
        self.on_templates(|template| template["metadata"]["annotations"][key] = json!(value))
    }

    fn on_templates(mut self, edit: impl Fn(&mut Value)) -> Self {
        for role in ["ps", "worker"] {
            if let Some(template) = self.manifest["spec"].get_mut(role).map(|role| &mut role["template"]) {
                edit(template);
            }
        }
        self
    }
}

/// An MPIJob with a launcher and two workers.
#[derive(Clone)]
pub(crate) struct Mpi {
    pub(crate) manifest: Value,
}

pub(crate) fn mpi(name: &str) -> Mpi {
    let role = |replicas: u32, container: Value| json!({ "replicas": replicas, "template": { "metadata": {}, "spec": { "containers": [container] } } });
    let image = "docker.io/local/openmpi:1";
    let launcher = json!({ "name": "launcher", "image": image, "command": ["mpirun", "-n", "2", "pi"] });
    let manifest = json!({
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": { "name": name },
        "spec": { "mpiReplicaSpecs": {
            "Launcher": role(1, launcher),
            "Worker": role(2, json!({ "name": "worker", "image": image })),
        } },
    });
    Mpi { manifest }
}

impl Mpi {
    pub(crate) fn workers(mut self, replicas: u32) -> Self {
        self.manifest["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = json!(replicas);
        self
    }

    /// `cleanPodPolicy: Running`.
    pub(crate) fn cleaned(self) -> Self {
        self.run_policy("cleanPodPolicy", json!("Running"))
    }

    pub(crate) fn run_policy(mut self, field: &str, value: Value) -> Self {
        self.manifest["spec"]["runPolicy"][field] = value;
        self
    }

    /// Its launcher runs this long and succeeds; its workers run until they are deleted.
    pub(crate) fn runs(mut self, time: &str) -> Self {
        self.template("Launcher")["metadata"]["annotations"][harness::RUN_FOR] = json!(time);
        self
    }

    /// Nobody schedules its pods: what becomes of them is the test's to say.
    pub(crate) fn by_hand(mut self) -> Self {
        for role in ["Launcher", "Worker"] {
            self.template(role)["spec"]["schedulerName"] = json!("nobody");
        }
        self
    }

    /// As the published pi.yaml: another user, and what comes with it.
    pub(crate) fn of_mpiuser(mut self) -> Self {
        self.manifest["spec"]["slotsPerWorker"] = json!(1);
        self.manifest["spec"]["sshAuthMountPath"] = json!("/home/mpiuser/.ssh");
        let worker = &mut self.template("Worker")["spec"]["containers"][0];
        worker["command"] = json!(["/usr/sbin/sshd"]);
        worker["args"] = json!(["-De", "-f", "/home/mpiuser/.sshd_config"]);
        worker["resources"] = json!({ "limits": { "cpu": 1, "memory": "1Gi" } });
        self
    }

    /// Every pod runs this image, which the node has; no command is said for the workers.
    pub(crate) fn on_image(mut self, image: &str) -> Self {
        for role in ["Launcher", "Worker"] {
            let container = &mut self.template(role)["spec"]["containers"][0];
            container["image"] = json!(image);
            container["imagePullPolicy"] = json!("Never");
        }
        self
    }

    fn template(&mut self, role: &str) -> &mut Value {
        &mut self.manifest["spec"]["mpiReplicaSpecs"][role]["template"]
    }
}
