//! What readers of the admin port cost live jobs: nothing that these need.

use crate::recording::{admin_port, get, served};
use admin::Access;
use axum::{
    Router,
    body::{Body, to_bytes},
    response::Response,
};
use futures::FutureExt;
use http::{Request, StatusCode, header::RETRY_AFTER};
use lab::campaign::{self, HOST};
use sandbox::{Executor, Limits, Plugins};
use serde_json::json;
use sim::{Life, Sim};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, mpsc},
    time::Duration,
};
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

// A recording was decided, written and redacted on the threads of passes, of which there may be two.
#[test]
fn what_readers_ask_for_is_worked_out_by_one_thread_that_no_pass_needs() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let plugins = Plugins::empty(sandbox::Options::new(Executor::blocking())).unwrap();
        plugins.load("kubeflow", Plugins::built_in("kubeflow").unwrap()).unwrap();
        let plugins = Arc::new(plugins);
        let kinds = campaign::kinds(&plugins);
        let life = Life::default().rule("*", "run-for", "1h");
        let sim = Sim::new(sim::Options { kinds, life, ..sim::Options::default() });
        let running = sim.start();
        let options = Options::alone(Clock::starting_at(sim.now()), [1; 32]);
        let mut operator = Operator::new(sim.client(HOST), Arc::clone(&plugins), options);
        let context = operator.context();
        let routes = admin::routes(Arc::clone(&context), Requests::default(), Arc::new(Access::Loopback));
        let host = tokio::spawn(async move { operator.run(std::future::pending()).await });
        submit(&sim, "read");
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(!context.passes().fresh().is_empty());

        let (end, ends) = mpsc::channel();
        let mut taken = Box::pin(plugins.run_beside(move || ends.recv().unwrap()));
        assert!((&mut taken).now_or_never().is_none());
        let paths = [
            "/recording",
            "/jobs",
            "/jobs/tfjobs/default/read",
            "/page/jobs",
            "/page/jobs/tfjobs.kubeflow.org/default/read",
        ];
        let mut answers = paths.map(|path| {
            let routes = routes.clone();
            Box::pin(async move {
                let response = read(&routes, path).await;
                let code = response.status();
                (path, code, to_bytes(response.into_body(), usize::MAX).await.unwrap())
            })
        });
        for (path, answer) in paths.iter().zip(&mut answers) {
            assert!(answer.now_or_never().is_none(), "{path} is answered on the thread of passes");
        }
        submit(&sim, "live");
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(sim.get("v1", "Pod", "default", "live-worker-1").is_some(), "a pass waits for readers");

        host.abort();
        drop(running);
        end.send(()).unwrap();
        taken.await;
        for answer in answers {
            let (path, code, text) = answer.await;
            let text = String::from_utf8_lossy(&text);
            assert!(code == 200 && text.contains("read"), "{path}: {code} {text}");
        }
    });
}

/// Opens a connection on which nothing is asked.
fn connected(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Opens a connection on which the list of jobs is sent for as long as it is open.
fn streaming(address: SocketAddr) -> TcpStream {
    let mut stream = connected(address);
    let head = "GET /page/jobs HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    while !text.contains("data: ") {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&some[..count]));
    }
    stream
}

// The kubelet's probes come from the address of the node, as do those of all pods on its network.
#[test]
fn probes_are_answered_whatever_connections_their_address_has() {
    let (_runtime, address) = admin_port(served(&json!({})));
    let mut idle: Vec<_> = (0..16).map(|_| connected(address)).collect();
    assert_eq!(get(address, "/healthz"), "ok", "beside idle connections");
    assert_eq!(idle[0].read(&mut [0; 1]).unwrap(), 0, "the oldest was closed");

    let streams: Vec<_> = (0..16).map(|_| streaming(address)).collect();
    let _more_idle: Vec<_> = (0..16).map(|_| connected(address)).collect();
    assert_eq!(get(address, "/healthz"), "ok", "beside busy connections");
    assert_eq!(get(address, "/readyz"), "ok");
    let mut other = connected(address);
    other.write_all(b"GET /jobs HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut refused = String::new();
    other.read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("too many connections"), "{refused}");
    drop(streams);
}
