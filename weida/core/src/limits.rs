//! Bounds of one connection; every one names what a remote could grow. [wire 18]

use std::time::Duration;

/// What `datagram_receive_bytes` is set to where flows are switched on: 64 KiB.
pub const DEFAULT_DATAGRAM_RECEIVE_BYTES: usize = 65_536;

/// Resource limits of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest frame header a peer may send, in bytes; advertised in HELLO. Default 16 KiB.
    pub max_header_bytes: u64,
    /// One-way streams a peer may have open. Default 2048.
    pub max_concurrent_uni_streams: u32,
    /// Exchanges a peer may have open. Default 1024.
    pub max_concurrent_bidi_streams: u32,
    /// Unread bytes per stream. Default 1 MiB.
    pub stream_receive_window: u64,
    /// Unread bytes per connection. Default 16 MiB.
    pub connection_receive_window: u64,
    /// Interval of keep-alive packets; only a dialler sends them. Default 10 s.
    pub keep_alive: Duration,
    /// Silence after which the connection is lost; the smaller of both sides holds. Default 30 s.
    pub idle_timeout: Duration,
    /// Wait for the peer's HELLO, in milliseconds. Default 10 000.
    pub hello_timeout_ms: u64,
    /// Filters a peer may hold over all paths. Default 256.
    pub max_subscriptions: usize,
    /// Payload bytes queued for one subscriber; also the largest whole publish. Default 8 MiB.
    pub subscriber_buffer_bytes: usize,
    /// Ordering scopes, drop-table topics and segment topics tracked. Default 1024.
    pub max_sequence_scopes: usize,
    /// Transfers held for reassembly. Default 256.
    pub max_reorder_hold: usize,
    /// Live local-socket streams; each is a file descriptor. Default 255.
    pub max_local_streams: usize,
    /// Connections a subscriber parks at a local-socket peer. Default 8.
    pub max_parked_reverse: usize,
    /// Identities remembered for bounded deduplication. Default 4096.
    pub max_dedup_entries: usize,
    /// Unread datagram bytes; 0 switches flows off, and is the default.
    pub datagram_receive_bytes: usize,
    /// Datagram bytes queued for sending. Default 64 KiB.
    pub datagram_send_bytes: usize,
    /// Whether path reports are exchanged (capability 2). Default off.
    pub path_report: bool,
    /// Live inbound flows. Default 64.
    pub max_flows: usize,
    /// Unread bytes per inbound flow. Default 16 KiB.
    pub flow_queue_bytes: usize,
    /// Bytes held for flow ids that have no flow yet. Default 4 KiB.
    pub flow_early_bytes: usize,
    /// How long such bytes are held. Default 1 s.
    pub flow_early_hold: Duration,
    /// Congestion controller. Default CUBIC.
    pub congestion: Congestion,
    /// Time a stream has for its preamble, and again for its header, in milliseconds. Default 10 000.
    pub header_timeout_ms: u64,
    /// Streams that read their frame head at once; at least one. Default 64.
    pub max_header_streams: usize,
}

impl Limits {
    /// Streams that may read a frame head at once, never fewer than one.
    pub const fn header_slots(&self) -> usize {
        if self.max_header_streams == 0 {
            1
        } else {
            self.max_header_streams
        }
    }

    /// The most raw header bytes one connection can make this side hold.
    pub const fn worst_case_header_memory(&self) -> u64 {
        (self.header_slots() as u64).saturating_mul(self.max_header_bytes)
    }

    /// Time a peer has for its HELLO.
    pub const fn hello_timeout(&self) -> Duration {
        Duration::from_millis(self.hello_timeout_ms)
    }

    /// Time a stream has for its preamble, and again for its header.
    pub const fn header_timeout(&self) -> Duration {
        Duration::from_millis(self.header_timeout_ms)
    }

    /// Whether datagram flows are on (capability 1).
    pub const fn flows_enabled(&self) -> bool {
        self.datagram_receive_bytes > 0
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_header_bytes: 16 * 1024,
            max_concurrent_uni_streams: 2048,
            max_concurrent_bidi_streams: 1024,
            stream_receive_window: 1024 * 1024,
            connection_receive_window: 16 * 1024 * 1024,
            keep_alive: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            hello_timeout_ms: 10_000,
            max_subscriptions: 256,
            subscriber_buffer_bytes: 8 * 1024 * 1024,
            max_sequence_scopes: 1024,
            max_reorder_hold: 256,
            max_local_streams: 255,
            max_parked_reverse: 8,
            max_dedup_entries: 4096,
            datagram_receive_bytes: 0,
            datagram_send_bytes: 65_536,
            path_report: false,
            max_flows: 64,
            flow_queue_bytes: 16_384,
            flow_early_bytes: 4096,
            flow_early_hold: Duration::from_secs(1),
            congestion: Congestion::Cubic,
            header_timeout_ms: 10_000,
            max_header_streams: 64,
        }
    }
}

/// A QUIC congestion controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438, loss-based.
    #[default]
    Cubic,
    /// RFC 9002 section 7, loss-based and conservative.
    NewReno,
    /// Model-based; reacts to delay.
    Bbr,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [wire 18] and runtime section 15.2, value by value.
    #[test]
    fn every_default_is_pinned() {
        let limits = Limits::default();
        let numbers = [
            limits.max_header_bytes,
            limits.max_concurrent_uni_streams.into(),
            limits.max_concurrent_bidi_streams.into(),
            limits.stream_receive_window,
            limits.connection_receive_window,
            limits.hello_timeout_ms,
            limits.header_timeout_ms,
        ];
        assert_eq!(
            numbers,
            [16_384, 2048, 1024, 1 << 20, 16 << 20, 10_000, 10_000]
        );
        let counts = [
            limits.max_subscriptions,
            limits.subscriber_buffer_bytes,
            limits.max_sequence_scopes,
            limits.max_reorder_hold,
            limits.max_local_streams,
            limits.max_parked_reverse,
            limits.max_dedup_entries,
            limits.datagram_receive_bytes,
            limits.datagram_send_bytes,
            limits.max_flows,
            limits.flow_queue_bytes,
            limits.flow_early_bytes,
            limits.max_header_streams,
        ];
        let expected = [
            256,
            8 << 20,
            1024,
            256,
            255,
            8,
            4096,
            0,
            65_536,
            64,
            16_384,
            4096,
            64,
        ];
        assert_eq!(counts, expected);
        let seconds = [
            limits.keep_alive,
            limits.idle_timeout,
            limits.flow_early_hold,
        ];
        assert_eq!(seconds.map(|duration| duration.as_secs()), [10, 30, 1]);
        assert_eq!(
            (limits.path_report, limits.congestion),
            (false, Congestion::Cubic)
        );
        assert_eq!(limits.worst_case_header_memory(), 1 << 20);
        assert!(!limits.flows_enabled());
    }

    #[test]
    fn a_connection_always_reads_one_head() {
        let limits = Limits {
            max_header_streams: 0,
            ..Limits::default()
        };
        assert_eq!(
            (limits.header_slots(), limits.worst_case_header_memory()),
            (1, 16_384)
        );
    }
}
