//! The chart and the image on a real node: the operator in a Deployment, as users have it.

use super::{
    mpi::pi,
    world::{World, built},
};
use crate::{
    cluster::{
        deploy::HOST,
        jobs::{Paddle, paddle},
        objects::{DEPLOYMENTS, LEASES, MPI_JOBS, PADDLE_JOBS, PODS, at, text},
    },
    operator,
};
use harness::{images::Image, release};
use kube::api::DeleteParams;
use sandbox::Plugins;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_node, ignore = "needs Go, openssl, apt and root")]
async fn jobs_run_to_their_end_through_a_deployment_whose_leader_is_killed() {
    let archive = tokio::task::spawn_blocking(|| release::image_of(operator::binary())).await.unwrap().unwrap();
    no_job_notices_that_the_leader_is_killed(&archive).await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(lacks_image, ignore = "TROUPE_REQUIRE does not name image")]
async fn jobs_run_to_their_end_through_the_image_that_the_documented_command_writes() {
    let archive = tokio::task::spawn_blocking(release::image).await.unwrap().unwrap();
    no_job_notices_that_the_leader_is_killed(&archive).await;
}

async fn no_job_notices_that_the_leader_is_killed(archive: &Path) {
    let (openmpi, busybox) = (built(Image::openmpi).await, built(Image::busybox).await);
    // Without an init container, which would resolve names of Services.
    let world =
        World::installed(archive, vec![openmpi.clone(), busybox.clone()], &["pluginConfig.paddle.lean=true"]).await;
    is_confined();
    has_compiled_nothing();
    let gate = world.gate();
    world.create(&MPI_JOBS, &pi(&openmpi, Some(&gate))).await;
    world.create(&PADDLE_JOBS, &waits("wide", &busybox, &gate).manifest).await;
    world.computes(0).await;
    let runs = |job: &Value| text(job, "/status/phase") == "Running";
    world.becomes(&PADDLE_JOBS, "wide", "Running", runs).await;
    let before = world.uids().await;

    let leader = world.leader(None).await;
    world.kill(&leader).await;
    // While nobody serves.
    world.create(&PADDLE_JOBS, &waits("late", &busybox, &gate).manifest).await;
    world.leader(Some(&leader)).await;
    world.becomes(&PADDLE_JOBS, "late", "Running", runs).await;
    let during = world.uids().await;
    assert!(before.iter().all(|(name, uid)| during.get(name) == Some(uid)), "before: {before:?}, after: {during:?}");

    fs::write(&gate, "").unwrap();
    let log = world.succeeds().await;
    assert!(log.contains("pi is approximately 3.14"), "{log}");
    for job in ["wide", "late"] {
        let ended = |job: &Value| ["Completed", "Failed"].contains(&text(job, "/status/phase"));
        let job = world.becomes(&PADDLE_JOBS, job, "at its end", ended).await;
        assert_eq!(text(&job, "/status/phase"), "Completed", "{:#}", job["status"]);
    }
    world.host().await.is(&DEPLOYMENTS, "troupe", "whole again", |it| at(it, "/status/readyReplicas") == 2).await;
    let mut made = world.made_pods();
    made.retain(|(user, _)| user == HOST);
    made.sort();
    let roles = ["ps-0", "worker-0", "worker-1"];
    let of = |job: &str| roles.map(|role| format!("{job}-{role}"));
    let once = [&of("late")[..], &["pi-worker-0".to_owned(), "pi-worker-1".to_owned()], &of("wide")].concat();
    assert_eq!(made.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), once);
    world.stop("a PaddleJob and an MPIJob through a Deployment").await;
}

/// A job whose pods run until the gate is there.
fn waits(name: &str, image: &Image, gate: &Path) -> Paddle {
    let mut job = paddle(name).ps(1).worker(2).policy("Never");
    job = job.of(image, &["sh", "-c", "until [ -e /gate/open ]; do sleep 0.2; done"]);
    for role in ["ps", "worker"] {
        let pod = &mut job.manifest["spec"][role]["template"]["spec"];
        pod["volumes"] = json!([{ "name": "gate", "hostPath": { "path": gate.parent() } }]);
        pod["containers"][0]["volumeMounts"] = json!([{ "name": "gate", "mountPath": "/gate" }]);
    }
    job
}

/// The folders in /proc of the operator's two processes.
fn operators() -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_operator = |command: &[u8]| command.starts_with(b"/usr/local/bin/troupe\0operator\0--leader-elect");
    let operators: Vec<_> =
        processes.filter(|process| fs::read(process.join("cmdline")).is_ok_and(|it| is_operator(&it))).collect();
    assert_eq!(operators.len(), 2, "{operators:?}");
    operators
}

/// The built-in plugins' code is that of the image's files: a host that compiled it has it in memory of its own.
fn has_compiled_nothing() {
    let folder = format!("{}/", image::troupe::PRECOMPILED.1);
    for process in operators() {
        let maps = fs::read_to_string(process.join("maps")).unwrap();
        let files: BTreeSet<_> = maps.lines().filter_map(|line| line.split(&folder).nth(1)).collect();
        assert_eq!(files.len(), Plugins::built_in_digests().count(), "{files:?}");
        let status = fs::read_to_string(process.join("status")).unwrap();
        let resident = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("RssAnon"));
        println!("a host in the image: {}", resident.collect::<Vec<_>>().join(", "));
    }
}

/// What the kernel says of the operator's processes: no user of the machine, no capabilities, a read-only root, the
/// runtime's seccomp filter.
fn is_confined() {
    for process in operators() {
        let status = fs::read_to_string(process.join("status")).unwrap();
        let says = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
            line.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!((says("Uid"), says("Gid")), ("65532 65532 65532 65532".into(), "65532 65532 65532 65532".into()));
        for capabilities in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(says(capabilities), "0000000000000000", "{capabilities}");
        }
        assert_eq!((says("NoNewPrivs"), says("Seccomp")), ("1".into(), "2".into()));
        let mounts = fs::read_to_string(process.join("mountinfo")).unwrap();
        let root =
            mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|fields| fields[4] == "/").unwrap();
        assert!(root[5].split(',').any(|option| option == "ro"), "{root:?}");
    }
}

impl World {
    /// The uids of all pods of jobs by their names.
    async fn uids(&self) -> BTreeMap<String, String> {
        let pods = self.list(&PODS).await.unwrap();
        pods.iter().map(|pod| (text(pod, "/metadata/name").to_owned(), text(pod, "/metadata/uid").to_owned())).collect()
    }

    /// The name of the pod that has the lease, once that is not this one.
    async fn leader(&self, but: Option<&str>) -> String {
        let host = self.host().await;
        let holder = |lease: &Value| {
            let (pod, _) = text(lease, "/spec/holderIdentity").rsplit_once('_').unwrap_or_default();
            pod.to_owned()
        };
        let is_another = |lease: &Value| !holder(lease).is_empty() && but != Some(&holder(lease));
        let lease = host.is(&LEASES, "troupe", "held", is_another).await;
        let pods: BTreeSet<_> = host.names(&PODS).await.unwrap().into_iter().collect();
        assert!(pods.contains(&holder(&lease)), "{lease}: {pods:?}");
        holder(&lease)
    }

    /// Kills a pod of the operator, without a last word.
    async fn kill(&self, pod: &str) {
        let host = self.host().await;
        let request = PODS.requests(&host.name).delete(pod, &DeleteParams::default().grace_period(0)).unwrap();
        host.client.request::<Value>(request).await.unwrap();
    }
}
