//! One load generator, used alike for ours and for every peer.
//!
//! A peer is a [`Target`]: one operation, whatever that is there. Everything else (schedule, workers, payloads, warm-up,
//! latency, report) is the same code for both sides of a comparison.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use hdrhistogram::Histogram;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

mod compare;
mod machine;

pub use compare::{Comparison, alternate};
pub use machine::Machine;

/// One worker's connection to what is measured.
pub trait Target: Send + 'static {
    /// What a failed operation says.
    type Error: std::fmt::Display + Send;

    /// Does the operation once, until whatever counts as done there. `sequence` is unique in a run.
    fn op(
        &mut self,
        payload: &Bytes,
        sequence: u64,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// When operations start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Schedule {
    /// Each worker starts the next one when the last is done: finds the highest rate.
    Closed,
    /// So many per second start whatever the target does; latency counts from when an operation *should* have started, so
    /// a stall is not hidden by the operations that it kept from starting.
    Open {
        /// Of all workers together.
        per_second: f64,
    },
}

/// What ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// This many operations of all workers together.
    Operations(u64),
    /// This long.
    Time(Duration),
}

/// One run to make.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// When operations start.
    pub schedule: Schedule,
    /// Operations in flight at most; each worker has a target of its own.
    pub workers: usize,
    /// Payload of each operation.
    pub payload_bytes: usize,
    /// Done first, by every worker, and not measured: this many operations each.
    pub warm_up: u64,
    /// What ends it.
    pub length: Length,
    /// What ends it at the latest; operations still in flight then count as errors.
    pub at_most: Duration,
}

impl Load {
    /// A closed loop of one worker, 64 bytes, 10 000 operations after 100 of warm-up, at most a minute.
    #[must_use]
    pub const fn closed() -> Self {
        Self {
            schedule: Schedule::Closed,
            workers: 1,
            payload_bytes: 64,
            warm_up: 100,
            length: Length::Operations(10_000),
            at_most: Duration::from_secs(60),
        }
    }

    /// Makes the run with one target per worker.
    ///
    /// All workers warm up; the clock starts when the last of them is done. The first error ends its worker: a target that
    /// fails at once must not look fast.
    ///
    /// # Panics
    /// When a worker panics, with its panic.
    pub async fn run<T: Target>(&self, mut target: impl FnMut(usize) -> T) -> Run {
        let payload = Bytes::from(vec![0x77; self.payload_bytes]);
        let workers = self.workers.max(1);
        let barrier = std::sync::Arc::new(tokio::sync::Barrier::new(workers + 1));
        let (go, started) = tokio::sync::watch::channel(None::<Instant>);
        let mut tasks = JoinSet::new();
        for worker in 0..workers {
            let (load, payload, target) = (self.clone(), payload.clone(), target(worker));
            let (barrier, started) = (std::sync::Arc::clone(&barrier), started.clone());
            tasks.spawn(async move {
                let mut work = Worker {
                    load,
                    payload,
                    target,
                    report: Report::new(worker),
                };
                work.warm_up().await;
                barrier.wait().await;
                let mut started = started;
                let begun = match started.wait_for(Option::is_some).await {
                    Ok(at) => *at,
                    Err(_) => None,
                };
                if let Some(begun) = begun {
                    // One timer for the whole run: one per operation would be measured with it.
                    let deadline = begun + work.load.at_most;
                    if let Err(late) = tokio::time::timeout_at(deadline, work.measure(begun)).await
                    {
                        work.report.fail(&late);
                    }
                }
                work.report
            });
        }
        barrier.wait().await;
        let begun = Instant::now();
        go.send_replace(Some(begun));
        let mut run = Run::new(self.payload_bytes);
        while let Some(joined) = tasks.join_next().await {
            match joined {
                Ok(report) => run.add(report),
                Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
                Err(_) => {}
            }
        }
        run.elapsed = run.ended.map_or(Duration::ZERO, |ended| ended - begun);
        run
    }
}

struct Worker<T> {
    load: Load,
    payload: Bytes,
    target: T,
    report: Report,
}

struct Report {
    worker: u64,
    operations: u64,
    errors: u64,
    first_error: Option<String>,
    latency: Histogram<u64>,
    ended: Option<Instant>,
}

