//! The families of one scrape, grouped by name whoever added them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use weida_bridge::metrics::{LATENCY_BUCKETS, Metric};

use crate::policy::stats::Histogram;

/// One value of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// It only grows.
    Counter(u64),
    /// It goes up and down.
    Gauge(f64),
    /// Durations: seconds, observations, counts per bucket.
    Histogram {
        /// Sum of all observations, in seconds.
        sum: f64,
        /// Upper bound in seconds and observations in that bucket alone.
        buckets: Vec<(f64, u64)>,
    },
}

impl Value {
    fn metric_type(&self) -> MetricType {
        match self {
            Self::Counter(_) => MetricType::Counter,
            Self::Gauge(_) => MetricType::Gauge,
            Self::Histogram { .. } => MetricType::Histogram,
        }
    }
}

impl From<&Histogram> for Value {
    fn from(histogram: &Histogram) -> Self {
        let bounds = LATENCY_BUCKETS.into_iter().chain([f64::INFINITY]);
        Self::Histogram {
            sum: histogram.sum().as_secs_f64(),
            buckets: bounds.zip(histogram.counts()).collect(),
        }
    }
}

type Labels = Vec<(String, String)>;

#[derive(Debug, Default)]
struct Family {
    help: String,
    series: Vec<(Labels, Value)>,
}

/// Everything one scrape shows.
#[derive(Debug, Default)]
pub struct Page(BTreeMap<String, Family>);

impl Page {
    /// Adds one series; the first one of a name gives the help text. A counter that two parts of the process keep under the
    /// same labels is shown once, as their sum.
    pub fn add(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: Value) {
        let labels: Labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let family = match self.0.entry(name.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Family {
                help: help.to_owned(),
                series: Vec::new(),
            }),
        };
        if let Value::Counter(more) = value
            && let Some((_, Value::Counter(sum))) =
                family.series.iter_mut().find(|(have, _)| *have == labels)
        {
            *sum = sum.saturating_add(more);
            return;
        }
        family.series.push((labels, value));
    }
}

impl Page {
    /// Adds one series of a metric that the list of names holds.
    pub fn put(&mut self, metric: Metric, labels: &[(&str, &str)], value: Value) {
        self.add(metric.name, metric.help, labels, value);
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (name, family) in &self.0 {
            let Some((_, first)) = family.series.first() else {
                continue;
            };
            // The encoder writes the suffix of counters itself.
            let stem = match first {
                Value::Counter(_) => name.strip_suffix("_total").unwrap_or(name),
                Value::Gauge(_) | Value::Histogram { .. } => name,
            };
            let help = family.help.trim_end_matches('.');
            let mut metric = encoder.encode_descriptor(stem, help, None, first.metric_type())?;
            for (labels, value) in &family.series {
                let mut series = metric.encode_family(labels)?;
                match value {
                    Value::Counter(count) => {
                        series.encode_counter::<NoLabelSet, _, u64>(count, None)?
                    }
                    Value::Gauge(value) => series.encode_gauge(value)?,
                    Value::Histogram { sum, buckets } => {
                        let count = buckets.iter().map(|(_, count)| count).sum();
                        series.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)?;
                    }
                }
            }
        }
        Ok(())
    }
}
