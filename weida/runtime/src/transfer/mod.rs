//! Transfers: one stream each, owned outright by whoever holds the handle.
//!
//! A handle is the stream: dropping an unfinished [`OutgoingTransfer`] resets
//! it, dropping an unread [`IncomingTransfer`] refuses it, and no other part of
//! the runtime keeps a reference. What a receipt says is that the peer's
//! *transport* holds every byte, never that anybody read them. `[weida 7]`

mod delivery;
mod exchange;
mod failure;
mod incoming;
mod meta;
mod outgoing;

pub use delivery::Delivery;
pub use exchange::{IncomingRequest, ReplyStream};
pub use failure::TransferFailure;
pub use incoming::IncomingTransfer;
pub use meta::{Gap, IncomingMeta, TransferMeta, new_trace};
pub use outgoing::OutgoingTransfer;
