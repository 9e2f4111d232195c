//! The two ends of an exchange: one bidirectional stream, no correlation id.

use std::fmt;
use std::future::Future;

use weida_core::{Error, ErrorCode, Result, StopReason, codes};
use weida_protocol::DataHeader;

use super::{IncomingMeta, IncomingTransfer, OutgoingTransfer, TransferFailure, TransferMeta};
use crate::connection::head::{Frame, ReplyHead, read_reply};
use crate::connection::{ArrivalFailure, Connection, ConnectionId, RecvFail, RecvHalf, SendHalf};
use crate::exec::poll_once;

/// A request that owes an answer.
///
/// It is one bidirectional stream: the request arrives on one half, the reply
/// leaves on the other, and the stream is the correlation. Dropping it
/// unanswered tells the requester NO_REPLY, so nobody is left waiting.
/// `[weida RR-1, RR-2]`
pub struct IncomingRequest {
    body: Body,
    connection: Connection,
    /// `None` once answered.
    reply: Option<SendHalf>,
}

/// The payload, or what is left to know of it once it was taken. A request that
/// is answered in one go, which is nearly every one, copies no metadata.
enum Body {
    Attached(IncomingTransfer),
    Taken(IncomingMeta),
}

impl IncomingRequest {
    pub(crate) fn new(body: IncomingTransfer, reply: SendHalf) -> Self {
        Self {
            connection: body.link().clone(),
            body: Body::Attached(body),
            reply: Some(reply),
        }
    }

    /// What the request's frame head said, and whom the handshake proved.
    pub fn meta(&self) -> &IncomingMeta {
        match &self.body {
            Body::Attached(body) => body.meta(),
            Body::Taken(meta) => meta,
        }
    }

    /// The connection this request arrived on.
    pub fn connection(&self) -> ConnectionId {
        self.connection.id()
    }

    /// The request's payload, borrowed.
    ///
    /// # Panics
    ///
    /// After [`IncomingRequest::take_body`] detached it.
    pub fn body(&mut self) -> &mut IncomingTransfer {
        match &mut self.body {
            Body::Attached(body) => body,
            Body::Taken(_) => panic!("the body was taken"),
        }
    }

    /// Detaches the payload, so that it outlives the request: needed exactly
    /// when a handler reads while it replies, because a body left inside is
    /// refused by [`IncomingRequest::reply`]. `[weida RR-3, LG-2]`
    ///
    /// # Panics
    ///
    /// When called twice.
    pub fn take_body(&mut self) -> IncomingTransfer {
        let meta = self.meta().clone();
        match std::mem::replace(&mut self.body, Body::Taken(meta)) {
            Body::Attached(body) => body,
            Body::Taken(_) => panic!("the body was taken"),
        }
    }

    /// Resolves when the requester no longer wants a reply, or was answered or
    /// lost. Independent of this handle, so take it before replying.
    /// `[weida RR-5]`
    pub fn canceled(&self) -> impl Future<Output = ()> + Send + use<> {
        let settled = self.reply.as_ref().map(SendHalf::settled);
        async move {
            if let Some(settled) = settled {
                // A stop, the end and a loss all mean that a reply is moot.
                drop(settled.await);
            }
        }
    }

    /// Opens the reply; its head is written before this returns.
    ///
    /// Consumes the request: an exchange has exactly one reply. A body still
    /// attached and not read to its end is refused with REJECTED. The reply
    /// carries the request's trace context unless `meta` has one.
    ///
    /// # Errors
    ///
    /// [`Error::Canceled`] when the requester gave up; [`Error::LimitExceeded`]
    /// for metadata above its caps; what the connection was lost to.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future resets the reply half.
    pub async fn reply(mut self, meta: TransferMeta) -> Result<OutgoingTransfer> {
        let trace = meta.trace.or_else(|| self.meta().trace);
        let frame = meta.reply_frame(trace, self.meta().tracestate.as_deref())?;
        self.connection.check_header(frame.header_bytes())?;
        let mut stream = self.reply.take().ok_or(Error::Canceled)?;
        // Refuses what is left of an unread body; one read to its end is done.
        if let Body::Attached(body) = &mut self.body {
            body.stop(codes::REJECTED);
        }
        let written = stream.write_chunks(&mut [frame.into_bytes()]).await;
        let connection = self.connection.clone();
        let reply = OutgoingTransfer::new(stream, connection, trace);
        written.map_err(|fail| self.connection.send_error(fail))?;
        Ok(reply)
    }

    /// Refuses the exchange with a typed error instead of a reply, and stops
    /// the request's payload.
    ///
    /// [`ErrorCode::Rejected`] where this side declined,
    /// [`ErrorCode::UnknownEndpoint`] to hide that the path exists,
    /// [`ErrorCode::NoReply`] where the request was taken and no answer will
    /// come.
    #[expect(
        clippy::unused_async,
        reason = "published signature; a transport that must wait for room may need it"
    )]
    pub async fn refuse(mut self, code: ErrorCode) {
        self.answer(codes::REJECTED, code);
    }

    /// Refuses with the codes of the dispatch table.
    pub(crate) fn refuse_now(mut self, stop: u64, code: ErrorCode) {
        self.answer(stop, code);
    }

    /// Writes ERROR and FIN, then stops the request half: the typed answer is
    /// on its way before the stop is. `[weida RR-4]`
    fn answer(&mut self, stop: u64, code: ErrorCode) {
        if let Some(stream) = self.reply.take() {
            send_error(&self.connection, stream, code);
        }
        if let Body::Attached(body) = &mut self.body {
            body.stop(stop);
        }
    }
}

