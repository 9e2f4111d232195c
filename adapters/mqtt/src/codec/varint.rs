//! Variable Byte Integers: seven bits a byte, low group first, at most four bytes, minimal. [MQTT5 1.5.5]

use super::Violation;

/// Largest value four groups can hold.
pub const MAX_VARINT: u32 = 268_435_455;

/// Reads an integer from the front of `bytes`.
///
/// `Ok(None)` means that the bytes so far are a legal beginning and more are needed.
///
/// # Errors
///
/// [`Violation::VarintTooLong`] as soon as the fourth byte says that a fifth follows, [`Violation::VarintNotMinimal`]
/// when the last group adds nothing. [MQTT-1.5.5-1]
pub(super) fn decode(bytes: &[u8]) -> Result<Option<(u32, usize)>, Violation> {
    let mut value = 0u32;
    let mut shift = 0u32;
    for (index, &byte) in bytes.iter().take(4).enumerate() {
        value |= u32::from(byte & 0x7f) << shift;
        shift = shift.saturating_add(7);
        if byte & 0x80 == 0 {
            if byte == 0 && index > 0 {
                return Err(Violation::VarintNotMinimal);
            }
            return Ok(Some((value, index.saturating_add(1))));
        }
    }
    if bytes.len() >= 4 {
        return Err(Violation::VarintTooLong);
    }
    Ok(None)
}

/// Bytes that `value` takes on the wire: 1 to 4.
pub(super) const fn encoded_len(value: u32) -> usize {
    match value {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        0x4000..=0x001f_ffff => 3,
        _ => 4,
    }
}

/// The wire form: the bytes and how many of them count. `value` is at most [`MAX_VARINT`].
pub(super) const fn encode(value: u32) -> ([u8; 4], usize) {
    debug_assert!(value <= MAX_VARINT, "a variable byte integer has 28 bits");
    // The low bytes of the shifted words, so that no cast can lose a bit that matters.
    let [a, ..] = value.to_le_bytes();
    let [b, ..] = (value >> 7).to_le_bytes();
    let [c, ..] = (value >> 14).to_le_bytes();
    let [d, ..] = (value >> 21).to_le_bytes();
    match encoded_len(value) {
        1 => ([a, 0, 0, 0], 1),
        2 => ([a | 0x80, b, 0, 0], 2),
        3 => ([a | 0x80, b | 0x80, c, 0], 3),
        _ => ([a | 0x80, b | 0x80, c | 0x80, d & 0x7f], 4),
    }
}
