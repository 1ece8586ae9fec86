//! The page in a real browser: it shows what there is, live, by keyboard, in light and dark, on a wide and a narrow screen,
//! and complains of nothing. Pictures of it are left in `target/page`.

use super::{World, reviewer};
use admin::Access;
use harness::Chromium;
use serde_json::json;
use sim::{Life, Sim};
use std::{net::Ipv4Addr, path::Path, sync::Arc};
use tokio::net::TcpListener;
use troupe::measure::requests::Requests;

/// What a user may write where he likes; nothing of it may become a part of the page.
const MARKUP: &str = "<img src=x onerror=document.title='broken'><b>0/4 nodes are available</b>";

async fn serve(world: &World, access: Access) -> String {
    let scheme = if matches!(access, Access::Loopback) { "http" } else { "https" };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let page = format!("{scheme}://localhost:{}/", listener.local_addr().unwrap().port());
    tokio::spawn(admin::serve(listener, Arc::clone(&world.context), Requests::default(), access));
    page
}

async fn picture(browser: &mut Chromium, name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../target/page/{name}.png"));
    browser.picture(&file).await.unwrap();
}

/// A job of 4,000 pods, most of which run: made at once, since one after the other takes a simulator minutes.
fn wide(sim: &Sim) {
    let template = json!({ "spec": { "containers": [{ "name": "main", "image": "x" }] } });
    let job = sim.create(json!({
        "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob",
        "metadata": { "name": "wide", "namespace": "research" },
        "spec": { "cleanPodPolicy": "Never", "worker": { "replicas": 4_000, "template": template } },
    }));
    for number in 0..4_000 {
        let name = format!("wide-worker-{number}");
        let scheduled = |is: &str, why: &str| json!({ "type": "PodScheduled", "status": is, "reason": why, "message": "0/4 nodes are available: 4 Insufficient memory." });
        let runs = json!({ "running": { "startedAt": job["metadata"]["creationTimestamp"] } });
        let container =
            json!({ "name": "main", "state": runs, "ready": true, "restartCount": 0, "image": "x", "imageID": "x" });
        let status = match number % 20 {
            7 => json!({ "phase": "Pending", "conditions": [scheduled("False", "Unschedulable")] }),
            11 => json!({ "phase": "Pending" }),
            13 => json!({ "phase": "Succeeded", "podIP": "10.0.0.1" }),
            _ => json!({ "phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [container],
                "conditions": [scheduled("True", ""), { "type": "Ready", "status": "True" }] }),
        };
        let owner = json!({ "apiVersion": job["apiVersion"], "kind": job["kind"], "name": "wide",
            "uid": job["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true });
        sim.create(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": "research", "ownerReferences": [owner],
                "labels": { "paddle-res-name": name, "paddle-res-type": "worker" } },
            "spec": template["spec"], "status": status,
        }));
    }
}