/// Writes ERROR and FIN at once if there is room, which there nearly always is;
/// otherwise a task of the runtime waits for it.
fn send_error(connection: &Connection, mut stream: SendHalf, code: ErrorCode) {
    let frame = Frame::error(code).into_bytes();
    let mut chunks = [frame];
    if poll_once(stream.write_chunks(&mut chunks)).is_ready() {
        // A peer that stopped the reply half wants no answer.
        drop(stream.finish());
        return connection.park_receipt(stream);
    }
    connection.shared().tasks.spawn(async move {
        if stream.write_chunks(&mut chunks).await.is_ok() {
            drop(stream.finish());
        }
    });
}

impl Drop for IncomingRequest {
    fn drop(&mut self) {
        self.answer(codes::REJECTED, ErrorCode::NoReply);
    }
}

impl fmt::Debug for IncomingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingRequest")
            .field("endpoint", &self.meta().endpoint)
            .field("connection", &self.connection.id())
            .finish_non_exhaustive()
    }
}

/// The reply half a requester waits on.
///
/// Dropping it before the reply came stops the half with CANCELED: that stop is
/// the whole cancellation.
pub struct ReplyStream {
    stream: Option<RecvHalf>,
    connection: Connection,
}

impl ReplyStream {
    pub(crate) fn new(stream: RecvHalf, connection: Connection) -> Self {
        Self {
            stream: Some(stream),
            connection,
        }
    }

    /// Waits for the reply; its payload then streams.
    ///
    /// There is no timeout of its own: it ends with the answer, with the
    /// connection, or with the caller.
    ///
    /// # Errors
    ///
    /// The typed refusal, if there was one; [`Error::Indeterminate`] when the
    /// connection was lost while waiting, never `ConnectionLost`, because the
    /// replier may have acted; [`Error::Protocol`] for an answer that cannot be
    /// read, which fails this exchange only.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the reply up.
    pub async fn recv(self) -> Result<IncomingTransfer> {
        self.answer().await.map_err(Error::from)
    }

    /// [`ReplyStream::recv`], with the reason the peer gave on the stream.
    ///
    /// # Errors
    ///
    /// The same outcomes; [`TransferFailure::is_shutdown`] tells a peer that
    /// drains from one that declines, which both are [`Error::Rejected`].
    ///
    /// # Cancel safety
    ///
    /// As [`ReplyStream::recv`].
    pub async fn answer(mut self) -> Result<IncomingTransfer, TransferFailure> {
        let max = self.connection.shared().config.limits.max_header_bytes;
        let stream = self.stream.as_mut().expect("taken only below and on drop");
        let head = match read_reply(stream, max).await {
            Ok(head) => head,
            Err(failure) => return Err(self.failed(failure)),
        };
        match head {
            ReplyHead::Data(header, rest) => {
                // Until it is a reply, the half is given up with this handle.
                let mut header = match DataHeader::decode(&header) {
                    Ok(header) => header,
                    Err(error) => return Err(Error::Protocol(error.to_string()).into()),
                };
                let stream = self.stream.take().expect("read a moment ago");
                // Ignored on a reply half. [wire 8.2]
                header.endpoint = None;
                let meta = IncomingMeta::of(&header, &self.connection);
                let connection = self.connection.clone();
                Ok(IncomingTransfer::new(connection, stream, rest, meta))
            }
            ReplyHead::Error(error) => Err(error.into()),
        }
    }

    fn failed(&mut self, failure: ArrivalFailure) -> TransferFailure {
        let stop = match &failure {
            ArrivalFailure::Gone(RecvFail::Reset(code)) => Some(codes::stop_reason(*code)),
            _ => None,
        };
        let error = match failure {
            ArrivalFailure::Violation(what) => Error::Protocol(what),
            ArrivalFailure::Cut => Error::Protocol("the reply ended inside its header".into()),
            ArrivalFailure::Gone(fail) => {
                self.stream = None;
                match (self.connection.recv_error(fail), stop) {
                    // Refused before anything was read. [weida DR-4]
                    (Error::Canceled, Some(StopReason::ShuttingDown)) => Error::Rejected,
                    (Error::Canceled, _) => Error::Canceled,
                    _ => Error::Indeterminate,
                }
            }
        };
        TransferFailure::new(error, stop)
    }
}

impl Drop for ReplyStream {
    fn drop(&mut self) {
        if let Some(mut stream) = self.stream.take() {
            stream.stop(codes::CANCELED);
        }
    }
}

impl fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyStream")
            .field("connection", &self.connection.id())
            .finish_non_exhaustive()
    }
}