impl<T: Target> Worker<T> {
    async fn warm_up(&mut self) {
        let base = u64::MAX / 2 + self.report.worker * self.load.warm_up;
        for sequence in 0..self.load.warm_up {
            if let Err(error) = self.target.op(&self.payload, base + sequence).await {
                self.report.fail(&error);
                return;
            }
        }
    }

    async fn measure(&mut self, begun: Instant) {
        let workers = self.load.workers.max(1) as u64;
        // Worker k takes operations k, k + workers, k + 2 workers … of one numbering.
        let mut sequence = self.report.worker;
        while self.report.errors == 0 {
            let planned = match self.load.schedule {
                Schedule::Closed => None,
                Schedule::Open { per_second } => Some(
                    begun
                        + Duration::from_secs_f64(
                            sequence as f64 / per_second.max(f64::MIN_POSITIVE),
                        ),
                ),
            };
            let over = match self.load.length {
                Length::Operations(all) => sequence >= all,
                Length::Time(time) => planned.unwrap_or_else(Instant::now) >= begun + time,
            };
            if over {
                return;
            }
            if let Some(at) = planned {
                sleep_until(at).await;
            }
            let start = planned.unwrap_or_else(Instant::now);
            match self.target.op(&self.payload, sequence).await {
                Ok(()) => self.report.done(start),
                Err(error) => self.report.fail(&error),
            }
            sequence += workers;
        }
    }
}

impl Report {
    fn new(worker: usize) -> Self {
        Self {
            worker: worker as u64,
            operations: 0,
            errors: 0,
            first_error: None,
            latency: histogram(),
            ended: None,
        }
    }

    fn done(&mut self, start: Instant) {
        let now = Instant::now();
        self.operations += 1;
        self.latency
            .saturating_record(u64::try_from((now - start).as_nanos()).unwrap_or(u64::MAX));
        self.ended = Some(now);
    }

    fn fail(&mut self, error: &dyn std::fmt::Display) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| error.to_string());
    }
}

/// What a run gave.
#[derive(Debug, Clone)]
pub struct Run {
    /// Operations that were done.
    pub operations: u64,
    /// Operations that failed; each ended its worker.
    pub errors: u64,
    /// What the first of them said.
    pub first_error: Option<String>,
    /// From the end of the warm-up to the last operation that was done.
    pub elapsed: Duration,
    /// Of single operations, in nanoseconds, three digits.
    pub latency: Histogram<u64>,
    /// Payload of each operation.
    pub payload_bytes: usize,
    ended: Option<Instant>,
}

impl Run {
    fn new(payload_bytes: usize) -> Self {
        Self {
            operations: 0,
            errors: 0,
            first_error: None,
            elapsed: Duration::ZERO,
            latency: histogram(),
            payload_bytes,
            ended: None,
        }
    }

    fn add(&mut self, report: Report) {
        self.operations += report.operations;
        self.errors += report.errors;
        self.first_error = self.first_error.take().or(report.first_error);
        self.ended = self.ended.max(report.ended);
        // Both have the same bounds, so nothing can be out of range.
        let _: Result<(), _> = self.latency.add(&report.latency);
    }

    /// Operations per second; 0 when nothing was done.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 {
            self.operations as f64 / seconds
        } else {
            0.0
        }
    }

    /// Payload bytes per second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second() * self.payload_bytes as f64
    }

    /// A latency quantile, 0 to 1.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.latency.value_at_quantile(quantile))
    }

    /// For a report file.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let micros = |quantile| self.quantile(quantile).as_nanos() as f64 / 1000.0;
        serde_json::json!({
            "operations": self.operations,
            "errors": self.errors,
            "first_error": self.first_error,
            "seconds": self.elapsed.as_secs_f64(),
            "per_second": self.per_second(),
            "payload_bytes": self.payload_bytes,
            "p50_us": micros(0.5),
            "p99_us": micros(0.99),
            "p999_us": micros(0.999),
            "max_us": self.latency.max() as f64 / 1000.0,
        })
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.0}/s of {} B, p50 {:.1?} p99 {:.1?} p99.9 {:.1?}, {} done, {} failed in {:.2?}",
            self.per_second(),
            self.payload_bytes,
            self.quantile(0.5),
            self.quantile(0.99),
            self.quantile(0.999),
            self.operations,
            self.errors,
            self.elapsed
        )?;
        match &self.first_error {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

/// 1 ns to 10 minutes, three digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000_000, 3).expect("constant bounds are valid")
}

#[cfg(test)]
mod tests;
