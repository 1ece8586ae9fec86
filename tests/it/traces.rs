//! Traces of passes, as a collector gets them of a whole host on the simulator: what a trace consists of, and what
//! becomes of jobs while the collector takes nothing.

use crate::{
    built_in,
    cluster::{
        jobs::paddle,
        objects::{PADDLE_JOBS, at},
        world,
    },
    metrics::exposition::Exposition,
    operator,
};
use admin::metrics;
use axum::{Router, body::Bytes, extract::State, routing::post};
use clap::Parser;
use harness::until;
use lab::campaign::{self, HOST};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::{KeyValue, any_value::Value as Attribute},
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use parking_lot::Mutex;
use prost::Message;
use serde_json::{Value, json};
use sim::{ApiError, Life, Matching, Sim};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, LazyLock},
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep},
};
use tower::util::MapRequestLayer;
use tracing::{
    Event, Level, Subscriber,
    dispatcher::Dispatch,
    subscriber::{DefaultGuard, NoSubscriber},
};
use tracing_subscriber::{
    Layer,
    layer::{Context as Surroundings, SubscriberExt},
    registry,
};
use troupe::{
    clock::Clock,
    control::{
        operator::{Ended, Operator, Options},
        reconcile::Context,
    },
    measure::requests::Requests,
    traces::{Settings, Traces},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Something that only the user's own pods may know.
const SECRET: &str = "hunter2";

/// What a collector does with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manners {
    Takes,
    RejectsOne,
    Refuses,
    NeverAnswers,
}

/// What a collector was sent.
#[derive(Debug, Default)]
struct Received {
    services: BTreeSet<String>,
    spans: Vec<Span>,
}

/// A collector on a port of its own. It ends with the value.
struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Received>>,
    task: JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Collector {
    async fn start(manners: Manners) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, received) = (listener.local_addr().unwrap(), Arc::<Mutex<Received>>::default());
        let routes = Router::new().route("/v1/traces", post(take)).with_state((manners, Arc::clone(&received)));
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, received, task }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn spans(&self) -> Vec<Span> {
        self.received.lock().spans.clone()
    }
}

async fn take(
    State((manners, received)): State<(Manners, Arc<Mutex<Received>>)>,
    body: Bytes,
) -> Result<Vec<u8>, http::StatusCode> {
    match manners {
        Manners::NeverAnswers => pending().await,
        Manners::Refuses => return Err(http::StatusCode::SERVICE_UNAVAILABLE),
        Manners::Takes | Manners::RejectsOne => {}
    }
    for of_resource in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
        let resource = of_resource.resource.unwrap();
        let mut received = received.lock();
        received.services.insert(attribute(&resource.attributes, "service.name").unwrap());
        received.spans.extend(of_resource.scope_spans.into_iter().flat_map(|of_scope| of_scope.spans));
    }
    let rejected = ExportTracePartialSuccess { rejected_spans: 1, error_message: "one is too old".into() };
    let partial_success = (manners == Manners::RejectsOne).then_some(rejected);
    Ok(ExportTraceServiceResponse { partial_success }.encode_to_vec())
}

/// A port where nobody listens.
async fn nobody() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn attribute(all: &[KeyValue], key: &str) -> Option<String> {
    let found = all.iter().find(|one| one.key == key)?.value.clone()?.value?;
    Some(match found {
        Attribute::StringValue(text) => text,
        Attribute::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    })
}

fn of(span: &Span, key: &str) -> String {
    attribute(&span.attributes, key).unwrap_or_else(|| panic!("no {key} in {span:?}"))
}

