//! QUIC transport parameters. `[wire 2.1]`

use std::sync::Arc;

use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn::{EndpointConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use weida_core::{Congestion, Limits};

use crate::reset::{RandomIds, ResetKey};

/// Which end of a connection the parameters are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Sends the keep-alives. `[weida CN-7]`
    Dialler,
    /// Never pings: a silent peer is the dialler's to keep alive.
    Binding,
}

/// Transport parameters from the limits of one connection.
pub(crate) fn config(limits: &Limits, role: Role) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        // Without one one-way stream the peer can never send HELLO.
        .max_concurrent_uni_streams(VarInt::from_u32(limits.max_concurrent_uni_streams.max(1)))
        .max_concurrent_bidi_streams(VarInt::from_u32(limits.max_concurrent_bidi_streams))
        .stream_receive_window(window(limits.stream_receive_window))
        .receive_window(window(limits.connection_receive_window))
        .send_window(SEND_WINDOW_BYTES)
        .max_idle_timeout(IdleTimeout::try_from(limits.idle_timeout).ok())
        .datagram_receive_buffer_size(None);
    let mut mtu = MtuDiscoveryConfig::default();
    mtu.upper_bound(MAX_DATAGRAM_BYTES);
    config.mtu_discovery_config(Some(mtu));
    if role == Role::Dialler {
        config.keep_alive_interval(Some(limits.keep_alive));
    }
    match limits.congestion {
        Congestion::Cubic => {
            config.congestion_controller_factory(Arc::new(CubicConfig::default()));
        }
        Congestion::NewReno => {
            config.congestion_controller_factory(Arc::new(NewRenoConfig::default()));
        }
        Congestion::Bbr => {
            config.congestion_controller_factory(Arc::new(BbrConfig::default()));
        }
    }
    Arc::new(config)
}

/// What a QUIC endpoint of ours accepts on its socket. A binding brings the key
/// of its stateless resets, which its successor will have too.
pub(crate) fn endpoint_config(reset: Option<ResetKey>) -> EndpointConfig {
    let mut config = match reset {
        None => EndpointConfig::default(),
        Some(key) => {
            let mut config = EndpointConfig::new(Arc::new(key));
            config.cid_generator(|| Box::new(RandomIds));
            config
        }
    };
    // Fails only below QUIC's minimum.
    drop(config.max_udp_payload_size(MAX_DATAGRAM_BYTES));
    config
}

fn window(bytes: u64) -> VarInt {
    VarInt::from_u64(bytes).unwrap_or(VarInt::MAX)
}

/// Unacknowledged bytes one connection may hold for sending, over all streams.
/// As much as the default connection window of the peer.
const SEND_WINDOW_BYTES: u64 = 16 << 20;

/// Largest UDP payload sent or accepted. Path MTU discovery finds what the path
/// really carries, and loopback and jumbo frames carry this. It is not larger
/// because quinn hands the kernel ten datagrams in one segmented send, which
/// must fit a 64 KiB buffer or is lost whole.
const MAX_DATAGRAM_BYTES: u16 = 6500;
