//! CURSOR: a report about one transfer, a head and then records. [wire 8.6, 14]
//!
//! ```text
//! +-----------------+------------------+
//! | level, varint   | offset, varint   |   until FIN
//! +-----------------+------------------+
//! ```

use weida_core::CursorLevel;

use super::{FrameHeader, Out, require};
use crate::{
    cbor::{Reader, Writer},
    error::{DecodeError, EncodeError},
    frame::Decoded,
    varint,
};

/// Longest record: two 8-byte varints.
pub const MAX_CURSOR_RECORD_LEN: usize = 2 * varint::MAX_ENCODED_LEN;

/// Which transfer the stream reports on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorHeader {
    /// Key 0: the id its DATA header gave.
    pub report_id: u64,
}

/// One step of a report: `level` was reached up to `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorRecord {
    /// What was reached.
    pub level: CursorLevel,
    /// Absolute payload offset in bytes. At most 2^62 - 1.
    pub offset: u64,
}

impl CursorHeader {
    /// Reads a header.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], a violation.
    pub fn decode(header: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(header);
        let mut keys = reader.header_map()?;
        let mut report_id = None;
        while let Some(key) = reader.key(&mut keys)? {
            match key {
                0 => report_id = Some(reader.uint(key)?),
                _ => reader.skip(key)?,
            }
        }
        reader.end()?;
        Ok(Self {
            report_id: require(report_id, 0)?,
        })
    }
}

impl FrameHeader for CursorHeader {
    fn check(&self) -> Result<(), EncodeError> {
        Ok(())
    }

    fn write<B: Out>(&self, out: &mut B) {
        let mut map = Writer::new(out);
        map.map(1);
        map.uint_key(0, self.report_id);
    }
}

/// Appends one record.
///
/// # Errors
///
/// [`EncodeError::VarintRange`] or [`EncodeError::ReservedLevel`]; nothing is appended then.
pub fn encode_cursor_record<B: Out>(record: CursorRecord, out: &mut B) -> Result<(), EncodeError> {
    let level = record.level.to_wire();
    if CursorLevel::from_wire(level).is_none() {
        return Err(EncodeError::ReservedLevel { level });
    }
    if let Some(&value) = [level, record.offset]
        .iter()
        .find(|value| **value > varint::MAX)
    {
        return Err(EncodeError::VarintRange { value });
    }
    varint::encode_varint(level, out)?;
    varint::encode_varint(record.offset, out)
}

/// Reads one record off the front of `input`.
///
/// At FIN the answer [`Decoded::NeedMore`] on a non-empty rest is
/// [`DecodeError::EndInsideRecord`].
///
/// # Errors
///
/// [`DecodeError::ReservedLevel`], a violation, as soon as the level is there.
pub fn decode_cursor_record(input: &[u8]) -> Result<Decoded<CursorRecord>, DecodeError> {
    let (level, at) = match varint::decode_varint(input) {
        // A record is at least two bytes.
        Decoded::NeedMore(bytes) => return Ok(Decoded::NeedMore(bytes.saturating_add(1))),
        Decoded::Value { value, consumed } => (value, consumed),
    };
    let level = CursorLevel::from_wire(level).ok_or(DecodeError::ReservedLevel { level })?;
    Ok(
        match varint::decode_varint(input.get(at..).unwrap_or_default()) {
            Decoded::NeedMore(bytes) => Decoded::NeedMore(bytes),
            Decoded::Value {
                value: offset,
                consumed,
            } => Decoded::Value {
                value: CursorRecord { level, offset },
                consumed: at.saturating_add(consumed),
            },
        },
    )
}