fn hexadecimal(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The spans of each trace, which have the right parents: one root, of which all others are children and within whose
/// time they are.
fn traces(spans: &[Span]) -> BTreeMap<String, Vec<Span>> {
    let mut traces = BTreeMap::<_, Vec<_>>::new();
    for span in spans {
        traces.entry(hexadecimal(&span.trace_id)).or_default().push(span.clone());
    }
    for trace in traces.values_mut() {
        trace.sort_by_key(|span| !span.parent_span_id.is_empty());
        let (root, others) = trace.split_first().unwrap();
        assert!(root.parent_span_id.is_empty() && root.name == "reconcile", "{root:?}");
        for span in others {
            assert_eq!(span.parent_span_id, root.span_id, "{span:?}");
            let within = root.start_time_unix_nano..=root.end_time_unix_nano;
            assert!(
                within.contains(&span.start_time_unix_nano) && within.contains(&span.end_time_unix_nano),
                "{span:?}"
            );
        }
    }
    traces
}

fn names(trace: &[Span]) -> Vec<&str> {
    trace.iter().map(|span| span.name.as_str()).collect()
}

/// How often the host has warned of its traces.
#[derive(Debug, Clone, Default)]
struct Warnings(Arc<Mutex<usize>>);

impl<S: Subscriber> Layer<S> for Warnings {
    fn on_event(&self, event: &Event<'_>, _: Surroundings<'_, S>) {
        let of = event.metadata();
        *self.0.lock() += usize::from(*of.level() == Level::WARN && of.target().starts_with("troupe::traces"));
    }
}

/// A host on a simulated cluster. On the thread that made it, spans go to its traces as long as the value lives.
struct World {
    sim: Sim,
    context: Arc<Context>,
    requests: Requests,
    /// `traceparent` of each request that had one.
    parents: Arc<Mutex<Vec<String>>>,
    warnings: Warnings,
    _life: sim::Running,
    _spans: Option<DefaultGuard>,
    stop: oneshot::Sender<()>,
    host: JoinHandle<Ended>,
}

impl World {
    fn new(endpoint: Option<&str>, share: Option<&str>) -> Self {
        let plugins = Arc::new(built_in::plugins());
        let life = Life::default().rule("*", "run-for", "1s");
        let sim = Sim::new(sim::Options { kinds: campaign::kinds(&plugins), life, ..sim::Options::default() });
        let life = sim.start();
        let warnings = Warnings::default();
        let (traces, spans) = endpoint.map(|url| tracer(url, share, warnings.clone())).unzip();
        let options = Options { traces, ..Options::alone(Clock::starting_at(sim.now()), [1; 32]) };
        let (requests, parents) = (Requests::default(), Arc::<Mutex<Vec<String>>>::default());
        let seen = Arc::clone(&parents);
        let note = MapRequestLayer::new(move |request: http::Request<kube::client::Body>| {
            let parent = request.headers().get("traceparent").map(|parent| parent.to_str().unwrap().to_owned());
            seen.lock().extend(parent);
            request
        });
        let mut operator = Operator::new(sim.client_through(HOST, &note), plugins, options);
        let (context, (stop, stopped)) = (operator.context(), oneshot::channel());
        let host = tokio::spawn(async move { operator.run(async { stopped.await.unwrap() }).await });
        Self { sim, context, requests, parents, warnings, _life: life, _spans: spans, stop, host }
    }

    fn make(&self, name: &str) {
        let environment = json!([{ "name": "PASSWORD", "value": SECRET }]);
        let containers = json!([{ "name": "main", "image": "x", "env": environment, "args": [SECRET] }]);
        self.sim.create(json!({
            "apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob",
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "worker": { "replicas": 2, "template": { "spec": { "containers": containers } } } },
        }));
    }

    fn job(&self, name: &str) -> Value {
        self.sim.get("batch.paddlepaddle.org/v1", "PaddleJob", "default", name).unwrap()
    }

    fn metrics(&self) -> String {
        metrics::text(&self.context, &self.requests).unwrap()
    }

    /// Spans that were dropped because the queue was full, and because the collector did not take them.
    fn dropped(&self) -> [f64; 2] {
        let read = Exposition::parse(&self.metrics());
        ["QueueFull", "NotTaken"]
            .map(|reason| read.value("troupe_trace_spans_dropped_total", &format!("reason=\"{reason}\"")))
    }

    async fn ended(&self, name: &str) {
        let ended =
            until(PATIENCE, name, || async { Ok((self.job(name)["status"]["phase"] == "Completed").then_some(())) });
        ended.await.unwrap();
    }

    /// Stops the host, and returns how long that took.
    async fn stop(self) -> Duration {
        let begun = Instant::now();
        self.stop.send(()).unwrap();
        assert_eq!(self.host.await.unwrap(), Ended::AsAsked);
        begun.elapsed()
    }
}

