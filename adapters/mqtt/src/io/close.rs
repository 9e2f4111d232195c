//! The last words of a connection, said so that they are heard. [mqtt 3.1]
//!
//! Closing a socket with unread input makes the kernel send a reset, and the reason is lost with
//! it. So: write, shut the write side down, read and discard what still comes, then close.

use std::future::poll_fn;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::stream::Stream;
use super::write::WriteBuffer;

const DISCARD_BYTES: usize = 256 << 10;
const LINGER: Duration = Duration::from_secs(1);

/// Writes what waits, then lingers: at most 256 KiB or one second each way.
pub(crate) async fn close(mut stream: Stream, mut write: WriteBuffer) {
    let said = timeout(LINGER, async {
        while poll_fn(|cx| write.poll_write(&mut stream, cx)).await? > 0 {}
        stream.flush().await?;
        stream.shutdown().await
    });
    if !matches!(said.await, Ok(Ok(()))) {
        return;
    }
    let mut scratch = [0; 4096];
    let mut discarded = 0;
    let discard = async {
        while discarded < DISCARD_BYTES {
            match stream.read(&mut scratch).await {
                Ok(0) | Err(_) => break,
                Ok(count) => discarded += count,
            }
        }
    };
    let _: Result<(), _> = timeout(LINGER, discard).await; // late or early, the socket closes now
}
