//! The payload of a DATAGRAM frame: `varint flow | opaque bytes`. [wire 15.2]

use crate::{error::EncodeError, frame::Decoded, varint};

/// Largest datagram a local transport carries in one record, in bytes. [wire 20.5]
pub const LOCAL_MAX_DATAGRAM: usize = 1200;

/// The prefix of a flow's datagrams in a fixed buffer, and its length.
///
/// # Errors
///
/// [`EncodeError::VarintRange`] above 2^62 - 1, which a counter never reaches.
pub fn flow_prefix(flow: u64) -> Result<([u8; varint::MAX_ENCODED_LEN], usize), EncodeError> {
    let mut prefix = [0; varint::MAX_ENCODED_LEN];
    varint::encode_varint(flow, &mut prefix.as_mut_slice())?;
    Ok((prefix, varint::varint_len(flow)))
}

/// Flow id and payload of a received datagram.
///
/// `None` when it ends inside the id: dropped and counted like an unknown flow, no error.
pub fn split_flow_datagram(datagram: &[u8]) -> Option<(u64, &[u8])> {
    match varint::decode_varint(datagram) {
        Decoded::Value { value, consumed } => Some((value, datagram.get(consumed..)?)),
        Decoded::NeedMore(_) => None,
    }
}
