//! Identity, addresses, topics, filters, limits and codes of weida; no I/O.
//!
//! Everything the codec and the runtime share and nothing that needs a socket, a clock or a task.
//! Values that a remote chose are checked here once, when they are built: a [`Topic`], a [`Filter`]
//! or an [`EndpointPath`] that exists is within its cap and obeys its grammar.
//!
//! ```
//! use weida_core::{Address, Filter, Fingerprint};
//!
//! let Address::Quic(addr) = Address::parse("weida://[::1]:7443/jobs")? else { unreachable!() };
//! assert_eq!((addr.host.as_str(), addr.port), ("::1", Some(7443)));
//! assert!(Filter::new("px.*")?.matches("px.eur"));
//! assert!("sha256:00".parse::<Fingerprint>().is_err());
//! # Ok::<(), weida_core::Error>(())
//! ```

pub mod addr;
pub mod codes;
pub mod error;
pub mod filter;
pub mod guarantee;
pub mod host;
pub mod identity;
pub mod level;
pub mod limits;
pub mod path;
pub mod text;
pub mod topic;
pub mod trace;

pub use addr::{
    Address, DEFAULT_PORT, EndpointAddr, InprocAddr, MAX_BUS_BYTES, MAX_PATH_BYTES,
    MAX_PIPE_NAME_BYTES, MAX_SOCKET_PATH_BYTES, PipeAddr, SCHEME, SCHEME_INPROC, SCHEME_PIPE,
    SCHEME_UNIX, UnixAddr, validate_endpoint_path,
};
pub use error::{CloseReason, Error, ErrorCode, LossCause, Result, StopReason};
pub use filter::{Filter, FilterError};
pub use guarantee::{
    Acknowledgement, Backpressure, Deduplication, DeliveryLevel, Durability, GuaranteeError,
    GuaranteeSet, OrderingMode, ProducerNaming,
};
pub use host::{HostKey, host_key};
pub use identity::{Fingerprint, LocalPrincipal, PeerIdentity, Proved};
pub use level::{CursorLevel, ReportMode};
pub use limits::{Congestion, DEFAULT_DATAGRAM_RECEIVE_BYTES, Limits};
pub use path::EndpointPath;
pub use text::Text;
pub use topic::{Topic, TopicTooLong};
pub use trace::{TraceContext, TraceError};
