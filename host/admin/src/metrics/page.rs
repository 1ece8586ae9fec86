//! One answer to a scrape: metrics under the names of the table.

use super::table::{Metric, Type};
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, text::encode},
    metrics::{
        MetricType,
        counter::{ConstCounter, Counter},
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::{self, Registry},
};
use std::fmt;

/// The labels of a metric that has none.
type NoLabels = [(&'static str, &'static str); 0];

/// Metrics that were read for one scrape.
#[derive(Debug, Default)]
pub(super) struct Page(Registry);

impl Page {
    /// Adds what measures itself.
    pub(super) fn add(&mut self, metric: &Metric, it: impl registry::Metric) {
        // The encoder adds the end of a counter's name.
        let name = metric.name.strip_suffix("_total").filter(|_| metric.kind == Type::Counter);
        self.0.register(name.unwrap_or(metric.name), metric.help, it);
    }

    /// Adds gauges by their labels; those of equal labels are added up.
    pub(super) fn gauges<L: Labels>(&mut self, metric: &Metric, values: impl IntoIterator<Item = (L, i64)>) {
        let family = Family::<L, Gauge>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.add(metric, family);
    }

    /// Adds gauges of times in seconds.
    pub(super) fn real_gauges<L: Labels>(&mut self, metric: &Metric, values: impl IntoIterator<Item = (L, f64)>) {
        let family = Family::<L, Gauge<f64, std::sync::atomic::AtomicU64>>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.add(metric, family);
    }

    /// Adds counters by their labels.
    pub(super) fn counts<L: Labels>(&mut self, metric: &Metric, values: impl IntoIterator<Item = (L, u64)>) {
        let family = Family::<L, Counter>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).inc_by(value);
        }
        self.add(metric, family);
    }

    /// Adds one gauge; above 2^63 it is 2^63.
    pub(super) fn gauge(&mut self, metric: &Metric, value: impl TryInto<i64>) {
        self.add(metric, ConstGauge::new(value.try_into().unwrap_or(i64::MAX)));
    }

    /// Adds one gauge that is no whole number.
    pub(super) fn real(&mut self, metric: &Metric, value: f64) {
        self.add(metric, ConstGauge::new(value));
    }

    /// Adds one counter.
    pub(super) fn count(&mut self, metric: &Metric, value: f64) {
        self.add(metric, ConstCounter::new(value));
    }

    /// Returns the text in the format of OpenMetrics.
    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.0)?;
        Ok(text)
    }
}

/// What labels have to be.
pub(super) trait Labels:
    EncodeLabelSet + Clone + std::hash::Hash + Eq + fmt::Debug + Send + Sync + 'static
{
}

impl<L: EncodeLabelSet + Clone + std::hash::Hash + Eq + fmt::Debug + Send + Sync + 'static> Labels for L {}

/// A metric that measures itself, under these labels.
#[derive(Debug)]
pub(super) struct One<L, M>(pub(super) L, pub(super) M);

impl<L: EncodeLabelSet, M: EncodeMetric> EncodeMetric for One<L, M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        self.1.encode(encoder.encode_family(&self.0)?)
    }

    fn metric_type(&self) -> MetricType {
        self.1.metric_type()
    }
}

/// Histograms that somebody else keeps.
#[derive(Debug)]
pub(super) struct Kept<L>(pub(super) Vec<(L, KeptHistogram)>);

/// A histogram that somebody else keeps.
#[derive(Debug)]
pub(super) struct KeptHistogram {
    pub(super) sum: f64,
    pub(super) count: u64,
    /// Upper bounds, the last one infinite, and how many values are in each bucket alone.
    pub(super) buckets: Vec<(f64, u64)>,
}

impl<L: EncodeLabelSet> EncodeMetric for Kept<L> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(labels, it)| {
            encoder.encode_family(labels)?.encode_histogram::<NoLabels>(it.sum, it.count, &it.buckets, None)
        })
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
