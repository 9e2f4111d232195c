//! The receiving side of a transfer.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::ReadBuf;
use weida_core::{Error, Result, codes};

use super::IncomingMeta;
use crate::connection::halves::RecvFail;
use crate::connection::{Connection, ConnectionId, RecvHalf};

/// An inbound transfer: one receive stream and what its head said.
///
/// It is an `AsyncRead` of both `tokio` and `futures`. Reaching the end is just
/// the end; nothing is sent for it. Dropping it before that refuses the rest
/// with REJECTED. A read that fails means that the payload is not whole and
/// must be discarded. `[weida TX-10, TX-12]`
pub struct IncomingTransfer {
    meta: IncomingMeta,
    connection: Connection,
    /// Payload that was read with the head; counted by the connection.
    first: Bytes,
    /// `None` once the end or a failure was seen, or the rest was refused.
    stream: Option<RecvHalf>,
    /// How reading failed: said again by every later read, because a transport
    /// may report a reset once and an end ever after.
    failed: Option<RecvFail>,
}

impl IncomingTransfer {
    pub(crate) fn new(
        connection: Connection,
        stream: RecvHalf,
        first: Bytes,
        meta: IncomingMeta,
    ) -> Self {
        connection.read_ahead(first.len());
        Self {
            meta,
            connection,
            first,
            stream: Some(stream),
            failed: None,
        }
    }

    /// What the frame head said, and whom the handshake proved.
    pub fn meta(&self) -> &IncomingMeta {
        &self.meta
    }

    /// The connection this transfer arrived on; for accounting, not for
    /// identity.
    pub fn connection(&self) -> ConnectionId {
        self.connection.id()
    }

    pub(crate) fn link(&self) -> &Connection {
        &self.connection
    }

    /// The next bytes of the payload without copying them; `None` is the end.
    ///
    /// # Errors
    ///
    /// [`Error::Canceled`] when the sender abandoned the payload; otherwise what
    /// the connection was lost to.
    ///
    /// # Cancel safety
    ///
    /// Safe: bytes are taken only as the future completes.
    pub async fn read_chunk(&mut self, max_bytes: usize) -> Result<Option<Bytes>> {
        poll_fn(|cx| self.poll_chunk(cx, max_bytes)).await
    }

    /// Reads the whole remaining payload into memory, at most `max_bytes`.
    ///
    /// The buffer grows with the bytes that arrive, never with a length the
    /// sender claims, and holds at most one byte past the cap. `[weida TX-11]`
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] over the cap, and the rest is refused with
    /// REJECTED; otherwise as [`IncomingTransfer::read_chunk`].
    ///
    /// # Cancel safety
    ///
    /// Not safe: what the dropped future had read is lost.
    pub async fn read_capped(&mut self, max_bytes: usize) -> Result<Vec<u8>> {
        // The common case is one chunk, which becomes the buffer.
        let Some(first) = self.read_chunk(max_bytes.saturating_add(1)).await? else {
            return Ok(Vec::new());
        };
        let mut payload = Vec::from(first);
        loop {
            if payload.len() > max_bytes {
                self.stop(codes::REJECTED);
                return Err(Error::LimitExceeded(None));
            }
            let held = payload.len();
            // One byte of room past the cap tells "full" from "too long"; room
            // beyond what arrived doubles, up to a step.
            let room = (max_bytes - held).saturating_add(1);
            let step = held.clamp(MIN_STEP_BYTES, MAX_STEP_BYTES).min(room);
            payload.resize(held + step, 0);
            let mut buf = ReadBuf::new(&mut payload[held..]);
            poll_fn(|cx| self.poll_fill(cx, &mut buf)).await?;
            let read = buf.filled().len();
            payload.truncate(held + read);
            if read == 0 {
                return Ok(payload);
            }
        }
    }

    /// [`IncomingTransfer::read_capped`], by value.
    ///
    /// # Errors
    ///
    /// As [`IncomingTransfer::read_capped`].
    pub async fn collect(mut self, max_bytes: usize) -> Result<Vec<u8>> {
        self.read_capped(max_bytes).await
    }

    /// Stops the stream with a code of the dispatch table.
    pub(crate) fn refuse(mut self, code: u64) {
        self.stop(code);
    }

    pub(super) fn stop(&mut self, code: u64) {
        self.connection.consumed_ahead(self.first.len());
        self.first = Bytes::new();
        if let Some(mut stream) = self.stream.take() {
            stream.stop(code);
            self.failed = Some(RecvFail::Closed);
        }
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<Result<Option<Bytes>>> {
        if !self.first.is_empty() {
            let take = self.first.len().min(max.max(1));
            self.connection.consumed_ahead(take);
            return Poll::Ready(Ok(Some(self.first.split_to(take))));
        }
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(match self.failed.clone() {
                Some(fail) => Err(self.connection.recv_error(fail)),
                None => Ok(None),
            });
        };
        let read = ready!(stream.poll_chunk(cx, max.max(1)));
        if !matches!(read, Ok(Some(_))) {
            self.stream = None;
        }
        Poll::Ready(read.map_err(|fail| {
            self.failed = Some(fail.clone());
            self.connection.recv_error(fail)
        }))
    }

    /// Fills `buf`; nothing added is the end.
    fn poll_fill(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        if self.first.is_empty()
            && let Some(stream) = &mut self.stream
        {
            let before = buf.filled().len();
            let read = ready!(stream.poll_fill(cx, buf));
            if read.is_err() || buf.filled().len() == before {
                self.stream = None;
            }
            return Poll::Ready(read.map_err(|fail| {
                self.failed = Some(fail.clone());
                self.connection.recv_error(fail)
            }));
        }
        let chunk = ready!(self.poll_chunk(cx, buf.remaining()))?;
        buf.put_slice(&chunk.unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

/// Least and most a payload buffer grows ahead of what arrived.
const MIN_STEP_BYTES: usize = 1 << 10;
const MAX_STEP_BYTES: usize = 256 << 10;

impl tokio::io::AsyncRead for IncomingTransfer {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().poll_fill(cx, buf).map_err(io::Error::from)
    }
}

impl futures_io::AsyncRead for IncomingTransfer {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        ready!(self.get_mut().poll_fill(cx, &mut buf)).map_err(io::Error::from)?;
        Poll::Ready(Ok(buf.filled().len()))
    }
}

impl Drop for IncomingTransfer {
    fn drop(&mut self) {
        // A payload read to its end has no stream left; anything else is
        // refused. After an error the stop has nothing to reach.
        self.stop(codes::REJECTED);
    }
}

impl fmt::Debug for IncomingTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingTransfer")
            .field("endpoint", &self.meta.endpoint)
            .field("connection", &self.connection.id())
            .finish_non_exhaustive()
    }
}
