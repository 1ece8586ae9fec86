//! Traces of passes by OTLP over HTTP: a pass is a trace, with a span for each call of a plugin and each request to the
//! API server.
//!
//! Spans end in a bounded queue, from which one task sends them. No pass waits for a collector: what the queue or the
//! collector does not take is dropped and counted.

mod collector;
mod endpoint;
mod queue;
pub(crate) mod spans;

pub use endpoint::{Endpoint, EndpointError, Share, ShareError};
pub use queue::{Cause, Dropped};

use crate::{
    control::supervise::{AbortOnDrop, Restarts, supervise},
    error::chain,
};
use collector::{Collector, SendError, headers};
use opentelemetry::{Key, KeyValue, trace::TracerProvider};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracerProvider, SpanData},
};
use queue::Queue;
use sandbox::trace::TARGET;
use std::{io, mem, sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex, Notify, mpsc},
    time::{Instant, timeout},
};
use tracing::{level_filters::LevelFilter, warn};
use tracing_subscriber::{Layer, Registry, filter::Targets};

/// The upper limit of spans that wait to be sent. A span has about 1 KB.
const WAITING: usize = 2048;

/// The upper limit of spans in one request.
const BATCH: usize = 512;

/// How long the first span of a request waits for others.
const GATHERING: Duration = Duration::from_secs(1);

/// How long a host that ends waits for what it still has to send.
const AT_THE_END: Duration = Duration::from_secs(5);

/// Least time between two warnings about dropped spans.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);

/// What makes traces of the spans of `tracing`.
pub type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Why passes cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// There are no certificate authorities to check the collector by.
    #[error("the certificate authorities of this machine cannot be read; they are needed for https")]
    Tls(#[source] io::Error),
    /// A part of the list of headers is none.
    #[error("OTEL_EXPORTER_OTLP_HEADERS must be a list of headers such as authorization=Bearer%20TOKEN,tenant=1")]
    Header,
}

/// Where traces go, and which.
#[derive(Debug)]
pub struct Settings {
    /// The collector.
    pub endpoint: Endpoint,
    /// The share of passes that are traced; `None`: what the standard's `OTEL_TRACES_SAMPLER` says, or all.
    pub share: Option<Share>,
    /// Headers for the collector in the form of the standard's `OTEL_EXPORTER_OTLP_HEADERS`; may be empty.
    pub headers: String,
}

/// The traces of a host.
pub struct Traces {
    dropped: Arc<Dropped>,
    outgoing: Mutex<Outgoing>,
    stop: Notify,
    sent: Notify,
}

/// What the task that sends spans needs.
struct Outgoing {
    waiting: mpsc::Receiver<SpanData>,
    collector: Collector,
    warned: Option<Instant>,
    /// How many dropped spans warnings have told of.
    told: u64,
}

impl Traces {
    /// Returns traces, and the layer of the subscriber that they are made by. Starts no task and connects to nothing.
    /// The service is `troupe` unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` names it.
    ///
    /// # Errors
    /// If the settings cannot be used on this machine.
    pub fn new(settings: Settings) -> Result<(Arc<Self>, SpanLayer), TracesError> {
        let resource = resource();
        let collector = Collector::new(settings.endpoint, headers(&settings.headers)?, &resource)?;
        let (sender, waiting) = mpsc::channel(WAITING);
        let dropped = Arc::<Dropped>::default();
        let queue = Queue { sender, dropped: Arc::clone(&dropped) };
        let mut provider = SdkTracerProvider::builder().with_resource(resource).with_span_processor(queue);
        if let Some(share) = settings.share {
            provider = provider.with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(share.ratio()))));
        }
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.build().tracer("troupe"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .with_filter(Targets::new().with_target(TARGET, LevelFilter::TRACE));
        let outgoing = Mutex::new(Outgoing { waiting, collector, warned: None, told: 0 });
        let (stop, sent) = (Notify::new(), Notify::new());
        Ok((Arc::new(Self { dropped, outgoing, stop, sent }), layer.boxed()))
    }

    /// Returns how many spans were dropped.
    #[must_use]
    pub fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    /// Sends spans until the value is dropped.
    pub(crate) fn send(self: &Arc<Self>, restarts: &Arc<Restarts>) -> AbortOnDrop {
        let traces = Arc::clone(self);
        supervise("traces", restarts, move || {
            let traces = Arc::clone(&traces);
            async move { traces.run().await }
        })
    }

    /// Has the rest sent, and waits for that, but not for long.
    pub(crate) async fn finish(&self) {
        self.stop.notify_one();
        if timeout(AT_THE_END, self.sent.notified()).await.is_err() {
            let seconds = AT_THE_END.as_secs();
            warn!(seconds, "the latest traces are not sent: the collector does not take them in time");
        }
    }

    async fn run(&self) {
        let mut outgoing = self.outgoing.lock().await;
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = self.stop.notified() => outgoing.waiting.close(),
                () = gather(&mut outgoing.waiting, &mut batch) => if batch.is_empty() { break },
            }
            if !batch.is_empty() {
                outgoing.deliver(mem::take(&mut batch), &self.dropped).await;
            }
        }
        self.sent.notify_one();
        // A task that ends is started again.
        std::future::pending::<()>().await;
    }
}

/// Adds to the batch what waits, at least one span. Adds none only if the queue is closed and empty.
async fn gather(waiting: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) {
    waiting.recv_many(batch, BATCH).await;
    let others = async { while batch.len() < BATCH && waiting.recv_many(batch, BATCH - batch.len()).await > 0 {} };
    // The batch goes as it is when the time is over.
    let _ = timeout(GATHERING, others).await;
}

impl Outgoing {
    async fn deliver(&mut self, batch: Vec<SpanData>, dropped: &Dropped) {
        let spans = batch.len() as u64;
        let result = self.collector.send(batch).await;
        dropped.add(Cause::NotTaken, *result.as_ref().unwrap_or(&spans));
        self.warn(dropped.total(), result.err().as_ref());
    }

    /// Warns of dropped spans, at most once in a while.
    fn warn(&mut self, dropped: u64, error: Option<&SendError>) {
        if dropped == self.told || self.warned.is_some_and(|at| at.elapsed() < BETWEEN_WARNINGS) {
            return;
        }
        let spans = dropped - self.told;
        let error = error.map_or_else(|| "more spans than are sent, or some were rejected".to_owned(), |it| chain(it));
        warn!(endpoint = %self.collector.endpoint(), spans, error, "spans of traces were dropped; jobs go on");
        (self.warned, self.told) = (Some(Instant::now()), dropped);
    }
}

/// Returns what the standard's variables say of this service, with a name in any case.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let known = Resource::builder().with_attribute(version.clone()).build();
    let name = known.get(&Key::from_static_str("service.name"));
    if name.is_some_and(|name| !name.as_str().starts_with("unknown_service")) {
        return known;
    }
    Resource::builder().with_attribute(version).with_service_name("troupe").build()
}
