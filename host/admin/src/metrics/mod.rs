//! What Prometheus reads of a host.

pub mod originals;
mod page;
mod process;
pub mod table;

use page::{Kept, KeptHistogram, One, Page};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
};
use sandbox::{BUCKETS, CallStats, Position};
use std::{collections::HashSet, fmt, time::Duration};
use troupe::{
    control::{queue, reconcile::Context},
    job_key::GroupKind,
    measure::{
        Controller, OfKind, OfReason,
        jobs::{JobCounts, Phase},
        requests::Requests,
    },
    observe::stores::Progress,
};

/// The one work queue, as the value of a label.
const QUEUE: OfQueue = OfQueue { name: "jobs" };

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfQueue {
    name: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLease {
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResource {
    resource: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPhase {
    controller: Controller,
    phase: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFunction {
    plugin: String,
    function: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPlugin {
    plugin: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRevision {
    plugin: String,
    digest: String,
    role: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTrial {
    plugin: String,
    class: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCause {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTask {
    task: &'static str,
}

/// The content type of [`text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the metrics of a host, and of the requests of its clients, in the format of OpenMetrics.
///
/// # Errors
/// Never, but the encoder's type says so.
pub fn text(context: &Context, requests: &Requests) -> Result<String, fmt::Error> {
    let mut page = Page::default();
    let kinds: Vec<GroupKind> = context.stores().layout().kinds().keys().cloned().collect();
    passes(&mut page, context, &kinds);
    queue(&mut page, context);
    page.add(&table::REQUESTS, requests.answers.clone());
    page.add(&table::REQUEST_SECONDS, requests.seconds.clone());
    let lease = context.lease().map(|(name, leads)| (OfLease { name: name.to_owned() }, i64::from(leads)));
    page.gauges(&table::LEADER, lease);
    process::add_to(&mut page);
    jobs(&mut page, context, &kinds);
    calls(&mut page, context);
    revisions(&mut page, context);
    trials(&mut page, context);
    breakers(&mut page, context);
    host(&mut page, context);
    if context.has_compat_metrics() {
        originals::add_to(&mut page, context);
    }
    page.text()
}

fn passes(page: &mut Page, context: &Context, kinds: &[GroupKind]) {
    let passes = context.measured();
    kinds.iter().for_each(|kind| passes.begin(kind));
    page.add(&table::RECONCILES, passes.results.clone());
    page.add(&table::RECONCILE_ERRORS, passes.errors.clone());
    page.add(&table::RECONCILE_PANICS, passes.panics.clone());
    page.add(&table::RECONCILE_SECONDS, passes.seconds.clone());
    let of_each = |value| kinds.iter().map(move |kind| (OfKind::new(kind), value));
    let active = context.queue().under_way().into_iter().map(|pass| (OfKind::new(&pass.kind), 1));
    page.gauges(&table::ACTIVE_WORKERS, of_each(0).chain(active));
    page.gauges(&table::MAX_WORKERS, of_each(whole(queue::PASSES)));
}

fn queue(page: &mut Page, context: &Context) {
    let queue = context.queue();
    let (counts, times) = (queue.counts(), queue.times());
    page.gauges(&table::QUEUE_DEPTH, [(QUEUE, whole(counts.depth))]);
    page.counts(&table::QUEUE_ADDS, [(QUEUE, counts.adds)]);
    page.counts(&table::QUEUE_RETRIES, [(QUEUE, counts.retries)]);
    page.add(&table::QUEUE_SECONDS, One(QUEUE, times.waited.clone()));
    page.add(&table::WORK_SECONDS, One(QUEUE, times.worked.clone()));
    let ages: Vec<Duration> = queue.under_way().into_iter().map(|pass| pass.since).collect();
    let oldest = ages.iter().max().copied().unwrap_or_default();
    page.real_gauges(&table::LONGEST_WORK, [(QUEUE, oldest.as_secs_f64())]);
    page.real_gauges(&table::UNFINISHED_WORK, [(QUEUE, ages.iter().sum::<Duration>().as_secs_f64())]);
}

fn jobs(page: &mut Page, context: &Context, kinds: &[GroupKind]) {
    let jobs = context.jobs();
    let JobCounts { phases, waits } = jobs.count();
    let of = |kind: &GroupKind, phase: Phase| OfPhase { controller: Controller(kind.clone()), phase: phase.as_str() };
    let none = kinds.iter().flat_map(|kind| Phase::ALL.map(|phase| (of(kind, phase), 0)));
    page.gauges(&table::JOBS, none.chain(phases.iter().map(|((kind, phase), count)| (of(kind, *phase), *count))));
    let waits = waits.into_iter();
    let waits = waits.map(|((kind, reason), count)| (OfReason { controller: Controller(kind), reason }, count));
    page.gauges(&table::JOBS_WAITING, waits);
    page.add(&table::JOBS_CREATED, jobs.created.clone());
    page.add(&table::UNTIL_PODS, jobs.until_pods.clone());
    page.add(&table::UNTIL_RUNNING, jobs.until_running.clone());
    page.add(&table::UNTIL_END, jobs.until_end.clone());
    page.add(&table::REPLACED, jobs.replaced.clone());
    page.add(&table::FAILED_WRITES, jobs.failed_writes.clone());
    page.add(&table::REJECTIONS, jobs.rejections.clone());
    page.add(&table::FAULTS, jobs.faults.clone());
}

fn calls(page: &mut Page, context: &Context) {
    let calls = context.plugins().calls().into_iter();
    let calls: Vec<_> = calls.map(|(plugin, function, stats)| (OfFunction { plugin, function }, stats)).collect();
    let all = || calls.iter().map(|(labels, stats)| (labels.clone(), stats));
    page.add(&table::PLUGIN_SECONDS, Kept(all().map(|(labels, stats)| (labels, durations(stats))).collect()));
    page.counts(&table::PLUGIN_FAULTS, all().map(|(labels, stats)| (labels, stats.faults)));
    page.counts(&table::PLUGIN_FUEL, all().map(|(labels, stats)| (labels, stats.fuel)));
}

fn revisions(page: &mut Page, context: &Context) {
    let layout = context.stores().layout();
    // A framework has a route of its own for each of its kinds.
    let revisions: HashSet<_> = layout
        .kinds()
        .values()
        .flat_map(|served| {
            let active = served.route.active.iter().map(|digest| ("active", digest));
            let canary = served.route.canary.iter().map(|(digest, _)| ("canary", digest));
            active.chain(canary).map(|(role, digest)| OfRevision {
                plugin: served.framework.name.clone(),
                digest: digest.short().to_owned(),
                role,
            })
        })
        .collect();
    page.gauges(&table::REVISIONS, revisions.into_iter().map(|labels| (labels, 1)));
}

fn trials(page: &mut Page, context: &Context) {
    let trials = context.trials().all().into_iter().flat_map(|(plugin, trial)| {
        let live = &trial.live;
        let classes = [
            ("all", live.passes),
            ("different", live.different),
            ("dangerous", live.dangerous),
            ("failed", live.failed),
            ("dropped", trial.dropped),
        ];
        classes.map(|(class, passes)| (OfTrial { plugin: plugin.clone(), class }, i64::from(passes)))
    });
    page.gauges(&table::TRIALS, trials);
}

fn breakers(page: &mut Page, context: &Context) {
    let breakers = context.plugins().breakers(context.clock().now());
    let of = |plugin: &String| OfPlugin { plugin: plugin.clone() };
    let states = Family::<OfPlugin, Gauge>::default();
    for breaker in &breakers {
        // The worst of the plugin's digests.
        let state = states.get_or_create(&of(&breaker.plugin));
        state.set(state.get().max(match breaker.position {
            Position::Closed => 0,
            Position::HalfOpen => 1,
            Position::Open { .. } => 2,
        }));
    }
    page.add(&table::BREAKER, states);
    page.gauges(&table::BREAKER_JOBS, breakers.iter().map(|it| (of(&it.plugin), whole(it.jobs))));
    page.gauges(&table::BREAKER_NAMESPACES, breakers.iter().map(|it| (of(&it.plugin), whole(it.namespaces))));
}

fn host(page: &mut Page, context: &Context) {
    let watched = context.stores().progress().into_iter();
    let watched =
        watched.map(|Progress { watch, objects, .. }| (OfResource { resource: watch.resource.plural }, whole(objects)));
    page.gauges(&table::WATCHED, watched);
    page.gauge(&table::READY, context.is_ready());
    page.add(&table::POLICIES, context.policies().clone());
    let dropped = context.traces().into_iter().flat_map(|traces| traces.dropped().read());
    page.counts(&table::SPANS_DROPPED, dropped.map(|(cause, spans)| (OfCause { reason: cause.as_str() }, spans)));
    let restarts = context.restarts().read().into_iter().map(|(task, count)| (OfTask { task }, count));
    page.counts(&table::TASK_RESTARTS, restarts);
}

fn durations(stats: &CallStats) -> KeptHistogram {
    let bounds = BUCKETS.iter().map(Duration::as_secs_f64).chain([f64::INFINITY]);
    KeptHistogram { sum: stats.total.as_secs_f64(), count: stats.count, buckets: bounds.zip(stats.buckets).collect() }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
