//! What the process shows of itself: read by the admin pages, the metrics and the drain.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use weida::Binding;
use weida_bridge::LedgerSnapshot;
use weida_core::Fingerprint;

use crate::grants::Refusals;
use crate::metrics::Value;
use crate::route::RouteHandle;

/// The main loop counts as alive for so long after its last tick (`gateway.md` 4).
const TICK_PATIENCE: Duration = Duration::from_secs(5);

/// One bound listener.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bound {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// `weida` or `mqtt`.
    pub protocol: &'static str,
    /// Where it listens; a port 0 of the configuration is resolved.
    pub address: SocketAddr,
}

/// One value of an adapter's own series.
#[derive(Clone, Debug)]
pub struct AdapterSample {
    /// Which one: a general series, or one that the adapter names itself.
    pub name: Cow<'static, str>,
    /// Label keys and values.
    pub labels: Vec<(&'static str, Cow<'static, str>)>,
    /// The value, and what it means when it is read twice.
    pub value: Value,
}

type Sampler = Box<dyn Fn() -> Vec<AdapterSample> + Send + Sync>;

/// The shared state of one process.
pub struct State {
    name: Arc<str>,
    fingerprint: Fingerprint,
    started: Instant,
    start_time: SystemTime,
    routes: Vec<Arc<RouteHandle>>,
    refusals: Vec<Arc<Refusals>>,
    bindings: OnceLock<Vec<(Arc<str>, Binding)>>,
    adapters: OnceLock<Sampler>,
    bound: OnceLock<Vec<Bound>>,
    ready: AtomicBool,
    draining: AtomicBool,
    /// Milliseconds since `started` of the main loop's last tick.
    tick: AtomicU64,
}

impl State {
    /// A process that has opened nothing yet.
    #[must_use]
    pub fn new(
        name: Arc<str>,
        fingerprint: Fingerprint,
        routes: Vec<Arc<RouteHandle>>,
        refusals: Vec<Arc<Refusals>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            fingerprint,
            started: Instant::now(),
            start_time: SystemTime::now(),
            routes,
            refusals,
            bindings: OnceLock::new(),
            adapters: OnceLock::new(),
            bound: OnceLock::new(),
            ready: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            tick: AtomicU64::new(0),
        })
    }

    /// `gateway.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who the process is on the weida side.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// When the process began, by the wall clock.
    #[must_use]
    pub fn start_time(&self) -> SystemTime {
        self.start_time
    }

    /// How long it has been running.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Every configured route.
    #[must_use]
    pub fn routes(&self) -> &[Arc<RouteHandle>] {
        &self.routes
    }

    /// Refusals of the weida listeners.
    #[must_use]
    pub fn refusals(&self) -> &[Arc<Refusals>] {
        &self.refusals
    }

    /// The weida listeners' bindings; set once.
    pub fn set_bindings(&self, bindings: Vec<(Arc<str>, Binding)>) {
        let _: Result<(), Vec<_>> = self.bindings.set(bindings);
    }

    /// Live connections of each weida listener.
    pub fn weida_connections(&self) -> impl Iterator<Item = (&str, usize)> {
        let bindings = self.bindings.get().map_or(&[][..], Vec::as_slice);
        bindings
            .iter()
            .map(|(name, binding)| (&**name, binding.connection_count()))
    }

    /// Where the adapters' own series come from; set once.
    pub fn set_adapters(&self, samples: impl Fn() -> Vec<AdapterSample> + Send + Sync + 'static) {
        let _: Result<(), Sampler> = self.adapters.set(Box::new(samples));
    }

    /// The adapters' own series, now.
    #[must_use]
    pub fn adapter_samples(&self) -> Vec<AdapterSample> {
        self.adapters
            .get()
            .map_or_else(Vec::new, |samples| samples())
    }

    /// Every listener is bound.
    pub fn set_bound(&self, bound: Vec<Bound>) {
        let _: Result<(), Vec<Bound>> = self.bound.set(bound);
    }

    /// Bound listeners; empty until all of them are.
    #[must_use]
    pub fn bound(&self) -> &[Bound] {
        self.bound.get().map_or(&[], Vec::as_slice)
    }

    /// The main loop has come round.
    pub fn tick(&self) {
        let millis = u64::try_from(self.uptime().as_millis()).unwrap_or(u64::MAX);
        self.tick.store(millis, Ordering::Relaxed);
    }

    /// Whether the main loop came round lately.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let last = Duration::from_millis(self.tick.load(Ordering::Relaxed));
        self.uptime().saturating_sub(last) <= TICK_PATIENCE
    }

    /// Everything of `gateway.md` 7.2 is done.
    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// The drain has begun.
    pub fn set_draining(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether the drain has begun.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// What `/readyz` checks: name, and `None` where it holds, else the reason.
    #[must_use]
    pub fn checks(&self) -> [(&'static str, Option<&'static str>); 3] {
        let started = self.ready.load(Ordering::Acquire);
        [
            (
                "listeners",
                self.bound
                    .get()
                    .is_none()
                    .then_some("not all listeners are bound"),
            ),
            ("started", (!started).then_some("the start is not finished")),
            (
                "draining",
                self.is_draining().then_some("the process is draining"),
            ),
        ]
    }

    /// Whether new work may be sent here.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.checks().iter().all(|(_, problem)| problem.is_none())
    }

    /// The conservation rows of all routes, added up.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for route in &self.routes {
            totals.add(&route.parts().ledger.snapshot());
        }
        totals
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("name", &self.name)
            .field("routes", &self.routes.len())
            .field("ready", &self.is_ready())
            .finish_non_exhaustive()
    }
}

/// Messages of all routes together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// Entered a route.
    pub received: u64,
    /// Reached what their route asks for.
    pub delivered: u64,
    /// Failed their route's condition, or outlived themselves.
    pub set_aside: u64,
    /// Lost with a cause.
    pub dropped: u64,
    /// Neither one nor the other yet.
    pub unsettled: u64,
}

impl Totals {
    fn add(&mut self, row: &LedgerSnapshot) {
        self.received += row.received;
        self.delivered += row.delivered;
        self.set_aside += row.filtered + row.expired;
        self.dropped += row.dropped.total() + row.dead_lettered.total();
        self.unsettled += row.in_flight + row.queued;
    }
}
