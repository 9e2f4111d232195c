//! One running route: its configuration, the parts of its stack, and the one truth about its state.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weida::Publisher;
use weida_bridge::metrics::RouteState;
use weida_bridge::{Direction, GatewayId, Ledger, RouteId};

use crate::config::valid::{RouteConfig, WeidaEnd};
use crate::policy::admission::Room;
use crate::policy::detach::Crew;
use crate::policy::presence::Presence;
use crate::policy::stats::RouteStats;
use crate::policy::{RouteParts, Terms};

/// A route counts as flowing for so long after its last success.
const FLOWING: Duration = Duration::from_secs(10);

/// One running route, shared by the fabric, the admin pages and the drain.
#[derive(Debug)]
pub struct RouteHandle {
    config: RouteConfig,
    parts: RouteParts,
    terms: Terms,
    publishers: OnceLock<Arc<[Publisher]>>,
}

impl RouteHandle {
    /// A route that has not moved anything yet. A dialled destination counts as away until it was reached.
    #[must_use]
    pub fn new(
        config: RouteConfig,
        own: GatewayId,
        cut: CancellationToken,
        now: Instant,
    ) -> Arc<Self> {
        let dials = matches!(config.weida, WeidaEnd::Dial { .. });
        let ingress = config.route.direction == Direction::Ingress;
        let presence = if dials && ingress {
            Presence::away(now)
        } else {
            Presence::here()
        };
        let parts = RouteParts {
            ledger: Ledger::new(config.route.id.clone()),
            stats: Arc::new(RouteStats::default()),
            presence,
            // What is being sent has left the buffer and still occupies room.
            room: Room::new(
                config.buffer.messages.saturating_add(config.in_flight),
                config.buffer.bytes,
            ),
            crew: Crew::new(cut),
            started: now,
        };
        let terms = Terms::new(&config, own, &parts);
        Arc::new(Self {
            config,
            parts,
            terms,
            publishers: OnceLock::new(),
        })
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &RouteConfig {
        &self.config
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &RouteId {
        &self.config.route.id
    }

    /// What its stack shares.
    #[must_use]
    pub fn parts(&self) -> &RouteParts {
        &self.parts
    }

    /// What its stack is told.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The publishers of a publish route.
    #[must_use]
    pub fn publishers(&self) -> &[Publisher] {
        self.publishers.get().map_or(&[], |publishers| publishers)
    }

    pub(crate) fn set_publishers(&self, publishers: Arc<[Publisher]>) {
        // Set once, while the fabric is built.
        let _: Result<(), Arc<[Publisher]>> = self.publishers.set(publishers);
    }

    /// What the route is doing, and why it does nothing (`gateway.md` rule 6).
    #[must_use]
    pub fn state(&self, now: Instant) -> (RouteState, Option<&'static str>) {
        let parts = &self.parts;
        if parts.crew.is_broken(now) {
            return (RouteState::Broken, Some("it panics again and again"));
        }
        if !parts.presence.is_here() {
            let reason =
                if parts.stats.last_success().is_some() || parts.ledger.snapshot().received > 0 {
                    "the destination is away"
                } else {
                    "the destination was not reached yet"
                };
            return (RouteState::Retrying, Some(reason));
        }
        if parts.stats.blocked() > 0 {
            return (RouteState::Blocked, Some("it is full and its source waits"));
        }
        if parts.stats.retrying() > 0 {
            return (
                RouteState::Retrying,
                Some("messages wait for their next attempt"),
            );
        }
        let since_start = now.saturating_duration_since(parts.started);
        let flows = parts
            .stats
            .last_success()
            .is_some_and(|at| at + FLOWING >= since_start);
        if flows {
            (RouteState::Flowing, None)
        } else {
            (RouteState::Idle, None)
        }
    }
}
