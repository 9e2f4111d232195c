//! Bytes to MQTT control packets and back, for 3.1.1 and 5.0, in the server and in the client role.
//!
//! Floor 1: total, bounded and pure. Nothing here knows a clock, a socket, a task or a session; `bytes` is the only
//! dependency. One file per control packet, and beside them what the packets share:
//!
//! | File | Holds |
//! | --- | --- |
//! | [`decoder`](Decoder) | the incremental decoder: packet, "need more", or [`Violation`] |
//! | [`encoder`](Encoder) | length first, then bytes; obeys the peer's Maximum Packet Size |
//! | `error` | [`Violation`], which knows its reason code, its reach and its row of the bad-input table |
//! | `text`, `topic` | [`Utf8Bytes`], [`TopicName`], [`TopicFilter`] |
//! | `properties`, `varint`, `fixed_header`, `reason`, `limits` | what the names say |
//!
//! Everything that came from a peer is a slice of the read buffer: a packet costs no copy of its topic or payload.
//! Whoever keeps a small field for long calls `detached()` first, so that it does not hold the whole buffer alive.

#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

mod ack;
mod auth;
mod connack;
mod connect;
mod decoder;
mod disconnect;
mod encoder;
mod error;
mod fixed_header;
#[doc(hidden)]
pub mod fuzzing;
mod ids;
mod limits;
mod packet;
mod ping;
mod properties;
mod publish;
mod reader;
mod reason;
mod suback;
mod subscribe;
mod text;
mod topic;
mod unsuback;
mod unsubscribe;
mod varint;

pub use self::ack::{Ack, AckProperties};
pub use self::auth::{Auth, AuthProperties};
pub use self::connack::{Connack, ConnackProperties};
pub use self::connect::{Connect, ConnectProperties, Will, WillProperties};
pub use self::decoder::{Decoded, Decoder};
pub use self::disconnect::{Disconnect, DisconnectProperties};
pub use self::encoder::{EncodeError, Encoder};
pub use self::error::{Reach, Violation};
pub use self::fixed_header::PacketType;
pub use self::ids::{ClientId, PacketId, Password, SubscriptionId, UserName};
pub use self::limits::Limits;
pub use self::packet::{Packet, QoS, Role, Version};
pub use self::properties::{MessageProperties, PropertyId, UserProperties, UserPropertiesIter};
pub use self::publish::{Publish, PublishProperties, SubscriptionIds};
pub use self::reason::ReasonCode;
pub use self::suback::Suback;
pub use self::subscribe::{
    RetainHandling, Subscribe, SubscribeFilters, SubscribeOptions, SubscribeProperties,
    Subscription,
};
pub use self::text::{TextError, Utf8Bytes};
pub use self::topic::{FilterError, InvalidFilter, MAX_LEVELS, TopicError, TopicFilter, TopicName};
pub use self::unsuback::Unsuback;
pub use self::unsubscribe::{Unsubscribe, UnsubscribeFilters};
pub use self::varint::MAX_VARINT;