/// A cluster with jobs in each state, one of them of 4,000 pods.
fn cluster() -> World {
    let life = Life::default().rule("stuck-worker-2", "schedule-after", "forever");
    let life = life.rule("wide-worker-*", "schedule-after", "forever");
    let life = life.rule("breaks-worker-1", "exit-code", "137").rule("breaks-worker-1", "run-for", "1s");
    let life = life.rule("done-worker-*", "run-for", "1s").rule("late-worker-*", "start-after", "forever");
    let world = World::after(life.rule("*", "run-for", "1h"), wide);
    for (namespace, name, workers) in [
        ("vision", "four", 4),
        ("vision", "stuck", 4),
        ("speech", "breaks", 2),
        ("speech", "done", 3),
        ("speech", "late", 2),
    ] {
        world.job(namespace, name, workers);
    }
    world.torch("vision", "resnet-50-of-a-rather-long-name-that-has-to-be-broken-somewhere");
    world.sim.create(json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": { "name": "refused", "namespace": "research" },
        "spec": { "tfReplicaSpecs": { "Wroker": { "replicas": 1, "template": { "spec": { "containers": [] } } } } },
    }));
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(lacks_page, ignore = "nobody asked for a browser")]
async fn the_page_shows_jobs_of_four_and_of_4000_pods_and_complains_of_nothing() {
    let world = cluster();
    let page = serve(&world, Access::Loopback).await;
    let mut browser = Chromium::start().await.unwrap();
    browser.look(1280, 900, "light").await.unwrap();
    browser.go(&page).await.unwrap();
    let has = |text: &str| format!("document.body.innerText.includes({text:?})");
    browser.until(&has("stuck")).await.unwrap();
    browser.until("document.querySelectorAll('#rows tr').length === 8").await.unwrap();
    browser.until(&has("failed first with exit code 137")).await.unwrap();
    browser.until(&has("Live")).await.unwrap();

    // What a user writes stays text.
    world.block("vision", "stuck-worker-2", MARKUP);
    browser.until(&has("<img src=x")).await.unwrap();
    assert_eq!(browser.value("document.querySelectorAll('main img, main td b').length").await.unwrap(), 0);
    browser.until("document.querySelector('.is-failed') !== null").await.unwrap();
    picture(&mut browser, "list-light").await;
    browser.look(1280, 900, "dark").await.unwrap();
    picture(&mut browser, "list-dark").await;
    browser.look(360, 740, "light").await.unwrap();
    let overflow = "document.documentElement.scrollWidth <= 360";
    browser.until(overflow).await.unwrap();
    picture(&mut browser, "list-narrow").await;
    browser.look(1280, 900, "light").await.unwrap();

    // By keyboard: through the filters and groups to the first job, and into it.
    let focus =
        "document.activeElement.id || document.activeElement.dataset.group || document.activeElement.textContent";
    let mut stops = vec![];
    while stops.last().is_none_or(|stop| stop != "refused") {
        browser.press("Tab").await.unwrap();
        stops.push(browser.value(focus).await.unwrap().as_str().unwrap_or_default().trim().to_owned());
        assert!(stops.len() < 20, "{stops:?}");
    }
    assert!(stops.iter().any(|stop| stop == "text") && stops.iter().any(|stop| stop == "waiting"), "{stops:?}");
    browser.press("Enter").await.unwrap();
    browser.until("document.activeElement.id === 'job-name'").await.unwrap();
    browser.until(&has("Needs you")).await.unwrap();
    picture(&mut browser, "job-refused").await;

    let tells = |text: &str| format!("document.getElementById('legend').textContent.includes('{text}')");
    let open_wide = "location.hash = '#/job/paddlejobs.batch.paddlepaddle.org/research/wide'; true";
    let open =
        |namespace: &str, name: &str| format!("location.hash = '#/job/tfjobs.kubeflow.org/{namespace}/{name}'; true");
    let shows = |name: &str| format!("document.title.includes('{name}') && !document.getElementById('job').hidden");
    browser.until(&open("vision", "four")).await.unwrap();
    browser.until(&shows("four")).await.unwrap();
    browser.until(&tells("Ready4")).await.unwrap();
    browser.value("document.querySelector('#grid .role:last-child canvas').focus()").await.unwrap();
    browser.press("ArrowRight").await.unwrap();
    browser.until(&has("pod/four-worker-2")).await.unwrap();
    for scheme in ["light", "dark"] {
        browser.look(1280, 900, scheme).await.unwrap();
        picture(&mut browser, &format!("job-4-{scheme}")).await;
    }
    browser.look(360, 740, "light").await.unwrap();
    browser.until(overflow).await.unwrap();
    picture(&mut browser, "job-4-narrow").await;
    // Live: a pod that fails is seen without a reload.
    browser.look(1280, 900, "light").await.unwrap();
    world.sim.set_failed("vision", "four-worker-3", 1);
    browser.until(&has("1 failed")).await.unwrap();
    browser.until(&has("failed first with exit code 1")).await.unwrap();
    picture(&mut browser, "job-4-failed").await;

    browser.until(&open("vision", "stuck")).await.unwrap();
    browser.until(&shows("stuck")).await.unwrap();
    browser.until(&tells("Ready3")).await.unwrap();
    picture(&mut browser, "job-stuck").await;

    browser.until(open_wide).await.unwrap();
    browser.until(&shows("wide")).await.unwrap();
    browser.until(&tells("Blocked200")).await.unwrap();
    browser.until(&tells("Ready3,400")).await.unwrap();
    for (width, scheme, name) in [(1280, "light", "light"), (1280, "dark", "dark"), (360, "light", "narrow")] {
        browser.look(width, 900, scheme).await.unwrap();
        browser.until(&format!("document.documentElement.scrollWidth <= {width}")).await.unwrap();
        picture(&mut browser, &format!("job-4000-{name}")).await;
    }
    browser.look(1280, 900, "light").await.unwrap();
    browser.until(&open("vision", "nobodys")).await.unwrap();
    browser.until(&has("There is no such job")).await.unwrap();
    picture(&mut browser, "job-gone").await;
    browser.value("location.hash = '#/?text=nothing-has-this'").await.unwrap();
    browser.until(&has("No job matches")).await.unwrap();
    picture(&mut browser, "list-none").await;
    let complaints = browser.complaints();
    // The browser itself tells of each answer that is not 200.
    let complaints: Vec<_> = complaints.iter().filter(|it| !it.contains("404 (Not Found)")).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    assert_ne!(browser.value("document.title").await.unwrap(), "broken");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(lacks_page, ignore = "nobody asked for a browser")]
async fn a_viewer_pastes_a_token_and_sees_his_jobs() {
    let world = World::new(Life::default().rule("*", "run-for", "1h"));
    world.job("hers", "tale", 2);
    world.job("theirs", "secret", 2);
    let page = serve(&world, reviewer(&Arc::default())).await;
    let mut browser = Chromium::start().await.unwrap();
    browser.look(1280, 900, "light").await.unwrap();
    browser.go(&page).await.unwrap();
    let has = |text: &str| format!("document.body.innerText.includes({text:?})");
    browser.until(&has("Who are you?")).await.unwrap();
    browser.until("document.activeElement.id === 'token'").await.unwrap();
    picture(&mut browser, "sign-in").await;
    browser.type_text("made-up").await.unwrap();
    browser.press("Enter").await.unwrap();
    browser.until(&has("does not accept the token")).await.unwrap();
    browser.type_text("ann").await.unwrap();
    browser.press("Enter").await.unwrap();
    browser.until(&has("You may not list these jobs")).await.unwrap();
    picture(&mut browser, "no-rights").await;
    browser.until("document.activeElement.id === 'namespace'").await.unwrap();
    browser.type_text("hers").await.unwrap();
    browser.press("Enter").await.unwrap();
    browser.until(&has("tale")).await.unwrap();
    assert_eq!(browser.value(&has("secret")).await.unwrap(), false);
    assert_eq!(browser.value("localStorage.length + document.cookie.length").await.unwrap(), 0);
    picture(&mut browser, "hers").await;
    browser.value("document.getElementById('forget').click()").await.unwrap();
    browser.until(&has("Who are you?")).await.unwrap();
    assert_eq!(browser.value("sessionStorage.length").await.unwrap(), 0);
    let complaints = browser.complaints();
    let refused = |it: &&String| !it.contains("401 (Unauthorized)") && !it.contains("403 (Forbidden)");
    let complaints: Vec<_> = complaints.iter().filter(refused).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}
