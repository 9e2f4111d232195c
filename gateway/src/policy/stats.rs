//! Counters of one route that the conservation row does not hold: latency, attempts, retries, copies.
//!
//! Atomics only: a message touches no lock and allocates nothing for a metric (`gateway.md` 13.3 rule 5).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use weida_bridge::metrics::LATENCY_BUCKETS;
pub use weida_bridge::metrics::RetryCause;

/// Why a message was taken for a loop: label `how` of `loop_suppressed_total`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum LoopKind {
    /// Our own id stands in its `via` list.
    Via,
    /// Its `via` list is longer than `max_hops`.
    Hops,
    /// It came back unchanged.
    Echo,
}

impl LoopKind {
    /// Every kind, in the order of the enum.
    pub const ALL: [Self; 3] = [Self::Via, Self::Hops, Self::Echo];

    /// The metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Via => "via",
            Self::Hops => "hops",
            Self::Echo => "echo",
        }
    }
}

/// Counters of one route.
#[derive(Debug, Default)]
pub struct RouteStats {
    latency: Histogram,
    attempts: Histogram,
    retries: [AtomicU64; RetryCause::ALL.len()],
    loops: [AtomicU64; LoopKind::ALL.len()],
    budget_exhausted: AtomicU64,
    duplicates_possible: AtomicU64,
    reserved_names: AtomicU64,
    /// Messages that wait between two attempts, now.
    retrying: AtomicUsize,
    /// Sources held at the door, now.
    blocked: AtomicUsize,
    /// Milliseconds since the route was built at which the last message ended well, plus one; 0 = never.
    last_success: AtomicU64,
}

impl RouteStats {
    /// A message ended after this time in the gateway.
    pub fn ended(&self, took: Duration) {
        self.latency.record(took);
    }

    /// An attempt ended.
    pub fn attempt(&self, took: Duration) {
        self.attempts.record(took);
    }

    /// A message is sent again.
    pub fn retry(&self, cause: RetryCause) {
        self.retries[cause as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A message is sent again although the destination may have it.
    pub fn duplicate_possible(&self) {
        self.duplicates_possible.fetch_add(1, Ordering::Relaxed);
    }

    /// The retry budget had nothing left.
    pub fn budget_exhausted(&self) {
        self.budget_exhausted.fetch_add(1, Ordering::Relaxed);
    }

    /// A message was taken for a loop.
    pub fn loop_suppressed(&self, kind: LoopKind) {
        self.loops[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// A foreign header with a reserved name was removed.
    pub fn reserved_name(&self, count: usize) {
        self.reserved_names
            .fetch_add(count as u64, Ordering::Relaxed);
    }

    /// A message ended well this long after the route was built.
    pub fn success(&self, since_start: Duration) {
        let millis = u64::try_from(since_start.as_millis()).unwrap_or(u64::MAX - 1);
        self.last_success.store(millis + 1, Ordering::Relaxed);
    }

    /// When the last message ended well, counted from the building of the route.
    #[must_use]
    pub fn last_success(&self) -> Option<Duration> {
        self.last_success
            .load(Ordering::Relaxed)
            .checked_sub(1)
            .map(Duration::from_millis)
    }

    /// Holds the count of messages between two attempts up while it lives.
    pub(crate) fn enter_retrying(&self) -> Level<'_> {
        Level::raise(&self.retrying)
    }

    /// Messages between two attempts, now.
    #[must_use]
    pub fn retrying(&self) -> usize {
        self.retrying.load(Ordering::Relaxed)
    }

    pub(crate) fn source_blocked(&self) {
        self.blocked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn source_released(&self) {
        self.blocked.fetch_sub(1, Ordering::Relaxed);
    }

    /// Sources that wait at the door, now.
    #[must_use]
    pub fn blocked(&self) -> usize {
        self.blocked.load(Ordering::Relaxed)
    }

    /// What `route_latency_seconds` shows.
    #[must_use]
    pub fn latency(&self) -> &Histogram {
        &self.latency
    }

    /// What `route_attempt_seconds` shows.
    #[must_use]
    pub fn attempt_time(&self) -> &Histogram {
        &self.attempts
    }

    /// Repeats by cause.
    #[must_use]
    pub fn retries(&self, cause: RetryCause) -> u64 {
        self.retries[cause as usize].load(Ordering::Relaxed)
    }

    /// Loops by kind.
    #[must_use]
    pub fn loops(&self, kind: LoopKind) -> u64 {
        self.loops[kind as usize].load(Ordering::Relaxed)
    }

    /// How often the retry budget had nothing left.
    #[must_use]
    pub fn budget_exhaustions(&self) -> u64 {
        self.budget_exhausted.load(Ordering::Relaxed)
    }

    /// Messages sent again although the destination may have them.
    #[must_use]
    pub fn duplicates_possible(&self) -> u64 {
        self.duplicates_possible.load(Ordering::Relaxed)
    }

    /// Foreign headers with a reserved name that were removed.
    #[must_use]
    pub fn reserved_names(&self) -> u64 {
        self.reserved_names.load(Ordering::Relaxed)
    }
}

/// A gauge that is up while this lives.
#[derive(Debug)]
pub(crate) struct Level<'a>(&'a AtomicUsize);

impl<'a> Level<'a> {
    fn raise(gauge: &'a AtomicUsize) -> Self {
        gauge.fetch_add(1, Ordering::Relaxed);
        Self(gauge)
    }
}

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A histogram of durations without a lock.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS_MICROS.len() + 1],
    sum_nanos: AtomicU64,
}

/// [`LATENCY_BUCKETS`] in whole microseconds, so that recording needs no floating point.
const BOUNDS_MICROS: [u64; LATENCY_BUCKETS.len()] = {
    let mut micros = [0; LATENCY_BUCKETS.len()];
    let mut at = 0;
    while at < micros.len() {
        // Rounded: the bounds are decimal fractions.
        micros[at] = (LATENCY_BUCKETS[at] * 1e6 + 0.5) as u64;
        at += 1;
    }
    micros
};

impl Histogram {
    /// Adds one observation.
    pub fn record(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let index = BOUNDS_MICROS.partition_point(|bound| *bound < micros);
        self.buckets[index].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.sum_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Counts per bucket, not cumulated; the last one is above all bounds.
    #[must_use]
    pub fn counts(&self) -> [u64; BOUNDS_MICROS.len() + 1] {
        std::array::from_fn(|index| self.buckets[index].load(Ordering::Relaxed))
    }

    /// Number of observations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts().iter().sum()
    }

    /// Sum of all observations.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "the bounds are small")]
    fn the_bounds_are_those_of_the_metric() {
        for (micros, seconds) in BOUNDS_MICROS.iter().zip(LATENCY_BUCKETS) {
            assert!((*micros as f64 / 1e6 - seconds).abs() < 1e-9);
        }
    }

    #[test]
    fn a_bound_belongs_to_its_own_bucket() {
        let histogram = Histogram::default();
        histogram.record(Duration::from_micros(50));
        histogram.record(Duration::from_micros(51));
        histogram.record(Duration::from_secs(11));
        let counts = histogram.counts();
        assert_eq!(
            (counts[0], counts[1], counts[BOUNDS_MICROS.len()]),
            (1, 1, 1)
        );
        assert_eq!(histogram.count(), 3);
        assert_eq!(
            histogram.sum(),
            Duration::from_secs(11) + Duration::from_micros(101)
        );
    }
}
