//! Bytes toward the client: packets coalesced into few writes, control before publishes.
//! [mqtt 19]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::AsyncWrite;
use tokio_util::io::poll_write_buf;

/// A burst buffer larger than this is given back when it is empty.
const KEEP_BYTES: usize = 2 << 10;
/// Control packets join a batch up to this size; behind a longer one they wait, and whoever
/// fills the lane sees it.
const JOIN_BYTES: usize = 64 << 10;

/// Encoded packets that wait for the socket, in two lanes.
///
/// What is on the control lane goes out before every publish that is not in the batch yet.
#[derive(Debug, Default)]
pub(crate) struct WriteBuffer {
    control: BytesMut,
    batch: BytesMut,
}

impl WriteBuffer {
    /// Where a control packet is appended.
    pub(crate) fn control(&mut self) -> &mut BytesMut {
        &mut self.control
    }

    /// Where a publish is appended: behind the control packets that wait.
    pub(crate) fn publishes(&mut self) -> &mut BytesMut {
        self.take_control();
        &mut self.batch
    }

    /// Bytes of both lanes.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.control.len() + self.batch.len()
    }

    /// Bytes of the control lane alone: they grow only while the client does not read.
    pub(crate) fn control_bytes(&self) -> usize {
        self.control.len()
    }

    /// Writes once. `Ready(Ok(0))` means that nothing waits.
    pub(crate) fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut W,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.batch.len() < JOIN_BYTES {
            self.take_control();
        }
        if self.batch.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let written = std::task::ready!(poll_write_buf(Pin::new(stream), cx, &mut self.batch));
        if self.batch.is_empty() && self.batch.capacity() > KEEP_BYTES {
            self.batch = BytesMut::new();
        }
        match written {
            Ok(0) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            written => Poll::Ready(written),
        }
    }

    fn take_control(&mut self) {
        if self.control.is_empty() {
            return;
        }
        if self.batch.is_empty() {
            std::mem::swap(&mut self.control, &mut self.batch);
        } else {
            self.batch.extend_from_slice(&self.control);
        }
        self.control.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    /// Control overtakes what is not in the batch, never what is, and nothing is lost to short
    /// writes.
    #[tokio::test]
    async fn lanes_keep_their_order_over_short_writes() {
        let mut buffer = WriteBuffer::default();
        buffer.publishes().extend_from_slice(b"p1");
        buffer.control().extend_from_slice(b"c1");
        buffer.control().extend_from_slice(b"c2");
        buffer.publishes().extend_from_slice(b"p2");
        assert_eq!(buffer.pending_bytes(), 8);
        let mut socket = tokio_test::io::Builder::new()
            .write(b"p1c")
            .write(b"1c2p2")
            .build();
        let mut total = 0;
        loop {
            match poll_fn(|cx| buffer.poll_write(&mut socket, cx))
                .await
                .unwrap()
            {
                0 => break,
                written => total += written,
            }
        }
        assert_eq!((total, buffer.pending_bytes()), (8, 0));
    }
}
