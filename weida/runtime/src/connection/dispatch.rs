//! What a frame head means: the table of (stream kind, exact path).
//!
//! A refusal never closes the connection; only a violation does. An accepted
//! stream whose queue is full is not refused either: it waits, unread, and the
//! sender feels the windows. `[wire 10, 17]`

use std::sync::Arc;

use bytes::Bytes;
use weida_core::{ErrorCode, codes};
use weida_protocol::{
    CreditHeader, CursorHeader, DataHeader, DecodeError, FlowHeader, FrameKind, Head, Hello,
    Position, SubscriptionHeader,
};

use super::arrival::Arrival;
use super::{Connection, RecvHalf, SendHalf, hello};
use crate::exec::poll_once;
use crate::listener::table::{Delivered, Offer as _, Recorded, Route};
use crate::queue::Queue;
use crate::stream::{Consumer, CreditGrant, Incoming};
use crate::transfer::{IncomingMeta, IncomingRequest, IncomingTransfer};

/// Dispatches on the accepting task: never waits. A delivery whose queue is
/// full is given back.
pub(super) fn dispatch(
    connection: &Connection,
    arrival: Arrival,
    head: Head,
    rest: Bytes,
) -> Option<Delivered> {
    act(connection, arrival, &head, rest)
}

/// Dispatches on a task of the stream's own: waits for room in the queue.
pub(super) async fn dispatch_waiting(
    connection: &Connection,
    arrival: Arrival,
    head: Head,
    rest: Bytes,
) {
    if let Some(waiting) = act(connection, arrival, &head, rest) {
        waiting.deliver().await;
    }
}

/// Acts on a head; gives back a delivery whose queue is full.
fn act(connection: &Connection, arrival: Arrival, head: &Head, rest: Bytes) -> Option<Delivered> {
    match interpret(connection, arrival, head, rest) {
        Ok(waiting) => waiting,
        Err(error) => {
            connection.violation(&error.to_string());
            None
        }
    }
}

fn interpret(
    connection: &Connection,
    arrival: Arrival,
    head: &Head,
    rest: Bytes,
) -> Result<Option<Delivered>, DecodeError> {
    let bytes = &head.header;
    let waiting = match head.kind {
        FrameKind::Data => {
            let header = DataHeader::decode(bytes)?;
            return data(connection, arrival, &header, rest);
        }
        FrameKind::Hello => {
            let theirs = Hello::decode(bytes)?;
            if connection.agreed().is_some() {
                connection.violation("second HELLO");
            } else {
                hello::received(connection, &theirs);
            }
            None
        }
        // Legal on a reply half only; what it says is not looked at.
        FrameKind::Error => {
            head.kind.check_position(Position::Uni)?;
            None
        }
        FrameKind::Subscribe => subscribe(connection, &SubscriptionHeader::decode(bytes)?),
        FrameKind::Unsubscribe => unsubscribe(connection, &SubscriptionHeader::decode(bytes)?),
        FrameKind::Credit => credit(connection, &CreditHeader::decode(bytes)?),
        FrameKind::Cursor => {
            CursorHeader::decode(bytes)?;
            // No report was ordered on this connection, so no id is known.
            let mut recv = arrival.recv;
            recv.stop(codes::CANCELED);
            return Ok(None);
        }
        FrameKind::Flow => {
            FlowHeader::decode(bytes)?;
            connection.violation("FLOW without the datagram capability");
            None
        }
        FrameKind::Report => {
            connection.violation("REPORT without the path-report capability");
            None
        }
    };
    read_out(connection, arrival.recv);
    Ok(waiting)
}

/// Reads the FIN of a header-only frame, which is nearly always there. Dropping
/// the stream unread would stop it, and its sender would take that for an
/// answer. What follows the header is ignored. `[wire 17]`
fn read_out(connection: &Connection, mut recv: RecvHalf) {
    let fin = async move {
        for _ in 0..IGNORED_CHUNKS {
            if !matches!(recv.chunk(usize::MAX).await, Ok(Some(_))) {
                return;
            }
        }
        recv.stop(codes::CANCELED);
    };
    let mut fin = Box::pin(fin);
    if poll_once(fin.as_mut()).is_ready() || connection.quic().close_reason().is_some() {
        return;
    }
    let shared = Arc::clone(connection.shared());
    connection.shared().tasks.spawn(async move {
        let limit = shared.config.limits.header_timeout();
        shared.exec.timeout(limit, fin).await;
    });
}

