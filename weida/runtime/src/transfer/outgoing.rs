//! The sending side of a transfer.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::time::{Instant, Sleep};
use weida_core::{Error, Result, StopReason, TraceContext, codes};

use super::Delivery;
use super::failure::stop_of;
use crate::connection::{Connection, SendFail, SendHalf};

/// An outgoing transfer: one send stream, owned outright.
///
/// Bytes go from [`OutgoingTransfer::write_all`] to the transport with no task
/// and no lock of this library between. It is also an `AsyncWrite` of both
/// `tokio` and `futures`; their `shutdown`/`close` finishes the stream like
/// [`OutgoingTransfer::finish`], without a receipt.
///
/// Dropping it unfinished resets the stream: the reader gets an error, never a
/// short payload. `[weida TX-4]`
pub struct OutgoingTransfer {
    /// `None` once finished or reset.
    stream: Option<SendHalf>,
    connection: Connection,
    trace: Option<TraceContext>,
    deadline: Option<Deadline>,
    /// What the peer stopped it with, once a write failed for that.
    stop: Option<StopReason>,
}

struct Deadline {
    at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl OutgoingTransfer {
    /// A stream whose frame head is written.
    pub(crate) fn new(
        stream: SendHalf,
        connection: Connection,
        trace: Option<TraceContext>,
    ) -> Self {
        Self {
            stream: Some(stream),
            connection,
            trace,
            deadline: None,
            stop: None,
        }
    }

    /// The trace context propagated with this transfer; the runtime never makes
    /// one up.
    pub fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// What the peer stopped this transfer with, once a write failed for that.
    ///
    /// [`Error::Rejected`] is both a peer that declines and one that drains;
    /// [`StopReason::ShuttingDown`] here means the latter. `[weida DR-4]`
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop
    }

    /// Orders this transfer against the others of its connection: higher goes
    /// first, 0 is the default. A connection is one dialled path, so this never
    /// orders across paths. `[weida TX-7]`
    pub fn set_priority(&mut self, priority: i32) {
        if let Some(stream) = &mut self.stream {
            stream.set_priority(priority);
        }
    }

    /// Resets this transfer if its bytes are not all acknowledged by `deadline`.
    ///
    /// It holds after [`OutgoingTransfer::finish`] too. The reader sees
    /// [`Error::Canceled`], never an end of payload. `[weida TX-8]`
    pub fn expire_at(&mut self, deadline: std::time::Instant) {
        let at = Instant::from_std(deadline);
        let timer = Box::pin(self.connection.shared().exec.sleep_until(at));
        self.deadline = Some(Deadline { at, timer });
    }

    /// Writes the whole buffer; the transport copies it once.
    ///
    /// # Errors
    ///
    /// What the peer stopped the stream with; [`Error::Expired`] past the
    /// deadline; what the connection was lost to. All but `Expired` mean that
    /// this transfer was not delivered.
    ///
    /// # Cancel safety
    ///
    /// Not safe: a dropped future may have written a part of the buffer.
    pub async fn write_all(&mut self, mut buf: &[u8]) -> Result<()> {
        while !buf.is_empty() {
            let written = std::future::poll_fn(|cx| self.poll_write_some(cx, buf)).await?;
            buf = &buf[written..];
        }
        Ok(())
    }

    /// Writes a chunk the caller already owns, without copying it.
    ///
    /// # Errors
    ///
    /// As [`OutgoingTransfer::write_all`].
    ///
    /// # Cancel safety
    ///
    /// Not safe: a dropped future may have written a part of the chunk.
    pub async fn write_chunk(&mut self, chunk: impl Into<Bytes> + Send) -> Result<()> {
        let mut chunks = [chunk.into()];
        let Some(stream) = &mut self.stream else {
            return Err(Error::Canceled);
        };
        let written = match &mut self.deadline {
            None => Some(stream.write_chunks(&mut chunks).await),
            Some(deadline) => {
                let write = pin!(stream.write_chunks(&mut chunks));
                tokio::select! {
                    biased;
                    () = deadline.timer.as_mut() => None,
                    written = write => Some(written),
                }
            }
        };
        match written {
            None => Err(self.expire()),
            Some(written) => written.map_err(|fail| self.fail(fail)),
        }
    }

    /// Ends the payload and hands back the receipt. The FIN is queued: from here
    /// on no handle is needed for the payload to arrive, only the connection.
    /// `[weida TX-1]`
    ///
    /// # Errors
    ///
    /// When the stream is closed already, so that no FIN was sent;
    /// [`Error::Expired`] past the deadline.
    pub fn finish(mut self) -> Result<Delivery> {
        let at = self.deadline.as_ref().map(|deadline| deadline.at);
        if at.is_some_and(|at| at <= self.connection.shared().exec.now()) {
            return Err(self.expire());
        }
        let mut stream = self.stream.take().ok_or(Error::Canceled)?;
        if self.connection.quic().close_reason().is_some() {
            return Err(self.connection.loss_error());
        }
        match stream.finish() {
            Ok(()) => Ok(Delivery::new(stream, self.connection.clone(), at)),
            Err(fail) => Err(self.connection.send_error(fail)),
        }
    }

    /// Abandons the payload. Not a retraction: bytes already buffered at the
    /// peer may still be read. `[weida TX-5]`
    pub fn cancel(self) {
        drop(self);
    }

    fn poll_write_some(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
        if let Some(deadline) = &mut self.deadline
            && deadline.timer.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(self.expire()));
        }
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Err(Error::Canceled));
        };
        let written = ready!(stream.poll_write(cx, buf));
        Poll::Ready(written.map_err(|fail| self.fail(fail)))
    }

    /// A failed write ends the transfer.
    fn fail(&mut self, fail: SendFail) -> Error {
        if !matches!(fail, SendFail::Closed) {
            self.stream = None;
            self.stop = stop_of(&fail);
        }
        self.connection.send_error(fail)
    }

    fn expire(&mut self) -> Error {
        if let Some(mut stream) = self.stream.take() {
            stream.reset(codes::CANCELED);
            self.connection.shared().count_expired();
        }
        Error::Expired
    }

    /// Finishes without a receipt for the I/O traits.
    fn finish_quietly(&mut self) -> io::Result<()> {
        let Some(mut stream) = self.stream.take() else {
            return Ok(());
        };
        match stream.finish() {
            Ok(()) => {
                let deadline = self.deadline.as_ref().map(|deadline| deadline.at);
                drop(Delivery::new(stream, self.connection.clone(), deadline));
                Ok(())
            }
            Err(fail) => Err(self.connection.send_error(fail).into()),
        }
    }
}

impl tokio::io::AsyncWrite for OutgoingTransfer {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_write_some(cx, buf)
            .map_err(io::Error::from)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish_quietly())
    }
}

impl futures_io::AsyncWrite for OutgoingTransfer {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_write_some(cx, buf)
            .map_err(io::Error::from)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish_quietly())
    }
}

impl fmt::Debug for OutgoingTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingTransfer")
            .field("connection", &self.connection.id())
            .field("open", &self.stream.is_some())
            .finish_non_exhaustive()
    }
}
