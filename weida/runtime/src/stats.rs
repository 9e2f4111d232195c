//! What a dialling handle can read about its connections.
//!
//! No type here carries a socket address: the only name of a connection is the
//! URL the application dialled. `[weida INV-16]`

use std::sync::Arc;
use std::time::Duration;

/// One live connection of a dialling handle.
///
/// `url` and `redials` belong to the handle, `age` and `transport` to the
/// connection. Two handles sharing a pooled connection both report it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// The URL exactly as it was given to `connect`.
    pub url: Arc<str>,
    /// How long the current connection has been up.
    pub age: Duration,
    /// Successful redials of this address; the first `connect` is not one.
    pub redials: u64,
    /// The transport's numbers; `None` on a local transport.
    pub transport: Option<TransportStats>,
    /// The peer's view of the path, when both sides report paths.
    pub remote: Option<RemoteStats>,
}

/// The transport's view of one QUIC connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TransportStats {
    /// The path as it looks now.
    pub path: PathStats,
    /// What this side sent.
    pub tx: UdpCounts,
    /// What this side received.
    pub rx: UdpCounts,
}

/// The path under a connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PathStats {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Smallest round-trip time seen.
    pub min_rtt: Duration,
    /// Congestion window, in bytes.
    pub cwnd: u64,
    /// Times congestion control reduced the window.
    pub congestion_events: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Bytes declared lost.
    pub lost_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Largest UDP payload the path carries, in bytes.
    pub current_mtu: u16,
    /// Largest datagram payload; `None` when datagrams are off.
    pub max_datagram_size: Option<usize>,
}

/// UDP datagrams in one direction, and the bytes inside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UdpCounts {
    /// UDP datagrams.
    pub datagrams: u64,
    /// Bytes inside them.
    pub bytes: u64,
}

/// The peer's view of the path, from its latest report.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RemoteStats {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Smallest round-trip time seen.
    pub min_rtt: Duration,
    /// Congestion window, in bytes.
    pub cwnd: u64,
    /// Times congestion control reduced the window.
    pub congestion_events: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Bytes declared lost.
    pub lost_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Largest UDP payload the path carries, in bytes.
    pub current_mtu: u16,
    /// What the peer sent.
    pub tx: UdpCounts,
    /// What the peer received.
    pub rx: UdpCounts,
    /// How old the report is.
    pub age: Duration,
}

impl TransportStats {
    pub(crate) fn of(connection: &quinn::Connection) -> Self {
        let stats = connection.stats();
        Self {
            path: PathStats {
                rtt: stats.path.rtt,
                min_rtt: connection.min_rtt(),
                cwnd: stats.path.cwnd,
                congestion_events: stats.path.congestion_events,
                lost_packets: stats.path.lost_packets,
                lost_bytes: stats.path.lost_bytes,
                sent_packets: stats.path.sent_packets,
                current_mtu: stats.path.current_mtu,
                max_datagram_size: connection.max_datagram_size(),
            },
            tx: UdpCounts {
                datagrams: stats.udp_tx.datagrams,
                bytes: stats.udp_tx.bytes,
            },
            rx: UdpCounts {
                datagrams: stats.udp_rx.datagrams,
                bytes: stats.udp_rx.bytes,
            },
        }
    }
}
