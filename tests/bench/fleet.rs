//! An API server that shows many running PaddleJobs and changes nothing: its pages are made while they are asked for, and
//! the job that they are made of by another process, so that what a process holds is what the host holds.

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::{Client, client::Body};
use lab::campaign::{self, HOST};
use sandbox::{Executor, Plugins};
use serde_json::{Value, json};
use sim::{Life, Sim};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use troupe::{
    clock::Clock,
    control::operator::{Operator, Options},
};

/// Stands nowhere else in the job: a template that differs from job to job would be an edited one.
const NAME: &str = "deep-and-wide";

/// Pods of each job.
pub(crate) const PODS: usize = 4;

/// The version that everything is at.
const VERSION: &str = "1000000";

/// So many jobs, all of them as one that runs.
#[derive(Clone)]
pub(crate) struct Fleet {
    jobs: usize,
    /// The objects of one job by path of their kind.
    objects: Arc<BTreeMap<String, Vec<Template>>>,
    /// Their metadata alone.
    metadata: Arc<BTreeMap<String, Vec<Template>>>,
    writes: Arc<AtomicUsize>,
}

/// The objects of one job whose pods run, by the path of their kind.
pub(crate) type RunningJob = BTreeMap<String, Vec<Value>>;

/// Passes in which a plugin was asked.
pub(crate) fn judged(plugins: &Plugins) -> u64 {
    let calls = plugins.calls();
    calls.iter().filter(|(_, function, _)| function == "judge").map(|(_, _, stats)| stats.count).sum()
}

/// An object as text, cut where it says which job it is of.
struct Template(Vec<Piece>);

enum Piece {
    Text(String),
    Name,
    /// One of the uids of a job's objects.
    Uid(usize),
}

impl Fleet {
    pub(crate) fn new(jobs: usize, like: &RunningJob) -> Self {
        let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap().to_owned();
        let uids: Vec<_> = like.values().flatten().map(uid).collect();
        let templates = |view: fn(&Value) -> Value| {
            let of = |objects: &Vec<Value>| objects.iter().map(|it| Template::new(&view(it), &uids)).collect();
            Arc::new(like.iter().map(|(path, objects)| (path.clone(), of(objects))).collect())
        };
        let metadata = templates(|object| json!({ "metadata": object["metadata"] }));
        Self { jobs, objects: templates(Value::clone), metadata, writes: Arc::default() }
    }

    /// A client of this API server.
    pub(crate) fn client(&self) -> Client {
        let fleet = self.clone();
        let answer = move |request: Request<Body>| std::future::ready(Ok::<_, Infallible>(fleet.answer(&request)));
        Client::new(tower::service_fn(answer), "default")
    }

