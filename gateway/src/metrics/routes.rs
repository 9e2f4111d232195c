//! The series of one route and of one weida listener.

use tokio::time::Instant;
use weida_bridge::metrics::{
    self as names, CopyDropCause, RefusedCause, RefusedOp, RetryCause, RouteState,
};

use super::page::{Page, Value};
use crate::grants::Refusals;
use crate::policy::stats::LoopKind;
use crate::route::RouteHandle;
use crate::state::State;

#[expect(
    clippy::cast_precision_loss,
    reason = "gauges are read by people and alerts"
)]
pub(super) fn route(page: &mut Page, route: &RouteHandle) {
    let id = route.id().as_str();
    let row = route.parts().ledger.snapshot();
    let stats = &route.parts().stats;
    let now = Instant::now();
    let plain: &[(&str, &str)] = &[("route", id)];
    let mut counter = |metric: names::Metric, labels: &[(&str, &str)], count| {
        page.put(metric, labels, Value::Counter(count));
    };
    counter(names::ROUTE_RECEIVED, plain, row.received);
    counter(names::ROUTE_RECEIVED_BYTES, plain, row.received_bytes);
    counter(names::ROUTE_DELIVERED, plain, row.delivered);
    counter(names::ROUTE_DELIVERED_BYTES, plain, row.delivered_bytes);
    counter(names::ROUTE_FILTERED, plain, row.filtered);
    counter(names::ROUTE_EXPIRED, plain, row.expired);
    counter(names::ROUTE_INDETERMINATE, plain, row.indeterminate);
    for (cause, count) in row.dropped.iter() {
        counter(
            names::ROUTE_DROPPED,
            &[("route", id), ("cause", cause.as_str())],
            count,
        );
    }
    for (cause, count) in row.dead_lettered.iter() {
        counter(
            names::ROUTE_DEAD_LETTERED,
            &[("route", id), ("cause", cause.as_str())],
            count,
        );
    }
    for cause in RetryCause::ALL.iter().copied() {
        let labels = [("route", id), ("cause", cause.as_str())];
        counter(names::ROUTE_RETRIES, &labels, stats.retries(cause));
    }
    for kind in LoopKind::ALL {
        let labels = [("route", id), ("how", kind.as_str())];
        counter(names::LOOP_SUPPRESSED, &labels, stats.loops(kind));
    }
    counter(
        names::ROUTE_RETRY_BUDGET_EXHAUSTED,
        plain,
        stats.budget_exhaustions(),
    );
    counter(
        names::ROUTE_DUPLICATES_POSSIBLE,
        plain,
        stats.duplicates_possible(),
    );
    for (cause, count) in copies_dropped(route) {
        counter(
            names::ROUTE_COPIES_DROPPED,
            &[("route", id), ("cause", cause)],
            count,
        );
    }
    let mut gauge = |metric: names::Metric, labels: &[(&str, &str)], value| {
        page.put(metric, labels, Value::Gauge(value));
    };
    gauge(names::ROUTE_IN_FLIGHT, plain, row.in_flight as f64);
    gauge(names::ROUTE_QUEUED, plain, row.queued as f64);
    gauge(names::ROUTE_QUEUED_BYTES, plain, row.queued_bytes as f64);
    gauge(
        names::ROUTE_OLDEST_AGE,
        plain,
        route.parts().crew.oldest_age(now).as_secs_f64(),
    );
    gauge(names::ROUTE_DIFFERENCE, plain, row.difference() as f64);
    let (is, _) = route.state(now);
    for state in RouteState::ALL.iter().copied() {
        let labels = [("route", id), ("state", state.as_str())];
        gauge(
            names::ROUTE_STATE,
            &labels,
            f64::from(u8::from(state == is)),
        );
    }
    for (metric, histogram) in [
        (names::ROUTE_LATENCY, stats.latency()),
        (names::ROUTE_ATTEMPT, stats.attempt_time()),
    ] {
        page.put(metric, plain, histogram.into());
    }
}

/// Single copies of a fan-out that were not sent, by cause; zeros for a route that is none.
fn copies_dropped(route: &RouteHandle) -> [(&'static str, u64); 4] {
    let mut causes = [
        CopyDropCause::SubscriberBudget,
        CopyDropCause::SubscriberQueue,
        CopyDropCause::NoParkedConnection,
        CopyDropCause::Declined,
    ]
    .map(|cause| (cause.as_str(), 0));
    for publisher in route.publishers() {
        for topic in publisher.drops() {
            causes[0].1 += topic.subscriber_budget;
            causes[1].1 += topic.subscriber_queue;
            causes[2].1 += topic.no_parked_connection;
            causes[3].1 += topic.declined;
        }
    }
    causes
}

#[expect(
    clippy::cast_precision_loss,
    reason = "gauges are read by people and alerts"
)]
pub(super) fn connections(page: &mut Page, state: &State) {
    let mut all = 0;
    for (listener, count) in state.weida_connections() {
        all += count;
        page.put(
            names::LISTENER_SESSIONS,
            &[("listener", listener)],
            Value::Gauge(count as f64),
        );
    }
    page.put(
        names::PEER_CONNECTIONS,
        &[("direction", "accepted")],
        Value::Gauge(all as f64),
    );
}

pub(super) fn refusals(page: &mut Page, refusals: &Refusals) {
    for op in RefusedOp::ALL.iter().copied() {
        for cause in RefusedCause::ALL.iter().copied() {
            let labels = [
                ("listener", refusals.listener()),
                ("op", op.as_str()),
                ("cause", cause.as_str()),
            ];
            page.put(
                names::LISTENER_REFUSED,
                &labels,
                Value::Counter(refusals.of(op, cause)),
            );
        }
    }
}
