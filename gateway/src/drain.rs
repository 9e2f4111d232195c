//! The end: bounded, counted, one line (`gateway.md` 7.3, [weida BR-17]).
//!
//! | Step | At most | What |
//! | --- | --- | --- |
//! | a | at once | not ready any more |
//! | b | `drain_delay` | keep serving |
//! | c, d | at once | stop reading weida; foreign listeners stop accepting and reading |
//! | e | until 1 s before the deadline | messages in the routes go to their end, sources are settled |
//! | f | rest | foreign clients are told, weida drains and closes |
//! | g | - | one summary line |
//!
//! What is left at the deadline is cut and counted; a second signal cuts at once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use weida_bridge::{Direction, Scope};

use crate::route::RouteHandle;
use crate::state::{State, Totals};

/// Kept for telling clients and for weida's own drain.
const FAREWELL: Duration = Duration::from_secs(1);

/// Everything that ends.
#[derive(Debug)]
pub struct Ending {
    /// What the process shows.
    pub state: Arc<State>,
    /// Tasks that read weida endpoints.
    pub sources: Scope,
    /// Tasks that keep destinations dialled.
    pub dials: Scope,
    /// Adapters; their token tells them to end politely.
    pub adapters: Scope,
    /// The weida runtime.
    pub runtime: weida::Runtime,
    /// Cuts every message.
    pub cut: CancellationToken,
    /// A second signal.
    pub abort: CancellationToken,
}

/// How a drain went.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DrainReport {
    /// Messages that reached what their route asks for, over the whole life.
    pub delivered: u64,
    /// Of those and of the ones with a definite other end: answered to their source, over the whole life.
    pub settled: u64,
    /// Messages lost with a cause, over the whole life.
    pub dropped: u64,
    /// Messages without an end when the time was over; they were cut.
    pub unsettled: u64,
    /// weida transfers whose receipt came during the drain.
    pub weida_delivered: u64,
    /// weida transfers without a receipt.
    pub weida_outstanding: u64,
    /// Tasks that had to be cut.
    pub tasks_cut: usize,
    /// How long it took.
    pub took: Duration,
}

impl DrainReport {
    /// Whether everything came to its own end in time.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.unsettled == 0 && self.tasks_cut == 0
    }
}

impl fmt::Display for DrainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            delivered,
            settled,
            dropped,
            unsettled,
            ..
        } = self;
        write!(
            f,
            "delivered {delivered}, settled {settled}, dropped {dropped}, unsettled {unsettled}"
        )
    }
}

impl Ending {
    /// Ends everything within `drain_timeout`, after `drain_delay`.
    pub async fn run(self, drain_timeout: Duration, drain_delay: Duration) -> DrainReport {
        let Self {
            state,
            sources,
            dials,
            adapters,
            runtime,
            cut,
            abort,
        } = self;
        let begun = Instant::now();
        state.set_draining();
        if !drain_delay.is_zero() {
            let _: Option<()> = abort
                .run_until_cancelled(tokio::time::sleep(drain_delay))
                .await;
        }
        let deadline = Instant::now() + drain_timeout;
        let soft = deadline - FAREWELL.min(drain_timeout / 2);
        // A slow reader on the foreign side must not use up the time of what its publishers sent.
        let half = deadline - drain_timeout / 2;
        // A second signal moves every deadline to now.
        let aborted = || abort.clone().cancelled_owned();

        // Nothing more comes from weida; what came goes out while the foreign side is still there to take it.
        let sources = sources.finish_by(half);
        let mut tasks_cut = tokio::select! {
            biased;
            () = aborted() => 0,
            finished = sources => finished.cut,
        };
        let routes = state.routes();
        until(half, aborted(), finished(routes, Direction::Egress)).await;
        // Adapters stop accepting and reading, and settle what the routes still owe them.
        let stopping = adapters.token().clone();
        stopping.cancel();
        until(soft, aborted(), finished(routes, Direction::Ingress)).await;
        let adapters = adapters.finish_by(deadline);
        tasks_cut += tokio::select! {
            biased;
            () = aborted() => 1,
            finished = adapters => finished.cut,
        };
        // An adapter may hand in what it had read until its last moment.
        until(soft, aborted(), finished(routes, Direction::Ingress)).await;
        let unsettled = state.totals().unsettled;
        cut.cancel();
        for route in routes {
            route.parts().crew.finished().await;
        }
        dials.token().cancel();
        let _ended: weida_bridge::Finished = dials.finish_by(deadline).await;
        let left = deadline.saturating_duration_since(Instant::now());
        let left = if abort.is_cancelled() {
            Duration::ZERO
        } else {
            left.max(Duration::from_millis(100))
        };
        let drained = runtime.drain(left).await;
        let totals = state.totals();
        DrainReport {
            delivered: totals.delivered,
            settled: settled(&totals),
            dropped: totals.dropped,
            unsettled,
            weida_delivered: drained.delivered,
            weida_outstanding: drained.outstanding,
            tasks_cut,
            took: begun.elapsed(),
        }
    }
}

const fn settled(totals: &Totals) -> u64 {
    totals.delivered + totals.set_aside
}

/// Waits for `what`, at most until `at` or the abort.
async fn until(at: Instant, aborted: impl Future<Output = ()>, what: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = aborted => {}
        _done = timeout_at(at, what) => {}
    }
}

/// Waits until no message of the routes in that direction is in a task.
async fn finished(routes: &[Arc<RouteHandle>], direction: Direction) {
    for route in routes {
        if route.config().route.direction == direction {
            route.parts().crew.finished().await;
        }
    }
}