fn tracer(url: &str, share: Option<&str>, warnings: Warnings) -> (Arc<Traces>, DefaultGuard) {
    // With one subscriber alone, tracing asks that of the thread whether anybody wants a span, once for all threads: if
    // that of another test is the first, nobody does.
    static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));
    LazyLock::force(&ANOTHER);
    let share = share.map(|share| share.parse().unwrap());
    let settings = Settings { endpoint: url.parse().unwrap(), share, headers: String::new() };
    let (traces, layer) = Traces::new(settings).unwrap();
    (traces, tracing::subscriber::set_default(registry().with(layer).with(warnings)))
}

/// On one thread, whose spans are those of one host.
fn in_real_time(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// Where nothing depends on when an answer of a collector comes: the clock does not wait for sockets.
fn in_virtual_time(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(test);
}

#[test]
fn a_pass_is_one_trace_with_a_span_for_each_call_of_a_plugin_and_each_write() {
    in_real_time(async {
        let collector = Collector::start(Manners::Takes).await;
        let world = World::new(Some(&collector.url()), None);
        let quota = ApiError::forbidden("pods", "", &format!("exceeded quota because of {SECRET}"));
        world.make("wide");
        world.ended("wide").await;
        world.sim.refuse(Matching::create("pods"), quota);
        world.make("refused");
        let failed = |trace: &Vec<Span>| of(&trace[0], "result") == "error";
        let seen = until(PATIENCE, "a failed pass", || async {
            Ok(traces(&whole(&collector.spans())).values().any(failed).then_some(()))
        });
        seen.await.unwrap();
        let (text, parents, job) = (world.metrics(), Arc::clone(&world.parents), world.job("wide"));
        assert_eq!(world.dropped(), [0.0, 0.0]);
        world.stop().await;

        let spans = collector.spans();
        assert_eq!(collector.received.lock().services.iter().collect::<Vec<_>>(), ["troupe"]);
        let traces = traces(&spans);
        let of_wide = || traces.values().filter(|trace| of(&trace[0], "name") == "wide");
        let first = of_wide().find(|trace| names(trace).contains(&"POST Pod")).unwrap();
        for name in ["plan", "bind", "judge", "PATCH PaddleJob", "POST Event"] {
            assert!(names(first).contains(&name), "no {name} in {:?}", names(first));
        }
        let root = &first[0];
        assert_eq!(
            ["group", "kind", "namespace", "name", "generation", "result"].map(|key| of(root, key)),
            [
                "batch.paddlepaddle.org",
                "PaddleJob",
                "default",
                "wide",
                &job["metadata"]["generation"].to_string(),
                "success"
            ]
        );
        assert_eq!(json!(of(root, "digest")), job["status"]["troupe"]["digest"]);
        let judge = first.iter().find(|span| span.name == "judge").unwrap();
        assert_eq!(["plugin", "outcome"].map(|key| of(judge, key)), ["paddle", "answered"]);
        assert!(of(judge, "fuel").parse::<u64>().unwrap() > 1000, "{judge:?}");
        let made = first.iter().filter(|span| span.name == "POST Pod");
        let made = made.map(|span| {
            assert_eq!(span.kind(), SpanKind::Client);
            assert_eq!(span.status.as_ref().unwrap().code(), StatusCode::Ok);
            ["http.request.method", "kind", "name", "http.response.status_code"].map(|key| of(span, key)).join(" ")
        });
        assert_eq!(made.collect::<BTreeSet<_>>(), ["0", "1"].map(|of| format!("POST Pod wide-worker-{of} 201")).into());

        let failed = traces.values().find(|trace| failed(trace)).unwrap();
        let refused = failed.iter().find(|span| span.name == "POST Pod").unwrap();
        assert_eq!(of(refused, "http.response.status_code"), "403");
        for span in [&failed[0], refused] {
            assert_eq!(span.status.as_ref().unwrap().code(), StatusCode::Error);
        }
        assert!(!format!("{spans:?}").contains(SECRET), "{spans:?}");

        // Requests name their spans to the API server, all of them, and no request outside of a pass names one.
        let client = spans.iter().filter(|span| span.kind() == SpanKind::Client);
        let client = client.map(|span| format!("00-{}-{}-01", hexadecimal(&span.trace_id), hexadecimal(&span.span_id)));
        let parents = parents.lock().clone();
        assert_eq!(client.collect::<BTreeSet<_>>(), parents.into_iter().collect());

        let exemplars: Vec<_> = text.lines().filter_map(|line| line.split_once(" # {trace_id=\"")).collect();
        assert!(!exemplars.is_empty(), "{text}");
        for (sample, exemplar) in exemplars {
            assert!(sample.starts_with("controller_runtime_reconcile_time_seconds_bucket{"), "{sample}");
            let (id, _) = exemplar.split_once('"').unwrap();
            assert!(traces.contains_key(id), "{id} was not sent");
        }
    });
}

/// The spans of traces of which the root is there, too: it ends last.
fn whole(spans: &[Span]) -> Vec<Span> {
    let roots: Vec<_> = spans.iter().filter(|span| span.parent_span_id.is_empty()).map(|span| &span.trace_id).collect();
    spans.iter().filter(|span| roots.contains(&&span.trace_id)).cloned().collect()
}

/// Runs jobs to their ends, and returns how long that takes by the simulator's clock, and what is dropped.
async fn run(endpoint: Option<&str>, share: Option<&str>, jobs: usize) -> (Vec<Value>, World) {
    let world = World::new(endpoint, share);
    (0..jobs).for_each(|number| world.make(&format!("job-{number}")));
    sleep(Duration::from_secs(60)).await;
    let ends = (0..jobs).map(|number| {
        let status = world.job(&format!("job-{number}"))["status"].clone();
        assert_eq!(status["phase"], "Completed");
        status["completionTime"].clone()
    });
    (ends.collect(), world)
}

#[test]
fn jobs_end_as_soon_as_without_traces_where_the_collector_is_away_or_refuses_or_hangs() {
    in_virtual_time(async {
        let (undisturbed, world) = run(None, None, 3).await;
        let task = "troupe_task_restarts_total{task=\"traces\"} 0\n";
        assert!(!world.metrics().contains(task) && !world.metrics().contains("troupe_trace"), "{}", world.metrics());
        world.stop().await;
        let [refusing, hanging] = [Manners::Refuses, Manners::NeverAnswers].map(Collector::start);
        let (refusing, hanging) = (refusing.await, hanging.await);
        for endpoint in [nobody().await, refusing.url(), hanging.url()] {
            let (ends, world) = run(Some(&endpoint), None, 3).await;
            assert_eq!(ends, undisturbed, "{endpoint}");
            let [queue_full, not_taken] = world.dropped();
            assert!(world.metrics().contains(task), "{}", world.metrics());
            assert!(queue_full == 0.0 && not_taken > 50.0, "{endpoint}: {not_taken}");
            let took = world.stop().await;
            assert!(took <= Duration::from_secs(5), "{took:?}");
        }
    });
}

#[test]
fn what_waits_for_a_collector_that_hangs_is_bounded() {
    in_virtual_time(async {
        let hanging = Collector::start(Manners::NeverAnswers).await;
        let (_, world) = run(Some(&hanging.url()), None, 100).await;
        let [queue_full, not_taken] = world.dropped();
        assert!(queue_full > 100.0 && not_taken >= 4.0 * 512.0, "{queue_full} {not_taken}");
        assert_eq!(*world.warnings.0.lock(), 1, "of several batches within a minute");
        world.stop().await;
    });
}

#[test]
fn spans_that_the_collector_rejects_are_counted() {
    in_real_time(async {
        let collector = Collector::start(Manners::RejectsOne).await;
        let world = World::new(Some(&collector.url()), None);
        world.make("wide");
        let counted = until(PATIENCE, "a rejected span", || async { Ok((world.dropped()[1] > 0.0).then_some(())) });
        counted.await.unwrap();
        world.stop().await;
    });
}

#[test]
fn passes_that_are_not_sampled_are_not_sent_and_are_no_exemplar() {
    in_virtual_time(async {
        let (_, world) = run(Some(&nobody().await), Some("0"), 1).await;
        assert_eq!(world.dropped(), [0.0, 0.0]);
        let text = world.metrics();
        assert!(
            text.contains("controller_runtime_reconcile_time_seconds_bucket") && !text.contains("trace_id"),
            "{text}"
        );
        assert!(world.parents.lock().is_empty());
        world.stop().await;
    });
}

#[test]
fn a_flag_that_cannot_be_right_is_refused_with_what_would_be() {
    let error = |flag: &str, value: &str| {
        let flag = format!("{flag}={value}");
        troupe_cli::args::Args::try_parse_from(["troupe", "operator", &flag]).expect_err(value).to_string()
    };
    for (value, told) in [
        ("collector:4318", "http://collector.observability:4318"),
        ("grpc://collector:4317", "it must be http:// or https://"),
        ("/v1/traces", "it must be http:// or https://"),
        ("http://", "it must be http:// or https://"),
        ("", "it must be http:// or https://"),
        ("http://user:password@collector:4318", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("http://collector:4318/v1/traces", "without /v1/traces, which is appended"),
        ("http://collector:4318/?a=b", "without ? and what follows"),
        ("http://collector:4318/#a", "without ? and what follows"),
    ] {
        let error = error("--otlp-endpoint", value);
        assert!(error.contains(told), "{value}: {error}");
    }
    for value in ["1.5", "-0.1", "NaN", "all", "50%"] {
        let error = error("--otlp-sample", value);
        assert!(error.contains("from 0 (no pass) to 1 (every pass)"), "{value}: {error}");
    }
}

#[tokio::test]
#[cfg_attr(lacks_cluster, ignore = "needs Go and openssl")]
async fn the_binary_sends_what_it_has_left_when_it_is_asked_to_stop() {
    let collector = Collector::start(Manners::Takes).await;
    let world = world::World::shared("traces").await;
    let arguments = ["--namespace", &world.name, "--otlp-endpoint", &collector.url()];
    let host = operator::Operator::start(&world.plane, &arguments).await;
    world.create(&PADDLE_JOBS, &paddle("traced").worker(1).runs("1s").manifest).await;
    let completed = |job: &Value| at(job, "/status/phase") == "Completed";
    world.is(&PADDLE_JOBS, "traced", "Completed", completed).await;
    host.stop().await;
    let traces = traces(&collector.spans());
    let made = traces.values().flatten().find(|span| span.name == "POST Pod").unwrap();
    assert_eq!(["name", "http.response.status_code"].map(|key| of(made, key)), ["traced-worker-0", "201"]);
    assert!(traces.values().any(|trace| names(trace).contains(&"judge") && names(trace).contains(&"PATCH PaddleJob")));
}
