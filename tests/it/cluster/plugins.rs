//! The life of a plugin while jobs run: upgraded by its ConfigMap, broken, rolled back, lost and brought back.

mod candidates;
mod kinds;
mod registry;
mod ways;

use super::{
    jobs::paddle,
    objects::{PADDLE_JOBS, PODS, SOON, at, condition_of, text},
    world::World,
};
use crate::{
    operator::{self, Operator},
    trust::{grants, version},
};
use futures::future::join_all;
use harness::until;
use k8s_openapi::{ByteString, api::core::v1::ConfigMap};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use lab::campaign::marked;
use sandbox::{Plugins, source};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tokio::time::Instant;
use troupe::plugin_resource::{Plugin, PluginStatus};

const PATIENCE: Duration = Duration::from_secs(180);

/// A world whose host takes plugins from its namespace, and a Plugin that is named there.
struct Stage {
    world: World,
    host: Operator,
    plugins: Api<Plugin>,
    maps: Api<ConfigMap>,
}

/// The digest of a component, as statuses have it.
fn digest_of(wasm: &[u8]) -> String {
    source::digest(wasm).to_string()
}

/// Where the host keeps the bytes of this component.
fn kept_copy(wasm: &[u8]) -> String {
    format!("troupe-plugin-{}-0", &digest_of(wasm)[..12])
}

impl Stage {
    async fn of(namespace: &str) -> Self {
        Self::with_host(namespace, operator::binary()).await
    }

    async fn with_host(namespace: &str, binary: &Path) -> Self {
        let world = World::alone(namespace).await;
        let host = host(&world, binary).await;
        let plugins = Api::all(world.client.clone());
        let maps = Api::namespaced(world.client.clone(), &world.name);
        Self { world, host, plugins, maps }
    }

    /// The job `old` runs by the first of these components, new ones are planned by the second.
    async fn upgraded(namespace: &str) -> (Self, Vec<u8>, Vec<u8>) {
        let stage = Self::of(namespace).await;
        let (one, two) = (version("one"), version("two"));
        stage.apply(one.clone()).await;
        stage.create(json!({})).await;
        stage.serves(&one).await;
        stage.submit("old").await;
        stage.running(1).await;
        stage.apply(two.clone()).await;
        stage.serves(&two).await;
        (stage, one, two)
    }

    /// As `kubectl create configmap NAME --from-file=plugin.wasm --dry-run=client -o yaml | kubectl apply --server-side -f -`.
    async fn apply(&self, wasm: Vec<u8>) {
        self.apply_as(source::KEY, wasm).await;
    }

    async fn apply_as(&self, key: &str, bytes: Vec<u8>) {
        let map = ConfigMap {
            metadata: kube::core::ObjectMeta { name: Some("paddle".into()), ..Default::default() },
            binary_data: Some(BTreeMap::from([(key.to_owned(), ByteString(bytes))])),
            ..ConfigMap::default()
        };
        self.maps.patch("paddle", &PatchParams::apply("kubectl").force(), &Patch::Apply(map)).await.unwrap();
    }

    async fn create(&self, upgrade: Value) {
        let spec = json!({ "source": { "configMap": { "name": "paddle" } }, "upgrade": upgrade, "grants": grants() });
        let plugin = json!({ "apiVersion": "troupe.dev/v1alpha1", "kind": "Plugin", "metadata": { "name": "paddle" }, "spec": spec });
        self.plugins.create(&PostParams::default(), &serde_json::from_value(plugin).unwrap()).await.unwrap();
    }

