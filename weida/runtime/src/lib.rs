//! Messaging over QUIC in which a peer is the key it proved and nothing else.
//!
//! One data flow is one stream: a 40-byte and a 40-GB payload use the same calls
//! and the same promises, and nothing here needs a whole payload in memory. What
//! a receipt says is that the peer's *transport* holds every byte; whoever needs
//! more asks with a request.
//!
//! ```
//! use weida::{Identity, Runtime, RuntimeConfig, TransferMeta, Trust};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> weida::Result<()> {
//! let runtime = Runtime::new(RuntimeConfig::default())?;
//! let identity = Identity::generate()?;
//! let key = identity.fingerprint()?;
//! let listener = runtime.listener();
//! let binding = listener.bind_quic(([127, 0, 0, 1], 0).into(), identity).await?;
//! let replier = listener.replier("/echo")?;
//!
//! let requester = runtime.requester(Trust::by_address());
//! let url = format!("weida://{key}@{}/echo", binding.local_addr());
//! requester.connect(&url).await?;
//!
//! let answer = async {
//!     let mut request = replier.accept().await?;
//!     let body = request.body().read_capped(1024).await?;
//!     let mut reply = request.reply(TransferMeta::default()).await?;
//!     reply.write_all(&body).await?;
//!     reply.finish().map(drop)
//! };
//! let (reply, answered) = tokio::join!(requester.request(b"hello"), answer);
//! answered?;
//! assert_eq!(reply?.collect(1024).await?, b"hello");
//! # runtime.shutdown().await;
//! # Ok(())
//! # }
//! ```

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
mod reset;
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
pub use pubsub::{Admission, FanOut, Published, SubscriptionRequest, TopicDrops};
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
    TransferFailure, TransferMeta, new_trace,
};
pub use trust::{ClientTrust, Trust, TrustSource, WeakTrustSource};
pub use weida_core::{
    Acknowledgement, Address, Backpressure, CloseReason, Congestion, CursorLevel,
    DEFAULT_DATAGRAM_RECEIVE_BYTES, DEFAULT_PORT, Deduplication, DeliveryLevel, Durability,
    EndpointAddr, Error, ErrorCode, Fingerprint, GuaranteeSet, InprocAddr, Limits, LocalPrincipal,
    LossCause, OrderingMode, PeerIdentity, PipeAddr, ProducerNaming, ReportMode, Result,
    StopReason, TraceContext, UnixAddr, codes, filter,
};
pub use weida_protocol::{ExtensionItem, ExtensionValue, ExtensionsBuf, VERSION};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
