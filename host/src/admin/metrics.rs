//! Prometheus metrics of the host.

use crate::{control::reconcile::Context, delivery, observe::stores::Progress};
use http::{Method, Request, Response};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};
use sandbox::Position;
use std::{
    sync::Arc,
    task::{self, Poll},
};
use tower::{Layer, Service};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    resource: String,
    code: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabels {
    resource: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PluginLabels {
    plugin: String,
    function: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BreakerLabels {
    plugin: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RevisionLabels {
    plugin: String,
    digest: String,
    role: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TrialLabels {
    plugin: String,
    class: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TaskLabels {
    task: &'static str,
}

/// Counters and gauges of one host.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
}

impl Metrics {
    /// Returns a layer for the client that counts each request by verb, resource and response code.
    #[must_use]
    pub fn layer(&self) -> CountRequests {
        CountRequests(self.clone())
    }

    /// Returns all metrics in the Prometheus text format.
    #[must_use]
    pub fn text(&self, context: &Context) -> String {
        let mut registry = Registry::with_prefix("troupe");
        registry.register("api_requests", "Requests to the API server", self.requests.clone());
        let depth = Gauge::<i64>::default();
        depth.set(i64::try_from(context.queue().depth()).unwrap_or(i64::MAX));
        registry.register("queue_depth", "Jobs that are ready to be looked at", depth);
        let objects = Family::<ResourceLabels, Gauge>::default();
        for Progress { watch, objects: size, .. } in context.stores().progress() {
            let labels = ResourceLabels { resource: watch.resource.plural };
            objects.get_or_create(&labels).inc_by(i64::try_from(size).unwrap_or(i64::MAX));
        }
        registry.register("watched_objects", "Objects that the watches hold", objects);
        let failed = Counter::<u64>::default();
        failed.inc_by(context.failed());
        registry.register("failed_passes", "Passes over a job that have to be tried again", failed);
        let restarts = Family::<TaskLabels, Counter>::default();
        for (task, count) in context.restarts().read() {
            restarts.get_or_create(&TaskLabels { task }).inc_by(count);
        }
        registry.register("task_restarts", "Long-lived tasks that panicked or ended, and were started again", restarts);
        let panicked = Counter::<u64>::default();
        panicked.inc_by(context.panics().into());
        registry.register("panicked_passes", "Passes over a job in which the host panicked", panicked);
        let calls = Family::<PluginLabels, Counter>::default();
        let seconds = Family::<PluginLabels, Counter<f64, std::sync::atomic::AtomicU64>>::default();
        for (plugin, function, stats) in context.plugins().calls() {
            let labels = PluginLabels { plugin, function };
            calls.get_or_create(&labels).inc_by(stats.count);
            seconds.get_or_create(&labels).inc_by(stats.total.as_secs_f64());
        }
        registry.register("plugin_calls", "Calls of plugins", calls);
        registry.register("plugin_call_seconds", "Time spent in calls of plugins", seconds);
        let revisions = Family::<RevisionLabels, Gauge>::default();
        for served in context.stores().layout().kinds().values() {
            let canary = served.route.canary.as_ref().map(|(digest, _)| ("canary", digest));
            for (role, digest) in served.route.active.iter().map(|digest| ("active", digest)).chain(canary) {
                let (plugin, digest) = (served.framework.name.clone(), delivery::short(digest).to_owned());
                revisions.get_or_create(&RevisionLabels { plugin, digest, role }).set(1);
            }
        }
        registry.register("plugin_revision_info", "Digests that plan new jobs", revisions);
        let trials = Family::<TrialLabels, Gauge>::default();
        for (plugin, trial) in context.delivery.trials.all() {
            let live = &trial.live;
            let classes = [
                ("all", live.passes),
                ("different", live.different),
                ("dangerous", live.dangerous),
                ("failed", live.failed),
                ("dropped", trial.dropped),
            ];
            for (class, passes) in classes {
                trials.get_or_create(&TrialLabels { plugin: plugin.clone(), class }).set(passes.into());
            }
        }
        registry.register("plugin_trial_passes", "Passes that a candidate was shown beside the active digest", trials);
        let [breakers, paused, namespaces] = [(); 3].map(|()| Family::<BreakerLabels, Gauge>::default());
        for breaker in context.plugins().breakers(context.clock.now()) {
            let labels = BreakerLabels { plugin: breaker.plugin };
            paused.get_or_create(&labels).inc_by(i64::try_from(breaker.jobs).unwrap_or(i64::MAX));
            namespaces.get_or_create(&labels).inc_by(i64::try_from(breaker.namespaces).unwrap_or(i64::MAX));
            let state = breakers.get_or_create(&labels);
            state.set(state.get().max(match breaker.position {
                Position::Closed => 0,
                Position::HalfOpen => 1,
                Position::Open { .. } => 2,
            }));
        }
        let help = "Whether plugins are asked: 0 yes, 1 by one namespace to see whether they answer, 2 no";
        registry.register("plugin_breaker_state", help, breakers);
        registry.register("plugin_breaker_jobs", "Jobs about which their plugin is not asked for a while", paused);
        let help = "Namespaces about whose jobs their plugin is not asked for a while";
        registry.register("plugin_breaker_namespaces", help, namespaces);
        let mut text = String::new();
        if encode(&mut text, &registry).is_err() {
            text.clear();
        }
        text
    }

    fn count(&self, verb: &'static str, resource: String, code: u16) {
        self.requests.get_or_create(&RequestLabels { verb, resource, code }).inc();
    }
}

/// The layer of [`Metrics::layer`].
#[derive(Debug, Clone)]
pub struct CountRequests(Metrics);

impl<S> Layer<S> for CountRequests {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Counting<S> {
        Counting { metrics: Arc::new(self.0.clone()), inner }
    }
}

/// The service of [`Metrics::layer`].
#[derive(Debug, Clone)]
pub struct Counting<S> {
    metrics: Arc<Metrics>,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for Counting<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (verb, resource) = (verb(&request), resource(request.uri().path()));
        let metrics = self.metrics.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            metrics.count(verb, resource, answer.as_ref().map_or(0, |response| response.status().as_u16()));
            answer
        })
    }
}

fn verb<B>(request: &Request<B>) -> &'static str {
    match *request.method() {
        Method::GET if request.uri().query().is_some_and(|query| query.contains("watch=true")) => "watch",
        Method::GET => "get",
        Method::POST => "create",
        Method::PATCH => "patch",
        Method::PUT => "update",
        Method::DELETE => "delete",
        _ => "other",
    }
}

/// Returns the plural in a path, with its subresource, and never a name, so that the number of labels stays small.
fn resource(path: &str) -> String {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let skip = if parts.next() == Some("api") { 1 } else { 2 };
    let rest: Vec<_> = parts.skip(skip).collect();
    match rest.as_slice() {
        ["namespaces", _, plural, _, sub] => format!("{plural}/{sub}"),
        ["namespaces", _, plural, ..] | [plural, ..] => (*plural).to_owned(),
        [] => "other".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_the_plural_and_never_a_name() {
        assert_eq!(resource("/api/v1/namespaces/ns/pods/wide-ps-0"), "pods");
        assert_eq!(resource("/api/v1/pods"), "pods");
        assert_eq!(resource("/apis/kubeflow.org/v2beta1/namespaces/ns/mpijobs/pi/status"), "mpijobs/status");
        assert_eq!(resource("/version"), "other");
    }
}
