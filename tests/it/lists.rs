//! The host's lists on the simulator: a page has as many objects as their bytes allow.

use crate::built_in;
use decide::{condition::Condition, own_conditions::current_true};
use kube::client::Body;
use lab::campaign::{self, HOST};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sim::{Life, Sim};
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};
use tower::util::MapRequestLayer;
use troupe::{
    clock::Clock,
    control::operator::{Operator, Options},
};

const PADDLE: (&str, &str) = ("batch.paddlepaddle.org/v1", "PaddleJob");

/// In virtual time.
const PATIENCE: Duration = Duration::from_secs(60);

/// A job of one pod with this text in its template.
fn job(name: &str, text: &str) -> Value {
    let container = json!({ "name": "main", "image": "x", "env": [{ "name": "TEXT", "value": text }] });
    json!({
        "apiVersion": PADDLE.0, "kind": PADDLE.1, "metadata": { "name": name, "namespace": "default" },
        "spec": { "worker": { "replicas": 1, "template": { "spec": { "containers": [container] } } } },
    })
}

/// How many objects a list of jobs asks for; `None` for all other requests.
fn limit(request: &http::Request<Body>) -> Option<u32> {
    let (path, query) = (request.uri().path(), request.uri().query()?);
    let of_jobs = (path == "/apis/batch.paddlepaddle.org/v1/paddlejobs").then_some(query)?;
    of_jobs.split('&').find_map(|pair| pair.strip_prefix("limit=")?.parse().ok())
}

// Section 2: lists are paged by bytes as well as by number. A page of 40 MB is not read, and one of 31 MB is the last of that
// size.
#[test]
fn large_jobs_are_listed_in_pages_of_few_and_the_host_serves() {
    let plugins = built_in::of_campaigns();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (kinds, life) = (campaign::kinds(&plugins), Life::default().rule("*", "run-for", "3s"));
        let sim = Sim::new(sim::Options { seed: 1, kinds, life, ..sim::Options::default() });
        let _running = sim.start();
        for number in 0..40 {
            sim.create(job(&format!("huge-{number:02}"), &"x".repeat(1 << 20)));
        }
        let limits = Arc::<Mutex<Vec<u32>>>::default();
        let seen = Arc::clone(&limits);
        let note = MapRequestLayer::new(move |request: http::Request<Body>| {
            seen.lock().extend(limit(&request));
            request
        });
        let options = Options::alone(Clock::starting_at(sim.now()), [7; 32]);
        let mut operator = Operator::new(sim.client_through(HOST, &note), plugins, options);
        let host = tokio::spawn(async move { operator.run(std::future::pending()).await });
        sim.create(job("small", "x"));

        let status = |name: &str| sim.get(PADDLE.0, PADDLE.1, "default", name).unwrap()["status"].take();
        let is_refused = |name: &str| current_true(&status(name), Condition::Rejected).is_some();
        let served = async {
            // The last of the huge ones is on the last page of them.
            while status("small")["phase"] != "Completed" || !is_refused("huge-39") {
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(PATIENCE, served).await.expect("the small job ends, and a huge one is refused");
        let mut limits = limits.lock().clone();
        limits.dedup();
        assert_eq!(limits.get(..2), Some(&[500, 31][..]), "a page that is too large is asked for again: {limits:?}");
        let later = &limits[2..];
        assert!(!later.is_empty() && later.iter().all(|limit| *limit <= 4), "{limits:?}");
        host.abort();
    });
}
