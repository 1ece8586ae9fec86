//! A node runs real pods, and leaves nothing behind.

use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::{LogParams, PostParams};
use serde_json::Value;

use super::*;
use crate::Options;

const JOB: Duration = Duration::from_secs(60);

struct World {
    node: Node,
    client: Client,
    _control_plane: ControlPlane,
}

async fn world() -> World {
    let control_plane = ControlPlane::start(Options::default().scheduler()).await.unwrap();
    let node = Node::start(&control_plane).await.unwrap();
    let client = control_plane.client("user").await.unwrap();
    World { node, client, _control_plane: control_plane }
}

impl World {
    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    async fn create(&self, name: &str, image: &Image, spec: Value, container: Value) {
        let mut pod = json!({"metadata": {"name": name, "labels": {"app": "test"}}, "spec": spec});
        pod["spec"]["restartPolicy"] = "Never".into();
        pod["spec"]["containers"] = json!([container]);
        pod["spec"]["containers"][0]["name"] = "main".into();
        pod["spec"]["containers"][0]["image"] = image.name().into();
        pod["spec"]["containers"][0]["imagePullPolicy"] = "Never".into();
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    }

    /// The output of a pod that succeeds.
    async fn succeeded(&self, name: &str) -> String {
        let ended = until(JOB, format!("pod/{name} to end"), || async {
            let pod = self.pods().get(name).await?;
            let phase = pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
            Ok(matches!(phase.as_str(), "Succeeded" | "Failed").then_some((pod, phase)))
        });
        let (pod, phase) = ended.await.unwrap();
        let logs = self.node.logs(&pod, "main").unwrap();
        assert_eq!(phase, "Succeeded", "{logs}");
        logs
    }
}

fn key_secret(dir: &Path) -> Secret {
    packages::have(packages::SSH).unwrap();
    let key = dir.join("id_rsa");
    output(Command::new("ssh-keygen").args(["-q", "-t", "ecdsa", "-N", "", "-f"]).arg(&key)).unwrap();
    let (private, public) = (fs::read_to_string(&key).unwrap(), fs::read_to_string(key.with_extension("pub")).unwrap());
    let files = json!({"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public});
    serde_json::from_value(json!({"metadata": {"name": "keys"}, "stringData": files})).unwrap()
}

#[tokio::test]
#[cfg_attr(lacks_node, ignore = "needs Go, openssl, apt and root")]
async fn a_pod_runs_to_its_end_on_a_real_node_which_leaves_nothing_behind() {
    let world = world().await;
    let image = Image::busybox().unwrap();
    world.node.import_image(image.archive()).unwrap();
    world.create("hello", &image, json!({}), json!({"args": ["-c", "echo hello from $(hostname)"]})).await;
    assert_eq!(world.succeeded("hello").await, "hello from hello\n");
    assert_eq!(world.pods().logs("hello", &LogParams::default()).await.unwrap(), "hello from hello\n");
    world.node.stop().await.unwrap();
}

#[tokio::test]
#[cfg_attr(lacks_node, ignore = "needs Go, openssl, apt and root")]
async fn mpi_ranks_run_on_different_hosts_over_ssh_and_service_names() {
    let image = Image::openmpi().unwrap();
    let world = world().await;
    world.node.import_image(image.archive()).unwrap();

    let service = json!({"metadata": {"name": "pi"}, "spec": {"clusterIP": "None", "publishNotReadyAddresses": true, "selector": {"app": "test"}}});
    let services = Api::<Service>::default_namespaced(world.client.clone());
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    let secrets = Api::<Secret>::default_namespaced(world.client.clone());
    secrets.create(&PostParams::default(), &key_secret(world.node.dir())).await.unwrap();

    let spec = |hostname: &str| {
        let volume = json!({"name": "ssh", "secret": {"secretName": "keys", "defaultMode": 0o600}});
        json!({"hostname": hostname, "subdomain": "pi", "volumes": [volume]})
    };
    let mounts = json!([{"name": "ssh", "mountPath": "/root/.ssh"}]);
    let sshd = json!({"command": ["/usr/sbin/sshd", "-De"], "volumeMounts": mounts});
    for worker in ["pi-worker-0", "pi-worker-1"] {
        world.create(worker, &image, spec(worker), sshd.clone()).await;
    }
    // A name is served only some time after its pod runs, and a rank that starts before would fail the job.
    let run = "for host in pi-worker-0.pi pi-worker-1.pi; do until ssh -o ConnectTimeout=2 $host true; do sleep 0.2; done; done
        export OMPI_MCA_orte_keep_fqdn_hostnames=true
        exec mpirun --host pi-worker-0.pi,pi-worker-1.pi -np 2 pi";
    world
        .create(
            "pi-launcher",
            &image,
            spec("pi-launcher"),
            json!({"command": ["sh", "-c", run], "volumeMounts": mounts}),
        )
        .await;

    let printed = world.succeeded("pi-launcher").await;
    for line in ["rank 0 of 2 on pi-worker-0\n", "rank 1 of 2 on pi-worker-1\n", "pi is approximately 3.1416\n"] {
        assert!(printed.contains(line), "{printed}");
    }
    world.node.stop().await.unwrap();
}