    /// Requests that would have changed something.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    fn answer(&self, request: &Request<Body>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let whole = |text: Vec<u8>| Response::new(Full::from(text).boxed_unsync());
        let query = request.uri().query().unwrap_or_default();
        let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        if request.method() != http::Method::GET {
            self.writes.fetch_add(1, Ordering::Relaxed);
            return whole(br#"{"metadata":{"resourceVersion":"1"}}"#.to_vec());
        }
        if parameter("watch") == Some("true") {
            let no_events = futures::stream::pending::<Result<Frame<Bytes>, Infallible>>();
            return Response::new(StreamBody::new(no_events).boxed_unsync());
        }
        let whose = parameter("labelSelector").is_none_or(|selector| selector.starts_with("paddle-res"));
        let accepts = request.headers().get(http::header::ACCEPT).and_then(|accepts| accepts.to_str().ok());
        let is_metadata = accepts.is_some_and(|accepts| accepts.contains("as=PartialObjectMetadataList"));
        let objects = if is_metadata { &self.metadata } else { &self.objects };
        let of_kind = objects.get(request.uri().path()).filter(|_| whose);
        let number = |name, otherwise| parameter(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
        let (from, limit) = (number("continue", 0), number("limit", usize::MAX));
        whole(self.page(of_kind.map_or(&[], Vec::as_slice), from, limit))
    }

    fn page(&self, of_job: &[Template], from: usize, limit: usize) -> Vec<u8> {
        let all = self.jobs * of_job.len();
        let to = from.saturating_add(limit).min(all);
        let more = if to < all { to.to_string() } else { String::new() };
        let longest = of_job.iter().map(Template::bytes).max().unwrap_or_default();
        let mut page = String::with_capacity((to - from) * longest + 1024);
        page.push_str(&format!(r#"{{"metadata":{{"resourceVersion":"{VERSION}","continue":"{more}"}},"items":["#));
        for place in from..to {
            if place > from {
                page.push(',');
            }
            of_job[place % of_job.len()].write(&mut page, place / of_job.len());
        }
        page.push_str("]}");
        page.into_bytes()
    }
}

impl Template {
    fn new(object: &Value, uids: &[String]) -> Self {
        let mut pieces = vec![Piece::Text(object.to_string())];
        let mut cut = |token: &str, piece: fn(usize) -> Piece, number: usize| {
            let split = |one: Piece| match one {
                Piece::Text(text) => {
                    let mut parts = Vec::new();
                    for (at, part) in text.split(token).enumerate() {
                        parts.extend((at > 0).then(|| piece(number)));
                        parts.push(Piece::Text(part.to_owned()));
                    }
                    parts
                }
                other => vec![other],
            };
            pieces = std::mem::take(&mut pieces).into_iter().flat_map(split).collect();
        };
        cut(NAME, |_| Piece::Name, 0);
        for (number, uid) in uids.iter().enumerate() {
            cut(uid, Piece::Uid, number);
        }
        Self(pieces)
    }

    /// The most bytes that one job's takes.
    fn bytes(&self) -> usize {
        let of_piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Name | Piece::Uid(_) => 36,
        };
        self.0.iter().map(of_piece).sum::<usize>() + 1
    }

    fn write(&self, page: &mut String, job: usize) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => page.push_str(text),
                Piece::Name => page.push_str(&format!("{NAME}-{job:05}")),
                Piece::Uid(number) => page.push_str(&format!("{number:08x}-0000-4000-8000-{job:012x}")),
            }
        }
    }
}

/// Runs a job on a simulated API server.
pub(crate) fn running_job() -> RunningJob {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let objects = runtime.block_on(async {
        let plugins = Arc::new(Plugins::builtin(Executor::Inline).unwrap());
        let kinds = campaign::kinds(&plugins);
        let sim = Sim::new(sim::Options {
            seed: 1,
            kinds,
            life: Life::default().rule("*", "run-for", "1h"),
            ..sim::Options::default()
        });
        let _running = sim.start();
        let options = Options::alone(Clock::starting_at(sim.now()), [1; 32]);
        let mut operator = Operator::new(sim.client(HOST), plugins, options);
        let host = tokio::spawn(async move { operator.run(std::future::pending()).await });
        sim.create(job());
        tokio::time::sleep(Duration::from_secs(60)).await;
        host.abort();
        let of = |api_version, kind| sim.list(api_version, kind, "default");
        RunningJob::from([
            ("/apis/batch.paddlepaddle.org/v1/paddlejobs".into(), of("batch.paddlepaddle.org/v1", "PaddleJob")),
            ("/api/v1/pods".into(), of("v1", "Pod")),
            ("/api/v1/services".into(), of("v1", "Service")),
            ("/api/v1/configmaps".into(), of("v1", "ConfigMap")),
        ])
    });
    let pods = &objects["/api/v1/pods"];
    assert_eq!(pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count(), PODS);
    objects
}

fn job() -> Value {
    let env: Vec<_> =
        (0..8).map(|n| json!({ "name": format!("SETTING_{n}"), "value": format!("value-{n}") })).collect();
    let container = json!({
        "name": "paddle",
        "image": "registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1",
        "command": ["sh", "-c", "python train.py --epochs 10 --batch-size 128"],
        "resources": { "requests": { "cpu": "4", "memory": "8Gi" }, "limits": { "cpu": "4", "memory": "8Gi" } },
        "volumeMounts": [{ "name": "data", "mountPath": "/data" }, { "name": "shm", "mountPath": "/dev/shm" }],
        "env": env,
    });
    let volumes = json!([
        { "name": "data", "persistentVolumeClaim": { "claimName": "training-data" } },
        { "name": "shm", "emptyDir": { "medium": "Memory", "sizeLimit": "2Gi" } },
    ]);
    let template = json!({ "spec": { "containers": [container], "volumes": volumes } });
    let role = json!({ "replicas": PODS / 2, "template": template });
    json!({
        "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob",
        "metadata": { "name": NAME, "namespace": "default" },
        "spec": { "cleanPodPolicy": "Never", "ps": role, "worker": role },
    })
}
