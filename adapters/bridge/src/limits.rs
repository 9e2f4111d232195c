//! Every bound that adapters share, with its unit in the name [gateway 10] [reconciled R16].

use std::time::Duration;

/// Metadata entries that cross a route. Fixed: both sides of a route have to agree on it. [gateway 10]
pub const MAX_META_ENTRIES: usize = 32;

/// Bytes of metadata names and values that cross a route. Fixed, as the weida extension key 66 is. [gateway 8.3]
pub const MAX_META_BYTES: usize = 8 * KIB;

/// Gateways in a loop mark; one more is a loop. Fixed by weida extension key 65. [gateway 8.3]
pub const MAX_VIA: usize = 16;

/// Bytes of a content type. Fixed by the wire. [wire 8]
pub const MAX_CONTENT_TYPE_BYTES: usize = 256;

/// Bounds of an adapter. Nothing in it is "off": each field bounds something a remote can make grow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections and stored sessions of one process. Default 20 000: what the usual open-file limit carries with room
    /// for everything else. One more: refused at connect.
    pub max_sessions: usize,
    /// Connections and stored sessions of one listener. Default 10 000: one listener cannot use up the process. One more:
    /// refused at connect.
    pub max_sessions_per_listener: usize,
    /// Connections from one address. Default 256: a fleet behind one translated address still fits, a flood does not.
    pub max_connections_per_ip: usize,
    /// Handshakes going on at once per listener. Default 256: each may hold a TLS state and a buffer of its own.
    pub max_handshakes: usize,
    /// Accept until open. Default 5 s: a slow link makes it, a slow-loris does not hold a place.
    pub handshake_timeout: Duration,
    /// Largest payload, in bytes. Default 1 MiB: whole messages are held in memory, so this times everything in flight is
    /// memory. One byte more: `too_large`.
    pub max_message_bytes: usize,
    /// Longest foreign name, in bytes. Default 65 535, what any protocol here can carry in one length field.
    pub max_name_bytes: usize,
    /// Filters of one session. Default 128: half of what one weida connection may hold. One more: refused by itself.
    pub max_filters_per_session: usize,
    /// Filters of one process. Default 100 000: bounds the matching tree to some tens of MiB.
    pub max_filters: usize,
    /// Unsettled messages of one session in each direction. Default 64: enough for a round trip of 1 ms at 64 000 per
    /// second, small enough to be resent after a cut. At the bound: reading stops.
    pub max_in_flight_per_session: usize,
    /// Messages that wait for one absent session. Default 1000. One more: the session's policy, `queue_full`.
    pub max_queued_messages_per_session: usize,
    /// Payload bytes that wait for one absent session. Default 8 MiB: 1000 messages of common size, whatever their size.
    pub max_queued_bytes_per_session: usize,
    /// How long a session outlives its connection. Default 1 h: a night's outage is an operator's choice, not a default.
    pub session_expiry: Duration,
    /// Retained messages of one process. Default 10 000. One more: refused.
    pub max_retained_messages: usize,
    /// Payload bytes of retained messages. Default 64 MiB.
    pub max_retained_bytes: usize,
    /// Requests of one route whose answer is awaited. Default 4096. One more: refused.
    pub max_pending_replies: usize,
    /// Messages of one route between source and destination. Default 256. At the bound: the route is not ready.
    pub max_in_flight_per_route: usize,
    /// Messages that wait in one route. Default 4096: a queue of tens turns a burst into errors, thousands do not.
    pub max_queued_messages_per_route: usize,
    /// Payload bytes that wait in one route. Default 16 MiB: bytes protect memory, counts do not.
    pub max_queued_bytes_per_route: usize,
    /// Gateways a message may pass. Default 4, at most [`MAX_VIA`]. One more: `loop`.
    pub max_hops: usize,
    /// How long a stop may take. Default 8 s: container runtimes kill after 10 s.
    pub drain_timeout: Duration,
    /// One attempt of a delivery. Default 2 s: long for a network, short for a person.
    pub attempt_timeout: Duration,
    /// A request and its answer. Default 10 s; never off.
    pub request_timeout: Duration,
    /// Dialling one broker or peer. Default 10 s.
    pub connect_timeout: Duration,
}

impl Limits {
    /// Worst case of memory for waiting payloads of one session, in bytes.
    #[must_use]
    pub const fn session_bytes(&self) -> usize {
        self.max_queued_bytes_per_session.saturating_add(
            self.max_in_flight_per_session
                .saturating_mul(self.max_message_bytes),
        )
    }

    /// Worst case of memory for waiting payloads of one route, in bytes.
    #[must_use]
    pub const fn route_bytes(&self) -> usize {
        self.max_queued_bytes_per_route.saturating_add(
            self.max_in_flight_per_route
                .saturating_mul(self.max_message_bytes),
        )
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_sessions: 20_000,
            max_sessions_per_listener: 10_000,
            max_connections_per_ip: 256,
            max_handshakes: 256,
            handshake_timeout: Duration::from_secs(5),
            max_message_bytes: MIB,
            max_name_bytes: 65_535,
            max_filters_per_session: 128,
            max_filters: 100_000,
            max_in_flight_per_session: 64,
            max_queued_messages_per_session: 1000,
            max_queued_bytes_per_session: 8 * MIB,
            session_expiry: Duration::from_secs(3600),
            max_retained_messages: 10_000,
            max_retained_bytes: 64 * MIB,
            max_pending_replies: 4096,
            max_in_flight_per_route: 256,
            max_queued_messages_per_route: 4096,
            max_queued_bytes_per_route: 16 * MIB,
            max_hops: 4,
            drain_timeout: Duration::from_secs(8),
            attempt_timeout: Duration::from_secs(2),
            request_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
        }
    }
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

#[cfg(test)]
mod tests {
    use super::*;

    /// The table, number by number. [gateway 10]
    #[test]
    fn gateway_10_defaults() {
        let limits = Limits::default();
        assert_eq!(
            (limits.max_sessions, limits.max_sessions_per_listener),
            (20_000, 10_000)
        );
        assert_eq!(limits.max_connections_per_ip, 256);
        assert_eq!(limits.max_message_bytes, 1_048_576);
        assert_eq!(
            (limits.max_filters_per_session, limits.max_filters),
            (128, 100_000)
        );
        assert_eq!(limits.max_in_flight_per_session, 64);
        assert_eq!(limits.max_queued_messages_per_session, 1000);
        assert_eq!(limits.max_queued_bytes_per_session, 8_388_608);
        assert_eq!(limits.session_expiry, Duration::from_secs(3600));
        assert_eq!(
            (limits.max_retained_messages, limits.max_retained_bytes),
            (10_000, 67_108_864)
        );
        assert_eq!((MAX_META_ENTRIES, MAX_META_BYTES), (32, 8192));
        assert_eq!(limits.max_pending_replies, 4096);
        assert_eq!((limits.max_hops, MAX_VIA), (4, 16));
        assert_eq!(limits.drain_timeout, Duration::from_secs(8));
    }

    #[test]
    fn worst_case_memory_is_computable_and_cannot_overflow() {
        let limits = Limits::default();
        assert_eq!(limits.session_bytes(), 72 * MIB);
        assert_eq!(limits.route_bytes(), (16 + 256) * MIB);
        let huge = Limits {
            max_message_bytes: usize::MAX,
            ..limits
        };
        assert_eq!(huge.session_bytes(), usize::MAX);
    }
}
