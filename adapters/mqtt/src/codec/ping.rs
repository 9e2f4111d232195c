//! PINGREQ and PINGRESP: a type and nothing else. [MQTT5 3.12] [MQTT5 3.13]

use super::reader::Reader;
use super::{Packet, PacketType, Violation};

/// Either of the two; a body is malformed.
pub(super) fn decode(packet: PacketType, reader: &Reader) -> Result<Packet, Violation> {
    reader.finish()?;
    Ok(match packet {
        PacketType::Pingresp => Packet::Pingresp,
        _ => Packet::Pingreq,
    })
}
