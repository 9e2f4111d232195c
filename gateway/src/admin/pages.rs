//! The pages themselves.

use std::sync::Arc;

use axum::extract::{RawQuery, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::route::RouteHandle;
use crate::state::State;

/// 200 while the main loop comes round; never depends on anybody else.
pub(super) async fn livez(Shared(state): Shared<Arc<State>>) -> Response {
    if state.is_alive() {
        (StatusCode::OK, "ok\n").into_response()
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the main loop did not come round for 5 s\n",
        )
            .into_response()
    }
}

/// 200 when everything of `gateway.md` 7.2 holds, else 503 with the reasons.
pub(super) async fn readyz(
    Shared(state): Shared<Arc<State>>,
    RawQuery(query): RawQuery,
) -> Response {
    let verbose = query.is_some_and(|query| {
        query
            .split('&')
            .any(|pair| pair == "verbose" || pair.starts_with("verbose="))
    });
    let checks = state.checks();
    let ready = checks.iter().all(|(_, problem)| problem.is_none());
    let mut body = json!({
        "ready": ready,
        "reasons": checks.iter().filter_map(|(_, problem)| *problem).collect::<Vec<_>>(),
    });
    if verbose {
        let checks: serde_json::Map<_, _> = checks
            .iter()
            .map(|(name, problem)| ((*name).to_owned(), json!(problem.unwrap_or("ok"))))
            .collect();
        body["checks"] = checks.into();
        body["status"] = describe(&state);
    }
    let code = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, axum::Json(body)).into_response()
}

/// OpenMetrics text.
pub(super) async fn metrics(Shared(state): Shared<Arc<State>>) -> Response {
    const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match crate::metrics::render(&state) {
        Ok(text) => ([(header::CONTENT_TYPE, TYPE)], text).into_response(),
        Err(std::fmt::Error) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The whole process on one page.
pub(super) async fn status(Shared(state): Shared<Arc<State>>) -> Response {
    axum::Json(describe(&state)).into_response()
}

fn describe(state: &State) -> Value {
    let now = Instant::now();
    let word = if state.is_draining() {
        "draining"
    } else if state.is_ready() {
        "ready"
    } else {
        "starting"
    };
    let listeners: Vec<_> = state
        .bound()
        .iter()
        .map(|bound| {
            json!({ "name": &*bound.name, "protocol": bound.protocol, "address": bound.address.to_string() })
        })
        .collect();
    let routes: Vec<_> = state
        .routes()
        .iter()
        .map(|route| describe_route(route, now))
        .collect();
    json!({
        "schema": 1,
        "state": word,
        "name": state.name(),
        "version": env!("CARGO_PKG_VERSION"),
        "fingerprint": state.fingerprint().to_string(),
        "generation": 1,
        "uptime_seconds": state.uptime().as_secs(),
        "listeners": listeners,
        "routes": routes,
    })
}

fn describe_route(route: &RouteHandle, now: Instant) -> Value {
    let config = &route.config().route;
    let row = route.parts().ledger.snapshot();
    let stats = &route.parts().stats;
    let (state, reason) = route.state(now);
    let dropped: serde_json::Map<_, _> = row
        .dropped
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(cause, count)| (cause.as_str().to_owned(), count.into()))
        .collect();
    json!({
        "name": route.id().as_str(),
        "direction": config.direction.as_str(),
        "pattern": config.pattern.to_string(),
        "delivery": config.delivery.to_string(),
        "ack_on": config.ack_on.to_string(),
        "state": state.as_str(),
        "reason": reason,
        "loss": config.loss.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "received": row.received,
        "delivered": row.delivered,
        "filtered": row.filtered,
        "expired": row.expired,
        "dropped": dropped,
        "dead_lettered": row.dead_lettered.total(),
        "in_flight": row.in_flight,
        "queued": row.queued,
        "difference": row.difference(),
        "indeterminate": row.indeterminate,
        "duplicates_possible": stats.duplicates_possible(),
        "oldest_age_seconds": route.parts().crew.oldest_age(now).as_secs_f64(),
    })
}
