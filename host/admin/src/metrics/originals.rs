//! The metrics of the original operators under their own names: `--compat-metrics`. Each plugin says which its original
//! had; what is counted is the same for all.

use super::{
    page::Page,
    table::{Metric, Type},
};
use troupe::{control::reconcile::Context, job_key::GroupKind};
use troupe_plugin::original::Metrics;

/// The labels of a launcher.
const OF_LAUNCHER: [&str; 2] = ["launcher", "namespace"];

/// Labels whose names a plugin says.
type Named = Vec<(&'static str, String)>;

/// Returns every metric that the original operators of built-in plugins had, in the order of the metrics page.
#[must_use]
pub fn all() -> Vec<Metric> {
    metrics().flat_map(|all| of(&all)).collect()
}

fn metrics() -> impl Iterator<Item = Metrics> {
    builtin::originals().into_iter().filter_map(|original| original.metrics)
}

fn of(all: &Metrics) -> Vec<Metric> {
    let labels = all.labels;
    let counters = all.counters.iter().map(|&(_, name, help)| Metric { name, kind: Type::Counter, labels, help });
    let gauge = |of: Option<(&'static str, &'static str)>, labels: &'static [&'static str]| {
        of.map(|(name, help)| Metric { name, kind: Type::Gauge, labels, help })
    };
    counters.chain(gauge(all.launchers, &OF_LAUNCHER)).chain(gauge(all.leader, &[])).collect()
}

pub(super) fn add_to(page: &mut Page, context: &Context) {
    metrics().for_each(|all| add(page, context, &all));
}

fn add(page: &mut Page, context: &Context, all: &Metrics) {
    let jobs = context.jobs();
    let kinds = || all.kinds.iter().filter_map(|(id, framework)| Some((kind(id)?, *framework)));
    let mut metrics = of(all).into_iter();
    for ((what, _, _), metric) in all.counters.iter().zip(metrics.by_ref()) {
        let counted = kinds().flat_map(|(kind, framework)| {
            let of_each = jobs.events.read(&kind, *what).into_iter();
            of_each.map(move |(namespace, count)| (labels(all, namespace, framework), count))
        });
        // Without labels there is one value, also before anything has happened.
        let none = all.labels.is_empty().then(|| (Named::new(), 0));
        page.counts(&metric, none.into_iter().chain(counted));
    }
    if all.launchers.is_some()
        && let Some(metric) = metrics.next()
    {
        let with = kinds().flat_map(|(kind, _)| jobs.with_launchers(&kind));
        let [launcher, namespace] = OF_LAUNCHER;
        page.gauges(
            &metric,
            with.map(|key| (vec![(launcher, format!("{}-launcher", key.name)), (namespace, key.namespace)], 1)),
        );
    }
    if all.leader.is_some()
        && let Some(metric) = metrics.next()
    {
        page.gauge(&metric, i64::from(context.lease().is_none_or(|(_, is_held)| is_held)));
    }
}

fn labels(all: &Metrics, namespace: String, framework: &str) -> Named {
    all.labels.iter().copied().zip([namespace, framework.to_owned()]).collect()
}

/// The kind that is written `Kind.group`.
fn kind(id: &str) -> Option<GroupKind> {
    let (kind, group) = id.split_once('.')?;
    Some(GroupKind::new(group, kind))
}
