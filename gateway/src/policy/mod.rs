//! The service stack of one route: what is in the way of a message between its source and its destination.
//!
//! Outermost first (`gateway.md` 9; [weida BR-7], [weida BR-8]):
//!
//! ```text
//! detach      a taken message goes on, whoever stops waiting
//! observe     born once, ends once; latency
//! filter      loops, size, where, set
//! deadline    expires_at and timeout, over everything below      (not for a fan-out)
//! admission   block, reject, drop-newest, drop-oldest            (not for a fan-out)
//!   room      messages and KiB                                   (not for a fan-out)
//! concurrency in_flight, tower's                                 (not for a fan-out)
//! retry       tower's, with tower's token budget                 (not for a fan-out)
//! gate        waits while the destination is away                (not for a fan-out)
//! attempt     attempt_timeout                                    (not for a fan-out)
//! egress      the destination
//! ```
//!
//! A weida fan-out never waits and can't be repeated, so the layers that bound waiting have nothing to do there and are
//! left out ([`direct`]): what is switched off costs nothing.

pub mod admission;
pub mod attempt;
pub mod deadline;
pub mod detach;
pub mod filter;
pub mod message;
pub mod observe;
pub mod presence;
pub mod retry;
pub mod stats;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tower::ServiceBuilder;
use tower::limit::ConcurrencyLimitLayer;
use tower::retry::RetryLayer;
use tower_service::Service;
use weida_bridge::{DeliveryClass, FabricError, GatewayId, Ingress, Ledger, Outcome, Pattern};

use self::admission::{AdmissionLayer, Room};
use self::attempt::AttemptTimeoutLayer;
use self::deadline::DeadlineLayer;
use self::detach::{Crew, DetachLayer};
use self::filter::{FilterLayer, Rules};
use self::message::{Attempt, Message};
use self::observe::ObserveLayer;
use self::presence::{GateLayer, Presence};
use self::retry::{RetryPolicy, RetryTerms};
use self::stats::RouteStats;
use crate::config::valid::{Overflow, RouteConfig};

/// Everything one route's stack shares with whoever watches it.
#[derive(Clone, Debug)]
pub struct RouteParts {
    /// The conservation row.
    pub ledger: Arc<Ledger>,
    /// The other counters.
    pub stats: Arc<RouteStats>,
    /// Whether the destination is there.
    pub presence: Arc<Presence>,
    /// Room in front of the destination.
    pub room: Arc<Room>,
    /// Tasks of messages that wait.
    pub crew: Arc<Crew>,
    /// When the route was built.
    pub started: Instant,
}

/// What the stack is told by the route's configuration.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What happens at the door of a full route.
    pub overflow: Overflow,
    /// Life of a message in the gateway.
    pub timeout: Option<Duration>,
    /// The clock runs on while the destination is away.
    pub runs_while_away: bool,
    /// An outcome that stays unknown is final.
    pub at_most_once: bool,
    /// Longest attempt.
    pub attempt_timeout: Option<Duration>,
    /// Messages at the destination at once.
    pub in_flight: usize,
    /// Rules of the second layer.
    pub rules: Arc<Rules>,
    /// Retries.
    pub retry: Arc<RetryTerms>,
}

impl Terms {
    /// Terms of one configured route.
    #[must_use]
    pub fn new(config: &RouteConfig, own: GatewayId, parts: &RouteParts) -> Self {
        let stats = &parts.stats;
        let at_most_once = config.route.delivery == DeliveryClass::AtMostOnce;
        let is_exchange = matches!(config.route.pattern, Pattern::Request | Pattern::Reply);
        // What a foreign session has got may be answered late or by somebody else; its own redelivery is the retry.
        let toward_weida = matches!(config.route.pattern, Pattern::Push | Pattern::Request);
        let repeatable = toward_weida && !at_most_once && (!is_exchange || config.idempotent);
        Self {
            overflow: config.overflow,
            timeout: config.route.timeout,
            runs_while_away: is_exchange,
            at_most_once,
            // An exchange that is not repeated has the whole timeout for its one attempt.
            attempt_timeout: (!is_exchange || repeatable).then_some(config.attempt_timeout),
            in_flight: if is_exchange {
                config.in_flight.min(config.max_pending_replies)
            } else {
                config.in_flight
            },
            rules: Arc::new(Rules {
                conditions: config.conditions.clone(),
                transform: config.transform.clone(),
                max_message_bytes: config.route.max_message_bytes,
                own,
                max_hops: usize::from(config.max_hops),
                stats: Arc::clone(stats),
            }),
            retry: RetryTerms::new(
                &config.retry,
                repeatable,
                config.dead_letter.max_attempts,
                Arc::clone(&parts.ledger),
                Arc::clone(stats),
            ),
        }
    }
}

/// The whole stack, in front of a destination that may be away, slow or of unknown outcome.
pub fn waiting<E>(parts: &RouteParts, terms: &Terms, egress: E) -> Ingress
where
    E: Service<Attempt, Response = Outcome, Error = FabricError> + Clone + Send + Sync + 'static,
    E::Future: Send + 'static,
{
    let stack = ServiceBuilder::new()
        .layer(DetachLayer(Arc::clone(&parts.crew)))
        .layer(observe(parts, true))
        .layer(FilterLayer(Arc::clone(&terms.rules)))
        .layer(DeadlineLayer {
            timeout: terms.timeout,
            runs_while_away: terms.runs_while_away,
            at_most_once: terms.at_most_once,
            presence: Arc::clone(&parts.presence),
        })
        .layer(AdmissionLayer {
            room: Arc::clone(&parts.room),
            overflow: terms.overflow,
            stats: Arc::clone(&parts.stats),
        })
        .layer(ConcurrencyLimitLayer::new(terms.in_flight.max(1)))
        .layer(RetryLayer::new(RetryPolicy::new(Arc::clone(&terms.retry))))
        .layer(GateLayer(Arc::clone(&parts.presence)))
        .layer(AttemptTimeoutLayer {
            limit: terms.attempt_timeout,
            stats: Arc::clone(&parts.stats),
        })
        .service(egress);
    Ingress::from_boxed(stack)
}

/// The stack of a destination that takes or drops at once and is never asked twice.
pub fn direct<E>(parts: &RouteParts, terms: &Terms, egress: E) -> Ingress
where
    E: Service<Message, Response = Outcome, Error = FabricError> + Clone + Send + Sync + 'static,
    E::Future: Send + Unpin + 'static,
{
    let stack = ServiceBuilder::new()
        .layer(DetachLayer(Arc::clone(&parts.crew)))
        .layer(observe(parts, false))
        .layer(FilterLayer(Arc::clone(&terms.rules)))
        .service(egress);
    Ingress::from_boxed(stack)
}

fn observe(parts: &RouteParts, waits: bool) -> ObserveLayer {
    ObserveLayer {
        ledger: Arc::clone(&parts.ledger),
        stats: Arc::clone(&parts.stats),
        started: parts.started,
        waits,
    }
}

#[cfg(test)]
mod tests;