    async fn patch(&self, patch: Value) {
        self.plugins.patch("paddle", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// The Plugin's status once it is as it should be.
    async fn is(&self, what: &str, seen: impl Fn(&PluginStatus) -> bool) -> PluginStatus {
        let last = std::cell::RefCell::new(None);
        let looked = until(SOON, format!("plugin paddle to be {what}"), || async {
            let status = self.plugins.get("paddle").await?.status.unwrap_or_default();
            last.replace(Some(status.clone()));
            Ok(seen(&status).then_some(status))
        });
        match looked.await {
            Ok(status) => status,
            Err(error) => panic!("{error:#}\nlast seen: {:#?}", last.take()),
        }
    }

    async fn serves(&self, wasm: &[u8]) -> PluginStatus {
        let digest = digest_of(wasm);
        self.is("served by another digest", |status| status.digest.as_ref() == Some(&digest)).await
    }

    /// The digest that plans a job, once its status says so.
    async fn planner_of(&self, job: &str) -> String {
        let pinned = |job: &Value| !text(job, "/status/troupe/digest").is_empty();
        let job = self.world.is(&PADDLE_JOBS, job, "planned", pinned).await;
        text(&job, "/status/troupe/digest").to_owned()
    }

    async fn submit(&self, name: &str) {
        self.world.create(&PADDLE_JOBS, &paddle(name).worker(1).manifest).await;
    }

    async fn running(&self, count: usize) {
        let running = || async {
            let jobs = self.world.list(&PADDLE_JOBS).await?;
            let running = jobs.iter().filter(|job| at(job, "/status/phase") == "Running").count();
            anyhow::ensure!(running == count, "{running} are");
            Ok(Some(()))
        };
        until(PATIENCE, format!("{count} jobs to be Running"), running).await.unwrap();
    }

    /// Every pod there is: name and uid.
    async fn pods(&self) -> Vec<(String, String)> {
        let pods = self.world.list(&PODS).await.unwrap();
        pods.iter().map(|pod| (text(pod, "/metadata/name").to_owned(), text(pod, "/metadata/uid").to_owned())).collect()
    }

    /// Every one of these pods is the one it was.
    async fn still_has(&self, pods: &[(String, String)]) {
        let now = self.pods().await;
        assert!(pods.iter().all(|pod| now.contains(pod)), "{pods:#?} were there, {now:#?} are");
    }

    async fn failed_passes(&self) -> u64 {
        let metrics = self.host.metrics().await.unwrap();
        let of_kinds = metrics.lines().filter(|line| line.starts_with("controller_runtime_reconcile_errors_total{"));
        of_kinds.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }

    /// Another host takes the place of this one, which has no last word.
    async fn restart(&mut self) {
        let other = host(&self.world, operator::binary()).await;
        std::mem::replace(&mut self.host, other).kill();
    }

    /// A pass over the job in which its plugin answered.
    async fn answered(&self, job: &str) -> Value {
        let seen = || async {
            let pass = self.host.pass("paddlejobs", &self.world.name, job).await?;
            Ok(pass.filter(|pass| at(pass, "/answer/Judged") != &Value::Null))
        };
        until(SOON, format!("a pass over {job} that is answered"), seen).await.unwrap()
    }

    async fn end(self) {
        self.plugins.delete("paddle", &DeleteParams::default()).await.unwrap();
        self.host.stop().await;
    }
}

async fn host(world: &World, binary: &Path) -> Operator {
    let arguments = ["--namespace", &world.name, "--plugin-namespace", &world.name];
    Operator::start_of(binary, &world.plane, "troupe", &arguments).await
}

/// The host as an earlier release had it: the same program around another component of paddle. Returns that, too.
fn earlier_release() -> (PathBuf, Vec<u8>) {
    let ours = Plugins::built_in("paddle").unwrap();
    let theirs = with(ours, b"0.1.0", b"0.0.9", |before| before != b'@');
    let release = Path::new(env!("CARGO_TARGET_TMPDIR")).join("earlier-release");
    fs::write(&release, with(&fs::read(operator::binary()).unwrap(), ours, &theirs, |_| true)).unwrap();
    fs::set_permissions(&release, fs::metadata(operator::binary()).unwrap().permissions()).unwrap();
    (release, theirs)
}

fn condition(status: &PluginStatus, kind: &str) -> (String, String) {
    let found = status.conditions.iter().find(|condition| condition.type_ == kind).unwrap();
    (found.status.clone(), found.reason.clone())
}

// The story: two hundred jobs run while their plugin is upgraded, broken and rolled back, and none of them notices.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn two_hundred_jobs_run_on_while_their_plugin_is_upgraded_broken_and_rolled_back() {
    const JOBS: usize = 200;
    let stage = Stage::of("upgrade").await;
    let (one, two) = (version("one"), version("two"));
    stage.apply(one.clone()).await;
    stage.create(json!({})).await;
    stage.serves(&one).await;
    let names: Vec<_> = (0..JOBS).map(|number| format!("job-{number:03}")).collect();
    join_all(names.iter().map(|name| stage.submit(name))).await;
    stage.running(JOBS).await;
    let (pods, failed, before) = (stage.pods().await, stage.failed_passes().await, stage.world.requests());

    let applied = Instant::now();
    stage.apply(two.clone()).await;
    let status = stage.serves(&two).await;
    let serves = applied.elapsed();
    stage.submit("after-upgrade").await;
    assert_eq!(stage.planner_of("after-upgrade").await, digest_of(&two));
    let took = applied.elapsed();
    assert_eq!(status.previous, Some(digest_of(&one)));
    assert_eq!(condition(&status, "Serving").0, "True");

    // A file that is no plugin: what serves goes on, and the Plugin says why.
    stage.apply(b"\0asm\x0d\0\x01\0rubbish".to_vec()).await;
    let status = stage.is("refused", |status| status.last_error.is_some()).await;
    assert_eq!(status.digest, Some(digest_of(&two)));
    assert_eq!(condition(&status, "Compiled"), ("False".into(), "NotAPlugin".into()));
    assert_eq!(condition(&status, "Degraded"), ("True".into(), "CandidateRefused".into()));
    assert_eq!(condition(&status, "Serving").0, "True");
    stage.submit("after-break").await;
    assert_eq!(stage.planner_of("after-break").await, digest_of(&two));

    // Back to what served before, although no source has it any more.
    let output = troupe(&stage.world, &["plugin", "rollback", "paddle"]);
    assert!(output.contains("are planned by"), "{output}");
    stage.serves(&one).await;
    stage.submit("after-rollback").await;
    assert_eq!(stage.planner_of("after-rollback").await, digest_of(&one));

    stage.running(JOBS + 3).await;
    let status = stage.is("counted", |status| status.jobs == Some(203)).await;
    let short = |wasm: &[u8]| digest_of(wasm)[..12].to_owned();
    assert_eq!(status.jobs_by_digest, BTreeMap::from([(short(&one), 201), (short(&two), 2)]));
    assert_eq!(stage.failed_passes().await, failed, "passes that had to be tried again");
    let later = stage.world.requests().after(&before);
    let touched = |name: &str| pods.iter().any(|(pod, _)| pod == name);
    let of_old_pods: Vec<_> = ["patch", "update", "delete", "create"]
        .iter()
        .flat_map(|verb| later.that(verb, "pods"))
        .filter(|it| touched(&it.name))
        .collect();
    assert!(of_old_pods.is_empty(), "{of_old_pods:#?}");
    stage.still_has(&pods).await;
    println!(
        "{JOBS} jobs: the new digest served {serves:?} after its ConfigMap was applied, a job had it after {took:?}"
    );
    stage.end().await;
}

// Decision 7: the pin is in the ledger and the bytes are kept, so neither a restart nor the loss of the source matters.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_job_stays_on_its_digest_when_its_source_is_gone_and_the_host_is_another() {
    let (mut stage, one, two) = Stage::upgraded("pinned").await;
    stage.maps.delete("paddle", &DeleteParams::default()).await.unwrap();
    stage.is("without a source", |status| condition(status, "Fetched").0 == "False").await;
    let pods = stage.pods().await;

