//! What readers of the admin port cost live jobs: nothing that these need.

use admin::Access;
use axum::{
    Router,
    body::{Body, to_bytes},
    response::Response,
};
use http::{Request, StatusCode, header::RETRY_AFTER};
use lab::campaign::{self, HOST};
use sandbox::{Executor, Limits, Plugins};
use serde_json::json;
use sim::{Life, Sim};
use std::{sync::Arc, time::Duration};
use tower::ServiceExt;
use troupe::{
    clock::Clock,
    control::operator::{Operator, Options},
    measure::requests::Requests,
};

const TF: (&str, &str) = ("kubeflow.org/v1", "TFJob");

/// The fuel of each plugin in a minute: enough for some jobs, and for some hundreds of readers.
const FUEL: u64 = 10_000_000;

fn submit(sim: &Sim, name: &str) {
    let template = json!({ "spec": { "containers": [{ "name": "tensorflow", "image": "x" }] } });
    let worker = json!({ "replicas": 2, "restartPolicy": "Never", "template": template });
    sim.create(json!({
        "apiVersion": TF.0, "kind": TF.1, "metadata": { "name": name, "namespace": "default" },
        "spec": { "tfReplicaSpecs": { "Worker": worker } },
    }));
}

async fn read(routes: &Router, path: &str) -> Response {
    routes.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap()
}

// The viewer may read one job of the namespace.
#[test]
fn a_reader_who_asks_again_and_again_is_told_to_wait_and_live_jobs_go_on() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let limits = Limits { fuel_per_minute: FUEL, ..Limits::default() };
        let plugins = Arc::new(Plugins::builtin_within(Executor::Inline, limits).unwrap());
        let kinds = campaign::kinds(&plugins);
        let life = Life::default().rule("*", "run-for", "1h");
        let sim = Sim::new(sim::Options { kinds, life, ..sim::Options::default() });
        let _running = sim.start();
        let options = Options::alone(Clock::starting_at(sim.now()), [1; 32]);
        let mut operator = Operator::new(sim.client(HOST), plugins, options);
        let routes = admin::routes(operator.context(), Requests::default(), Arc::new(Access::Loopback));
        let host = tokio::spawn(async move { operator.run(std::future::pending()).await });
        submit(&sim, "read");
        // Until the fuel that its own passes took is there again.
        tokio::time::sleep(Duration::from_secs(90)).await;

        let (mut answers, mut refused) = (0, None);
        while refused.is_none() && answers < 5_000 {
            let response = read(&routes, "/jobs/tfjobs/default/read").await;
            if response.status() == StatusCode::OK {
                answers += 1;
            } else {
                refused = Some(response);
            }
        }
        submit(&sim, "live");
        tokio::time::sleep(Duration::from_secs(5)).await;
        let live = sim.get(TF.0, TF.1, "default", "live").unwrap();
        assert!(!live["status"].to_string().contains("PluginFaulted"), "{live:#}");
        assert!(sim.get("v1", "Pod", "default", "live-worker-1").is_some(), "{live:#}");

        let refused = refused.expect("readers have fuel of their own, which ends");
        assert!(answers > 10, "{answers} answers before it ended");
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let again: u64 = refused.headers()[RETRY_AFTER].to_str().unwrap().parse().unwrap();
        let text = to_bytes(refused.into_body(), usize::MAX).await.unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("passes for readers have used up the fuel"), "{text}");
        tokio::time::sleep(Duration::from_secs(again)).await;
        assert_eq!(read(&routes, "/jobs/tfjobs/default/read").await.status(), StatusCode::OK, "after {again} s");
        host.abort();
    });
}
