//! How a lost address is redialled, and what is told about it.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng as _;
use tokio::sync::broadcast;
use weida_core::{Fingerprint, LossCause, PeerIdentity};

/// How a dialling endpoint redials an address it has lost. `[wire 23]`
///
/// Two losses are never redialled, whatever the policy says: a connection this
/// side closed, and an address that answered with a different key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconnectPolicy {
    /// Delay before the first redial; doubles with every attempt. 100 ms.
    pub initial: Duration,
    /// Ceiling of the delay, and how long a connection must have lived to earn
    /// a fresh schedule. 30 s. A peer that accepts and hangs up at once is
    /// redialled ever more slowly because of the second meaning.
    pub max: Duration,
    /// Whether a delay is drawn from the upper half of its value, so that a
    /// fleet that lost one server does not come back in lockstep. On.
    pub jitter: bool,
    /// Attempts since the last connection that stayed up before the slot is
    /// given up; `None` (the default) tries for as long as the endpoint lives.
    pub max_attempts: Option<u32>,
    /// Give up when the peer closed deliberately. Off, because a server that
    /// restarts by closing and binding again looks the same.
    pub stop_on_peer_closed: bool,
}

impl ReconnectPolicy {
    /// No redial: a lost peer is reported as given up at once.
    pub fn never() -> Self {
        Self {
            max_attempts: Some(0),
            ..Self::default()
        }
    }

    /// Whether a lost address is redialled at all.
    pub fn redials(&self) -> bool {
        self.max_attempts != Some(0)
    }

    /// The delay before `attempt`, counted from 1.
    pub fn delay(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let full = self
            .initial
            .saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX))
            .min(self.max);
        if !self.jitter {
            return full;
        }
        full.mul_f64(rand::rng().random_range(0.5..=1.0))
    }
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(100),
            max: Duration::from_secs(30),
            jitter: true,
            max_attempts: None,
            stop_on_peer_closed: false,
        }
    }
}

/// What a `send` does when the outbox is at its bound.
///
/// Local to the sender: what the peer declares has no bearing on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OutboxFull {
    /// Wait for room.
    #[default]
    Block,
    /// Discard the body and count it in `dropped()`.
    Drop,
    /// Fail with [`Error::LimitExceeded`](crate::Error::LimitExceeded).
    Reject,
}

/// Why a slot stopped redialling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GiveUp {
    /// The policy ran out, or this side closed the connection.
    Policy {
        /// Redials attempted after the loss.
        attempts: u32,
    },
    /// Another key answered at the address: not the peer that was lost.
    PeerChanged {
        /// What answered; `None` when it proved nothing.
        presented: Option<Fingerprint>,
    },
    /// The address answered and cannot be used; trying again would not change
    /// it. The text says why.
    Failed(String),
}

/// One transition of one dialled address.
#[derive(Clone, Debug)]
pub enum PeerEvent {
    /// The address has a live connection.
    Connected {
        /// The address as it was dialled.
        url: Arc<str>,
        /// What the peer proved.
        peer: Option<PeerIdentity>,
    },
    /// The connection is gone.
    Lost {
        /// The address as it was dialled.
        url: Arc<str>,
        /// Why, with the peer's reason when it gave one.
        cause: LossCause,
    },
    /// A redial is scheduled.
    Retrying {
        /// The address as it was dialled.
        url: Arc<str>,
        /// Which attempt since the last connection that stayed up, from 1.
        attempt: u32,
        /// How long the runtime waits before it.
        delay: Duration,
    },
    /// The address will not be redialled again.
    GaveUp {
        /// The address as it was dialled.
        url: Arc<str>,
        /// Why.
        why: GiveUp,
    },
    /// This reader fell behind by this many events, which are gone.
    Missed(u64),
}

/// The event stream of one dialling endpoint.
///
/// Each call of an endpoint's `events()` gives an independent reader that sees
/// every event from that moment on.
///
/// # Limits
///
/// A reader is at most 64 events behind; then it gets [`PeerEvent::Missed`].
pub struct PeerEvents {
    events: broadcast::Receiver<PeerEvent>,
}

impl PeerEvents {
    /// The next event, or `None` once the endpoint is gone.
    ///
    /// # Cancel safety
    ///
    /// Safe: no event is lost when the future is dropped.
    pub async fn recv(&mut self) -> Option<PeerEvent> {
        match self.events.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(PeerEvent::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl std::fmt::Debug for PeerEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerEvents").finish_non_exhaustive()
    }
}

/// The writing side of an endpoint's event stream.
#[derive(Clone, Debug)]
pub(crate) struct EventHub {
    sender: broadcast::Sender<PeerEvent>,
}

impl EventHub {
    pub(crate) fn new() -> Self {
        Self {
            sender: broadcast::Sender::new(EVENTS_KEPT),
        }
    }

    pub(crate) fn emit(&self, event: PeerEvent) {
        // No reader is the ordinary case and costs nothing.
        let _: Result<usize, _> = self.sender.send(event);
    }

    pub(crate) fn subscribe(&self) -> PeerEvents {
        PeerEvents {
            events: self.sender.subscribe(),
        }
    }
}

/// Events a slow reader may be behind before it is told how many it missed.
const EVENTS_KEPT: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_23_delays_double_up_to_the_ceiling() {
        let policy = ReconnectPolicy {
            jitter: false,
            ..ReconnectPolicy::default()
        };
        let delays = [1, 2, 3, 9, 10, 40, u32::MAX].map(|n| policy.delay(n).as_millis());
        assert_eq!(delays, [100, 200, 400, 25_600, 30_000, 30_000, 30_000]);
    }

    #[test]
    fn wire_23_jitter_draws_from_the_upper_half() {
        let policy = ReconnectPolicy::default();
        for _ in 0..1000 {
            let delay = policy.delay(3).as_millis();
            assert!((200..=400).contains(&delay), "{delay}");
        }
    }

    #[tokio::test]
    async fn rd_4_inv_12_a_slow_reader_learns_how_many_it_missed() {
        let hub = EventHub::new();
        let mut events = hub.subscribe();
        for _ in 0..EVENTS_KEPT + 10 {
            hub.emit(PeerEvent::Missed(0));
        }
        assert!(matches!(events.recv().await, Some(PeerEvent::Missed(10))));
        drop(hub);
        let mut seen = 0;
        while events.recv().await.is_some() {
            seen += 1;
        }
        assert_eq!(seen, EVENTS_KEPT);
    }
}
