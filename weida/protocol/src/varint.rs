//! QUIC variable-length integers. [QUIC 9000 16], [wire 1]
//!
//! ```text
//! 00vvvvvv                      6 bits
//! 01vvvvvv vvvvvvvv            14 bits
//! 10vvvvvv + 3 bytes           30 bits
//! 11vvvvvv + 7 bytes           62 bits
//! ```
//!
//! Written in the shortest form; read in any form, as the standard demands.

use bytes::BufMut;

use crate::{error::EncodeError, frame::Decoded};

/// Largest value: 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;
/// Longest form, in bytes.
pub const MAX_ENCODED_LEN: usize = 8;

/// Bytes of the shortest form of `value`. Values above [`MAX`] count as 8.
pub const fn varint_len(value: u64) -> usize {
    match value {
        0..=0x3F => 1,
        0x40..=0x3FFF => 2,
        0x4000..=0x3FFF_FFFF => 4,
        _ => 8,
    }
}

/// Appends the shortest form.
///
/// # Errors
///
/// [`EncodeError::VarintRange`] above [`MAX`].
#[expect(clippy::cast_possible_truncation, reason = "each arm bounds the value")]
pub fn encode_varint(value: u64, out: &mut impl BufMut) -> Result<(), EncodeError> {
    match value {
        0..=0x3F => out.put_u8(value as u8),
        0x40..=0x3FFF => out.put_u16(0x4000 | value as u16),
        0x4000..=0x3FFF_FFFF => out.put_u32(0x8000_0000 | value as u32),
        0x4000_0000..=MAX => out.put_u64(0xC000_0000_0000_0000 | value),
        _ => return Err(EncodeError::VarintRange { value }),
    }
    Ok(())
}

/// Reads a varint off the front of `input`.
pub fn decode_varint(input: &[u8]) -> Decoded<u64> {
    let Some(&first) = input.first() else {
        return Decoded::NeedMore(1);
    };
    let len = 1usize << (first >> 6);
    let Some(bytes) = input.get(..len) else {
        return Decoded::NeedMore(len.saturating_sub(input.len()));
    };
    let value = bytes
        .iter()
        .fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    // The two length bits are on top of whatever width was read.
    let bits = len.saturating_mul(8).saturating_sub(2);
    Decoded::Value {
        value: value & (u64::MAX >> 64usize.saturating_sub(bits)),
        consumed: len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list under [wire 25.1].
    #[test]
    fn wire_25_1_varint_vectors() {
        let rows: [(u64, &[u8]); 8] = [
            (0, &[0x00]),
            (63, &[0x3F]),
            (64, &[0x40, 0x40]),
            (16_383, &[0x7F, 0xFF]),
            (16_384, &[0x80, 0x00, 0x40, 0x00]),
            (1_073_741_823, &[0xBF, 0xFF, 0xFF, 0xFF]),
            (1_073_741_824, &[0xC0, 0, 0, 0, 0x40, 0, 0, 0]),
            (MAX, &[0xFF; 8]),
        ];
        for (value, bytes) in rows {
            let mut out = Vec::new();
            encode_varint(value, &mut out).unwrap();
            assert_eq!((out.as_slice(), varint_len(value)), (bytes, bytes.len()));
            assert_eq!(
                decode_varint(bytes),
                Decoded::Value {
                    value,
                    consumed: bytes.len()
                }
            );
            for cut in 0..bytes.len() {
                let missing = if cut == 0 { 1 } else { bytes.len() - cut };
                assert_eq!(
                    decode_varint(bytes.get(..cut).unwrap()),
                    Decoded::NeedMore(missing)
                );
            }
            out.push(0xAA);
            assert_eq!(
                decode_varint(&out),
                Decoded::Value {
                    value,
                    consumed: bytes.len()
                }
            );
        }
        let mut out = Vec::new();
        let refused = encode_varint(MAX + 1, &mut out);
        assert_eq!(
            (refused, out.len()),
            (Err(EncodeError::VarintRange { value: MAX + 1 }), 0)
        );
    }

    #[test]
    fn longer_forms_are_read() {
        for bytes in [
            &[0x40, 5][..],
            &[0x80, 0, 0, 5],
            &[0xC0, 0, 0, 0, 0, 0, 0, 5],
        ] {
            assert_eq!(
                decode_varint(bytes),
                Decoded::Value {
                    value: 5,
                    consumed: bytes.len()
                }
            );
        }
    }
}