    stage.restart().await;
    stage.submit("new").await;
    assert_eq!(stage.planner_of("new").await, digest_of(&two));
    let pass = stage.answered("old").await;
    assert_eq!(text(&pass, "/snapshot/digest"), digest_of(&one));
    assert_eq!(stage.planner_of("old").await, digest_of(&one));
    stage.still_has(&pods).await;
    let job = stage.world.get(&PADDLE_JOBS, "old").await.unwrap();
    assert_eq!(at(&job, "/status/phase"), "Running");
    assert!(condition_of(&job, "PluginFaulted").is_none(), "no flicker: {job:#}");
    stage.end().await;
}

// The same for what comes with the host: the next release brings another component, and no Plugin says a word about it.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn a_job_stays_on_the_built_in_that_planned_it_when_the_host_is_upgraded() {
    let (release, theirs) = earlier_release();
    let ours = Plugins::built_in("paddle").unwrap();
    let mut stage = Stage::with_host("release", &release).await;
    fs::remove_file(&release).unwrap();
    stage.submit("old").await;
    assert_eq!(stage.planner_of("old").await, digest_of(&theirs));
    stage.running(1).await;
    let (pods, before) = (stage.pods().await, stage.world.requests());

    stage.restart().await;
    stage.submit("new").await;
    assert_eq!(stage.planner_of("new").await, digest_of(ours));
    let pass = stage.answered("old").await;
    assert_eq!(text(&pass, "/snapshot/digest"), digest_of(&theirs));
    assert_eq!(stage.planner_of("old").await, digest_of(&theirs));
    stage.running(2).await;
    stage.still_has(&pods).await;
    let later = stage.world.requests().after(&before);
    let of_old = later.of("old");
    assert!(of_old.table().is_empty(), "{:#?}", of_old.table());
    assert_eq!(stage.failed_passes().await, 0);
    stage.host.stop().await;
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn bytes_that_are_lost_hold_a_job_and_leave_its_pods_alone() {
    let (mut stage, one, _) = Stage::upgraded("lost").await;
    let pods = stage.pods().await;
    let kept = kept_copy(&one);
    let copy = stage.maps.get(&kept).await.unwrap();
    stage.maps.delete(&kept, &DeleteParams::default()).await.unwrap();

    stage.restart().await;
    let held =
        |job: &Value| condition_of(job, "PluginFaulted").is_some_and(|it| text(it, "/reason") == "PluginMissing");
    stage.world.is(&PADDLE_JOBS, "old", "held", held).await;
    assert_eq!(stage.pods().await, pods);

    // It goes on when the bytes are there again.
    let mut copy = copy;
    copy.metadata = kube::core::ObjectMeta {
        name: Some(copy.name_any()),
        annotations: copy.metadata.annotations,
        labels: copy.metadata.labels,
        ..Default::default()
    };
    stage.maps.create(&PostParams::default(), &copy).await.unwrap();
    let free = |job: &Value| condition_of(job, "PluginFaulted").is_none();
    stage.world.is(&PADDLE_JOBS, "old", "free again", free).await;
    assert_eq!(stage.pods().await, pods);
    stage.end().await;
}

