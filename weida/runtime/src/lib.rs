//! Messaging over QUIC in which a peer is the key it proved and nothing else.

mod exec;
mod queue;
mod reconnect;
mod socket;
mod stats;

pub use exec::Exec;
pub use reconnect::{GiveUp, OutboxFull, PeerEvent, PeerEvents, ReconnectPolicy};
pub use stats::{ConnectionStats, PathStats, RemoteStats, TransportStats, UdpCounts};
pub use weida_core::{Error, Fingerprint, LossCause, PeerIdentity, Result};
