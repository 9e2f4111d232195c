//! Whole heads: from one slice, from chunks as they arrive, and into a buffer.

use bytes::{Buf, Bytes, BytesMut};

use super::{Decoded, FrameKind, MAGIC, MAX_PREAMBLE_LEN, Preamble, decode_preamble};
use crate::{
    error::{DecodeError, EncodeError},
    header::{FrameHeader, Out},
    varint,
};

/// A complete head inside the slice it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadRef<'a> {
    /// What the stream carries.
    pub kind: FrameKind,
    /// The header's bytes, one CBOR map if the peer behaves.
    pub header: &'a [u8],
}

/// A complete head cut off the chunks it arrived in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// What the stream carries.
    pub kind: FrameKind,
    /// The header's bytes, one CBOR map if the peer behaves.
    pub header: Bytes,
}

/// Reads preamble and header off the front of `input`.
///
/// # Errors
///
/// Those of [`decode_preamble`].
pub fn decode_head(
    input: &[u8],
    max_header_bytes: u64,
) -> Result<Decoded<HeadRef<'_>>, DecodeError> {
    let (preamble, at) = match decode_preamble(input, max_header_bytes)? {
        Decoded::NeedMore(bytes) => return Ok(Decoded::NeedMore(bytes)),
        Decoded::Value { value, consumed } => (value, consumed),
    };
    let len = usize::try_from(preamble.header_len).unwrap_or(usize::MAX);
    let rest = input.get(at..).unwrap_or_default();
    Ok(match rest.get(..len) {
        Some(header) => Decoded::Value {
            value: HeadRef {
                kind: preamble.kind,
                header,
            },
            consumed: at.saturating_add(len),
        },
        None => Decoded::NeedMore(len.saturating_sub(rest.len())),
    })
}

/// Appends preamble and header. Nothing is appended on an error.
///
/// # Errors
///
/// Those of the header's own encoder.
pub fn encode_frame<B: Out>(
    kind: FrameKind,
    header: &impl FrameHeader,
    out: &mut B,
) -> Result<(), EncodeError> {
    header.check()?;
    let start = out.as_ref().len();
    // Most headers are shorter than 64 bytes, so one length byte is the guess.
    out.put_slice(&[MAGIC, kind.to_u8(), 0]);
    let body = out.as_ref().len();
    header.write(out);
    let len = out.as_ref().len().saturating_sub(body);
    let wide = varint::varint_len(len as u64).saturating_sub(1);
    if wide > 0 {
        out.put_bytes(0, wide);
        if let Some(tail) = out.as_mut().get_mut(body..) {
            tail.copy_within(..len, wide);
        }
    }
    let at = start.saturating_add(2);
    if let Some(mut slot) = out
        .as_mut()
        .get_mut(at..at.saturating_add(wide).saturating_add(1))
    {
        varint::encode_varint(len as u64, &mut slot)?;
    }
    Ok(())
}

/// Collects one head from chunks; takes exactly its bytes and leaves the payload behind.
///
/// Holds what has arrived and nothing more: at most a preamble and `max_header_bytes`, and not even
/// that when the head lies in one chunk, which is then shared, not copied.
///
/// ```
/// use bytes::Bytes;
/// use weida_protocol::{FrameKind, HeadDecoder};
///
/// let mut decoder = HeadDecoder::new(16_384);
/// let mut first = Bytes::from_static(&[0x57, 1]);
/// assert_eq!(decoder.feed(&mut first)?, None);
/// let mut second = Bytes::from_static(&[1, 0xA0, b'h', b'i']);
/// let head = decoder.feed(&mut second)?.expect("complete now");
/// assert_eq!((head.kind, &head.header[..], &second[..]), (FrameKind::Data, &[0xA0][..], &b"hi"[..]));
/// # Ok::<(), weida_protocol::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct HeadDecoder {
    max_header_bytes: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Preamble {
        bytes: [u8; MAX_PREAMBLE_LEN],
        len: usize,
    },
    Header {
        preamble: Preamble,
        bytes: BytesMut,
    },
}

impl HeadDecoder {
    /// A decoder at the start of a stream half. The cap is the local `max_header_bytes`.
    pub const fn new(max_header_bytes: u64) -> Self {
        Self {
            max_header_bytes,
            state: State::Preamble {
                bytes: [0; MAX_PREAMBLE_LEN],
                len: 0,
            },
        }
    }

    /// Takes what belongs to the head off the front of `chunk`; the head once it is complete.
    ///
    /// After a head or an error the decoder is spent: make a new one for the next stream half.
    ///
    /// # Errors
    ///
    /// Those of [`decode_preamble`].
    pub fn feed(&mut self, chunk: &mut Bytes) -> Result<Option<Head>, DecodeError> {
        if let State::Preamble { bytes, len } = &mut self.state {
            let Some(preamble) = read_preamble(bytes, len, self.max_header_bytes, chunk)? else {
                return Ok(None);
            };
            self.state = State::Header {
                preamble,
                bytes: BytesMut::new(),
            };
        }
        let State::Header { preamble, bytes } = &mut self.state else {
            return Ok(None);
        };
        let wanted = usize::try_from(preamble.header_len).unwrap_or(usize::MAX);
        let missing = wanted.saturating_sub(bytes.len());
        if bytes.is_empty() && chunk.len() >= wanted {
            let header = chunk.split_to(wanted);
            return Ok(Some(Head {
                kind: preamble.kind,
                header,
            }));
        }
        let part = chunk.split_to(missing.min(chunk.len()));
        bytes.extend_from_slice(&part);
        Ok((bytes.len() == wanted).then(|| Head {
            kind: preamble.kind,
            header: std::mem::take(bytes).freeze(),
        }))
    }

    /// The preamble, once it has been read and checked.
    pub const fn preamble(&self) -> Option<Preamble> {
        match &self.state {
            State::Preamble { .. } => None,
            State::Header { preamble, .. } => Some(*preamble),
        }
    }

    /// Bytes held now.
    pub fn buffered_bytes(&self) -> usize {
        match &self.state {
            State::Preamble { len, .. } => *len,
            State::Header { bytes, .. } => bytes.len(),
        }
    }

    /// Judges a FIN that comes before the head is complete.
    ///
    /// `Ok` means the stream is given up and the connection lives: FIN inside a header is no
    /// violation, FIN inside a preamble is one. [wire 17]
    ///
    /// # Errors
    ///
    /// [`DecodeError::EndInsidePreamble`].
    pub const fn at_fin(&self) -> Result<(), DecodeError> {
        match &self.state {
            State::Preamble { .. } => Err(DecodeError::EndInsidePreamble),
            State::Header { .. } => Ok(()),
        }
    }
}

fn read_preamble(
    held: &mut [u8; MAX_PREAMBLE_LEN],
    len: &mut usize,
    max_header_bytes: u64,
    chunk: &mut Bytes,
) -> Result<Option<Preamble>, DecodeError> {
    loop {
        let known = held.get(..*len).unwrap_or_default();
        let missing = match decode_preamble(known, max_header_bytes)? {
            Decoded::Value { value, .. } => return Ok(Some(value)),
            Decoded::NeedMore(missing) => missing,
        };
        if chunk.is_empty() {
            return Ok(None);
        }
        let take = missing.min(chunk.len());
        let Some(slot) = held.get_mut(*len..len.saturating_add(take)) else {
            return Ok(None);
        };
        chunk.copy_to_slice(slot);
        *len = len.saturating_add(take);
    }
}
