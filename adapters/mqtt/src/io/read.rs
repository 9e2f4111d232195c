//! Bytes from the client: a buffer that is small while nothing happens. [mqtt 19]

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

const SMALLEST: usize = 2 << 10;
const LARGEST: usize = 64 << 10;

/// What was read and not decoded yet.
#[derive(Debug)]
pub(crate) struct ReadBuffer {
    pub(crate) bytes: BytesMut,
    /// Size of the next read: grows when a read fills it, shrinks when reads are small.
    next_bytes: usize,
}

impl ReadBuffer {
    pub(crate) fn new() -> Self {
        Self {
            bytes: BytesMut::new(),
            next_bytes: SMALLEST,
        }
    }

    /// Reads once, at most 64 KiB. `Ok(0)` is the end of the stream.
    pub(crate) fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        stream: &mut R,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.bytes.is_empty() && self.bytes.capacity() > self.next_bytes * 4 {
            self.bytes = BytesMut::new();
        }
        if self.bytes.capacity() - self.bytes.len() < self.next_bytes / 2 {
            self.bytes.reserve(self.next_bytes);
        }
        let room = self.bytes.capacity() - self.bytes.len();
        let read = std::task::ready!(poll_read_buf(Pin::new(stream), cx, &mut self.bytes));
        if let Ok(got) = read {
            if got >= room {
                self.next_bytes = (self.next_bytes * 4).min(LARGEST);
            } else if got < self.next_bytes / 8 {
                self.next_bytes = (self.next_bytes / 2).max(SMALLEST);
            }
        }
        Poll::Ready(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    /// An idle connection keeps at most 2 KiB after a burst. [mqtt 19]
    #[tokio::test]
    async fn the_buffer_grows_with_the_stream_and_shrinks_again() {
        let burst = vec![7u8; 1 << 20];
        let mut stream = tokio_test::io::Builder::new()
            .read(&burst)
            .read(b"x")
            .read(b"x")
            .read(b"x")
            .read(b"x")
            .read(b"x")
            .read(b"x")
            .read(b"x")
            .build();
        let mut buffer = ReadBuffer::new();
        let mut total = 0;
        while total < burst.len() {
            total += poll_fn(|cx| buffer.poll_fill(&mut stream, cx))
                .await
                .unwrap();
            assert!(buffer.bytes.capacity() <= 2 * LARGEST);
            buffer.bytes.clear();
        }
        assert_eq!(buffer.next_bytes, LARGEST);
        for _ in 0..7 {
            poll_fn(|cx| buffer.poll_fill(&mut stream, cx))
                .await
                .unwrap();
            buffer.bytes.clear();
        }
        assert_eq!(buffer.next_bytes, SMALLEST);
        assert!(buffer.bytes.capacity() <= 4 * SMALLEST);
    }
}
