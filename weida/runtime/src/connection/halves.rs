//! The two halves of a stream, behind one shape for every transport.
//!
//! Handles own these outright: between an application's write and the
//! transport there is no task and no lock of ours. Each half is an enum with
//! one variant per transport, so that a local transport widens these types and
//! changes nothing above them. `[weida 2.3]`

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use quinn::{ConnectionError, ReadError, VarInt, WriteError};
use tokio::io::ReadBuf;

/// The sending half. Dropped before its FIN it is reset, so that a cut payload
/// is never taken for a whole one. `[weida TX-4]`
#[derive(Debug)]
pub(crate) struct SendHalf {
    stream: SendKind,
    /// Finished or reset on purpose.
    ended: bool,
}

#[derive(Debug)]
enum SendKind {
    /// A QUIC send stream.
    Quic(quinn::SendStream),
}

/// Why a write, or the wait for its receipt, ended early.
#[derive(Clone, Debug)]
pub(crate) enum SendFail {
    /// The peer stopped the stream with this code.
    Stopped(u64),
    /// The connection is gone.
    Lost(ConnectionError),
    /// The stream was finished or reset on this side.
    Closed,
}

impl SendHalf {
    pub(crate) fn quic(stream: quinn::SendStream) -> Self {
        Self {
            stream: SendKind::Quic(stream),
            ended: false,
        }
    }

    /// Writes some of `buf`.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<Result<usize, SendFail>> {
        match &mut self.stream {
            SendKind::Quic(stream) => Pin::new(stream).poll_write(cx, buf).map_err(SendFail::from),
        }
    }

    /// Writes all of `chunks` without copying them.
    ///
    /// # Cancel safety
    ///
    /// Not safe: a dropped future may have written a part. What is left stays
    /// in `chunks`.
    pub(crate) async fn write_chunks(&mut self, chunks: &mut [Bytes]) -> Result<(), SendFail> {
        match &mut self.stream {
            SendKind::Quic(stream) => stream
                .write_all_chunks(chunks)
                .await
                .map_err(SendFail::from),
        }
    }

    /// Queues the FIN.
    pub(crate) fn finish(&mut self) -> Result<(), SendFail> {
        self.ended = true;
        match &mut self.stream {
            SendKind::Quic(stream) => stream.finish().map_err(|_| SendFail::Closed),
        }
    }

    /// Abandons what is not acknowledged yet.
    pub(crate) fn reset(&mut self, code: u64) {
        self.ended = true;
        match &mut self.stream {
            // Already finished and acknowledged, or stopped: nothing to abandon.
            SendKind::Quic(stream) => drop(stream.reset(varint(code))),
        }
    }

    /// Orders this stream against the others of its connection.
    pub(crate) fn set_priority(&mut self, priority: i32) {
        match &mut self.stream {
            SendKind::Quic(stream) => drop(stream.set_priority(priority)),
        }
    }

    /// Resolves once the peer's transport holds every byte and the FIN, or
    /// never will. Independent of this half's life.
    pub(crate) fn settled(&self) -> impl Future<Output = Result<(), SendFail>> + Send + use<> {
        match &self.stream {
            SendKind::Quic(stream) => {
                let stopped = stream.stopped();
                async move {
                    match stopped.await {
                        Ok(None) => Ok(()),
                        Ok(Some(code)) => Err(SendFail::Stopped(code.into_inner())),
                        Err(quinn::StoppedError::ConnectionLost(error)) => {
                            Err(SendFail::Lost(error))
                        }
                        Err(quinn::StoppedError::ZeroRttRejected) => Err(SendFail::Closed),
                    }
                }
            }
        }
    }
}

impl Drop for SendHalf {
    fn drop(&mut self) {
        if !self.ended {
            self.reset(weida_core::codes::CANCELED);
        }
    }
}

impl From<WriteError> for SendFail {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::Stopped(code.into_inner()),
            WriteError::ConnectionLost(error) => Self::Lost(error),
            WriteError::ClosedStream | WriteError::ZeroRttRejected => Self::Closed,
        }
    }
}

/// The receiving half.
#[derive(Debug)]
pub(crate) enum RecvHalf {
    /// A QUIC receive stream.
    Quic(quinn::RecvStream),
}

/// Why a read ended before the FIN.
#[derive(Clone, Debug)]
pub(crate) enum RecvFail {
    /// The peer abandoned the stream with this code.
    Reset(u64),
    /// The connection is gone and the missing bytes with it.
    Lost(ConnectionError),
    /// The stream was stopped on this side.
    Closed,
}

impl RecvHalf {
    /// The next bytes in order, at most `max`; `None` is the FIN.
    ///
    /// Bytes that had arrived are still handed out after the connection was
    /// lost. `[weida TX-10]`
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, RecvFail>> {
        match self {
            // The future is stateless: it polls the stream and nothing else.
            Self::Quic(stream) => pin!(stream.read_chunk(max, true))
                .poll(cx)
                .map_ok(|chunk| chunk.map(|chunk| chunk.bytes))
                .map_err(RecvFail::from),
        }
    }

    /// Fills `buf` with the next bytes, as many as there are; nothing added is
    /// the FIN. One lock for many packets, at the price of a copy.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), RecvFail>> {
        match self {
            Self::Quic(stream) => stream.poll_read_buf(cx, buf).map_err(RecvFail::from),
        }
    }

    /// [`RecvHalf::poll_chunk`] as a future.
    ///
    /// # Cancel safety
    ///
    /// Safe: bytes are taken only as the future completes.
    pub(crate) async fn chunk(&mut self, max: usize) -> Result<Option<Bytes>, RecvFail> {
        poll_fn(|cx| self.poll_chunk(cx, max)).await
    }

    /// Tells the peer that nothing more is wanted.
    pub(crate) fn stop(&mut self, code: u64) {
        match self {
            // Already finished or reset: there is nothing left to refuse.
            Self::Quic(stream) => drop(stream.stop(varint(code))),
        }
    }
}

impl From<ReadError> for RecvFail {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => Self::Reset(code.into_inner()),
            ReadError::ConnectionLost(error) => Self::Lost(error),
            ReadError::ClosedStream
            | ReadError::IllegalOrderedRead
            | ReadError::ZeroRttRejected => Self::Closed,
        }
    }
}

/// A code as QUIC carries it; one that does not fit is INTERNAL.
pub(crate) fn varint(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::from_u32(weida_core::codes::INTERNAL as u32))
}
