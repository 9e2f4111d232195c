//! Messaging over QUIC in which a peer is the key it proved and nothing else.

mod exec;
mod identity;
mod queue;
mod reconnect;
mod resolver;
mod socket;
mod stats;
mod tls;
mod trust;

pub use exec::Exec;
pub use identity::{
    FilesOptions, Identity, IdentityEvent, IdentityEvents, IdentitySource, Pem, WeakIdentitySource,
};
pub use reconnect::{GiveUp, OutboxFull, PeerEvent, PeerEvents, ReconnectPolicy};
pub use resolver::{
    Discovery, MAX_OUTSTANDING_LOOKUPS, Resolved, Resolver, SharedResolver, SystemResolver,
};
pub use stats::{ConnectionStats, PathStats, RemoteStats, TransportStats, UdpCounts};
pub use tls::{ALPN, Alpn, ClientTls, PeerChain, RAFT_ALPN, ServerTls};
pub use trust::{ClientTrust, Trust, TrustSource, WeakTrustSource};
pub use weida_core::{DEFAULT_PORT, Error, Fingerprint, LossCause, PeerIdentity, Result};
