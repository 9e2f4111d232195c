//! The rules of one MQTT connection: order, credit, identifiers in flight, aliases, keep-alive.
//!
//! Floor 2: pure machines. `now` is an argument; there is no socket, task, lock or store here. What outlives a
//! connection (subscriptions, queues, wills) belongs to the session, one floor up.

#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

mod alias;
mod connection;
mod inflight;
mod keepalive;
mod terms;

pub use self::alias::{InboundAliases, OutboundAliases};
pub use self::connection::{Admission, Connection, Event, SendError, Sent};
pub use self::inflight::{Admitted, InboundQuota, OutboundWindow, Release, WindowFull};
pub use self::keepalive::{KeepAlive, ZeroKeepAlive};
pub use self::terms::{Peer, Terms};
