//! A payload on its way from a file or stdin into a transfer, in constant memory, with progress for a person who waits.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use weida::OutgoingTransfer;

use crate::exit::Failure;

/// Read size: large enough that a stream's writes are few, small enough to be nothing.
const CHUNK_BYTES: usize = 256 * 1024;

/// Bodies up to this size show no progress.
const QUIET_BYTES: u64 = 1024 * 1024;

/// Where a payload comes from.
pub(crate) struct Source {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    len: Option<u64>,
}

impl Source {
    /// Opens `file`, or stdin without one.
    pub(crate) async fn open(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = file else {
            return Ok(Self {
                reader: Box::new(tokio::io::stdin()),
                len: None,
            });
        };
        let file = tokio::fs::File::open(path)
            .await
            .map_err(|error| Failure::file("open", path, error))?;
        let metadata = file
            .metadata()
            .await
            .map_err(|error| Failure::file("read", path, error))?;
        let len = metadata.is_file().then_some(metadata.len());
        Ok(Self {
            reader: Box::new(file),
            len,
        })
    }

    /// The length, where it is known before reading.
    pub(crate) fn len(&self) -> Option<u64> {
        self.len
    }

    /// Writes everything into `transfer` and returns how many bytes that were. The transfer is not finished.
    ///
    /// # Errors
    ///
    /// The outer error is a local read failure, the inner one what the transfer said.
    pub(crate) async fn copy_into(
        mut self,
        transfer: &mut OutgoingTransfer,
    ) -> Result<Result<u64, weida::Error>, Failure> {
        let progress = progress(self.len);
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut total = 0u64;
        loop {
            let read = self
                .reader
                .read(&mut buffer)
                .await
                .map_err(|error| Failure::io("read the payload", error))?;
            if read == 0 {
                break;
            }
            if let Err(error) = transfer.write_all(&buffer[..read]).await {
                progress.finish_and_clear();
                return Ok(Err(error));
            }
            total += read as u64;
            progress.set_position(total);
            if progress.is_hidden() && total > QUIET_BYTES && std::io::stderr().is_terminal() {
                progress.set_draw_target(ProgressDrawTarget::stderr());
            }
        }
        progress.finish_and_clear();
        Ok(Ok(total))
    }
}

/// Streams like [`stream`], and gives up when nothing moves for `stall`: the error is then of kind `TimedOut`.
pub(crate) async fn stream_or_stall(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    chunk_bytes: usize,
    stall: Duration,
) -> std::io::Result<u64> {
    let mut buffer = vec![0; chunk_bytes];
    let mut total = 0u64;
    loop {
        let read = moving(stall, from.read(&mut buffer)).await?;
        if read == 0 {
            return Ok(total);
        }
        moving(stall, to.write_all(&buffer[..read])).await?;
        if read < buffer.len() {
            moving(stall, to.flush()).await?;
        }
        total += read as u64;
    }
}

async fn moving<T>(
    stall: Duration,
    step: impl Future<Output = std::io::Result<T>>,
) -> std::io::Result<T> {
    match tokio::time::timeout(stall, step).await {
        Ok(result) => result,
        Err(_) => Err(std::io::Error::new(
            std::io::ErrorKind::TimedOut,
            format!("nothing moved for {} s", stall.as_secs()),
        )),
    }
}

/// Streams `from` into `to` in chunks of `chunk_bytes`; returns how many bytes passed.
pub(crate) async fn stream(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    chunk_bytes: usize,
) -> std::io::Result<u64> {
    let mut buffer = vec![0; chunk_bytes];
    let mut total = 0u64;
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return Ok(total);
        }
        to.write_all(&buffer[..read]).await?;
        if read < buffer.len() {
            // Nothing more is waiting: whoever reads the other end gets what there is.
            to.flush().await?;
        }
        total += read as u64;
    }
}

/// Hidden until the body turns out to be worth watching.
fn progress(len: Option<u64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(len, ProgressDrawTarget::hidden());
    let template = if len.is_some() {
        "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}"
    } else {
        "{spinner} {bytes} {bytes_per_sec}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
