//! Frame heads: `57 | kind | header length varint | header`. [wire 6]
//!
//! ```text
//!  byte 0   1     2 ..= 9          then
//! +------+------+----------------+------------------+--------------------------+
//! | 0x57 | kind | length, varint | one CBOR map     | payload or records, FIN  |
//! +------+------+----------------+------------------+--------------------------+
//! |<-------- preamble ---------->|<---- header ---->|
//! ```
//!
//! The preamble is the first thing that touches a stranger's bytes, so this is where the header cap
//! is enforced, before a byte is reserved.

mod head;
mod kind;

pub use head::{Head, HeadDecoder, HeadRef, decode_head, encode_frame};
pub use kind::{FrameKind, Position};

use crate::{error::DecodeError, varint};

/// First byte of every stream half.
pub const MAGIC: u8 = 0x57;
/// Longest preamble: magic, kind and an 8-byte varint.
pub const MAX_PREAMBLE_LEN: usize = 2 + varint::MAX_ENCODED_LEN;

/// A decoder's answer to input that is not wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<T> {
    /// A value, and how many bytes of the input it took.
    Value {
        /// The value.
        value: T,
        /// Bytes it took.
        consumed: usize,
    },
    /// The input ends inside the value; at least this many bytes are missing.
    NeedMore(usize),
}

/// Kind and header length of one stream half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// What the stream carries.
    pub kind: FrameKind,
    /// Length of the header that follows, in bytes.
    pub header_len: u64,
}

/// Reads a preamble off the front of `input`; magic and kind are judged as soon as they are there.
///
/// # Errors
///
/// [`DecodeError::BadMagic`], [`DecodeError::UnknownKind`], [`DecodeError::HeaderTooLarge`].
pub fn decode_preamble(
    input: &[u8],
    max_header_bytes: u64,
) -> Result<Decoded<Preamble>, DecodeError> {
    let need = |len: usize| Ok(Decoded::NeedMore(len.saturating_sub(input.len())));
    match input.first() {
        None => return need(3),
        Some(&MAGIC) => {}
        Some(&got) => return Err(DecodeError::BadMagic { got }),
    }
    let Some((&kind, after)) = input.get(1..).and_then(<[u8]>::split_first) else {
        return need(3);
    };
    let kind = FrameKind::from_u8(kind).ok_or(DecodeError::UnknownKind { kind })?;
    match varint::decode_varint(after) {
        Decoded::NeedMore(bytes) => Ok(Decoded::NeedMore(bytes)),
        Decoded::Value {
            value: header_bytes,
            ..
        } if header_bytes > max_header_bytes => Err(DecodeError::HeaderTooLarge {
            header_bytes,
            max_bytes: max_header_bytes,
        }),
        Decoded::Value {
            value: header_len,
            consumed,
        } => Ok(Decoded::Value {
            value: Preamble { kind, header_len },
            consumed: consumed.saturating_add(2),
        }),
    }
}
