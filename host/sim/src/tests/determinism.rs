//! Tests that the same seed gives the same run.

use futures::StreamExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, WatchParams};

use super::*;

/// Runs a small operator under faults: it keeps two config maps and a Job per tale.
async fn operator(sim: Sim, end: Duration) {
    let mut crashes = sim.crashes();
    loop {
        tokio::select! {
            biased;
            _ = crashes.recv() => continue,
            () = tokio::time::sleep(end) => return,
            () = lifetime(&sim) => {}
        }
    }
}

async fn lifetime(sim: &Sim) {
    let (api, maps, pods) = (tales(sim), maps(sim), pods(sim));
    loop {
        let Ok(list) = api.list(&ListParams::default()).await else {
            continue;
        };
        let from = list.metadata.resource_version.clone().unwrap_or_default();
        for tale in &list.items {
            let name = tale.metadata.name.clone().unwrap_or_default();
            let owner = json!([{ "apiVersion": "example.com/v1", "kind": "Tale", "name": name,
                "uid": tale.metadata.uid, "controller": true, "blockOwnerDeletion": true }]);
            let map = json!({ "metadata": { "name": name, "ownerReferences": owner } });
            let mut pod = pod_json(&name);
            pod["metadata"]["ownerReferences"] = owner;
            let post = post();
            let (map, pod) = (from_json(map), from_json(pod));
            let _ = tokio::join!(maps.create(&post, &map), pods.create(&post, &pod));
            let patch = Patch::Merge(json!({ "status": { "seen": tale.metadata.resource_version } }));
            let _ = api.patch_status(&name, &PatchParams::default(), &patch).await;
        }
        let Ok(stream) = api.watch(&WatchParams::default().timeout(5), &from).await else {
            continue;
        };
        let mut stream = Box::pin(stream);
        let _ = stream.next().await;
        after(100).await;
    }
}

fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> T {
    from(value)
}

async fn user(sim: Sim) {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Tale"), "tales");
    let api: Api<DynamicObject> = Api::namespaced_with(sim.client("user"), "default", &resource);
    for round in 0..10 {
        let _ = api.create(&post(), &a_tale(&format!("tale-{round}"))).await;
        after(700).await;
        if round % 3 == 2 {
            let _ = api.delete(&format!("tale-{}", round - 1), &DeleteParams::default()).await;
        }
    }
}

/// Returns the hash, the number of requests and the number of crashes of a run in a paused runtime of its own.
fn run(seed: u64) -> (u64, usize, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let options = Options {
            seed,
            faults: Faults::heavy(seed),
            life: Life { run: Some(Duration::from_secs(3)), ..Life::default() }.jitter(0.5),
            ..options()
        };
        let sim = Sim::new(options);
        let _running = sim.start();
        let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "j" }, "spec": {
            "parallelism": 2, "completions": 4, "template": { "spec": { "restartPolicy": "Never",
            "containers": [{ "name": "main", "image": "i:1" }] } } } });
        sim.create(job);
        let host = tokio::spawn(operator(sim.clone(), Duration::from_secs(3600)));
        user(sim.clone()).await;
        after(60_000).await;
        host.abort();
        let crashes = sim.requests().iter().filter(|request| request.code == 0).count();
        (sim.log_hash(), sim.requests().len(), crashes)
    })
}

#[test]
fn another_process_gets_the_same_hash() {
    let (hash, ..) = run(7);
    println!("hash of seed 7: {hash}");
    if std::env::var_os("SIM_CHILD").is_some() {
        return;
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["another_process_gets_the_same_hash", "--nocapture"])
        .env("SIM_CHILD", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(said.contains(&format!("hash of seed 7: {hash}\n")), "{hash}: {said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_simulator_lives_in_real_time_too() {
    let base = jiff::Timestamp::constant(1_800_000_000, 0);
    let sim = Sim::new(Options { life: Life::quick(), base, ..options() });
    let _running = sim.start();
    pods(&sim).create(&post(), &a_pod("a")).await.unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let phase = |sim: &Sim| sim.get("v1", "Pod", "default", "a").unwrap()["status"]["phase"].clone();
    while phase(&sim) != "Succeeded" {
        assert!(tokio::time::Instant::now() < deadline, "{}", phase(&sim));
        after(5).await;
    }
    assert!(sim.now() > base);
}

#[test]
fn the_same_seed_gives_the_same_hash_and_others_give_others() {
    let mut hashes = std::collections::BTreeSet::new();
    let mut crashes = 0;
    for seed in 0..20 {
        let (first, second) = (run(seed), run(seed));
        assert_eq!(first, second, "seed {seed}");
        assert!(first.1 > 50, "{first:?}");
        hashes.insert(first.0);
        crashes += first.2;
    }
    assert_eq!(hashes.len(), 20);
    assert!(crashes > 0);
}
