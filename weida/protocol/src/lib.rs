//! The weida wire codec: frames, strict CBOR headers, negotiation; no I/O.
//!
//! Bytes become values and back; nothing here has a socket, a clock or a task. Every decoder takes
//! its input as hostile: lengths are tested before anything is reserved, nesting is bounded, and
//! an incomplete input is an answer of its own ([`Decoded::NeedMore`]), not an error.
//!
//! A stream starts with a frame head: `57 | kind | header length | CBOR map`. [wire 6]
//!
//! ```
//! use weida_protocol::{DataHeader, Decoded, FrameKind, decode_head, encode_frame};
//!
//! let mut frame = Vec::new();
//! encode_frame(FrameKind::Data, &DataHeader::addressed("/jobs"), &mut frame)?;
//! frame.extend_from_slice(b"payload");
//!
//! let Decoded::Value { value: head, consumed } = decode_head(&frame, 16_384)? else {
//!     unreachable!("the head is complete")
//! };
//! assert_eq!(DataHeader::decode(head.header)?.initiating_endpoint()?, "/jobs");
//! assert_eq!(&frame[consumed..], b"payload");
//! assert!(decode_head(b"GET / HTTP/1.1", 16_384).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

pub mod caps;
mod cbor;
pub mod datagram;
mod error;
pub mod extension;
pub mod frame;
#[doc(hidden)]
pub mod fuzzing;
pub mod header;
pub mod negotiate;
pub mod varint;

pub use datagram::{LOCAL_MAX_DATAGRAM, flow_prefix, split_flow_datagram};
pub use error::{DecodeError, EncodeError};
pub use extension::{ExtensionError, ExtensionItem, ExtensionValue, Extensions, ExtensionsBuf};
pub use frame::{
    Decoded, FrameKind, Head, HeadDecoder, HeadRef, MAGIC, MAX_PREAMBLE_LEN, Position, Preamble,
    decode_head, decode_preamble, encode_frame,
};
pub use header::{
    CreditHeader, CursorHeader, CursorRecord, DataHeader, ErrorHeader, FlowHeader, FrameHeader,
    Hello, MAX_CURSOR_RECORD_LEN, Out, PathRecord, ReportHead, SubscriptionHeader,
    decode_cursor_record, encode_cursor_record,
};
pub use negotiate::{
    Agreed, CAPABILITY_DATAGRAM, CAPABILITY_PATH_REPORT, NegotiateError, negotiate,
};
pub use weida_core::{codes, filter};

/// The ALPN token of application traffic.
pub const ALPN: &[u8] = b"weida/0";
/// The ALPN token of consensus traffic: same frames, never on one connection with the other.
pub const RAFT_ALPN: &[u8] = b"weida-raft/0";
/// The protocol version spoken here.
pub const VERSION: u64 = 0;
