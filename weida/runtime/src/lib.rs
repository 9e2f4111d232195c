//! Messaging over QUIC in which a peer is the key it proved and nothing else.

mod config;
mod connection;
mod dial;
mod drain;
mod endpoint;
mod exec;
mod identity;
mod listener;
mod outbox;
mod pool;
mod pubsub;
mod queue;
mod reconnect;
mod resolver;
mod runtime;
mod shared;
mod slot;
mod socket;
mod stats;
mod stream;
mod tls;
mod transfer;
mod transport;
mod trust;

pub use config::RuntimeConfig;
pub use connection::ConnectionId;
pub use drain::Drained;
pub use endpoint::{
    Endpoint, Pattern, Pub, Publisher, Pull, Puller, Push, Pusher, Rep, Replier, Req, Requester,
    Sub, Subscriber,
};
pub use exec::Exec;
pub use identity::{
    FilesOptions, Identity, IdentityEvent, IdentityEvents, IdentitySource, Pem, WeakIdentitySource,
};
pub use listener::{Binding, Listener};
pub use pubsub::{Admission, FanOut, SubscriptionRequest, TopicDrops};
pub use reconnect::{GiveUp, OutboxFull, PeerEvent, PeerEvents, ReconnectPolicy};
pub use resolver::{
    Discovery, MAX_OUTSTANDING_LOOKUPS, Resolved, Resolver, SharedResolver, SystemResolver,
};
pub use runtime::Runtime;
pub use stats::{ConnectionStats, PathStats, RemoteStats, TransportStats, UdpCounts};
pub use stream::{Acceptor, Consumer, ConsumerId, CreditGrant, Incoming, Peer};
pub use tls::{ALPN, Alpn, ClientTls, PeerChain, RAFT_ALPN, ServerTls};
pub use transfer::{
    Delivery, Gap, IncomingMeta, IncomingRequest, IncomingTransfer, OutgoingTransfer, ReplyStream,
    TransferMeta, new_trace,
};
pub use trust::{ClientTrust, Trust, TrustSource, WeakTrustSource};
pub use weida_core::{
    Acknowledgement, Address, Backpressure, CloseReason, Congestion, CursorLevel,
    DEFAULT_DATAGRAM_RECEIVE_BYTES, DEFAULT_PORT, Deduplication, DeliveryLevel, Durability,
    EndpointAddr, Error, ErrorCode, Fingerprint, GuaranteeSet, InprocAddr, Limits, LocalPrincipal,
    LossCause, OrderingMode, PeerIdentity, PipeAddr, ProducerNaming, ReportMode, Result,
    StopReason, TraceContext, UnixAddr, codes, filter,
};
pub use weida_protocol::{ExtensionItem, ExtensionValue, VERSION};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