/// Reads of ignored bytes after a header-only frame before it is stopped.
const IGNORED_CHUNKS: usize = 16;

/// DATA: a transfer or an exchange for one path.
fn data(
    connection: &Connection,
    arrival: Arrival,
    header: &DataHeader<'_>,
    rest: Bytes,
) -> Result<Option<Delivered>, DecodeError> {
    let path = header.initiating_endpoint()?;
    let route = connection.table().route(path);
    let Arrival { recv, reply } = arrival;
    let meta = IncomingMeta::of(header, connection);
    let transfer = IncomingTransfer::new(connection.clone(), recv, rest, meta);
    Ok(match (route, reply) {
        (Some(Route::Puller(queue)), None) => queue.offer(transfer),
        (Some(Route::Raw(queue)), None) => queue.offer(Incoming::Stream(transfer)),
        (Some(Route::Replier(queue)), Some(reply)) => {
            queue.offer(IncomingRequest::new(transfer, reply))
        }
        (Some(Route::Raw(queue)), Some(reply)) => {
            queue.offer(Incoming::Exchange(IncomingRequest::new(transfer, reply)))
        }
        (Some(Route::Puller(_) | Route::Publisher), Some(reply)) => {
            refuse_exchange(transfer, reply, codes::UNSUPPORTED, ErrorCode::Unsupported);
            None
        }
        (Some(Route::Replier(_) | Route::Publisher), None) => {
            transfer.refuse(codes::UNSUPPORTED);
            None
        }
        (None, None) => {
            transfer.refuse(codes::UNKNOWN_ENDPOINT);
            None
        }
        (None, Some(reply)) => {
            refuse_exchange(
                transfer,
                reply,
                codes::UNKNOWN_ENDPOINT,
                ErrorCode::UnknownEndpoint,
            );
            None
        }
    })
}

/// ERROR and FIN on the reply half, then a stop on the request half. The answer
/// is first, so that a requester who sees both hears the typed one.
fn refuse_exchange(transfer: IncomingTransfer, reply: SendHalf, stop: u64, code: ErrorCode) {
    IncomingRequest::new(transfer, reply).refuse_now(stop, code);
}

fn subscribe(connection: &Connection, header: &SubscriptionHeader<'_>) -> Option<Delivered> {
    match connection.table().subscribe(connection, header) {
        Recorded::New => {}
        Recorded::Repeated | Recorded::Ignored => return None,
        Recorded::OverLimit { max } => {
            // Overload only, never a verdict about a filter. [weida S17-12, S17-13]
            connection.close(
                codes::LIMIT_EXCEEDED,
                &format!("more than {max} subscriptions on one connection"),
            );
            return None;
        }
    }
    let queue = raw(connection, header.endpoint)?;
    queue.offer(Incoming::Subscribed(Consumer::new(
        connection.clone(),
        header.endpoint,
        header.filter,
    )))
}

fn unsubscribe(connection: &Connection, header: &SubscriptionHeader<'_>) -> Option<Delivered> {
    let table = connection.table();
    if !table.unsubscribe(connection, header.endpoint, header.filter) {
        return None;
    }
    let queue = raw(connection, header.endpoint)?;
    queue.offer(Incoming::Unsubscribed {
        id: connection.id().into(),
        filter: Some(header.filter.to_owned()),
    })
}

/// Ignored where no acceptor serves the path; never answered. `[wire 8.5]`
fn credit(connection: &Connection, header: &CreditHeader<'_>) -> Option<Delivered> {
    let queue = raw(connection, header.endpoint)?;
    queue.offer(Incoming::Credit(CreditGrant {
        id: connection.id().into(),
        filter: header.filter.to_owned(),
        limit: header.limit,
    }))
}

/// The queue of the raw acceptor at `path`, if that is what serves it.
fn raw(connection: &Connection, path: &str) -> Option<Arc<Queue<Incoming>>> {
    match connection.table().route(path) {
        Some(Route::Raw(queue)) => Some(queue),
        Some(Route::Puller(_) | Route::Replier(_) | Route::Publisher) | None => None,
    }
}
