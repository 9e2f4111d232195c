//! SUBACK: one code per filter, in order. [MQTT5 3.9] [MQTT311 3.9]

use super::ack::AckProperties;
use super::encoder::{Extras, Sink};
use super::reader::{Context, Reader};
use super::{PacketId, PacketType, ReasonCode, Version, Violation};

/// The server's answer to each filter of a SUBSCRIBE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suback {
    /// Identifier of the SUBSCRIBE.
    pub packet_id: PacketId,
    /// Diagnostics; empty in 3.1.1.
    pub properties: AckProperties,
    /// One per filter, in order. 3.1.1 knows one refusal only and is told 0x80 for each.
    pub codes: Vec<ReasonCode>,
}

impl Suback {
    pub(super) fn decode(mut reader: Reader, context: &Context) -> Result<Self, Violation> {
        let packet = PacketType::Suback;
        let packet_id = reader.packet_id(packet)?;
        let properties = AckProperties::decode(&mut reader, packet, context)?;
        let codes = decode_codes(reader, packet, context)?;
        Ok(Self {
            packet_id,
            properties,
            codes,
        })
    }

    pub(super) fn write(&self, version: Version, extras: Extras, sink: &mut dyn Sink) {
        sink.u16(self.packet_id.get());
        if version.is_v5() {
            self.properties.write(extras, sink);
        }
        for code in &self.codes {
            sink.u8(code.suback_byte(version));
        }
    }
}

/// The rest of the packet as codes: at least one, each from the packet's set.
pub(super) fn decode_codes(
    reader: Reader,
    packet: PacketType,
    context: &Context,
) -> Result<Vec<ReasonCode>, Violation> {
    let codes = reader.into_rest();
    if codes.is_empty() {
        return Err(Violation::Truncated {
            wanted_bytes: 1,
            left_bytes: 0,
        });
    }
    codes
        .iter()
        .map(|&code| {
            ReasonCode::from_code(code)
                .filter(|reason| match context.version {
                    Version::V5 => reason.may_stand_in(packet, context.sender()),
                    Version::V311 => matches!(code, 0..=2 | 0x80),
                })
                .ok_or(Violation::AckCode { packet, code })
        })
        .collect()
}
