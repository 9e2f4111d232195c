//! One weida transfer becomes one envelope: who sent it, what its header says, the whole payload within a cap.
//!
//! Every foreign protocol of this version needs whole messages, so a payload is collected here, up to the route's
//! `max_message_bytes` and within [`COLLECT_TIME`] [weida BR-13]. What is refused is refused before it is read where
//! that is possible: a peer hears of a stop for certain only while it is still writing [weida TX-6].

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;
use tracing::info;
use weida::{IncomingMeta, IncomingTransfer};
use weida_bridge::metrics::{RefusedCause, RefusedOp};
use weida_bridge::{Captures, DropCause, Envelope, WEIDA};
use weida_core::Topic;

use super::extension::{Described, describe};
use crate::grants::WeidaGrants;
use crate::route::RouteHandle;

/// How long a payload may take to arrive, so that stalled senders cannot hold a route's places for ever.
pub(super) const COLLECT_TIME: Duration = Duration::from_secs(30);
/// Payload bytes taken from a stream at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Why a transfer is not taken. It is stopped with REJECTED by dropping it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Refused {
    /// No grant.
    NotAuthorized,
    /// Its header names nothing that the route's destination can be called.
    BadName,
    /// Its header carries more than crosses a route, or a mark that cannot be used.
    Header(DropCause),
    /// Larger than the route takes.
    TooLarge,
    /// It broke off, or took too long.
    Incomplete,
}

impl Refused {
    const fn cause(self) -> RefusedCause {
        match self {
            Self::NotAuthorized => RefusedCause::NotAuthorized,
            Self::BadName => RefusedCause::BadName,
            Self::Header(DropCause::NameTooLong) => RefusedCause::NameTooLong,
            Self::Header(DropCause::MetaTooLarge) => RefusedCause::MetaTooLarge,
            Self::Header(_) | Self::Incomplete => RefusedCause::Malformed,
            Self::TooLarge => RefusedCause::TooLarge,
        }
    }

    const fn reason(self) -> &'static str {
        match self {
            Self::NotAuthorized => "no grant allows this",
            Self::BadName => "the transfer names no topic and the route's destination needs one",
            Self::Header(_) => "the header cannot be carried",
            Self::TooLarge => "the payload is larger than the route takes",
            Self::Incomplete => "the payload broke off or took too long",
        }
    }

    /// Counts it and says why, once.
    pub(super) fn tell(self, route: &RouteHandle, grants: &WeidaGrants) {
        if self == Self::NotAuthorized {
            // Counted and logged where it was decided.
            return;
        }
        grants.refusals().count(RefusedOp::Publish, self.cause());
        info!(
            code = "WEI002",
            route = %route.id(),
            listener = grants.refusals().listener(),
            cause = self.cause().as_str(),
            reason = self.reason(),
            "transfer refused"
        );
    }
}

/// Judges a header before the payload is read.
pub(super) fn judge(
    route: &RouteHandle,
    meta: &IncomingMeta,
    now: Instant,
) -> Result<Described, Refused> {
    let described = describe(meta, now).map_err(Refused::Header)?;
    if described.removed > 0 {
        route.parts().stats.reserved_name(described.removed);
    }
    let named = described
        .topic
        .as_ref()
        .is_some_and(|topic| !topic.as_str().is_empty());
    if !named {
        // Absent is the empty topic; whether that will do is up to the destination's template.
        let nothing = Captures::new(&WEIDA, "#", "").meta(&described.meta);
        if route.config().route.topic.render(&nothing).is_err() {
            return Err(Refused::BadName);
        }
    }
    let max_bytes = route.config().route.max_message_bytes as u64;
    if meta.content_len.is_some_and(|bytes| bytes > max_bytes) {
        return Err(Refused::TooLarge);
    }
    Ok(described)
}

/// Reads the payload and builds the envelope.
///
/// # Cancel safety
/// Dropped midway, the transfer is stopped with REJECTED.
pub(super) async fn collect(
    route: &RouteHandle,
    described: Described,
    transfer: &mut IncomingTransfer,
    received_at: Instant,
) -> Result<Envelope, Refused> {
    let max_bytes = route.config().route.max_message_bytes;
    let payload = tokio::time::timeout(COLLECT_TIME, read(transfer, max_bytes))
        .await
        .map_err(|_elapsed| Refused::Incomplete)??;
    let empty = || Topic::try_from("").unwrap_or_default();
    let topic = described.topic.unwrap_or_else(empty);
    let mut envelope = Envelope::new(route.id().clone(), topic, payload, received_at);
    envelope.content_type = described.content_type;
    envelope.trace = described.trace;
    envelope.expires_at = described.expires_at;
    envelope.meta = described.meta;
    envelope.via = described.via;
    envelope.peer = transfer.meta().peer;
    Ok(envelope)
}

/// The whole payload: no copy when it arrived in one piece, one copy otherwise.
async fn read(transfer: &mut IncomingTransfer, max_bytes: usize) -> Result<Bytes, Refused> {
    let broken = |_error| Refused::Incomplete;
    let mut whole = Bytes::new();
    let mut pieces = BytesMut::new();
    while let Some(piece) = transfer.read_chunk(CHUNK_BYTES).await.map_err(broken)? {
        if whole.len() + pieces.len() + piece.len() > max_bytes {
            return Err(Refused::TooLarge);
        }
        if whole.is_empty() && pieces.is_empty() {
            whole = piece;
        } else {
            if pieces.is_empty() {
                pieces = BytesMut::from(&*std::mem::take(&mut whole));
            }
            pieces.extend_from_slice(&piece);
        }
    }
    Ok(if pieces.is_empty() {
        whole
    } else {
        pieces.freeze()
    })
}
