//! What separates payloads on stdout.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::args::Framing;
use crate::body::stream;

/// Copy size of a streamed payload.
const CHUNK_BYTES: usize = 64 * 1024;

/// What became of one payload.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    /// Written whole; so many bytes.
    Whole(u64),
    /// Longer than the bound of a framing that must hold it; nothing was written.
    TooLong,
}

/// Writes one payload in its frame. `Length` holds the payload, the others stream it.
///
/// # Errors
///
/// What reading or writing reports; with a streaming framing a part of the payload may be out by then.
pub(crate) async fn write(
    framing: Framing,
    payload: &mut (impl AsyncRead + Unpin),
    out: &mut (impl AsyncWrite + Unpin),
    max_bytes: usize,
) -> std::io::Result<Printed> {
    let bytes = match framing {
        Framing::Line => stream(payload, out, CHUNK_BYTES)
            .await
            .map(|bytes| (bytes, &b"\n"[..])),
        Framing::Raw => stream(payload, out, CHUNK_BYTES)
            .await
            .map(|bytes| (bytes, &b""[..])),
        Framing::Nul => stream(payload, out, CHUNK_BYTES)
            .await
            .map(|bytes| (bytes, &b"\0"[..])),
        Framing::Length => {
            let Some(held) = hold(payload, max_bytes).await? else {
                return Ok(Printed::TooLong);
            };
            let Ok(len) = u32::try_from(held.len()) else {
                return Ok(Printed::TooLong);
            };
            out.write_all(&len.to_be_bytes()).await?;
            out.write_all(&held).await?;
            Ok((u64::from(len), &b""[..]))
        }
    };
    let (bytes, end) = bytes?;
    out.write_all(end).await?;
    out.flush().await?;
    Ok(Printed::Whole(bytes))
}

/// The whole payload, or nothing when it is longer than `max_bytes`; memory follows what arrives.
pub(crate) async fn hold(
    payload: &mut (impl AsyncRead + Unpin),
    max_bytes: usize,
) -> std::io::Result<Option<Vec<u8>>> {
    let limit = u64::try_from(max_bytes)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let mut held = Vec::new();
    payload.take(limit).read_to_end(&mut held).await?;
    Ok((held.len() <= max_bytes).then_some(held))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn written(framing: Framing, payload: &[u8], max_bytes: usize) -> (Printed, Vec<u8>) {
        let mut out = Vec::new();
        let printed = write(framing, &mut &payload[..], &mut out, max_bytes)
            .await
            .unwrap();
        (printed, out)
    }

    #[tokio::test]
    async fn each_framing_separates_in_its_own_way() {
        assert_eq!(
            written(Framing::Line, b"21.5", 9).await,
            (Printed::Whole(4), b"21.5\n".to_vec())
        );
        assert_eq!(
            written(Framing::Raw, b"21.5", 9).await,
            (Printed::Whole(4), b"21.5".to_vec())
        );
        assert_eq!(
            written(Framing::Nul, b"21.5", 9).await,
            (Printed::Whole(4), b"21.5\0".to_vec())
        );
        assert_eq!(
            written(Framing::Length, b"21.5", 9).await,
            (Printed::Whole(4), b"\0\0\0\x0421.5".to_vec())
        );
    }

    #[tokio::test]
    async fn only_the_holding_framing_is_capped() {
        assert_eq!(
            written(Framing::Length, b"12345", 5).await.0,
            Printed::Whole(5)
        );
        assert_eq!(
            written(Framing::Length, b"123456", 5).await,
            (Printed::TooLong, Vec::new())
        );
        assert_eq!(
            written(Framing::Line, b"123456", 5).await.0,
            Printed::Whole(6)
        );
    }
}