/// The component with other bytes in the place of these, wherever `wanted` says so of what stands before them.
fn with(wasm: &[u8], old: &[u8], new: &[u8], wanted: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut wasm = wasm.to_vec();
    let places: Vec<usize> =
        (1..wasm.len() - old.len()).filter(|at| wasm[*at..].starts_with(old) && wanted(wasm[at - 1])).collect();
    assert!(!places.is_empty());
    for at in places {
        wasm[at..at + new.len()].copy_from_slice(new);
    }
    wasm
}

// A broken, hostile or incompatible upgrade leaves what serves, and the Plugin says why and what to do.
#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn what_is_not_acceptable_leaves_what_serves_and_says_why() {
    let stage = Stage::of("refused").await;
    let (one, two, three) = (version("one"), version("two"), version("three"));
    stage.apply(one.clone()).await;
    stage.create(json!({})).await;
    stage.serves(&one).await;
    let refused = async |stage_of: &str, reason: &str, words: &str| {
        let seen = |status: &PluginStatus| condition(status, stage_of) == ("False".into(), reason.into());
        let status = stage.is(reason, seen).await;
        assert_eq!(status.digest, Some(digest_of(&one)), "{reason}");
        assert_eq!(condition(&status, "Serving").0, "True");
        let error = status.last_error.unwrap();
        assert!(error.contains(words), "{error}");
    };
    // Made for another version of the contract.
    stage.apply(with(&one, b"0.1.0", b"0.2.0", |before| before == b'@')).await;
    refused("Compiled", "NotAPlugin", "0.2.0").await;
    stage.apply(Plugins::built_in("mpi").unwrap().to_vec()).await;
    refused("Accepted", "WrongName", "name the Plugin mpi").await;
    stage.apply(two.clone()).await;
    stage.serves(&two).await;
    stage.apply(one.clone()).await;
    stage.serves(&one).await;

    // The API server keeps numbers away that the host could not read.
    let too_many = json!({ "spec": { "limits": { "concurrency": 5_000_000_000_u64 } } });
    let patched = stage.plugins.patch("paddle", &PatchParams::default(), &Patch::Merge(too_many)).await;
    let error = patched.unwrap_err().to_string();
    assert!(error.contains("spec.limits.concurrency") && error.contains("4294967295"), "{error}");

    stage.patch(json!({ "spec": { "config": { "no-such-setting": true } } })).await;
    refused("Accepted", "InvalidConfig", "no-such-setting").await;
    stage.patch(json!({ "spec": { "config": null, "digest": digest_of(b"never seen") } })).await;
    refused("Fetched", "DigestMismatch", "put the right digest or remove it").await;
    let kinds = ["Pod", "Service"];
    stage.patch(json!({ "spec": { "digest": null, "grants": { "kinds": kinds } } })).await;
    refused("Accepted", "GrantMissing", "ConfigMap").await;
    let role = rights(&stage.world);
    assert!(role.contains("- services") && !role.contains("- configmaps"), "{role}");
    stage.patch(json!({ "spec": { "grants": grants() } })).await;
    stage.is("as expected again", |status| status.last_error.is_none()).await;
    let role = rights(&stage.world);
    assert!(role.contains("- services") && role.contains("- configmaps"), "{role}");

    // Two upgrades at once: the later one wins, and each digest that served in between is whole.
    stage.apply(two.clone()).await;
    stage.apply(three.clone()).await;
    stage.serves(&three).await;
    // An older version is served as any other, and told.
    let older = with(&one, b"0.1.0", b"0.0.9", |before| before != b'@');
    stage.apply(older.clone()).await;
    let status = stage.serves(&older).await;
    assert_eq!(status.version.as_deref(), Some("0.0.9"));
    stage.submit("by-the-older").await;
    assert_eq!(stage.planner_of("by-the-older").await, digest_of(&older));
    stage.end().await;
}

/// The role of the plugin paddle, as `troupe rbac` makes it from the grants that are in use.
fn rights(world: &World) -> String {
    let all = troupe(world, &["rbac", "--cluster", "--plugin-namespace", &world.name]);
    let role = all.split("\n---\n").find(|document| document.contains("name: troupe-plugin-paddle"));
    role.unwrap_or_else(|| panic!("no such role:\n{all}")).to_owned()
}

/// The binary's output for a command against this control plane.
fn troupe(world: &World, arguments: &[&str]) -> String {
    let kubeconfig = world.plane.kubeconfig("user").unwrap();
    let output = Command::new(operator::binary()).args(arguments).env("KUBECONFIG", kubeconfig).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}
